"""The page for everyone: narrow and wide, light and dark, by keyboard, for screen readers."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

from demo_visits import WORDS, Visitor, eventually
from pages import axe_violations

LONG = f"{WORDS} {'x' * 99}"
STATES: dict[str, dict[str, object]] = {
    "sentence": dict(source="random", text=LONG, samples=20, pinned="4-3", edits="1-2:3"),
    "expression": {"source": "listops", "text": "[MAX 2 9 [MIN 4 7 ] 0 ]"},
}
# what does not fit into a window of some width
CUT_OFF = """(all, width) => all.filter((e) => e.checkVisibility())
  .map((e) => [e.id || e.textContent, e.getBoundingClientRect()])
  .filter(([, box]) => box.left < 0 || box.right > width + 0.5).map(([name]) => name)"""


def test_pictures_can_be_seen_while_a_slider_moves_on_a_phone(visitor: Visitor) -> None:
    visit = visitor(390, has_touch=True).open(**STATES["expression"])
    page = visit.page
    page.set_viewport_size({"width": 390, "height": 844})
    for picture in ("soft-arcs", "best-arcs", "heat-perturbed", "heat-marginals"):
        page.evaluate("id => document.getElementById(id).scrollIntoView()", picture)
        sliders = page.locator("#temperature, #noise, #resample")
        boxes = [sliders.nth(at).bounding_box() or {} for at in range(3)]
        assert all(box["y"] >= 0 and box["y"] + box["height"] < 130 for box in boxes)
        shown = page.locator(f"#{picture}").bounding_box() or {}
        # right below the sliders, and whole; unless it is all the way down the page
        assert max(box["y"] + box["height"] for box in boxes) < shown["y"]
        assert shown["y"] + shown["height"] < 844
    heights = page.locator("button, select, textarea, .choice label").evaluate_all(
        "all => all.filter(e => e.checkVisibility()).map(e => e.getBoundingClientRect().height)"
    )
    assert min(heights) >= 24  # WCAG 2.2, target size
    # and a slider does what it says there
    page.fill("#temperature", "2")
    visit.shows_its_state(temperature="100")


def test_the_order_of_the_focus(visitor: Visitor) -> None:
    """What the tab key comes to, each with a focus that can be seen."""
    page = visitor().open(**STATES["sentence"]).page
    page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges()")
    order: list[str] = []
    for _ in range(80):
        page.keyboard.press("Tab")
        name, style, width = page.evaluate(
            "() => { const e = document.activeElement, s = getComputedStyle(e);"
            " return [e.id || e.name || e.getAttribute('aria-label') || e.textContent.trim(),"
            " s.outlineStyle, parseFloat(s.outlineWidth)]; }"
        )
        if page.evaluate("document.activeElement === document.body"):
            break
        assert (style, width >= 2) == ("solid", True), name
        order.append(name)
    assert order == [
        *("Skip to the soft tree", "tour", "link", "text", "Who has the telescope?"),
        *("Garden path", "Nested list", "Tie", "Long sentence", "Binary tree"),
        *("source", "new-scores", "noise", "temperature", "resample", "noise-seed", "relative"),
        *("structure", "estimator", "relaxation", "roots", "Change an arc"),
        *("arc-head", "arc-word", "arc-score", "pin", "forbid", "free", "click"),
        *("4 watched → 3 cat pinned", "1 the → 2 old score 3", "free-all", "heat-scores"),
        *(
            "Soft tree; arrow keys go from word to word",
            "Best trees; arrow keys go from word to word",
        ),
        *("draw-1", "draw-10", "draw-100", "play", "start-over"),
        *("Last sample; arrow keys go from word to word", "All words in a table", "interface"),
    ]
    page.focus("a.skip")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "step-3"


@pytest.mark.parametrize(
    ("width", "scheme", "state"),
    [
        *((390, "light", "expression"), (1024, "light", "sentence"), (1440, "light", "expression")),
        *((390, "dark", "sentence"), (1024, "dark", "expression"), (1440, "dark", "sentence")),
    ],
)
def test_axe_finds_nothing(visitor: Visitor, width: int, scheme: str, state: str) -> None:
    # the page's own policy lets no other script run in it
    visit = visitor(width, scheme, bypass_csp=True).open(**STATES[state])
    visit.page.click("#words summary")
    assert axe_violations(visit.page) == []
    page = visit.page
    for other in (360, 390, 768, 1024, 1440):  # and none is wider than its window
        page.set_viewport_size({"width": other, "height": 900})
        # matrices are drawn anew a frame later
        eventually(lambda: page.evaluate("document.documentElement.scrollWidth") <= other, True)  # noqa: B023
        parts = page.locator("button, select, input, textarea, canvas, h2, .note")
        eventually(lambda: parts.evaluate_all(CUT_OFF, other), [])  # noqa: B023
    if state == "expression":
        visit.page.fill("#text", "")
        visit.page.locator("#problem:not([hidden])").wait_for()
        assert axe_violations(visit.page) == []
        visit.refused("409")
