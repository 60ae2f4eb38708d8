"""A model of pairs on the page: two texts, one label, trees of either, and its NULL token."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sentence_runs import train

from treelax.demo.app import create_app
from treelax.demo.messages import SourceName
from treelax.demo.models import load_sources
from treelax.demo.sources import Source
from treelax.tasks.base import heads_without_null
from treelax.tasks.text.pretrained import SentenceModel

FIRST, SECOND = "the film was good", "the bad plot"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train("pair", tmp_path_factory.mktemp("pair"), train__epochs=2, data__null=True)


@pytest.fixture(scope="module")
def sources(run: Path) -> Mapping[SourceName, Source]:
    return load_sources(run)


@pytest.fixture(scope="module")
def client(sources: Mapping[SourceName, Source]) -> TestClient:
    return TestClient(create_app(sources))


def ask(client: TestClient, **request: Any) -> dict[str, Any]:
    reply = client.post("/api/trees", json={"source": "run", "text": FIRST} | request)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def said_of(run: Path, *texts: str) -> Any:
    [said] = SentenceModel.from_run(run).predict([texts])
    return said


# ------------------------------------------------------------------ the server


def test_what_the_server_says_of_it(client: TestClient) -> None:
    run, other, *_ = client.get("/api/info").json()["sources"]
    assert (run["texts"], other["texts"]) == (["q", "a"], ["text"])
    assert run["second_example"]
    assert other["second_example"] is None


def test_the_label_and_trees_are_those_of_the_library(client: TestClient, run: Path) -> None:
    said = said_of(run, FIRST, SECOND)
    for shown, other, heads in (
        ("first", SECOND, said.heads[0]),
        ("second", FIRST, said.heads[1]),
    ):
        reply = ask(client, second={"text": SECOND}, shown=shown)
        text = FIRST if shown == "first" else SECOND
        assert reply["words"] == ["NULL", *text.split()]
        assert reply["other_words"] == ["NULL", *other.split()]
        assert reply["null"] is True
        assert heads_without_null(reply["best"]) == heads
        assert reply["answer"]["text"] == f"{said.label} ({100 * said.probability:.0f} %)"


def test_without_a_second_text_there_is_no_label(client: TestClient) -> None:
    reply = ask(client)
    assert reply["answer"]["text"] == "No label yet: this model labels two texts together."
    assert reply["other_words"] is None
    alone = ask(client, second={"text": SECOND})
    assert {**reply, "answer": None, "other_words": None} == {
        **alone,
        "answer": None,
        "other_words": None,
    }


def test_the_model_is_asked_with_the_trees_of_both_texts(
    client: TestClient, sources: Mapping[SourceName, Source]
) -> None:
    """Pins of either text change its tree, whichever is shown, and are forgotten after."""
    source: Any = sources["run"]
    seen: list[Any] = []
    hook = source.model.network.encoder.register_forward_hook(
        lambda module, given, result: seen.append(result[1])
    )
    pins = {"pinned": [{"head": 5, "word": 2}]}
    second = {"text": SECOND, "pinned": [{"head": 4, "word": 1}]}
    try:
        for shown in ("first", "second"):
            ask(client, second=second, shown=shown, **pins)
        ask(client, second={"text": SECOND})
    finally:
        hook.remove()
    for tree in seen[:2]:
        assert tree[0, 5, 2] == tree[1, 4, 1] == 1
    assert seen[0].equal(seen[1])
    assert not seen[0].equal(seen[2])


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (
            {"text": "w " * 150, "second": {"text": "w " * 51}},
            "texts: received 150 and 51 words; expected at most 200 in all",
        ),
        (
            {"second": {"text": "w " * 201}},
            "second text: received 201 words; expected at most 200",
        ),
        (
            {"second": {"text": "a", "forbidden": [{"head": h, "word": 2} for h in (0, 1)]}},
            "second text: pinned and forbidden arcs leave no projective tree; expected at least",
        ),
        (
            {"second": {"text": "a", "pinned": [{"head": 2, "word": 2}]}},
            "second text: arcs: received one from word 2 to itself",
        ),
    ],
)
def test_what_is_refused(client: TestClient, change: dict[str, Any], detail: str) -> None:
    reply = client.post("/api/trees", json={"source": "run", "text": FIRST} | change)
    assert reply.status_code == 409
    assert reply.json()["detail"].startswith(detail)


def test_as_many_words_as_there_may_be(client: TestClient) -> None:
    reply = ask(client, text="w " * 150, second={"text": "w " * 50})
    assert len(reply["words"]) == 151


# ------------------------------------------------------------------ the page


def test_two_texts_on_the_page(visitor: Any, run: Path) -> None:
    pytest.importorskip("playwright", reason="needs playwright: pip install playwright")
    from playwright.sync_api import expect

    visit = visitor().open()
    page = visit.page
    visit.shows_its_state(source="run", second="a cat saw a bird")
    expect(page.get_by_label("First text (q)")).to_have_value("the old cat watched a small bird")
    page.fill("#text", FIRST)
    page.get_by_label("Second text (a)").fill(SECOND)
    visit.shows_its_state(text=FIRST, second=SECOND)
    said = said_of(run, FIRST, SECOND)
    label = f"{said.label} ({100 * said.probability:.0f} %)"
    expect(page.locator("#said")).to_have_text(label)
    assert visit.words("soft-arcs") == ["root", "NULL", *FIRST.split()]

    # pins are of the text that is shown
    visit.choose(5, 2)
    page.click("#pin")
    visit.shows_its_state(pinned="5-2")
    page.check("input[name=shown][value=second]")
    visit.shows_its_state(shown="second", pinned="5-2")
    assert visit.words("soft-arcs") == ["root", "NULL", *SECOND.split()]
    assert page.is_hidden("#changes-row")
    visit.choose(0, 4)
    page.click("#forbid")
    visit.shows_its_state(pinned="5-2", forbidden2="0-4")
    # and follow the words of either, shown or not
    page.fill("#text", f"so {FIRST}")
    page.fill("#second", f"so {SECOND}")
    visit.shows_its_state(pinned="6-3", forbidden2="0-5", arc="0-5")

    page.fill("#second", "")
    expect(page.locator("#alert")).to_have_text("second.text: received no words; expected 1 to 200")
    page.check("input[name=shown][value=first]")
    visit.shows_its_state(shown="", second="")
    expect(page.locator("#said")).to_contain_text("No label yet")
    page.click("#example")
    visit.shows_its_state(second="a cat saw a bird", pinned="", forbidden2="")
    visit.complaints[:] = [said for said in visit.complaints if "status of 422" not in said]

    page.select_option("#source", "zero")
    visit.shows_its_state(source="zero", second="", shown="")
    assert page.is_hidden("#second")
    assert page.is_hidden("input[name=shown] >> nth=0")
    page.select_option("#source", "run")
    visit.shows_its_state(source="run", second="a cat saw a bird")


def test_a_link_restores_both_texts(visitor: Any) -> None:
    pytest.importorskip("playwright", reason="needs playwright: pip install playwright")
    state = {
        "source": "run",
        "text": FIRST,
        "second": SECOND,
        "shown": "second",
        "pinned": "5-2",
        "forbidden": "0-1",
        "edits": "1-3:2",
        "pinned2": "4-2",
        "forbidden2": "0-2,0-3",
        "edits2": "2-3:-4.5",
        "arc": "4-2",
    }
    visit = visitor().open(**state)
    visit.shows_its_state(**state)
    page = visit.page
    assert page.input_value("#second") == SECOND
    assert page.is_checked("input[name=shown][value=second]")
    assert page.get_attribute("#pin", "aria-pressed") == "true"
    # a link for another model leaves out what that has not
    page.evaluate("location.hash = '#source=zero&text=x+y&second=z&shown=second&pinned2=1-2'")
    visit.shows_its_state(source="zero", text="x y", second="", shown="", pinned2="")


def test_null_is_told_from_the_words(visitor: Any) -> None:
    pytest.importorskip("playwright", reason="needs playwright: pip install playwright")
    from playwright.sync_api import expect

    visit = visitor().open(source="run", text=FIRST, second=SECOND, arc="1-3")
    page = visit.page
    visit.shows_its_state(arc="1-3")
    assert page.locator("#soft-arcs .null").all_text_contents() == ["NULL"]
    numbers = page.locator("#soft-arcs .number").all_text_contents()
    assert numbers == ["0", "", "1", "2", "3", "4"]
    assert page.inner_text("#readout").startswith("NULL → 2 film: ")
    assert page.inner_text("#timing").startswith("4 words, ")
    assert page.locator("#null-facts").is_visible()
    page.click("summary")
    expect(page.locator("#words tbody td:first-child")).to_have_text(["", *"1234"])
    page.select_option("#source", "zero")
    visit.shows_its_state(source="zero")
    assert page.locator("#null-facts").is_hidden()
    assert page.locator("#soft-arcs .null").count() == 0


@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing(visitor: Any, width: int) -> None:
    pytest.importorskip("playwright", reason="needs playwright: pip install playwright")
    from browsing import axe_violations

    visit = visitor(width, bypass_csp=True).open(source="run", text=FIRST, second=SECOND)
    assert axe_violations(visit.page) == []
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
