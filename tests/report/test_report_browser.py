"""A report in a browser: menu, tips, filters, widths, colours, print, and nothing that is fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

from pages import a_browser, axe_violations
from sentence_runs import train

from treelax.__main__ import main
from treelax.lab.report.gallery import FIRST

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROWS = [
    ("<script>document.title='broken'</script> good film", "yes"),
    (f"a plot {'w' * 120} bad", "no"),
    ("שלום עולם good", "yes"),
    ("the plot was " * 66 + "bad", "no"),
    *((f"the film was {word}", "yes") for word in ("good", "fine")),
    *((f"a {word} plot", "no") for word in ("bad", "sad")),
    *((" ".join(["good"] * times), "yes") for times in range(2, 8)),
]
Visit = Callable[..., "Page"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two runs on sentences that are hard to show."""
    folder = tmp_path_factory.mktemp("browser")
    runs = [str(train("classify", folder / f"run-{seed}", seed=seed)) for seed in (0, 1)]
    data = folder / "data.tsv"
    data.write_text("review\tliked\n" + "".join(f"{text}\t{label}\n" for text, label in ROWS))
    out = folder / "report.html"
    arguments = ["--data", str(data), "--tokens", "--out", str(out), "--device", "cpu"]
    assert main(["report", *runs, *arguments]) == 0
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser, report: Path) -> Iterator[Visit]:
    """Opens the report; at the end nothing may have gone wrong or been asked for."""
    complaints: list[str] = []
    asked: list[str] = []
    contexts = []

    def come(width: int = 1280, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(report.as_uri())
        return page

    yield come
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url for url in asked if not url.startswith("data:")} == {report.as_uri()}


def shown(page: Page) -> list[int]:
    """The numbers of the examples that can be seen, from 1."""
    found = page.locator(".example:visible h3").evaluate_all(
        "all => all.map(heading => heading.firstChild.textContent)"
    )
    return [int(text.removeprefix("Example ")) for text in found]


def test_the_policy_refuses_other_scripts(browser: Browser, report: Path) -> None:
    page = browser.new_page()
    page.goto(report.as_uri())
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        page.evaluate(
            "() => { const more = document.createElement('script');"
            " more.textContent = 'document.title = 1'; document.body.append(more); }"
        )
    assert page.title() == "Report of 2 runs"
    page.close()


def test_examples_and_filters(visit: Visit) -> None:
    """A dozen examples, more at a click; filters by words, length, label, right and wrong."""
    page = visit()
    first, every = list(range(1, FIRST + 1)), list(range(1, len(ROWS) + 1))
    assert page.title() == "Report of 2 runs"
    assert shown(page) == first
    page.click("text=Find examples")
    page.fill("#f-text", "PLOT")
    assert shown(page) == [2, 4, 7, 8]
    page.fill("#f-most", "10")
    assert shown(page) == [2, 7, 8]
    assert page.text_content("#shown") == "3 of 14 examples"
    page.select_option("#f-label", label="yes")
    assert shown(page) == []
    assert page.is_visible("#none")
    page.click("button[type=reset]")
    page.locator(".example:visible").nth(FIRST - 1).wait_for()
    assert shown(page) == first
    page.click("#more")
    assert shown(page) == every
    assert page.evaluate("document.activeElement.innerText").startswith(f"Example {FIRST + 1}")
    verdicts = page.locator(".example").evaluate_all(
        "all => all.map(one => [...one.querySelectorAll('div.said')].map(s => s.dataset.right))"
    )
    numbered = list(enumerate(verdicts, 1))
    page.select_option("#f-right", label="right")
    assert shown(page) == [i for i, both in numbered if both == ["1", "1"]]
    page.select_option("#f-right", label="wrong")
    assert shown(page) == [i for i, both in numbered if "0" in both]
    page.select_option("#f-run", label="run-1/run")  # whose trees alone are then shown
    assert shown(page) == [i for i, both in numbered if both[1] == "0"]
    page.select_option("#f-right", label="all")
    assert set(page.locator("div.said:visible .run").all_text_contents()) == {"run-1/run"}


def test_on_paper_and_without_a_script(visit: Visit) -> None:
    """Dark on white, no form, a dozen trees no wider than the page; all examples without a script."""
    page = visit(700, color_scheme="dark")
    page.click("#more")
    page.emulate_media(media="print")
    assert shown(page) == list(range(1, FIRST + 1))
    assert not page.is_visible("#filters")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    widths = page.locator("svg.treelax").evaluate_all("all => all.map(one => one.clientWidth)")
    assert max(widths) <= 700
    assert page.pdf()[:4] == b"%PDF"
    page = visit(java_script_enabled=False)
    assert page.locator(".example:visible").count() == len(ROWS)
    assert not page.is_visible(".filters")
    assert not page.is_visible("#more")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_the_page_is_for_everyone(visit: Visit, width: int, scheme: Any) -> None:
    """Menu, tips and boxes by pointer and keyboard; axe finds nothing, nothing jumps or is cut off."""
    # the page's own policy lets no other script run in it
    page = visit(width, color_scheme=scheme, bypass_csp=True)
    sentences = page.locator(".learned p:not(.note)")
    assert sentences.count() == 3
    box = sentences.last.bounding_box() or {}
    assert box["y"] + box["height"] <= 844  # on the first screen of a phone
    heading, tip = page.locator(".tip", has_text="left to right, %").first, page.locator("#tip")
    heading.scroll_into_view_if_needed()
    heading.hover()
    assert tip.inner_text() == "arcs whose head stands left of the modifier"
    box = tip.bounding_box() or {}
    assert 0 <= box["x"] <= box["x"] + box["width"] <= width
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.locator("#trees .tip").focus()
    assert page.get_attribute("#trees .tip", "aria-describedby") == "tip"
    page.keyboard.press("Tab")
    assert page.get_attribute("#trees .tip", "aria-describedby") is None
    for name in ("Settings", "Trees"):
        page.click(f"nav >> text={name}")
        page.wait_for_function(
            "name => document.querySelector('nav [aria-current]').innerText === name", arg=name
        )
        menu, section = (
            page.locator(at).bounding_box() or {} for at in ("nav", f"#{name.lower()}")
        )
        assert menu["y"] == 0
        assert menu["height"] <= section["y"] < 900
    shifts = page.evaluate(
        "() => new Promise(done => new PerformanceObserver(list => done(list.getEntries()"
        ".filter(entry => !entry.hadRecentInput).map(entry => entry.value)))"
        ".observe({type: 'layout-shift', buffered: true}) || setTimeout(() => done([]), 300))"
    )
    assert sum(shifts) < 0.1
    page.click("#more")
    for summary in page.locator("summary:visible").all():
        summary.click()
    page.locator("#results .tip").focus()
    assert page.is_visible("#tip")
    assert axe_violations(page) == []
    for other in (width, 360):  # boxes scroll, the page does not
        page.set_viewport_size({"width": other, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == other
    long = page.locator(".example").nth(3).locator(".scroll").first
    assert long.evaluate("box => box.scrollWidth") > 360
    long.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("box => box.scrollLeft > 0", arg=long.element_handle())
    assert long.get_attribute("aria-label") == "Tree of run-0/run for example 4"
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    brightness = [sum(map(int, c[4:-1].split(", "))) for c in (ink, paper)]
    assert (brightness[0] > brightness[1]) == (scheme == "dark")
