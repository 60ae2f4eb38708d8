"""What models say of a corpus: the trees that they predict with, labels, entropies."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.listops import generate_listops
from treelax.apps.data.text.vectors import random_vectors
from treelax.apps.tasks.base import Examples, LabelFigures
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
    sizes = dict.fromkeys(("projection_size", "scorer_size", "gcn_size", "output_size"), 6)
    columns = ("a", "b") if kind == "pair" else ("a",)
    made = SentenceSettings(
        kind=kind, text=columns, null=null, model=ModelConfig(**sizes | settings)
    )  # type: ignore[arg-type]
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(3)
        untrained = SentenceModel(made, random_vectors(WORDS, 5), ["yes", "no"])
        for parameter in untrained.parameters():
            parameter.mul_(3)
    return untrained.eval()


def corpus(texts: int = 1, **known: Any) -> Corpus:
    return Corpus("six", tuple(Sentence(words) for words in TEXTS), texts, **known)


@pytest.mark.parametrize(
    ("kind", "trees", "null"),
    [
        *(("classify", "latent", True), ("pair", "latent", True), ("tag", "latent", False)),
        *(("pair", "heads", False), ("tag", "chain", True)),
    ],
)
def test_trees_and_labels_are_those_of_predictions(kind: str, trees: str, null: bool) -> None:
    parser = model(kind, null=null, trees=trees)
    texts = 2 if kind == "pair" else 1
    given: Any = list(zip(TEXTS[::2], TEXTS[1::2], strict=True)) if texts == 2 else TEXTS
    hard, soft = parser.predict(given), parser.predict(given, soft=True)
    parses = parse_corpus(parser, corpus(texts, labels=tuple(one.label for one in hard)))
    assert parses.trees == tuple(heads for one in hard for heads in one.heads or ())
    pairs = [
        pair
        for a, b in zip(hard, soft, strict=True)
        for pair in (zip(a.label, b.label, strict=True) if kind == "tag" else [(a.label, b.label)])
    ]
    same = pytest.approx(100 * sum(a == b for a, b in pairs) / len(pairs))
    assert parses.labels == LabelFigures(len(pairs), same, 100, same)
    if trees == "chain":
        assert parses.entropies is None
        assert list(parses.trees) == chain_trees(map(len, TEXTS))
    else:
        assert parses.entropies is not None
        assert [one.vertices for one in parses.entropies] == [len(words) + null for words in TEXTS]
        assert all(0 < one.entropy < one.greatest for one in parses.entropies if one.vertices > 1)


def test_single_sentences_for_a_model_of_pairs() -> None:
    """Its encoder sees one sentence at a time; there is nothing to label."""
    parser = model("pair", null=True)
    alone, paired = (parse_corpus(parser, corpus(texts)) for texts in (1, 2))
    assert alone.trees == paired.trees
    assert alone.labels is None
    assert paired.labels is not None


def test_labels_of_something_else_are_not_counted() -> None:
    tags = tuple(("yes",) * len(words) for words in TEXTS)  # of words, for a model of texts
    for labels in (None, ("praise",) * 6, tags):
        figures = parse_corpus(model(), corpus(labels=labels)).labels
        assert figures is not None
        assert (figures.accuracy, figures.soft_accuracy, figures.gap) == (None, None, None)
    known = parse_corpus(model(), corpus(labels=("yes", *["other"] * 5))).labels
    assert known is not None
    assert known.accuracy in (0, pytest.approx(100 / 6))


@pytest.mark.parametrize("trees", ["latent", "gold"])
def test_a_tagger_as_its_evaluation(trees: str) -> None:
    examples = list(listops_examples(generate_listops(12, seed=1, max_length=20), "twelve"))
    sizes = dict.fromkeys(("embedding_size", "encoder_size", "scorer_size", "gcn_size"), 6)
    config = ListOpsModelConfig(trees=trees, **sizes)  # type: ignore[arg-type]
    with torch.random.fork_rng():
        torch.manual_seed(2)
        parser = ListOpsParser(ListOpsTagger(config).eval(), ListOpsConfig(model=config))
    done = list[int]()
    parses = parse_corpus(parser, Corpus.of(Examples("twelve", examples)), progress=done.append)
    figures = parser.evaluate(examples)
    assert parses.labels is not None
    assert parses.labels.labels == figures.operators
    assert parses.labels.accuracy == pytest.approx(figures.operator_accuracy)
    assert parses.labels.soft_accuracy == pytest.approx(figures.soft_operator_accuracy)
    assert done[-1] == figures.tokens
    if trees == "gold":
        assert (parses.entropies, parses.labels.same) == (None, 100)
    else:
        assert parses.entropies is not None
        assert [one.vertices for one in parses.entropies] == [len(e.texts[0]) for e in examples]
