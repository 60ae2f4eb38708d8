"""Models of pairs and of heads: two texts and NULL, words that choose alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from demo_visits import Sources, Visitor, heads_of
from fastapi.testclient import TestClient
from sentence_runs import train

from treelax.apps.demo.score_sources import Source, load_sources
from treelax.apps.tasks import load
from treelax.apps.tasks.base import heads_without_null
from treelax.trees import is_tree

Ask = Callable[..., dict[str, Any]]
FIRST, SECOND = "the film was good", "the bad plot"
EXPRESSION = "[MAX 2 9 [MIN 4 7 ] 0 ]"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train("pair", tmp_path_factory.mktemp("pair"), train__epochs=2, data__null=True)


@pytest.fixture(scope="module")
def sources(run: Path, chooser: Source) -> Sources:
    return {**load_sources(run), "listops": chooser}


def label_of(run: Path, *texts: str) -> str:
    [said] = load(run).predict([texts])
    assert isinstance(said.probability, float)
    return f"{said.label} ({100 * said.probability:.0f} %)"


# ------------------------------------------------------------------ pairs


def test_the_label_and_trees_are_those_of_the_library(
    ask: Ask, client: TestClient, run: Path
) -> None:
    own, other, *_ = client.get("/api/info").json()["sources"]
    assert (own["texts"], len(own["examples"])) == (["q", "a"], 2)
    assert (other["texts"], len(other["examples"])) == (["text"], 1)
    [said] = load(run).predict([(FIRST, SECOND)])
    assert said.heads is not None
    texts = {"first": FIRST, "second": SECOND}
    for at, shown in enumerate(texts):
        reply = ask(source="run", text=FIRST, second={"text": SECOND}, shown=shown)
        text, other_text = texts[shown], texts["second" if at == 0 else "first"]
        assert reply["words"] == ["NULL", *text.split()]
        assert reply["other_words"] == ["NULL", *other_text.split()]
        assert reply["null"] is True
        assert heads_without_null(heads_of(reply["best"])) == said.heads[at]
        assert reply["answer"]["text"] == label_of(run, FIRST, SECOND)
    # it is asked with the trees of both, whichever is shown
    pinned = {"text": SECOND, "pinned": [{"head": 4, "word": 1}]}
    bound = ask(source="run", text=FIRST, second=pinned, shown="second")
    assert bound["best"][0] == [4, 1]
    assert bound["answer"] == ask(source="run", text=FIRST, second=pinned)["answer"]
    alone = ask(source="run", text=SECOND)
    assert alone["answer"]["text"] == "No label yet: this model labels two texts together."
    assert {**reply, "answer": alone["answer"]} == {**alone, "other_words": reply["other_words"]}


def test_pairs_that_are_refused(client: TestClient) -> None:
    forbidden = [{"head": head, "word": 2} for head in (0, 1)]
    for first, second, detail in (
        ("w " * 150, {"text": "w " * 51}, "received 150 and 51 words; expected at most 200 in all"),
        ("w", {"text": " "}, "second text has no words; expected 1 to 200"),
        ("w", {"text": "a", "forbidden": forbidden}, "second text: pinned and forbidden arcs"),
    ):
        reply = client.post("/api/trees", json={"source": "run", "text": first, "second": second})
        assert reply.status_code == 409
        assert reply.json()["detail"].startswith(detail)


def test_two_texts_on_the_page(visitor: Visitor, run: Path) -> None:
    from pages import axe_violations
    from playwright.sync_api import expect

    visit = visitor(bypass_csp=True).open()
    page = visit.page
    visit.shows_its_state(source="run", second="a cat saw a bird")
    page.fill("#text", FIRST)
    page.get_by_label("Second text (a)").fill(SECOND)
    visit.shows_its_state(text=FIRST, second=SECOND)
    expect(page.locator("#said")).to_have_text(label_of(run, FIRST, SECOND))
    assert visit.words("soft-arcs") == ["NULL", *FIRST.split()]
    assert page.locator("#soft-arcs .number").all_text_contents() == ["", "1", "2", "3", "4"]
    assert axe_violations(page) == []
    # pins are of the text that is shown
    visit.choose(5, 2)
    page.click("#pin")
    visit.shows_its_state(pinned="5-2")
    page.check("input[name=shown][value=second]")
    visit.shows_its_state(shown="second", pinned="5-2")
    assert visit.words("soft-arcs") == ["NULL", *SECOND.split()]
    assert page.is_hidden("#changes-row")
    visit.choose(0, 4)
    page.click("#forbid")
    # and follow the words of either, shown or not
    page.fill("#text", f"so {FIRST}")
    page.fill("#second", f"so {SECOND}")
    visit.shows_its_state(pinned="6-3", forbidden2="0-5", arc="0-5")
    # a link restores both
    state = visit.state()
    visit.open(**state)
    visit.shows_its_state(**state)
    page.select_option("#source", "zero")
    visit.shows_its_state(source="zero", second="", shown="")
    # a model of heads, whose best ones are no tree, with a link that asks for a single root
    visit.open(source="listops", text=EXPRESSION, roots="single", samples="1")
    reply = visit.shows_its_state(roots="several", structure="heads")
    assert not is_tree(torch.tensor(heads_of(reply.best)))
