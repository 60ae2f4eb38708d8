"""What a trained model says of single examples: labels with either tree, and marginals of arcs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from torch import Tensor

from treelax.analysis.corpora import Corpus
from treelax.analysis.parses import Parses, known_labels
from treelax.tasks.base import Heads, Label, Prediction, TrainedParser

__all__ = ["Said", "ask", "shown_label"]

Shown = str | tuple[str, ...] | None


@dataclass(frozen=True)
class Said:
    """What a model says of one example.

    Attributes:
        heads: of each text, counted from 1, 0 the root.
        label: with discrete trees: a class, or a tag for each word, empty where it has none to
            show; None if none was predicted.
        soft_label: likewise with soft trees.
        probability: of the class.
        right: whether the label is right; None if that is not known.
        marginals: of each text, ``(n + 1, n + 1)``; none if they were not asked for.
    """

    heads: tuple[Heads, ...]
    label: Shown = None
    soft_label: Shown = None
    probability: float | None = None
    right: bool | None = None
    marginals: tuple[Tensor, ...] = ()


def shown_label(label: Label) -> Shown:
    """A right label as it is written; empty for words whose tag does not count."""
    if isinstance(label, tuple):
        return tuple("" if tag is None else str(tag) for tag in label)
    return label


def ask(
    parser: TrainedParser,
    corpus: Corpus,
    parses: Parses,
    asked: Sequence[int],
    *,
    mapped: Collection[int] = (),
) -> dict[int, Said]:
    """What a model says of some examples, by their numbers from 0; of some with marginals."""
    found = {}
    labelled = len(parser.text) == corpus.texts and parser.trees != "given"
    gold = dict(enumerate(known_labels(parser, corpus))) if labelled else {}
    for i in asked:
        heads = parses.trees[i * corpus.texts : (i + 1) * corpus.texts]
        texts = corpus.examples[i]
        marginals: list[Tensor] = []
        if i in mapped and parser.tree is not None:
            marginals = [parser.marginals(parser.arc_scores(text.words)) for text in texts]
        if not labelled:
            found[i] = Said(heads, marginals=tuple(marginals))
            continue
        item = texts if corpus.texts > 1 else texts[0]
        [hard], [soft] = parser.predict([item]), parser.predict([item], soft=True)
        share = hard.probability if isinstance(hard.probability, float) else None
        found[i] = Said(
            heads,
            _shown(parser, hard),
            _shown(parser, soft),
            share,
            _right(hard.label, gold.get(i)),
            tuple(marginals),
        )
    return found


def _shown(parser: TrainedParser, said: Prediction) -> Shown:
    return said.label if isinstance(said.label, str) else parser.shown_tags(said)


def _right(label: Label, gold: Label) -> bool | None:
    if label is None or gold is None:
        return None
    if isinstance(gold, str):
        return label == gold
    pairs = [(a, b) for a, b in zip(label, gold, strict=True) if b is not None]
    return all(a == b for a, b in pairs) if pairs else None
