"""The page for everyone: narrow and wide, light and dark, by keyboard, for screen readers."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

from browsing import axe_violations
from demo_browser import WORDS, Visit, Visitor, eventually

LONG = " ".join(f"word{i}" for i in range(1, 31))
STATES: dict[str, dict[str, object]] = {
    "sentence": {
        "source": "random",
        "text": WORDS,
        "samples": 20,
        "pinned": "4-3",
        "edits": "1-2:3",
    },
    "expression": {"source": "listops", "text": "[MAX 2 9 [MIN 4 7 ] 0 ]"},
    "thirty words": {"source": "random", "text": LONG, "samples": 5},
    "one long word": {"source": "zero", "text": "x" * 300 + " y", "forbidden": "1-2"},
}
# what does not fit into a window of some width
CUT_OFF = """(all, width) => all.filter((e) => e.checkVisibility())
  .map((e) => [e.id || e.textContent, e.getBoundingClientRect()])
  .filter(([, box]) => box.left < 0 || box.right > width + 0.5).map(([name]) => name)"""
# every text and the colours of the nearest background, with the share that 4.5 : 1 is short of
CONTRASTS = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255).map(
      (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, a = 1] = numbers(getComputedStyle(at).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility({ visibilityProperty: true }))
      continue;
    const style = getComputedStyle(element);
    const ink = light(numbers(element.namespaceURI.endsWith("svg") ? style.fill : style.color));
    const paper = light(behind(element));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < 4.5) low.push([walker.currentNode.data.trim(), ratio]);
  }
  return low;
}"""


@pytest.mark.parametrize("state", STATES)
def test_no_page_is_wider_than_its_window(visitor: Visitor, state: str) -> None:
    page = visitor(360).open(**STATES[state]).page
    for width in (360, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        # matrices are drawn anew a frame later
        eventually(lambda: page.evaluate("document.documentElement.scrollWidth") <= width, True)  # noqa: B023
        parts = page.locator("button, select, input, textarea, canvas, h2, .note")
        eventually(lambda: parts.evaluate_all(CUT_OFF, width), [])  # noqa: B023


def test_matrices_fit_and_targets_can_be_touched_on_a_phone(visitor: Visitor) -> None:
    page = visitor(360, has_touch=True).open(**STATES["thirty words"]).page
    sizes = page.locator(".heat canvas").evaluate_all(
        "all => all.map(e => [e.getBoundingClientRect().width, e.parentElement.clientWidth])"
    )
    assert len(sizes) == 5
    assert all(200 < own <= room for own, room in sizes)
    heights = page.locator("button, select, textarea, .choice label").evaluate_all(
        "all => all.filter(e => e.checkVisibility()).map(e => e.getBoundingClientRect().height)"
    )
    assert min(heights) >= 24  # WCAG 2.2, target size


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
    # and a slider does what it says there
    page.fill("#temperature", "2")
    visit.shows_its_state(temperature="100")


def test_sliders_leave_a_low_window_to_the_pictures(visitor: Visitor) -> None:
    page = visitor(700).open(**STATES["expression"]).page
    page.set_viewport_size({"width": 700, "height": 360})
    page.evaluate("document.getElementById('soft-arcs').scrollIntoView()")
    box = page.locator("#temperature").bounding_box() or {}
    assert box["y"] < 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(visitor: Visitor, scheme: str) -> None:
    visit = visitor(color_scheme=scheme).open(**STATES["sentence"])
    visit.page.click("summary")
    visit.page.click("#play")
    visit.page.click("#play")
    visit.shows_its_state(samples="21")
    assert visit.page.evaluate(CONTRASTS) == []
    visit.page.fill("#text", "")
    visit.page.locator("#alert:not([hidden])").wait_for()
    assert visit.page.evaluate(CONTRASTS) == []
    visit.complaints.clear()


def test_that_contrast_can_fail(visitor: Visitor) -> None:
    page = visitor().open().page
    page.evaluate("document.querySelector('h1').style.color = 'rgb(180, 180, 180)'")
    assert [text for text, _ in page.evaluate(CONTRASTS)] == ["treelax"]


def test_names_roles_and_structure(visitor: Visitor) -> None:
    visit = visitor().open(**STATES["sentence"])
    page = visit.page
    page.click("summary")
    assert page.get_attribute("html", "lang") == "en"
    assert page.title()
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    ids = page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
    assert len(set(ids)) == len(ids)
    for reference in ("aria-labelledby", "aria-describedby", "for"):
        named = page.locator(f"[{reference}]").evaluate_all(
            f"all => all.flatMap(e => e.getAttribute('{reference}').split(' '))"
        )
        assert set(named) <= set(ids)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll(
            "input, select, textarea, button, [role=img], [role=region], [role=application], a")]
          .filter((e) => !(e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim()))
          .map((e) => e.outerHTML)"""
    )
    assert nameless == []
    # what assistive technology makes of it
    for role, name in [
        ("combobox", "Scores from"),
        ("textbox", "Sentence or expression"),
        ("slider", "Temperature"),
        ("slider", "Noise scale"),
        ("spinbutton", "Seed"),
        ("radio", "entropy"),
        ("group", "Relaxation"),
        ("combobox", "Head"),
        ("spinbutton", "Score"),
        ("button", "Pin"),
        ("application", "Scores"),
        ("button", "Draw one"),
        ("list", "Changed arcs; each button resets one"),
        ("button", "4 watched → 3 cat pinned"),
        ("table", None),
        ("columnheader", "best head"),
        ("rowheader", "cat"),
        ("status", None),
    ]:
        found: Any = page.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type]
        assert found.count() >= 1, (role, name)
    assert page.get_attribute("#temperature", "aria-valuetext") == "1.00"


def tab_through(visit: Visit) -> list[str]:
    """The elements that the tab key comes to, in its order, each with a focus that can be seen."""
    page = visit.page
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
    return order


def test_the_order_of_the_focus(visitor: Visitor) -> None:
    visit = visitor().open(**STATES["sentence"])
    order = tab_through(visit)
    expected = [
        *("Skip to the trees", "link", "source", "text", "example", "new-scores"),
        *("temperature", "noise", "resample", "noise-seed", "relaxation", "roots"),
        *("Soft tree, scrolls sideways", "Best trees, scroll sideways"),
        *("arc-head", "arc-word", "arc-score", "pin", "forbid", "free", "click"),
        *("4 watched → 3 cat pinned", "1 the → 2 old score 3"),
        *("free-all", "heat-scores", "draw-1", "draw-10", "draw-100", "play", "start-over"),
        *("Last sample, scrolls sideways", "All words in a table", "interface"),
    ]
    assert order == expected
    visit.page.evaluate("document.activeElement.blur()")


def test_the_skip_link(visitor: Visitor) -> None:
    page = visitor().open().page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "trees"


def test_what_is_told_to_screen_readers(visitor: Visitor) -> None:
    """What is wrong, at once; the chosen arc and messages, politely; nothing that never ends."""
    page = visitor().open(**STATES["sentence"]).page
    live = page.locator("[aria-live], [role=status], [role=alert]").evaluate_all(
        "all => all.map(e => e.id)"
    )
    assert set(live) == {"status", "alert", "readout", "sample-facts"}
    page.click("#play")
    assert page.get_attribute("#sample-facts", "aria-live") == "off"
    page.click("#play")
    assert page.get_attribute("#sample-facts", "aria-live") == "polite"


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visitor: Visitor, scheme: str, width: int) -> None:
    # the page's own policy lets no other script run in it
    visit = visitor(width, color_scheme=scheme, bypass_csp=True).open(**STATES["sentence"])
    visit.page.click("summary")
    assert axe_violations(visit.page) == []
    visit.page.fill("#text", "")
    visit.page.locator("#alert:not([hidden])").wait_for()
    assert axe_violations(visit.page) == []
    visit.complaints.clear()


@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing_in_other_states(visitor: Visitor, state: str) -> None:
    visit = visitor(bypass_csp=True).open(**STATES[state])
    assert axe_violations(visit.page) == []


def test_that_axe_can_find_something(visitor: Visitor) -> None:
    page = visitor(bypass_csp=True).open().page
    page.evaluate("document.querySelector('label[for=source]').remove()")
    assert [rule for rule, _ in axe_violations(page)] == ["select-name"]
