"""A report in a browser: filters, widths, colours, print, and nothing that is fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

from pages import a_browser, axe_violations
from sentence_runs import train

from treelax.cli.main import main
from treelax.report.gallery import PRINTED

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROWS = [
    ("<script>document.title='broken'</script> good film", "yes"),
    (f"a plot {'w' * 120} bad", "no"),
    ("שלום עולם good", "yes"),
    ("the plot was " * 66 + "bad", "no"),
    *((f"the film was {word}", "yes") for word in ("good", "fine")),
    *((f"a {word} plot", "no") for word in ("bad", "sad")),
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
    everything = list(range(1, len(ROWS) + 1))
    assert page.title() == "Report of 2 runs"
    assert shown(page) == everything
    page.fill("#f-text", "PLOT")
    assert shown(page) == [2, 4, 7, 8]
    page.fill("#f-most", "10")
    assert shown(page) == [2, 7, 8]
    assert page.text_content("#shown") == "3 of 8 examples"
    page.select_option("#f-label", label="yes")
    assert shown(page) == []
    assert page.is_visible("#none")
    page.click("button[type=reset]")
    page.locator(".example:visible").nth(7).wait_for()
    assert shown(page) == everything
    assert not page.is_visible("#none")
    page.fill("#f-least", "")
    page.select_option("#f-label", label="yes")
    assert shown(page) == [1, 3, 5, 6]


def test_right_and_wrong_of_a_run(visit: Visit) -> None:
    """Of all runs, or of the chosen one, whose trees alone are then shown."""
    page = visit()
    verdicts = page.locator(".example").evaluate_all(
        "all => all.map(one => [...one.querySelectorAll('div.said')].map(s => s.dataset.right))"
    )
    numbered = list(enumerate(verdicts, 1))
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
    assert not page.is_visible("#filters")


def test_on_paper(visit: Visit) -> None:
    """Dark on white whatever the screen is like, no form, and trees no wider than the page."""
    page = visit(700, color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.is_visible("#filters")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    widths = page.locator("svg.treelax").evaluate_all("all => all.map(one => one.clientWidth)")
    assert max(widths) <= 700
    assert page.pdf()[:4] == b"%PDF"


def test_paper_has_a_dozen_examples(visit: Visit) -> None:
    """Those that the filters let pass: the first dozen of them."""
    page = visit()
    page.evaluate(
        "() => { const box = document.querySelector('.gallery');"
        "for (const one of [...box.children]) box.append(one.cloneNode(true), one.cloneNode(true)) }"
    )
    examples = page.locator(".gallery .example:visible")
    assert examples.count() == 3 * len(ROWS)
    page.emulate_media(media="print")
    assert examples.count() == PRINTED
    page.evaluate(
        "() => [...document.querySelectorAll('.example')].slice(0, 3).map(e => e.hidden = true)"
    )
    assert examples.count() == PRINTED
    assert page.locator(".example").nth(PRINTED + 2).is_visible()


def test_axe_finds_nothing(visit: Visit) -> None:
    # the page's own policy lets no other script run in it
    page = visit(360, color_scheme="dark", bypass_csp=True)
    page.locator("summary").first.click()
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
