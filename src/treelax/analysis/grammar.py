"""Statistics of trees: which way arcs run and how far, how deep trees are, what their spans are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from treelax.analysis.shapes import Heads, Subtree, check_heads, depths, subtrees

# what each distribution of a `Grammar` counts
DISTRIBUTIONS = {
    "arc_lengths": "arcs between words by length",
    "depths": "sentences by depth",
    "root_counts": "sentences by words that hang off the root",
    "modifiers": "words by number of modifiers",
    "left_modifiers": "words by number of modifiers to their left",
    "right_modifiers": "words by number of modifiers to their right",
    "subtree_sizes": "subtrees by number of words",
    "run_lengths": "runs of words by length",
}


@dataclass(frozen=True)
class Grammar:
    """Statistics of the trees of some sentences; shares are in percent, None where nothing counts.

    An arc here joins two words; what hangs off the root has no arc. Depths and subtrees are those
    of sentences that are trees, which head selection does not promise.

    A *run* is a longest series of words each of which but the first hangs off the word before it:
    the spans of left-to-right arcs that section 6.3 of the paper sees.

    Attributes:
        sentences: number of them.
        words: number of them.
        arcs: between two words.
        tree_share: sentences whose heads form a tree.
        projective: sentences that are trees without crossing arcs.
        left_to_right: arcs whose head stands left of the modifier.
        previous: words whose head is the word before.
        next: words whose head is the word after.
        mean_arc_length: how many words further the modifier stands, 1 for neighbours.
        median_arc_length: of all arcs.
        mean_depth: of sentences: the most arcs from the root to a word, 1 if all hang off it.
        mean_roots: words that hang off the root, in a sentence.
        single_root: sentences with one such word.
        leaves: words without modifiers.
        mean_modifiers: of words that have any.
        one_modifier: words with one modifier, of those that have any.
        both_sides: words with modifiers to their left and to their right, of those that have any.
        mean_subtree_size: words in a subtree, leaves left out.
        contiguous: subtrees, leaves left out, that no other word interrupts.
        initial: subtrees, leaves left out, whose head is their first word.
        final: subtrees, leaves left out, whose head is their last word.
        mean_runs: runs in a sentence.
        mean_run_length: words in a run.
        arc_lengths: see `DISTRIBUTIONS`, as the following; each a number of times by value.
    """

    sentences: int
    words: int
    arcs: int
    tree_share: float
    projective: float
    left_to_right: float | None
    previous: float
    next: float
    mean_arc_length: float | None
    median_arc_length: float | None
    mean_depth: float | None
    mean_roots: float
    single_root: float
    leaves: float
    mean_modifiers: float | None
    one_modifier: float | None
    both_sides: float | None
    mean_subtree_size: float | None
    contiguous: float | None
    initial: float | None
    final: float | None
    mean_runs: float
    mean_run_length: float
    arc_lengths: Mapping[int, int] = field(repr=False)
    depths: Mapping[int, int] = field(repr=False)
    root_counts: Mapping[int, int] = field(repr=False)
    modifiers: Mapping[int, int] = field(repr=False)
    left_modifiers: Mapping[int, int] = field(repr=False)
    right_modifiers: Mapping[int, int] = field(repr=False)
    subtree_sizes: Mapping[int, int] = field(repr=False)
    run_lengths: Mapping[int, int] = field(repr=False)


def grammar(trees: Sequence[Heads]) -> Grammar:
    """The statistics of some trees.

    Args:
        trees: the heads of the words of each sentence, counted from 1, 0 the root.

    Returns:
        The statistics.

    Raises:
        InputError: there are no trees, or a head is out of range.

    Example:
        >>> chains = grammar([(0, 1, 2, 3), (0, 1, 2, 3)])
        >>> chains.left_to_right, chains.mean_depth, chains.mean_runs, chains.leaves
        (100.0, 4.0, 1.0, 25.0)
    """
    check_heads(trees)
    count = _Count()
    for heads in trees:
        count.add(heads)
    return count.result()


@dataclass
class _Count:
    """What is counted, sentence by sentence."""

    total: Counter[str] = field(default_factory=Counter)
    by: dict[str, Counter[int]] = field(
        default_factory=lambda: {name: Counter() for name in DISTRIBUTIONS}
    )

    def add(self, heads: Heads) -> None:
        n = len(heads)
        self.total.update(sentences=1, words=n)
        left, right = [0] * (n + 1), [0] * (n + 1)
        run = 0
        for word, head in enumerate(heads, 1):
            if head:
                self.by["arc_lengths"][abs(word - head)] += 1
                self.total["left to right"] += head < word
                (right if head < word else left)[head] += 1
                self.total["next"] += head == word + 1
            if head == word - 1 and run:
                self.total["previous"] += 1
            elif run:
                self.by["run_lengths"][run] += 1
                run = 0
            run += 1
        self.by["run_lengths"][run] += 1
        self.by["root_counts"][sum(head == 0 for head in heads)] += 1
        for before, after in zip(left[1:], right[1:], strict=True):
            self.by["left_modifiers"][before] += 1
            self.by["right_modifiers"][after] += 1
            self.by["modifiers"][before + after] += 1
            self.total["both sides"] += bool(before and after)
        below = subtrees(heads)
        if below is not None:
            self._add_subtrees(heads, below)

    def _add_subtrees(self, heads: Heads, below: Sequence[Subtree]) -> None:
        depth = depths(heads)
        assert depth is not None  # or there would be no subtrees
        self.by["depths"][max(depth)] += 1
        self.total["projective"] += all(subtree.contiguous for subtree in below)
        for word, subtree in enumerate(below, 1):
            self.by["subtree_sizes"][subtree.size] += 1
            if subtree.size > 1:
                self.total["contiguous"] += subtree.contiguous
                self.total["initial"] += subtree.first == word
                self.total["final"] += subtree.last == word

    def result(self) -> Grammar:
        total, by = self.total, self.by
        sentences, words, arcs = total["sentences"], total["words"], by["arc_lengths"].total()
        heads = words - by["modifiers"][0]
        larger = Counter({size: count for size, count in by["subtree_sizes"].items() if size > 1})
        return Grammar(
            sentences=sentences,
            words=words,
            arcs=arcs,
            tree_share=100 * by["depths"].total() / sentences,
            projective=100 * total["projective"] / sentences,
            left_to_right=_percent(total["left to right"], arcs),
            previous=100 * total["previous"] / words,
            next=100 * total["next"] / words,
            mean_arc_length=_mean(by["arc_lengths"]),
            median_arc_length=_median(by["arc_lengths"]),
            mean_depth=_mean(by["depths"]),
            mean_roots=(words - arcs) / sentences,
            single_root=100 * by["root_counts"][1] / sentences,
            leaves=100 * by["modifiers"][0] / words,
            mean_modifiers=arcs / heads if heads else None,
            one_modifier=_percent(by["modifiers"][1], heads),
            both_sides=_percent(total["both sides"], heads),
            mean_subtree_size=_mean(larger),
            contiguous=_percent(total["contiguous"], larger.total()),
            initial=_percent(total["initial"], larger.total()),
            final=_percent(total["final"], larger.total()),
            mean_runs=by["run_lengths"].total() / sentences,
            mean_run_length=words / by["run_lengths"].total(),
            **{name: dict(sorted(by[name].items())) for name in DISTRIBUTIONS},
        )


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _mean(values: Counter[int]) -> float | None:
    count = values.total()
    return sum(value * times for value, times in values.items()) / count if count else None


def _median(values: Counter[int]) -> float | None:
    return float(median(values.elements())) if values else None
