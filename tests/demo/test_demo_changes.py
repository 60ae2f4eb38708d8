"""Pinned, forbidden and edited arcs in a browser: they follow their words, and are never hidden."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

from demo_visits import WORDS, Visitor, eventually
from playwright.sync_api import Page, Route, expect

# ------------------------------------------------------------------ they follow their words


def test_changes_follow_their_words(visitor: Visitor) -> None:
    visit = visitor().open(
        source="zero", text=WORDS, pinned="1-2", forbidden="3-4", edits="0-7:2", arc="1-2"
    )
    page = visit.page
    visit.shows_its_state(pinned="1-2")
    # letter by letter: for a while the first word is "Yesterdaythe"
    page.focus("#text")
    page.keyboard.press("Control+Home")
    page.keyboard.type("Yesterday ")
    moved = {"pinned": "2-3", "forbidden": "4-5", "edits": "0-8:2", "arc": "2-3"}
    visit.shows_its_state(text=f"Yesterday {WORDS}", **moved)
    chips = page.locator("#changes button").all_text_contents()
    assert chips == ["2 the → 3 old pinned", "4 cat → 5 watched forbidden", "root → 8 bird score 2"]
    assert page.get_attribute("#pin", "aria-pressed") == "true"
    assert page.inner_text("#status") == ""

    # another word at the other end: the first ones stay where they are
    page.keyboard.press("Control+End")
    page.keyboard.type(" sing")
    visit.shows_its_state(text=f"Yesterday {WORDS} sing", **moved)
    # one more by hand, and a word in the middle
    visit.choose(0, 9)
    page.click("#pin")
    visit.shows_its_state(pinned="2-3,0-9", arc="0-9")
    page.fill("#text", f"Yesterday {WORDS.replace('cat', 'fat cat')} sing")
    visit.shows_its_state(pinned="2-3,0-10", forbidden="5-6", edits="0-9:2")


def test_changes_of_words_that_are_gone_are_dropped(visitor: Visitor) -> None:
    visit = visitor().open(source="zero", text=WORDS, pinned="1-2,4-3", edits="4-7:2,0-6:1")
    page = visit.page
    visit.shows_its_state(pinned="1-2,4-3")
    page.fill("#text", WORDS.removeprefix("the "))
    visit.shows_its_state(pinned="3-2", edits="3-6:2,0-5:1")
    expect(page.locator("#status")).to_have_text("1 changed arc was dropped: the words are gone.")
    page.fill("#text", "old cat watched")
    visit.shows_its_state(pinned="3-2", edits="")
    expect(page.locator("#status")).to_have_text("3 changed arcs were dropped: the words are gone.")
    # words that are typed again have their changes again
    page.fill("#text", WORDS)
    visit.shows_its_state(pinned="1-2,4-3", edits="4-7:2,0-6:1")
    expect(page.locator("#status")).to_have_text("")
    # but not once something was changed by hand
    page.fill("#text", "old cat watched")
    visit.shows_its_state(pinned="3-2")
    visit.choose(0, 1)
    page.click("#forbid")
    visit.shows_its_state(forbidden="0-1")
    page.fill("#text", WORDS)
    visit.shows_its_state(pinned="4-3", forbidden="0-2", edits="")


def test_changes_follow_the_words_of_the_server(visitor: Visitor) -> None:
    """Which are not those between spaces; a text that it refuses on the way does no harm."""
    visit = visitor().open(source="listops", text="[MAX 2[MIN 4 7]0]", pinned="3-4", arc="3-4")
    page = visit.page
    visit.shows_its_state(pinned="3-4")
    page.fill("#text", "[MAX 2 oops [MIN 4 7]0]")
    expect(page.locator("#alert")).to_contain_text("is 'oops'")
    assert page.locator("#changes button").all_text_contents() == ["3 [MIN → 4 4 pinned"]
    page.fill("#text", "[MAX 2 9 8[MIN 4 7]0]")
    visit.shows_its_state(pinned="5-6", arc="5-6")
    visit.refused("409")


SURVIVORS: list[tuple[str, str, dict[int, int]]] = [
    ("a b c", "a b c", {0: 0, 1: 1, 2: 2, 3: 3}),
    ("a b c", "x a b c", {0: 0, 1: 2, 2: 3, 3: 4}),
    ("a b c", "b c", {0: 0, 2: 1, 3: 2}),
    ("a b c", "a c", {0: 0, 1: 1, 3: 2}),
    ("a b c", "a x c", {0: 0, 1: 1, 2: 2, 3: 3}),  # a word that is being typed
    ("a b c d", "a x y d", {0: 0, 1: 1, 4: 4}),
    ("a b c", "x y z", {0: 0}),
    ("a b c d e", "x a b y d z e", {0: 0, 1: 2, 2: 3, 3: 4, 4: 5, 5: 7}),
    ("a a a", "a a", {0: 0, 1: 1, 2: 2}),
    ("a b", "b a", {0: 0, 2: 1}),
    ("", "a", {0: 0}),
    ("a", "ab", {0: 0, 1: 1}),
]


def test_which_words_are_still_there(visitor: Visitor) -> None:
    found = (
        visitor()
        .open()
        .page.evaluate(
            """async (cases) => {
          const { survivors } = await import("/static/texts.js");
          return cases.map(([before, after]) => [...survivors(before, after)]);
        }""",
            [[before.split(), after.split()] for before, after, _ in SURVIVORS],
        )
    )
    assert [dict(map(tuple, pairs)) for pairs in found] == [kept for *_, kept in SURVIVORS]


@pytest.mark.parametrize("way", ["example", "source"])
def test_another_text_has_no_changes(visitor: Visitor, way: str) -> None:
    visit = visitor().open(source="random", text="a b c", pinned="1-2", edits="0-1:3")
    page = visit.page
    visit.shows_its_state(pinned="1-2")
    if way == "example":
        page.click("#example")
    else:
        page.select_option("#source", "zero")
    visit.shows_its_state(pinned="", edits="", text=WORDS if way == "example" else "a b c")
    expect(page.locator("#status")).to_have_text("2 changed arcs were cleared.")
    assert page.is_hidden("#changes-row")
    page.click("#resample")
    expect(page.locator("#status")).to_have_text("")


# ------------------------------------------------------------------ and are never hidden


def test_the_change_that_leaves_no_tree_is_shown(visitor: Visitor) -> None:
    visit = visitor().open(source="zero", text="a b", forbidden="0-1", arc="0-2", noise=0)
    page = visit.page
    visit.shows_its_state(forbidden="0-1")
    page.click("#forbid")
    expect(page.locator("#alert")).to_contain_text("leave no projective tree; free an arc")
    chips = page.locator("#changes button")
    expect(chips).to_have_text(["root → 1 a forbidden", "root → 2 b forbidden"])
    assert page.get_attribute("#forbid", "aria-pressed") == "true"
    assert page.input_value("#arc-score") == ""
    assert page.inner_text("#readout") == "root → 2 b: forbidden"
    # its cross, in a matrix that is not dimmed as the others are
    assert cell(visit.page, 0, 2) == cell(visit.page, 0, 1) != cell(visit.page, 1, 2)
    dimmed = "all => all.map(e => getComputedStyle(e).opacity)"
    assert page.locator(".heat canvas").evaluate_all(dimmed) == ["1", *["0.35"] * 4]
    chips.nth(1).click()
    expect(page.locator("#alert")).to_be_hidden()
    visit.shows_its_state(forbidden="0-1")
    expect(page.locator("#pictures")).to_have_class("pictures")
    assert page.locator(".heat canvas").evaluate_all(dimmed) == ["1"] * 5
    visit.complaints[:] = [said for said in visit.complaints if "getImageData" not in said]
    visit.refused("409")


def cell(page: Page, head: int, word: int) -> list[int]:
    """The colours of a cell of the scores, around where its cross may be."""
    found: list[int] = page.evaluate(
        """([head, word]) => {
          const host = document.getElementById("heat-scores");
          const canvas = host.querySelector("canvas"), cursor = host.querySelector(".cursor");
          const size = cursor.offsetWidth - 1;
          const chosen = (id) => Number(document.getElementById(id).value);
          const [row, column] = [chosen("arc-head"), chosen("arc-word")];
          const x = cursor.offsetLeft + 1 + (word - column) * size;
          const y = cursor.offsetTop + 1 + (head - row) * size;
          return [...canvas.getContext("2d").getImageData(x, y, size - 1, size - 1).data];
        }""",
        [head, word],
    )
    return found


def test_changes_that_leave_no_tree_after_typing(visitor: Visitor) -> None:
    """They are shown with the new words."""
    visit = visitor().open(source="zero", text="a b c", forbidden="0-1,0-3", arc="0-3")
    page = visit.page
    visit.shows_its_state(forbidden="0-1,0-3")
    page.fill("#text", "a c")
    expect(page.locator("#alert")).to_contain_text("no projective tree")
    chips = page.locator("#changes button")
    expect(chips).to_have_text(["root → 1 a forbidden", "root → 2 c forbidden"])
    eventually(lambda: visit.state()["arc"], "0-2")
    page.fill("#text", "a d c")
    visit.shows_its_state(forbidden="0-1,0-3")
    # and with a link to them, which can be mended
    visit.open(source="zero", text="a b", forbidden="0-1,0-2")
    page.get_by_role("button", name="root → 2 b forbidden").click()
    visit.shows_its_state(forbidden="0-1")
    visit.refused("409", "409")


def test_the_link_has_what_a_late_answer_brings(visitor: Visitor) -> None:
    """Which words there are only the answer says; it may come after the link was written."""
    visit = visitor().open(source="zero", text="a b c", arc="0-3")
    visit.shows_its_state(arc="0-3")

    def late(route: Route) -> None:
        eventually(lambda: visit.state()["text"], "a c")
        route.continue_()

    visit.page.route("**/api/trees", late)
    visit.page.fill("#text", "a c")
    eventually(lambda: visit.state()["arc"], "0-2")
