"""The numbers of a reply are those that the library gives, whatever the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from demo_visits import WORDS, Sources, heads_of
from sentence_runs import train
from torch import Tensor

from treelax import ProjectiveTrees
from treelax.apps.data.listops import parse_expression
from treelax.apps.demo.answers import answer
from treelax.apps.demo.messages import Arc, TreeRequest
from treelax.apps.demo.score_sources import RandomSource, load_sources
from treelax.apps.tasks import load
from treelax.apps.tasks.base import heads_without_null
from treelax.brackets import read_brackets
from treelax.estimators import IMLE, SPIGOT, Marginals, Relaxed, SparseMAP, StraightThrough
from treelax.noise import Gumbel, perturbation
from treelax.structures import Binary, Heads, NonProjective, Projective, Structure
from treelax.trees import tree_to_heads

Ask = Callable[..., dict[str, Any]]
EXPRESSION = "[MAX 2 9 [MIN 4 7 ] 0 ]"
ROUNDED = 0.51e-6  # replies have six decimals


def matrix(rows: list[list[float | None]]) -> Tensor:
    """A matrix of a reply; what is null becomes -inf."""
    numbers = [[float("-inf") if value is None else value for value in row] for row in rows]
    return torch.tensor(numbers, dtype=torch.float64)


def assert_same(rows: list[list[float | None]], expected: Tensor) -> None:
    torch.testing.assert_close(matrix(rows), expected.double(), rtol=0, atol=ROUNDED)


def without_what_is_no_arc(scores: Tensor) -> Tensor:
    scores = scores.double()
    scores.fill_diagonal_(float("-inf"))
    scores[:, 0] = float("-inf")
    return scores


@pytest.mark.parametrize(
    ("source", "text", "structure", "relaxation"),
    [
        ("random", WORDS, Projective(), "softmax"),
        ("random", WORDS, Projective(single_root=True), "entropy"),
        ("heads", EXPRESSION, Heads(), "softmax"),
    ],
)
def test_all_numbers_of_a_reply(
    ask: Ask, sources: Sources, source: Any, text: str, structure: Structure, relaxation: Any
) -> None:
    reply = ask(
        source=source, text=text, score_seed=3, noise_seed=5, noise_scale=1.5, samples=20,
        sample_seed=11, relaxation=relaxation, temperature=0.7,
        single_root=structure == Projective(single_root=True),
    )  # fmt: skip
    words = sources[source].words(text)
    scores = sources[source].scores(words, 3).double()
    noise = perturbation("gumbel", scores, generator=torch.Generator().manual_seed(5))
    perturbed = scores + 1.5 * noise
    assert reply["words"] == list(words)
    assert_same(reply["scores"], without_what_is_no_arc(scores.clone()))
    assert_same(reply["perturbed"], without_what_is_no_arc(perturbed.clone()))
    soft = structure.relaxed(perturbed, relaxation=relaxation, temperature=0.7)
    assert_same(reply["soft"], soft)
    trees = structure(scores)
    assert heads_of(reply["best"]) == tree_to_heads(trees.mode).tolist()
    best = tree_to_heads(structure.argmax(perturbed)).tolist()
    assert heads_of(reply["best_perturbed"]) == best
    assert_same(reply["marginals"], trees.marginals)
    expected = [trees.log_partition, trees.entropy(), trees.log_prob(trees.mode)]
    figures = [reply["log_partition"], reply["entropy"], reply["best_log_probability"]]
    assert figures == pytest.approx([number.item() for number in expected], abs=ROUNDED)
    drawn = trees.sample((20,), generator=torch.Generator().manual_seed(11))
    assert reply["samples"]["count"] == 20
    assert heads_of(reply["samples"]["last"]) == tree_to_heads(drawn[-1]).tolist()
    assert_same(reply["samples"]["frequencies"], drawn.mean(0))


def shown(structure: Structure, tensor: Tensor) -> Tensor:
    """Spans as a reply has them: words count from 1, single words are left out."""
    return tensor if structure.rooted else F.pad(tensor.triu(1), (1, 0, 1, 0))


@pytest.mark.parametrize(
    "estimator",
    [
        Relaxed("entropy", 0.2, Gumbel(0.3)),
        StraightThrough(Relaxed("entropy", 0.2, Gumbel(0.3))),
        Marginals(0.2),
        SparseMAP(0.2, noise=Gumbel(0.3)),
        SPIGOT(noise=Gumbel(0.3)),
        IMLE(noise=Gumbel(0.3)),
    ],
    ids=["relaxed", "straight-through", "marginals", "sparsemap", "spigot", "imle"],
)
@pytest.mark.parametrize("structure", [Projective(), NonProjective(), Heads(), Binary()])
def test_the_tree_and_gradient_of_every_estimator(
    ask: Ask, request: pytest.FixtureRequest, estimator: Any, structure: Structure
) -> None:
    """With noise and temperature relative to the spread: the library sees scores of spread 1."""
    name = request.node.callspec.id.split("-", 1)[1]
    reply = ask(
        source="random", text=WORDS, structure=structure.name, estimator=name, relaxation="entropy",
        relative=True, temperature=0.2, noise_scale=0.3, noise_seed=2, target={"head": 2, "word": 5},
    )  # fmt: skip
    scores = RandomSource().scores(WORDS.split(), 0).double()
    place = (2, 5)
    if isinstance(structure, Binary):
        scores, place = scores[1:, 1:], (1, 4)
        if name == "spigot":
            estimator = SPIGOT(noise=Gumbel(0.3), projection="polytope")
    parts = structure.part_mask(torch.tensor(7), len(scores))
    parts = parts if structure.rooted else parts.triu(1)
    columns = [scores[:, m][parts[:, m]] for m in range(len(scores)) if parts[:, m].any()]
    columns = columns if structure.rooted else [scores[parts]]
    apart = [column - column.mean() for column in columns]
    spread = torch.cat(apart).square().mean().sqrt().item()
    assert reply["spread"] == pytest.approx(spread, abs=ROUNDED)
    unit = (scores / spread).requires_grad_()
    tree = estimator.sample(structure(unit), generator=torch.Generator().manual_seed(2))
    assert_same(reply["soft"], shown(structure, tree.detach()))
    [gradient] = torch.autograd.grad(1 - tree[place], unit)
    # of scores that are so many times as large; that of SPIGOT is a difference of trees
    scale = 1.0 if name == "spigot" else spread
    assert_same(reply["gradient"], shown(structure, gradient / scale))


@pytest.mark.parametrize("structure", ["projective", "heads", "binary"])
def test_the_arc_of_the_loss_is_the_least_certain_one(ask: Ask, structure: str) -> None:
    """Outside the best tree, where estimators of whole trees have a gradient too."""
    reply = ask(source="random", text=WORDS, structure=structure, relative=True, noise_scale=0.3)
    spans = structure == "binary"
    apart = {
        (head, word): abs(weight - 0.5)
        for head, row in enumerate(reply["soft"])
        for word, weight in enumerate(row)
        if word and head != word and [head, word] not in reply["best_perturbed"]
        if not spans or 0 < head < word
    }
    target = reply["target"]["head"], reply["target"]["word"]
    assert apart[target] <= min(apart.values()) + 1e-3


def test_samples_in_batches_are_those_of_one_call(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the first of them are the same whatever their number is."""
    monkeypatch.setattr("treelax.apps.demo.answers.SAMPLED_AT_ONCE", 8 * 8 * 7)
    scores = RandomSource().scores(WORDS.split(), 0).double()
    generator = torch.Generator().manual_seed(4)
    drawn = ProjectiveTrees(scores).sample((30,), generator=generator)
    for count in (1, 13, 30):
        samples = ask(source="random", text=WORDS, samples=count, sample_seed=4)["samples"]
        assert heads_of(samples["last"]) == tree_to_heads(drawn[count - 1]).tolist()
        assert_same(samples["frequencies"], drawn[:count].mean(0))
    none = ask(source="zero", text="dogs bark")["samples"]
    assert none == {"count": 0, "last": None, "frequencies": [[0.0] * 3] * 3}


def test_the_model_in_the_box(ask: Ask) -> None:
    reply = ask(source="listops", text=EXPRESSION)
    [said] = load("listops").parse([EXPRESSION])
    assert said.scores is not None
    assert said.heads is not None
    expected = without_what_is_no_arc(said.scores[0])
    # another batch shape may be summed in another order
    torch.testing.assert_close(matrix(reply["scores"]), expected, rtol=1e-5, atol=1e-5)
    assert heads_of(reply["best"]) == list(said.heads[0])
    assert reply["answer"]["gold"] == list(parse_expression(EXPRESSION).heads)
    assert reply["answer"]["tags"] == ["4", "", "", "2", "", "", "", "", ""]
    assert "Value 9." in reply["answer"]["text"]
    assert "9 of 9 heads right" in reply["answer"]["text"]
    # a pinned arc takes an argument away from its operator
    bound = ask(source="listops", text=EXPRESSION, pinned=[{"head": 2, "word": 3}])["answer"]
    assert bound["tags"][0] != "4"
    assert "8 of 9 heads right" in bound["text"]


def test_expressions_as_people_write_them(ask: Ask) -> None:
    """Also one that they have not finished."""
    for text in ("[max 2 9[min 4 7]0]", "( ( ( [MAX 2 ) 9 ) ] )", "[MAX 2 9"):
        reply = ask(source="listops", text=text)
        assert reply["words"][:3] == ["[MAX", "2", "9"]
    assert len(reply["best"]) == 3
    assert reply["answer"]["gold"] is None
    assert "Not a whole expression yet" in reply["answer"]["text"]
    # one that has ended is none
    many = ask(source="listops", text="[MAX 1 2 3 4 5 6 7 ]")["answer"]["tags"]
    assert many[0] == "5+"  # the model has no tag for more
    ended = ask(source="listops", text="[MAX 2 9 ] 3")["answer"]["text"]
    assert ended.startswith("Not an expression: token 5: received 3 after the end")


def test_edits_pins_and_forbidden_arcs(ask: Ask) -> None:
    reply = ask(
        source="zero",
        text="a b c",
        edits=[
            {"head": 1, "word": 2, "score": 9},
            {"head": 1, "word": 2, "score": 2.5},
            {"head": 3, "word": 1, "score": -1},
            {"head": 3, "word": 9, "score": 5},  # beyond the last word
        ],
        pinned=[{"head": 3, "word": 1}],
        forbidden=[{"head": 1, "word": 3}, {"head": 0, "word": 2}],
        noise_scale=50,
        samples=1,
    )
    for heads in (reply["best"], reply["best_perturbed"], reply["samples"]["last"]):
        assert heads[0] == [3, 1]
        assert heads[1] in ([1, 2], [3, 2])
        assert heads[2] != [1, 3]
    no = None
    assert reply["scores"] == [[no, no, no, 0], [no, no, 2.5, no], [no, no, no, 0], [no, -1, 0, no]]
    assert [row[1] for row in reply["soft"]] == [0, 0, 0, 1]
    assert reply["marginals"][1][3] == 0
    assert_same(reply["marginals"], ProjectiveTrees(matrix(reply["scores"])).marginals)


# ------------------------------------------------------------------ runs


def label_of(run: Path, *texts: str) -> str:
    [label] = load(run).predict([texts if len(texts) > 1 else texts[0]])
    assert isinstance(label.probability, float)
    return f"{label.label} ({100 * label.probability:.0f} %)"


@pytest.mark.parametrize("structure", ["projective", "binary"])
def test_a_run_on_sentences(tmp_path: Path, structure: str) -> None:
    settings = {"model__structure": structure, "model__single_root": structure == "projective"}
    run = train("classify", tmp_path, train__epochs=1, **settings)
    sources = load_sources(run)
    assert list(sources) == ["run", "english", "listops", "zero", "random"]
    info = sources["run"].info
    assert (info.name, info.label, info.structure) == ("run", "run run", structure)
    assert info.defaults.single_root == settings["model__single_root"]
    single_root = info.defaults.single_root
    request = TreeRequest(source="run", text="The film was fine.", single_root=single_root)
    reply = answer(request, sources)
    [best] = load(run).predict(["The film was fine."])
    assert reply.words == ["The", "film", "was", "fine", "."]
    if structure == "binary":
        assert best.brackets is not None
        words, spans = read_brackets(best.brackets[0])
        assert reply.words == words
        assert set(reply.best) == {(i + 1, j + 1) for i, j, _ in spans}
    else:
        assert best.heads is not None
        assert heads_of(reply.best) == list(best.heads[0])
    assert reply.answer is not None
    assert reply.answer.text == label_of(run, "The film was fine.")
    # the model hears of what is pinned, and forgets it
    pinned = request.model_copy(update={"pinned": [Arc(head=2, word=3)]})
    assert (2, 3) in answer(pinned, sources).best
    assert answer(request, sources) == reply


def test_both_texts_of_a_pair(ask: Ask, sources: Sources, pair_run: Path) -> None:
    """The label and the trees are those of the library."""
    first, second = "the film was good", "the bad plot"
    info = sources["pairs"].info
    assert (info.texts, len(info.examples)) == (["q", "a"], 2)
    [both] = load(pair_run).predict([(first, second)])
    assert both.heads is not None
    texts = {"first": first, "second": second}
    for at, (shown, text) in enumerate(texts.items()):
        reply = ask(source="pairs", text=first, second={"text": second}, shown=shown)
        assert reply["words"] == ["NULL", *text.split()]
        assert reply["other_words"] == ["NULL", *(second, first)[at].split()]
        assert reply["null"] is True
        assert heads_without_null(heads_of(reply["best"])) == both.heads[at]
        assert reply["answer"]["text"] == label_of(pair_run, first, second)
    # it is asked with the trees of both, whichever is shown
    pinned = {"text": second, "pinned": [{"head": 4, "word": 1}]}
    bound = ask(source="pairs", text=first, second=pinned, shown="second")
    assert bound["best"][0] == [4, 1]
    assert bound["answer"] == ask(source="pairs", text=first, second=pinned)["answer"]
    alone = ask(source="pairs", text=second)
    assert alone["answer"]["text"] == "No label yet: this model labels two texts together."
    assert {**reply, "answer": alone["answer"]} == {**alone, "other_words": reply["other_words"]}
