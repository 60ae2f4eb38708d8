"""How far trees of the same sentences agree: with a treebank, or the trees of several runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from statistics import mean, stdev

from treelax.lab.analysis.shapes import Heads, check_heads, check_same_words

Keep = Sequence[Sequence[bool]]


@dataclass(frozen=True)
class Agreement:
    """What some trees have in common with the gold ones; numbers may be expected ones."""

    words: int  # that count
    right: float  # of them, those with the gold head
    edges: int  # of the gold trees between two words, whose modifier counts
    found: float  # of them, those that the trees have too, in either direction
    sentences: int  # that have words that count
    exact: float  # of them, those with the gold head for every word that counts

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
    """Compare trees with gold ones; ``keep`` says which words count, as modifiers.

    Words that hang off the root count for `Agreement.uas`, but have no edge for `Agreement.uuas`.

    Example:
        >>> found = agreement([(0, 1, 2, 3)], [(2, 0, 2, 3)])
        >>> found.uas, found.uuas
        (50.0, 100.0)
    """
    check_heads(trees)
    check_heads(gold)
    check_same_words("gold", gold, trees)
    total: Counter[str] = Counter()
    for number, (heads, wanted) in enumerate(zip(trees, gold, strict=True)):
        counted = [i for i in range(len(heads)) if keep is None or keep[number][i]]
        if counted:
            right = sum(heads[i] == wanted[i] for i in counted)
            asked = edges(wanted, counted)
            total.update(words=len(counted), right=right, sentences=1, exact=right == len(counted))
            total.update(edges=len(asked), found=len(asked & edges(heads)))
    return Agreement(**{part.name: total[part.name] for part in fields(Agreement)})


def by_tag(
    compare: Callable[..., Agreement], tags: Sequence[Sequence[str]]
) -> dict[str, Agreement]:
    """What ``compare(keep=...)`` returns for the words of each tag, the most frequent tag first."""
    counts = Counter(tag for sentence in tags for tag in sentence)
    return {
        tag: compare(keep=[[other == tag for other in sentence] for sentence in tags])
        for tag in sorted(counts, key=lambda tag: (-counts[tag], tag))
    }


@dataclass(frozen=True)
class PairAgreement:
    """How far two runs agree, in percent; it is the same in both directions."""

    first: str  # their names
    second: str
    uas: float  # words with the same head
    # twice the edges that both have over the edges of both, whichever end is the head
    undirected: float | None
    exact: float  # sentences with the same tree


def pairwise_agreement(parses: Mapping[str, Sequence[Heads]]) -> list[PairAgreement]:
    """Compare the trees of every two runs, which are of the same sentences."""
    pairs = []
    for (first, trees), (second, others) in combinations(parses.items(), 2):
        there, back = agreement(trees, others), agreement(others, trees)
        edges = there.edges + back.edges
        pairs.append(
            PairAgreement(
                first,
                second,
                uas=100 * there.right / there.words,
                undirected=100 * (there.found + back.found) / edges if edges else None,
                exact=100 * there.exact / there.sentences,
            )
        )
    return pairs


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard deviation of some figures."""
    return mean(values), stdev(values) if len(values) > 1 else None


def edges(heads: Heads, modifiers: Sequence[int] | None = None) -> set[tuple[int, int]]:
    """The edges of a tree between two words, without their direction."""
    chosen = range(len(heads)) if modifiers is None else modifiers
    return {(min(heads[i], i + 1), max(heads[i], i + 1)) for i in chosen if heads[i]}
