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


def test_the_filters(visit: Visit) -> None:
    page = visit()
    first = list(range(1, FIRST + 1))
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
    assert not page.is_visible("#none")
    page.fill("#f-least", "")
    page.select_option("#f-label", label="yes")
    assert shown(page) == [1, 3, 5, 6, *range(9, 15)]
    assert not page.is_visible("#more")


def test_right_and_wrong_of_a_run(visit: Visit) -> None:
    """Of all runs, or of the chosen one, whose trees alone are then shown."""
    page = visit()
    verdicts = page.locator(".example").evaluate_all(
        "all => all.map(one => [...one.querySelectorAll('div.said')].map(s => s.dataset.right))"
    )
    numbered = list(enumerate(verdicts, 1))
    page.click("#more")
    page.click("text=Find examples")
    page.select_option("#f-right", label="right")
    assert shown(page) == [i for i, own in numbered if own == ["1", "1"]]
    page.select_option("#f-right", label="wrong")
    assert shown(page) == [i for i, own in numbered if "0" in own]
    page.select_option("#f-run", label="run-1/run")
    assert shown(page) == [i for i, own in numbered if own[1] == "0"]
    page.select_option("#f-right", label="all")
    assert page.locator("div.said:visible").count() == len(ROWS)
    assert set(page.locator("div.said:visible .run").all_text_contents()) == {"run-1/run"}


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_boxes_scroll_and_the_page_does_not(visit: Visit, width: int, scheme: Any) -> None:
    page = visit(width, color_scheme=scheme)
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    long = page.locator(".example").nth(3).locator(".scroll").first
    assert long.evaluate("box => box.scrollWidth") > width
    # such a box can be reached and moved by keyboard; one with nothing to scroll is no stop
    long.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("box => box.scrollLeft > 0", arg=long.element_handle())
    assert long.get_attribute("aria-label") == "Tree of run-0/run for example 4"
    short = page.locator(".example").nth(4).locator(".scroll").first
    if short.evaluate("box => box.scrollWidth <= box.clientWidth"):
        assert short.get_attribute("tabindex") is None
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    brightness = [sum(map(int, c[4:-1].split(", "))) for c in (ink, paper)]
    assert (brightness[0] > brightness[1]) == (scheme == "dark")


def test_without_a_script(visit: Visit) -> None:
    """All examples are there, and no form that does nothing."""
    page = visit(java_script_enabled=False)
    assert page.locator(".example:visible").count() == len(ROWS)
    assert not page.is_visible(".filters")
    assert not page.is_visible("#more")
    assert page.is_visible("text=arcs whose head stands left of the modifier")


def test_on_paper(visit: Visit) -> None:
    """Dark on white whatever the screen is like, no form, and trees no wider than the page."""
    page = visit(700, color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.is_visible("#filters")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    widths = page.locator("svg.treelax").evaluate_all("all => all.map(one => one.clientWidth)")
    assert max(widths) <= 700
    assert page.pdf()[:4] == b"%PDF"


def test_a_dozen_examples_and_more(visit: Visit) -> None:
    """On paper always a dozen: the first of those that the filters let pass."""
    page = visit()
    assert shown(page) == list(range(1, FIRST + 1))
    assert page.inner_text("#more") == f"Show {len(ROWS) - FIRST} more examples"
    page.click("#more")
    assert shown(page) == list(range(1, len(ROWS) + 1))
    assert not page.is_visible("#more")
    assert page.evaluate("document.activeElement.innerText").startswith(f"Example {FIRST + 1}")
    page.emulate_media(media="print")
    assert shown(page) == list(range(1, FIRST + 1))
    page.evaluate(
        "() => [...document.querySelectorAll('.example')].slice(0, 2).map(e => e.hidden = true)"
    )
    assert shown(page) == list(range(3, len(ROWS) + 1))


@pytest.mark.parametrize("width", [390, 1440])
def test_the_menu_stays_and_leads_to_sections(visit: Visit, width: int) -> None:
    page = visit(width)
    for name in ("Settings", "Trees"):
        page.click(f"nav >> text={name}")
        page.wait_for_function(
            "name => document.querySelector('nav [aria-current]').innerText === name", arg=name
        )
        menu, heading = (page.locator(own).bounding_box() for own in ("nav", f"#{name.lower()}"))
        assert menu is not None
        assert heading is not None
        assert menu["y"] == 0
        assert menu["height"] <= heading["y"] < 900


def test_the_first_screen_of_a_phone_says_what_was_learned(visit: Visit) -> None:
    page = visit(390)
    sentences = page.locator(".learned p:not(.note)")
    assert sentences.count() == 3
    box = sentences.last.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 844


def test_headings_explain_themselves(visit: Visit) -> None:
    """Under the pointer and under the keyboard, within the window; Escape closes."""
    page = visit(390)
    assert not page.is_visible(".spelled >> nth=0")
    heading = page.locator(".tip", has_text="left to right, %").first
    heading.scroll_into_view_if_needed()
    heading.hover()
    tip = page.locator("#tip")
    assert tip.inner_text() == "arcs whose head stands left of the modifier"
    box = tip.bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 390
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.locator("#trees .tip").focus()
    assert tip.inner_text().startswith("What the trees look like")
    assert page.get_attribute("#trees .tip", "aria-describedby") == "tip"
    page.keyboard.press("Tab")
    assert page.get_attribute("#trees .tip", "aria-describedby") is None


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_nothing_jumps(visit: Visit, width: int) -> None:
    """Neither while the page loads nor when a tip is shown."""
    page = visit(width)
    page.hover("#results .tip")
    page.mouse.wheel(0, 3000)
    page.wait_for_timeout(200)
    shifts = page.evaluate(
        "() => new Promise(done => new PerformanceObserver(list => done(list.getEntries()"
        ".map(entry => entry.value))).observe({type: 'layout-shift', buffered: true})"
        " || setTimeout(() => done([]), 300))"
    )
    assert sum(shifts) < 0.1


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1440, "light")])
def test_axe_finds_nothing(visit: Visit, width: int, scheme: Any) -> None:
    # the page's own policy lets no other script run in it
    page = visit(width, color_scheme=scheme, bypass_csp=True)
    page.click("#more")
    for summary in page.locator("summary:visible").all():
        summary.click()
    page.locator("#results .tip").focus()
    assert page.is_visible("#tip")
    assert axe_violations(page) == []


def test_the_policy_refuses_other_scripts(browser: Browser, report: Path) -> None:
    page = browser.new_page()
    page.goto(report.as_uri())
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.evaluate(
        "() => { const more = document.createElement('script');"
        " more.textContent = 'document.title = 1'; document.body.append(more); }"
    )
    assert page.title() == "Report of 2 runs"
    assert any("Content Security Policy" in text for text in refused)
    page.close()
