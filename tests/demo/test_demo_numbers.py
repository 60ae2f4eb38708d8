"""The numbers of a reply are those that the library gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_runs import train
from torch import Tensor

from treelax import ProjectiveTrees
from treelax.data.listops import TOKEN_IDS, parse_expression
from treelax.demo.answers import answer
from treelax.demo.app import create_app
from treelax.demo.messages import Arc, Edit, TreeRequest
from treelax.demo.models import load_sources
from treelax.demo.sources import RandomSource
from treelax.errors import InputError
from treelax.noise import perturbation
from treelax.ops import best_tree, soft_tree
from treelax.training.models import load_model
from treelax.tasks.text.pretrained import SentenceModel
from treelax.trees import tree_to_heads

WORDS = "the old cat watched a small bird"
EXPRESSION = "[MAX 2 9 [MIN 4 7 ] 0 ]"
ROUNDED = 0.51e-6  # replies have six decimals


def ask(client: TestClient, **request: Any) -> dict[str, Any]:
    reply = client.post("/api/trees", json=request)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def matrix(rows: list[list[float | None]]) -> Tensor:
    """A matrix of a reply; what is null becomes -inf."""
    numbers = [[float("-inf") if value is None else value for value in row] for row in rows]
    return torch.tensor(numbers, dtype=torch.float64)


def assert_same(rows: list[list[float | None]], expected: Tensor) -> None:
    torch.testing.assert_close(matrix(rows), expected.double(), rtol=0, atol=ROUNDED)


def without_what_is_no_arc(scores: Tensor) -> Tensor:
    scores = scores.clone()
    scores.fill_diagonal_(float("-inf"))
    scores[:, 0] = float("-inf")
    return scores


def listops_scores(expression: str) -> Tensor:
    tokens = parse_expression(expression).tokens
    ids = torch.tensor([[TOKEN_IDS[token] for token in tokens]])
    with torch.no_grad():
        return load_model("listops").model.parser.scores(ids, torch.tensor([len(tokens)]))[0]


@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
@pytest.mark.parametrize("single_root", [False, True])
def test_all_numbers_of_a_reply(client: TestClient, relaxation: str, single_root: bool) -> None:
    settings = {"relaxation": relaxation, "temperature": 0.7, "single_root": single_root}
    reply = ask(
        client, source="random", text=WORDS, score_seed=3, noise_seed=5, noise_scale=1.5,
        samples=20, sample_seed=11, **settings,
    )  # fmt: skip
    scores = RandomSource().scored(WORDS, 3).scores.double()
    noise = perturbation("gumbel", scores, generator=torch.Generator().manual_seed(5))
    perturbed = scores + 1.5 * noise
    assert reply["words"] == WORDS.split()
    assert_same(reply["scores"], without_what_is_no_arc(scores))
    assert_same(reply["perturbed"], without_what_is_no_arc(perturbed))
    assert_same(reply["soft"], soft_tree(perturbed, **settings))
    heads = tree_to_heads(best_tree(perturbed, single_root=single_root)).tolist()
    assert reply["best_perturbed"] == heads
    trees = ProjectiveTrees(scores, single_root=single_root)
    assert reply["best"] == tree_to_heads(trees.mode).tolist()
    assert_same(reply["marginals"], trees.marginals)
    assert reply["log_partition"] == pytest.approx(trees.log_partition.item(), abs=ROUNDED)
    assert reply["entropy"] == pytest.approx(trees.entropy().item(), abs=ROUNDED)
    best = trees.log_prob(trees.mode).item()
    assert reply["best_log_probability"] == pytest.approx(best, abs=ROUNDED)
    drawn = trees.sample((20,), generator=torch.Generator().manual_seed(11))
    assert reply["samples"]["count"] == 20
    assert reply["samples"]["last"] == tree_to_heads(drawn[-1]).tolist()
    assert_same(reply["samples"]["frequencies"], drawn.mean(0))


@pytest.mark.parametrize("at_once", [1, 8 * 7, 8 * 8 * 7])
def test_samples_in_batches_are_those_of_one_call(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """And the first of them are the same whatever their number is."""
    monkeypatch.setattr("treelax.demo.answers.SAMPLED_AT_ONCE", at_once)
    scores = RandomSource().scored(WORDS, 0).scores.double()
    generator = torch.Generator().manual_seed(4)
    drawn = ProjectiveTrees(scores).sample((30,), generator=generator)
    for count in (1, 13, 30):
        reply = ask(client, source="random", text=WORDS, samples=count, sample_seed=4)
        assert reply["samples"]["last"] == tree_to_heads(drawn[count - 1]).tolist()
        assert_same(reply["samples"]["frequencies"], drawn[:count].mean(0))


def test_no_samples(client: TestClient) -> None:
    reply = ask(client, source="zero", text="dogs bark")
    assert reply["samples"] == {"count": 0, "last": None, "frequencies": [[0.0] * 3] * 3}


def test_scores_of_the_model_in_the_box(client: TestClient) -> None:
    reply = ask(client, source="listops", text=EXPRESSION)
    scores = listops_scores(EXPRESSION)
    expected = without_what_is_no_arc(scores.double())
    # another batch shape may be summed in another order
    torch.testing.assert_close(matrix(reply["scores"]), expected, rtol=1e-5, atol=1e-5)
    assert reply["best"] == tree_to_heads(best_tree(scores)).tolist()
    assert reply["answer"]["gold"] == list(parse_expression(EXPRESSION).heads)
    assert reply["answer"]["tags"] == ["4", "", "", "2", "", "", "", "", ""]
    assert "Value 9." in reply["answer"]["text"]
    assert "9 of 9 heads right" in reply["answer"]["text"]


@pytest.mark.parametrize("text", ["[max 2 9[min 4 7]0]", "( ( ( [MAX 2 ) 9 ) ] )"])
def test_expressions_as_people_write_them(client: TestClient, text: str) -> None:
    assert ask(client, text=text)["words"][:3] == ["[MAX", "2", "9"]


def test_an_expression_that_has_not_ended_has_trees(client: TestClient) -> None:
    reply = ask(client, text="[MAX 2 9")
    assert len(reply["best"]) == 3
    assert reply["answer"]["gold"] is None
    assert "Not a whole expression yet" in reply["answer"]["text"]


def test_edits_pins_and_forbidden_arcs(client: TestClient) -> None:
    reply = ask(
        client,
        source="zero",
        text="a b c",
        edits=[
            {"head": 1, "word": 2, "score": 9},
            {"head": 1, "word": 2, "score": 2.5},
            {"head": 0, "word": 2, "score": None},
            {"head": 3, "word": 1, "score": -1},
        ],
        pinned=[{"head": 3, "word": 1}],
        forbidden=[{"head": 1, "word": 3}],
    )
    no = None
    assert reply["scores"] == [[no, no, no, 0], [no, no, 2.5, no], [no, no, no, 0], [no, -1, 0, no]]
    assert [row[1] for row in reply["soft"]] == [0, 0, 0, 1]
    assert reply["marginals"][1][3] == 0
    assert reply["unused"] == 0
    trees = ProjectiveTrees(matrix(reply["scores"]))
    assert_same(reply["marginals"], trees.marginals)


def test_arcs_beyond_the_last_word_wait(client: TestClient) -> None:
    """So a word that is deleted and typed again finds its arcs as they were."""
    changes = {
        "edits": [{"head": 3, "word": 1, "score": 2}],
        "pinned": [{"head": 1, "word": 3}],
        "forbidden": [{"head": 1, "word": 200}, {"head": 2, "word": 1}],
    }
    reply = ask(client, source="zero", text="a b", **changes)
    assert reply["unused"] == 3
    assert reply["scores"] == [[None, 0, 0], [None, None, 0], [None, None, None]]
    assert ask(client, source="zero", text="a b c", **changes)["unused"] == 1


def test_the_answer_of_the_model_is_that_of_the_best_tree(client: TestClient) -> None:
    """A pinned arc takes an argument away from its operator."""
    free = ask(client, text=EXPRESSION)["answer"]
    bound = ask(client, text=EXPRESSION, pinned=[{"head": 2, "word": 3}])["answer"]
    assert free["tags"][0] == "4"
    assert bound["tags"][0] != "4"
    assert "8 of 9 heads right" in bound["text"]


def test_a_word_more_leaves_random_scores_as_they_were(client: TestClient) -> None:
    short, long = (ask(client, source="random", text=text)["scores"] for text in ("a b", "a b c"))
    assert [row[:3] for row in long[:3]] == short


def test_scores_of_any_size_have_probabilities(client: TestClient) -> None:
    edits = [{"head": 0, "word": 1, "score": 1e6}, {"head": 1, "word": 2, "score": -1e6}]
    for temperature in (0.01, 100.0):
        reply = ask(client, source="random", text="a b c", edits=edits, temperature=temperature)
        assert torch.allclose(matrix(reply["soft"])[:, 1:].sum(0), torch.ones(3).double())
        assert reply["best_log_probability"] <= 0


ARCS = [(head, word) for word in range(1, 7) for head in range(7) if head != word]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 1_000),
    words=st.sets(st.integers(1, 6)),
    others=st.sets(st.sampled_from(ARCS), max_size=12),
    single_root=st.booleans(),
)
def test_trees_have_all_pinned_and_no_forbidden_arcs(
    seed: int, words: set[int], others: set[tuple[int, int]], single_root: bool
) -> None:
    """Pinned are arcs of some tree and forbidden arcs that it has not, so there is one left."""
    uniform = ProjectiveTrees(torch.zeros(7, 7), single_root=single_root)
    heads = tree_to_heads(uniform.sample(generator=torch.Generator().manual_seed(seed))).tolist()
    some = {(head, word) for word, head in enumerate(heads, 1)}
    pinned = {arc for arc in some if arc[1] in words}
    forbidden = others - some
    request = TreeRequest(
        source="random",
        text="a b c d e f",
        pinned=[Arc(head=head, word=word) for head, word in pinned],
        forbidden=[Arc(head=head, word=word) for head, word in forbidden],
        edits=[Edit(head=0, word=1, score=50.0)],
        single_root=single_root,
        samples=3,
    )
    reply = answer(request, {"random": RandomSource()})
    for heads in (reply.best, reply.best_perturbed, reply.samples.last):
        tree = {(head, word) for word, head in enumerate(heads or [], 1)}
        assert len(tree) == 6
        assert pinned <= tree
        assert not tree & forbidden
        assert not single_root or sum(head == 0 for head, _ in tree) == 1
    for head, word in pinned:
        assert reply.soft[head][word] == pytest.approx(1)
    for head, word in forbidden:
        assert reply.soft[head][word] == 0


# ------------------------------------------------------------------ runs


def test_a_run_on_sentences(tmp_path: Any) -> None:
    run = train("classify", tmp_path, train__epochs=1, model__single_root=True)
    sources = load_sources(run)
    assert list(sources) == ["run", "listops", "zero", "random"]
    client = TestClient(create_app(sources))
    info = client.get("/api/info").json()["sources"][0]
    assert (info["name"], info["label"]) == ("run", "run run")
    assert info["defaults"]["single_root"] is True
    reply = ask(client, source="run", text="The film was fine.", single_root=True)
    assert reply["words"] == ["The", "film", "was", "fine", "."]
    [said] = SentenceModel.from_run(run).predict(["The film was fine."])
    assert reply["best"] == list(said.heads[0])
    assert reply["answer"]["text"] == f"{said.label} ({100 * said.probability:.0f} %)"
    # the model hears of pinned arcs, and forgets them
    bound = ask(client, source="run", text="The film was fine.", pinned=[{"head": 5, "word": 1}])
    assert bound["best"][0] == 5
    again = ask(client, source="run", text="The film was fine.", single_root=True)
    assert again == reply


def test_a_run_of_tags(tmp_path: Any) -> None:
    run = train("tag", tmp_path, train__epochs=1)
    reply = ask(TestClient(create_app(load_sources(run))), source="run", text="the film")
    [said] = SentenceModel.from_run(run).predict(["the film"])
    assert reply["answer"]["tags"] == list(said.label)


def test_a_run_of_listops(finished: Any) -> None:
    sources = load_sources(finished[0])
    reply = ask(TestClient(create_app(sources)), source="run", text="[MAX 2 9 ]")
    assert reply["words"] == ["[MAX", "2", "9", "]"]
    assert reply["scores"] != ask(TestClient(create_app(sources)), text="[MAX 2 9 ]")["scores"]


def test_a_run_without_scores_is_refused(tmp_path: Any) -> None:
    run = train("classify", tmp_path, train__epochs=1, model__trees="chain")
    with pytest.raises(InputError, match=r"run: model\.trees is 'chain'; expected 'latent'"):
        load_sources(run)
    with pytest.raises(InputError, match="nowhere: does not exist; expected the folder of a run"):
        load_sources(tmp_path / "nowhere")
