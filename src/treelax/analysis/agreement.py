"""How far trees of the same sentences agree: with a treebank, or the trees of several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean, stdev

from treelax.analysis.shapes import Heads, check_heads, check_same_words
from treelax.errors import InputError

__all__ = [
    "Agreement",
    "PairAgreement",
    "agreement",
    "agreement_by_tag",
    "edges",
    "mean_and_deviation",
    "pairwise_agreement",
]

Keep = Sequence[Sequence[bool]]


@dataclass(frozen=True)
class Agreement:
    """What some trees have in common with the gold ones; numbers may be expected ones.

    Attributes:
        words: that count.
        right: of them, those with the gold head.
        edges: of the gold trees between two words, whose modifier counts.
        found: of them, those that the trees have too, in either direction.
        sentences: that have words that count.
        exact: of them, those with the gold head for every word that counts.
    """

    words: int
    right: float
    edges: int
    found: float
    sentences: int
    exact: float

    @property
    def uas(self) -> float | None:
        """Unlabelled attachment: words with the gold head, in percent."""
        return 100 * self.right / self.words if self.words else None

    @property
    def uuas(self) -> float | None:
        """Undirected attachment: gold edges that are found, whichever end is the head, in percent."""
        return 100 * self.found / self.edges if self.edges else None

    @property
    def exact_trees(self) -> float | None:
        """Sentences with every head right, in percent."""
        return 100 * self.exact / self.sentences if self.sentences else None


def agreement(
    trees: Sequence[Heads], gold: Sequence[Heads], *, keep: Keep | None = None
) -> Agreement:
    """Compare trees with gold ones.

    Words that hang off the root count for `Agreement.uas`, but have no edge for `Agreement.uuas`.

    Args:
        trees: the heads of each sentence, counted from 1, 0 the root.
        gold: those they should be.
        keep: whether each word counts, as a modifier; all by default.

    Returns:
        What they have in common.

    Raises:
        InputError: trees, gold and keep are not of the same words, or a head is out of range.

    Example:
        >>> found = agreement([(0, 1, 2, 3)], [(2, 0, 2, 3)])
        >>> found.uas, found.uuas
        (50.0, 100.0)
    """
    _check(trees, gold)
    if keep is not None:
        check_same_words("keep", keep, trees)
    total = _Sum()
    for number, (heads, wanted) in enumerate(zip(trees, gold, strict=True)):
        counted = range(len(heads)) if keep is None else _places(keep[number])
        total.add(heads, wanted, counted)
    return total.result()


def agreement_by_tag(
    trees: Sequence[Heads], gold: Sequence[Heads], tags: Sequence[Sequence[str]]
) -> dict[str, Agreement]:
    """Compare the heads of the words of each tag with the gold ones."""
    _check(trees, gold)
    check_same_words("tags", tags, trees)
    totals: dict[str, _Sum] = {}
    for heads, wanted, own in zip(trees, gold, tags, strict=True):
        for tag in set(own):
            counted = [i for i, other in enumerate(own) if other == tag]
            totals.setdefault(tag, _Sum()).add(heads, wanted, counted)
    found = {tag: total.result() for tag, total in sorted(totals.items())}
    return dict(sorted(found.items(), key=lambda item: -item[1].words))


@dataclass(frozen=True)
class PairAgreement:
    """How far two runs agree, in percent; it is the same in both directions.

    Attributes:
        first: name of a run.
        second: name of another.
        uas: words with the same head.
        undirected: twice the edges that both have over the edges of both, whichever end is the
            head; None if neither has any.
        exact: sentences with the same tree.
    """

    first: str
    second: str
    uas: float
    undirected: float | None
    exact: float


def pairwise_agreement(parses: Mapping[str, Sequence[Heads]]) -> list[PairAgreement]:
    """Compare the trees of every two runs.

    Args:
        parses: the trees of each run, of the same sentences.

    Returns:
        A comparison for each pair, in the order of the runs; none if there is one run.

    Raises:
        InputError: the trees are not of the same words, or a head is out of range.

    Example:
        >>> [pair] = pairwise_agreement({"a": [(0, 1, 2)], "b": [(0, 1, 1)]})
        >>> pair.first, pair.second, pair.uas
        ('a', 'b', 66.66666666666667)
    """
    found = []
    for (first, trees), (second, others) in combinations(parses.items(), 2):
        there, back = agreement(trees, others), agreement(others, trees)
        edges = there.edges + back.edges
        found.append(
            PairAgreement(
                first,
                second,
                uas=100 * there.right / there.words,
                undirected=100 * (there.found + back.found) / edges if edges else None,
                exact=100 * there.exact / there.sentences,
            )
        )
    return found


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard deviation of some figures."""
    if not values:
        raise InputError("values: received none; expected at least one")
    return mean(values), stdev(values) if len(values) > 1 else None


def _check(trees: Sequence[Heads], gold: Sequence[Heads]) -> None:
    check_heads(trees)
    check_heads(gold)
    check_same_words("gold", gold, trees)


@dataclass
class _Sum:
    """What trees have in common so far."""

    words: int = 0
    right: int = 0
    edges: int = 0
    found: int = 0
    sentences: int = 0
    exact: int = 0

    def add(self, heads: Heads, gold: Heads, counted: Sequence[int]) -> None:
        """Count some words of a sentence, given by their places from 0."""
        if not counted:
            return
        right = sum(heads[i] == gold[i] for i in counted)
        wanted = edges(gold, counted)
        self.words += len(counted)
        self.right += right
        self.edges += len(wanted)
        self.found += len(wanted & edges(heads))
        self.sentences += 1
        self.exact += right == len(counted)

    def result(self) -> Agreement:
        return Agreement(self.words, self.right, self.edges, self.found, self.sentences, self.exact)


def _places(keep: Sequence[bool]) -> list[int]:
    return [i for i, kept in enumerate(keep) if kept]


def edges(heads: Heads, modifiers: Sequence[int] | None = None) -> set[tuple[int, int]]:
    """The edges of a tree between two words, without their direction."""
    chosen = range(len(heads)) if modifiers is None else modifiers
    return {(min(heads[i], i + 1), max(heads[i], i + 1)) for i in chosen if heads[i]}
