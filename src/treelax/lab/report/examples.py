"""Which examples a gallery shows, and what a trained model says of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from treelax.apps.tasks.base import Heads, Label, Prediction, TrainedParser
from treelax.lab.analysis.corpora import Corpus
from treelax.lab.analysis.parses import Parses, known_labels

Item = TypeVar("Item")
LONGEST = 250  # words; a picture of more is too large to be looked at
ASKED = 5  # examples that are asked about for each one that is shown
MAPS, MAP_WORDS = 8, range(3, 15)  # heat maps in all, and the words of a text that has one
Shown = str | tuple[str, ...] | None


@dataclass(frozen=True)
class Result:
    """What a model says of one example; a label is a class, or a tag for each word."""

    heads: tuple[Heads, ...]  # of each text
    label: Shown = None  # with discrete trees; None if none was predicted
    soft_label: Shown = None
    probability: float | None = None  # of the class
    right: bool | None = None  # None if that is not known
    relations: tuple[tuple[str, ...], ...] | None = None  # of each text the labels of its arcs
    marginals: tuple[Tensor, ...] = ()  # of each text, (n + 1, n + 1), if they were asked for


def ask(
    parser: TrainedParser, corpus: Corpus, parses: Parses, selection: Selection
) -> dict[int, Result]:
    """What a model says of the selected examples, by their numbers from 0; of some with marginals."""
    labelled = len(parser.text) == corpus.texts and not parser.takes_trees
    gold = dict(enumerate(known_labels(parser, corpus))) if labelled else {}
    chosen = [corpus.examples[i] for i in selection.asked]
    items = chosen if corpus.texts > 1 else [text for (text,) in chosen]
    hard, soft = (parser.predict(items, soft=s) if labelled else [] for s in (False, True))
    results = {}
    for number, i in enumerate(selection.asked):
        heads = parses.trees[i * corpus.texts : (i + 1) * corpus.texts]
        texts = chosen[number] if i in selection.mapped and parser.tree is not None else ()
        marginals = tuple(parser.marginals(parser.arc_scores(text)) for text in texts)
        if not labelled:
            results[i] = Result(heads, marginals=marginals)
            continue
        prediction = hard[number]
        share = prediction.probability
        results[i] = Result(
            heads,
            label=_shown(parser, prediction),
            soft_label=_shown(parser, soft[number]),
            probability=share if isinstance(share, float) else None,
            right=_right(prediction.label, gold.get(i)),
            relations=prediction.relations,
            marginals=marginals,
        )
    return results


def _shown(parser: TrainedParser, prediction: Prediction) -> Shown:
    return prediction.label if isinstance(prediction.label, str) else parser.shown_tags(prediction)


def _right(label: Label, gold: Label) -> bool | None:
    if label is None or gold is None:
        return None
    if isinstance(gold, str):
        return label == gold
    pairs = [(a, b) for a, b in zip(label, gold, strict=True) if b is not None]
    return all(a == b for a, b in pairs) if pairs else None


@dataclass(frozen=True)
class Selection:
    """The examples that models are asked about, of which a gallery shows some."""

    size: int  # how many are shown at most
    asked: tuple[int, ...]  # their numbers in the corpus, from 0
    fixed: tuple[int, ...]  # those of them that are shown whatever the models say
    mapped: tuple[int, ...]  # those of these that have a heat map
    too_long: int  # how many examples were passed over for their length

    @classmethod
    def of(cls, corpus: Corpus, size: int, *, runs: int = 1) -> Selection:
        """Choose the examples to ask about."""
        lengths = [max(map(len, texts)) for texts in corpus.examples]
        short = [i for i, length in enumerate(lengths) if length <= LONGEST]
        asked = _spread(short, ASKED * size)
        fixed = asked if len(asked) <= size else _spread(asked, size - size // 3)
        maps = max(1, MAPS // (runs * corpus.texts))
        mapped = _spread([i for i in fixed if lengths[i] in MAP_WORDS], maps)
        too_long = len(lengths) - len(short)
        return cls(size, tuple(asked), tuple(fixed), tuple(mapped), too_long)

    def shown(self, wrong: Callable[[int], bool]) -> tuple[int, ...]:
        """The examples of the gallery: the fixed ones, some that went wrong, then any others."""
        chosen = list(self.fixed)
        others = [i for i in self.asked if i not in set(chosen)]
        for some in ([i for i in others if wrong(i)], others):
            left = [i for i in some if i not in chosen]
            chosen += _spread(left, self.size - len(chosen))
        return tuple(sorted(chosen))


def _spread(items: Sequence[Item], count: int) -> list[Item]:
    """So many of them, from all over; all if there are no more."""
    if len(items) <= count:
        return list(items)
    return [items[i * len(items) // count] for i in range(count)]
