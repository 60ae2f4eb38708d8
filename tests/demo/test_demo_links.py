"""The demo in a real browser: links that restore the page, markup as words, trouble."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

from demo_visits import WORDS, Visitor, eventually
from playwright.sync_api import Route, expect


def test_a_link_restores_everything(visitor: Visitor) -> None:
    state = {
        "source": "random", "text": "a <b>b</b> c&d ü", "temperature": "0.35", "noise": "2.5",
        "seed": "123", "relaxation": "entropy", "roots": "single", "scores": "9", "samples": "40",
        "drawn": "8", "edits": "1-2:3.5,2-1:-4", "pinned": "3-4", "forbidden": "0-1,2-3",
        "click": "forbid", "arc": "2-3",
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
    expect(page.locator("#status")).to_have_text("Link copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    page.goto("about:blank")
    page.goto(copied)
    visit.shows_its_state(**state)
    # an address that is typed into an open page
    page.evaluate("location.hash = '#source=zero&text=x+y'")
    visit.shows_its_state(source="zero", text="x y", relaxation="softmax")


def test_a_link_of_nonsense_does_no_harm(visitor: Visitor) -> None:
    visit = visitor().open(
        source="nothing", text="[MAX 1 2 ]", temperature="hot", noise="-1", seed="x", samples="1e9",
        relaxation="<b>", roots="many", edits="1-2:NaN,9,5-5:1,a-b:1,0-1:1e99", pinned="0-0,1-1,2",
        forbidden="-1-2,999-1", click="delete", arc="7-7", more="?",
    )  # fmt: skip
    visit.shows_its_state(
        source="listops", temperature="1", noise="1", seed="0", samples="", relaxation="softmax",
        roots="several", edits="", pinned="", forbidden="", click="", arc="0-1",
    )  # fmt: skip


def test_markup_is_shown_as_text(visitor: Visitor) -> None:
    text = "<script>window.bad=1</script> <img/src=x/onerror=window.bad=1> &lt; ${bad}"
    visit = visitor().open(source="zero", text=text, edits="1-2:1", samples=1)
    visit.page.click("summary")
    visit.shows_its_state(text=text)
    assert visit.words("soft-arcs")[1] == "<script>window.bad=…"
    assert visit.page.locator("#words tbody th").first.inner_text() == text.split()[0]
    assert visit.page.evaluate("window.bad") is None
    assert visit.page.locator("main script, main img, main b").count() == 0


def test_errors_are_shown_and_go_away(visitor: Visitor) -> None:
    visit = visitor().open(source="listops", text="[MAX dogs ]")
    page = visit.page
    expect(page.locator("#alert")).to_contain_text("token 2 is 'dogs'; expected [MIN")
    page.fill("#text", "[MAX 2 ]")
    expect(page.locator("#alert")).to_be_hidden()
    visit.shows_its_state(text="[MAX 2 ]")
    expect(page.locator("#said")).to_contain_text("Value 2.")
    page.fill("#text", " ")
    expect(page.locator("#alert")).to_have_text("text has no words; expected 1 to 200")
    expect(page.locator("#pictures")).to_have_class("pictures stale")
    # what was said of another text does not stay beside this one, not even when it is drawn anew
    expect(page.locator("#said")).to_have_text("")
    expect(page.locator("#best-facts")).to_have_text("")
    page.set_viewport_size({"width": 1000, "height": 900})
    eventually(lambda: page.inner_text("#said"), "")
    page.fill("#text", "[MAX 2 3")
    visit.shows_its_state(text="[MAX 2 3")
    expect(page.locator("#pictures")).to_have_class("pictures")
    # the browser itself notes every refusal
    visit.refused("409", "409")


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
    page.route("**/api/trees", lambda route: route.abort())
    page.fill("#text", "a b c d")
    expect(page.locator("#alert")).to_contain_text("The server does not answer.")
    page.unroute("**/api/trees")
    page.fill("#text", "a b c d e")
    visit.shows_its_state(text="a b c d e")
    visit.complaints.clear()


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
