"""Changed arcs, which follow their words and are never hidden; links, markup, trouble."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

from demo_visits import WORDS, Visitor
from playwright.sync_api import Route, expect

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

    # they are where they were: one request is enough
    visit.asked.clear()
    page.fill("#text", f"Yesterday {WORDS}s")
    visit.shows_its_state(text=f"Yesterday {WORDS}s", **moved)
    assert len([url for url in visit.asked if url.endswith("/api/trees")]) == 1

    # one more by hand, and a word in the middle
    visit.choose(0, 7)
    page.click("#pin")
    visit.shows_its_state(pinned="2-3,0-7", arc="0-7")
    page.fill("#text", f"Yesterday {WORDS.replace('cat', 'fat cat')}")
    visit.shows_its_state(pinned="2-3,0-8", forbidden="5-6", edits="0-9:2")


def test_changes_of_words_that_are_gone_are_dropped(visitor: Visitor) -> None:
    visit = visitor().open(source="zero", text=WORDS, pinned="1-2,4-3", edits="4-7:2,0-6:1")
    page = visit.page
    visit.shows_its_state(pinned="1-2,4-3")
    page.fill("#text", WORDS.removeprefix("the "))
    visit.shows_its_state(pinned="3-2", edits="3-6:2,0-5:1")
    expect(page.locator("#status")).to_have_text("1 change was dropped: the words are gone.")
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


def test_another_text_has_no_changes(visitor: Visitor) -> None:
    visit = visitor()
    page = visit.page
    for act, text in (
        (lambda: page.get_by_role("button", name="Binary tree").click(), WORDS),
        (lambda: page.select_option("#source", "zero"), "a b c"),
    ):
        visit.open(source="random", text="a b c", pinned="1-2", edits="0-1:3")
        visit.shows_its_state(pinned="1-2")
        act()
        visit.shows_its_state(pinned="", edits="", text=text)
        expect(page.locator("#status")).to_have_text("2 changes were cleared.")
        assert page.is_hidden("#changes-row")
        page.click("#resample")
        expect(page.locator("#status")).to_have_text("")


# ------------------------------------------------------------------ and are never hidden


def test_the_change_that_leaves_no_tree_is_shown(visitor: Visitor) -> None:
    visit = visitor().open(source="zero", text="a b", forbidden="0-1", arc="0-2", noise=0)
    page = visit.page
    visit.shows_its_state(forbidden="0-1")
    page.click("#forbid")
    expect(page.locator("#alert")).to_contain_text("leave no projective tree; free one")
    chips = page.locator("#changes button")
    expect(chips).to_have_text(["root → 1 a forbidden", "root → 2 b forbidden"])
    assert page.get_attribute("#forbid", "aria-pressed") == "true"
    assert page.input_value("#arc-score") == ""
    page.click("#way-out")
    visit.shows_its_state(forbidden="")
    page.click("#forbid")
    visit.shows_its_state(forbidden="0-2")
    visit.choose(0, 1)
    page.click("#forbid")
    expect(page.locator("#problem")).to_be_visible()
    expect(page.locator("#way-out")).to_have_text("Reset all changes")
    chips.nth(0).click()
    expect(page.locator("#problem")).to_be_hidden()
    visit.shows_its_state(forbidden="0-1")
    expect(page.locator("#pictures")).to_have_class("pictures")
    visit.refused("409", "409")


# ------------------------------------------------------------------ links, markup, trouble


def test_a_link_restores_everything(visitor: Visitor) -> None:
    state = {
        "source": "random", "text": "a <b>b</b> c&d ü", "temperature": "0.35", "noise": "2.5",
        "seed": "123", "relaxation": "entropy", "roots": "single", "scores": "9", "samples": "40",
        "drawn": "8", "edits": "1-2:3.5,2-1:-4", "pinned": "3-4", "forbidden": "0-1,2-3",
        "click": "forbid", "arc": "2-3", "structure": "nonprojective", "estimator": "imle",
        "units": "score",
    }  # fmt: skip
    visit = visitor().open(**state)
    visit.shows_its_state(**state)
    page = visit.page
    assert page.input_value("#text") == state["text"]
    assert page.input_value("#noise-seed") == "123"
    assert page.inner_text("#temperature-value") == "0.350"
    assert page.is_checked("input[name=roots][value=single]")
    assert page.is_checked("input[name=click][value=forbid]")
    assert (page.input_value("#arc-head"), page.input_value("#arc-word")) == ("2", "3")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#link")
    expect(page.locator("#link-said")).to_have_text("Link copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    page.goto("about:blank")
    page.goto(copied)
    visit.shows_its_state(**state)
    # an address that is typed into an open page
    page.evaluate("location.hash = '#source=zero&text=x+y'")
    visit.shows_its_state(source="zero", text="x y", relaxation="softmax")


def test_a_link_of_nonsense_does_no_harm(visitor: Visitor) -> None:
    visit = visitor().open(
        source="nothing", text="The cat sat.", temperature="hot", noise="-1", seed="x", samples="1e9",
        relaxation="<b>", roots="many", structure="round", estimator="guess",
        units="mm", edits="1-2:NaN,9,5-5:1,a-b:1,0-1:1e99", pinned="0-0,1-1,2",
        forbidden="-1-2,999-1", click="delete", arc="7-7", more="?",
    )  # fmt: skip
    visit.shows_its_state(
        source="english", temperature="0.2", noise="0.3", units="spread", seed="0", samples="",
        relaxation="entropy", roots="single", structure="nonprojective", estimator="relaxed",
        edits="", pinned="", forbidden="", click="",
    )  # fmt: skip


def test_markup_is_shown_as_text(visitor: Visitor) -> None:
    text = "<script>window.bad=1</script> <img/src=x/onerror=window.bad=1> &lt; ${bad}"
    visit = visitor().open(source="zero", text=text, edits="1-2:1", samples=1)
    visit.page.click("#words summary")
    visit.shows_its_state(text=text)
    assert visit.words("soft-arcs")[0] == "<script>window.bad=…"
    assert visit.page.locator("#words tbody th").first.inner_text() == text.split()[0]
    assert visit.page.evaluate("window.bad") is None
    assert visit.page.locator("main script, main img, main b").count() == 0


def test_errors_are_shown_and_go_away(visitor: Visitor) -> None:
    visit = visitor().open(source="listops", text="[MAX dogs ]")
    page = visit.page
    expect(page.locator("#alert")).to_contain_text("token 2 is 'dogs'; expected [MIN")
    page.fill("#text", "[MAX 2 ]")
    expect(page.locator("#problem")).to_be_hidden()
    visit.shows_its_state(text="[MAX 2 ]")
    expect(page.locator("#said")).to_contain_text("Value 2.")
    # without a model any words will do
    page.fill("#text", "[MAX dogs ]")
    page.click("#way-out")
    visit.shows_its_state(source="random", text="[MAX dogs ]")
    expect(page.locator("#problem")).to_be_hidden()
    page.fill("#text", " ")
    expect(page.locator("#alert")).to_have_text("text has no words; expected 1 to 200")
    expect(page.locator("#pictures")).to_have_class("pictures stale")
    # what was said of another text does not stay beside this one
    expect(page.locator("#said")).to_have_text("")
    page.get_by_role("button", name="Use the example").click()
    visit.shows_its_state(source="random", text=WORDS)
    # the browser itself notes every refusal
    visit.refused("409", "409", "409")


@pytest.mark.parametrize(
    ("source", "text", "kept"),
    [("random", "a " * 250, "a " * 200), ("english", "a, " * 150, "a, " * 100)],
)
def test_a_text_that_is_too_long_is_cut(
    visitor: Visitor, source: str, text: str, kept: str
) -> None:
    """To as many words as there are trees for, as its model counts them."""
    visit = visitor().open(source=source, text=text)
    count = len(kept.split())
    visit.page.get_by_role("button", name=f"Keep the first {count} words").click()
    expect(visit.page.locator("#timing")).to_contain_text("200 words")
    assert visit.page.input_value("#text") == kept.strip()
    visit.refused("409")


def test_a_busy_server_and_one_that_is_gone(visitor: Visitor) -> None:
    visit = visitor().open(source="zero", text="a b")
    page = visit.page
    refusals: list[Route] = []

    def busy(route: Route) -> None:
        refusals.append(route)
        if len(refusals) > 2:
            route.continue_()
            return
        route.fulfill(status=503, headers={"retry-after": "0.01"}, json={"detail": "busy"})

    page.route("**/api/trees", busy)
    page.fill("#text", "a b c")
    visit.shows_its_state(text="a b c")
    assert len(refusals) == 3
    page.unroute("**/api/trees")
    # the time of a picture comes with the next frame, when the server may be gone
    page.evaluate(
        "() => { window.held = []; window.requestAnimationFrame = (act) => held.push(act); }"
    )
    page.fill("#text", "a b c x")
    visit.shows_its_state(text="a b c x")
    page.route("**/api/trees", lambda route: route.abort())
    page.fill("#text", "a b c d")
    expect(page.locator("#alert")).to_contain_text("The server does not answer.")
    page.evaluate(
        "() => { held.forEach((act) => act()); return new Promise((done) => setTimeout(done, 1000)); }"
    )
    expect(page.locator("#timing")).to_be_empty()
    expect(page.locator("#pictures")).to_have_class(re.compile("stale"))
    page.unroute("**/api/trees")
    page.fill("#text", "a b c d e")
    visit.shows_its_state(text="a b c d e")
    visit.complaints.clear()


def test_a_request_that_takes_too_long(visitor: Visitor) -> None:
    visit = visitor().open(source="zero", text="a b", samples=7)
    page = visit.page
    detail = "this takes more than 20 s; try fewer words or samples, or another estimator"
    page.route("**/api/trees", lambda route: route.fulfill(status=504, json={"detail": detail}))
    page.fill("#text", "a b c")
    expect(page.locator("#alert")).to_have_text(detail)
    page.unroute("**/api/trees")
    page.get_by_role("button", name="Drop the samples").click()
    visit.shows_its_state(text="a b c", samples="")
    visit.refused("504")


def test_sparsemap_that_was_stopped_says_so(visitor: Visitor) -> None:
    visit = visitor().open(source="random", text=60 * "w ", estimator="sparsemap")
    assert visit.shows_its_state().gap == 0
    expect(visit.page.locator("#soft-facts")).not_to_contain_text("approximate")
    visit.page.fill("#temperature", "2")
    visit.shows_its_state(temperature="100")
    expect(visit.page.locator("#soft-facts")).to_contain_text("SparseMAP stopped early")


def test_only_the_newest_state_waits(visitor: Visitor) -> None:
    """A slider that is drawn asks for few pictures, and the last one is that of its end."""
    visit = visitor().open(source="random", text=WORDS)
    visit.shows_its_state()
    visit.asked.clear()
    visit.page.evaluate(
        """() => {
          const slider = document.getElementById("temperature");
          for (let i = 0; i < 100; i++) {
            slider.value = i / 50;
            slider.dispatchEvent(new Event("input"));
          }
        }"""
    )
    visit.shows_its_state(temperature="95.5")
    assert len([url for url in visit.asked if url.endswith("/api/trees")]) == 2
