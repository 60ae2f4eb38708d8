"""Statistics of trees: which way arcs run and how far, how deep trees are, what their spans are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from treelax.lab.analysis.shapes import Heads, check_heads, subtrees

DISTRIBUTIONS = (
    *("arc_lengths", "depths", "root_counts", "modifiers", "left_modifiers", "right_modifiers"),
    *("subtree_sizes", "run_lengths"),
)


@dataclass(frozen=True)
class Grammar:
    """Statistics of the trees of some sentences; shares are in percent, None where nothing counts.

    An arc here joins two words; what hangs off the root has no arc. Depths and subtrees are those
    of sentences that are trees, which head selection does not promise.

    A *run* is a longest series of words each of which but the first hangs off the word before it:
    the spans of left-to-right arcs that section 6.3 of the paper sees.
    """

    sentences: int
    words: int
    arcs: int  # between two words
    tree_share: float  # sentences whose heads form a tree
    projective: float  # sentences that are trees without crossing arcs
    left_to_right: float | None  # arcs whose head stands left of the modifier
    previous: float  # words whose head is the word before
    next: float  # words whose head is the word after
    mean_arc_length: float | None  # how many words further the modifier stands, 1 for neighbours
    median_arc_length: float | None  # of all arcs
    mean_depth: float | None  # of sentences: the most arcs from the root to a word
    mean_roots: float  # words that hang off the root, in a sentence
    single_root: float  # sentences with one such word
    leaves: float  # words without modifiers
    mean_modifiers: float | None  # of words that have any
    one_modifier: float | None  # words with one modifier, of those that have any
    both_sides: float | None  # words with modifiers to either side, of those that have any
    mean_subtree_size: float | None  # words in a subtree, leaves left out
    contiguous: float | None  # subtrees, leaves left out, that no other word interrupts
    initial: float | None  # subtrees, leaves left out, whose head is their first word
    final: float | None  # subtrees, leaves left out, whose head is their last word
    mean_runs: float  # runs in a sentence
    mean_run_length: float  # words in a run
    # numbers of times by value
    arc_lengths: Mapping[int, int]  # arcs between words by length
    depths: Mapping[int, int]  # sentences by depth
    root_counts: Mapping[int, int]  # sentences by words that hang off the root
    modifiers: Mapping[int, int]  # words by number of modifiers
    left_modifiers: Mapping[int, int]  # the same to their left
    right_modifiers: Mapping[int, int]  # the same to their right
    subtree_sizes: Mapping[int, int]  # subtrees by number of words
    run_lengths: Mapping[int, int]  # runs of words by length


def grammar(trees: Sequence[Heads]) -> Grammar:
    """The statistics of some trees: the heads of each sentence, counted from 1, 0 the root.

    Example:
        >>> chains = grammar([(0, 1, 2, 3), (0, 1, 2, 3)])
        >>> chains.left_to_right, chains.mean_depth, chains.mean_runs, chains.leaves
        (100.0, 4.0, 1.0, 25.0)
    """
    check_heads(trees)
    total: Counter[str] = Counter()
    by: dict[str, Counter[int]] = {name: Counter() for name in DISTRIBUTIONS}
    for heads in trees:
        _count(heads, total, by)
    sentences, words, arcs = len(trees), sum(map(len, trees)), by["arc_lengths"].total()
    parents = words - by["modifiers"][0]
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
        median_arc_length=float(median(by["arc_lengths"].elements())) if arcs else None,
        mean_depth=_mean(by["depths"]),
        mean_roots=(words - arcs) / sentences,
        single_root=100 * by["root_counts"][1] / sentences,
        leaves=100 * by["modifiers"][0] / words,
        mean_modifiers=arcs / parents if parents else None,
        one_modifier=_percent(by["modifiers"][1], parents),
        both_sides=_percent(total["both sides"], parents),
        mean_subtree_size=_mean(larger),
        contiguous=_percent(total["contiguous"], larger.total()),
        initial=_percent(total["initial"], larger.total()),
        final=_percent(total["final"], larger.total()),
        mean_runs=by["run_lengths"].total() / sentences,
        mean_run_length=words / by["run_lengths"].total(),
        **{name: dict(sorted(by[name].items())) for name in DISTRIBUTIONS},
    )


def _count(heads: Heads, total: Counter[str], by: Mapping[str, Counter[int]]) -> None:
    """Count what one sentence has."""
    words = range(1, len(heads) + 1)
    arcs = [(head, word) for word, head in enumerate(heads, 1) if head]
    left = Counter(head for head, word in arcs if word < head)
    right = Counter(head for head, word in arcs if word > head)
    starts = [word for word, head in enumerate(heads, 1) if word == 1 or head != word - 1]
    total["left to right"] += right.total()
    total["previous"] += len(heads) - len(starts)
    total["next"] += sum(head == word + 1 for head, word in arcs)
    total["both sides"] += len(left.keys() & right.keys())
    by["arc_lengths"].update(abs(word - head) for head, word in arcs)
    by["root_counts"][len(heads) - len(arcs)] += 1
    by["left_modifiers"].update(left[word] for word in words)
    by["right_modifiers"].update(right[word] for word in words)
    by["modifiers"].update(left[word] + right[word] for word in words)
    by["run_lengths"].update(b - a for a, b in pairwise([*starts, len(heads) + 1]))
    below = subtrees(heads)
    if below is None:
        return
    by["depths"][max(tree.depth for tree in below)] += 1
    by["subtree_sizes"].update(tree.size for tree in below)
    total["projective"] += all(tree.contiguous for tree in below)
    for word, tree in enumerate(below, 1):
        if tree.size > 1:
            total["contiguous"] += tree.contiguous
            total["initial"] += tree.first == word
            total["final"] += tree.last == word


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _mean(values: Counter[int]) -> float | None:
    count = values.total()
    return sum(value * times for value, times in values.items()) / count if count else None
