"""What models say of a corpus: the trees that they predict with, labels, entropies."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.listops import generate_listops
from treelax.apps.data.text.vectors import random_vectors
from treelax.apps.tasks.base import Examples, LabelFigures, heads_without_null
from treelax.apps.tasks.listops.config import ListOpsConfig
from treelax.apps.tasks.listops.model import ListOpsTagger
from treelax.apps.tasks.listops.model import ModelConfig as ListOpsModelConfig
from treelax.apps.tasks.listops.parser import ListOpsParser, listops_examples
from treelax.apps.tasks.text.config import ModelConfig, SentenceSettings
from treelax.apps.tasks.text.pretrained import SentenceModel
from treelax.lab.analysis.baselines import chain_trees
from treelax.lab.analysis.corpora import Corpus
from treelax.lab.analysis.parses import parse_corpus

WORDS = ("the", "film", "was", "good", "bad")
TEXTS = (
    *(("the", "film"), ("good",), ("the", "film", "was", "never", "good")),
    *(("bad", "bad", "film"), ("was", "the", "film", "bad"), ("film", "film", "film")),
)


def model(kind: str = "classify", *, null: bool = False, **settings: Any) -> SentenceModel:
    """An untrained model with large scores, which therefore has trees of all shapes."""
    sizes = {"projection_size": 6, "scorer_size": 6, "gcn_size": 6, "output_size": 6}
    columns = ("a", "b") if kind == "pair" else ("a",)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        made = SentenceModel(
            SentenceSettings(
                kind=kind,  # type: ignore[arg-type]
                text=columns,
                null=null,
                model=ModelConfig(**sizes | settings),  # type: ignore[arg-type]
            ),
            random_vectors(WORDS, 5),
            ["yes", "no"],
        )
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.mul_(3)
    return made.eval()


def corpus(texts: int = 1, **known: Any) -> Corpus:
    return Corpus("six", tuple(Sentence(words) for words in TEXTS), texts, **known)


# ------------------------------------------------------------------ sentences


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("trees", ["latent", "heads", "chain"])
@pytest.mark.parametrize("kind", ["classify", "pair", "tag"])
def test_trees_and_labels_are_those_of_predictions(kind: str, trees: str, null: bool) -> None:
    own = model(kind, null=null, trees=trees)
    texts = 2 if kind == "pair" else 1
    given: Any = list(zip(TEXTS[::2], TEXTS[1::2], strict=True)) if texts == 2 else TEXTS
    hard, soft = own.predict(given), own.predict(given, soft=True)
    said = parse_corpus(own, corpus(texts, labels=tuple(each.label for each in hard)))
    assert said.trees == tuple(heads for each in hard for heads in each.heads or ())
    pairs = [
        pair
        for a, b in zip(hard, soft, strict=True)
        for pair in (zip(a.label, b.label, strict=True) if kind == "tag" else [(a.label, b.label)])
    ]
    same = pytest.approx(100 * sum(a == b for a, b in pairs) / len(pairs))
    assert said.labels == LabelFigures(len(pairs), same, 100, same)
    if trees == "chain":
        assert said.entropies is None
        assert list(said.trees) == chain_trees(map(len, TEXTS))
    else:
        assert said.entropies is not None
        assert [one.vertices for one in said.entropies] == [len(words) + null for words in TEXTS]
        assert all(0 < one.entropy < one.greatest for one in said.entropies if one.vertices > 1)


def test_single_sentences_for_a_model_of_pairs() -> None:
    """Its encoder sees one sentence at a time; there is nothing to label."""
    own = model("pair", null=True)
    alone, paired = (parse_corpus(own, corpus(texts)) for texts in (1, 2))
    assert alone.trees == paired.trees
    assert alone.labels is None
    assert paired.labels is not None


def test_labels_of_something_else_are_not_counted() -> None:
    tags = tuple(("yes",) * len(words) for words in TEXTS)  # of words, for a model of texts
    for labels in (None, ("praise",) * 6, tags):
        said = parse_corpus(model(), corpus(labels=labels)).labels
        assert said is not None
        assert (said.accuracy, said.soft_accuracy, said.gap) == (None, None, None)
    known = parse_corpus(model(), corpus(labels=("yes", *["other"] * 5))).labels
    assert known is not None
    assert known.accuracy in (0, pytest.approx(100 / 6))


def test_a_word_and_null_may_be_the_heads_of_each_other() -> None:
    assert heads_without_null((2, 1)) == (0,)


# ------------------------------------------------------------------ ListOps


def tagger(trees: str = "latent", **settings: Any) -> ListOpsParser:
    sizes = {"embedding_size": 6, "encoder_size": 6, "scorer_size": 6, "gcn_size": 6}
    config = ListOpsModelConfig(trees=trees, **sizes | settings)  # type: ignore[arg-type]
    with torch.random.fork_rng():
        torch.manual_seed(2)
        return ListOpsParser(ListOpsTagger(config).eval(), ListOpsConfig(model=config))


@pytest.mark.parametrize("trees", ["latent", "gold"])
def test_a_tagger_as_its_evaluation(trees: str) -> None:
    examples = list(listops_examples(generate_listops(12, seed=1, max_length=20), "twelve"))
    own, done = tagger(trees), list[int]()
    said = parse_corpus(own, Corpus.of(Examples("twelve", examples)), progress=done.append)
    figures = own.evaluate(examples)
    assert said.labels is not None
    assert said.labels.labels == figures.operators
    assert said.labels.accuracy == pytest.approx(figures.operator_accuracy)
    assert said.labels.soft_accuracy == pytest.approx(figures.soft_operator_accuracy)
    assert done[-1] == figures.tokens
    if trees == "gold":
        assert (said.entropies, said.labels.same) == (None, 100)
    else:
        assert said.entropies is not None
        assert [one.vertices for one in said.entropies] == [len(e.texts[0]) for e in examples]


# ------------------------------------------------------------------ parts
