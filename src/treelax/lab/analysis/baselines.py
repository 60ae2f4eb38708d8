"""Trees to compare others with: chains and random trees."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, get_args

import torch
from torch import Tensor

from treelax.apps.data.batching import length_batches
from treelax.lab.analysis.agreement import Agreement, Keep, edges
from treelax.lab.analysis.shapes import Heads, check_heads, subtrees
from treelax.ops import sample_tree
from treelax.ops.checks import one_of
from treelax.structures import Projective

# entries of a batch of random trees
MOST_ENTRIES = 2_000_000
LENGTHS_KEPT = 128
Direction = Literal["left-to-right", "right-to-left"]


def chain_trees(
    lengths: Iterable[int], direction: Direction = "left-to-right"
) -> list[tuple[int, ...]]:
    """A chain over each sentence: the head of every word is its neighbour."""
    one_of("direction", direction, get_args(Direction))
    if direction == "left-to-right":
        return [tuple(range(n)) for n in lengths]
    return [(*range(2, n + 1), 0)[:n] for n in lengths]


def random_trees(
    lengths: Sequence[int], *, generator: torch.Generator, single_root: bool = False
) -> list[tuple[int, ...]]:
    """Draw a projective tree for each sentence, all trees being equally likely."""
    drawn: list[tuple[int, ...]] = [()] * len(lengths)
    for chosen in length_batches(lengths, most_arcs=MOST_ENTRIES):
        sizes = torch.tensor([lengths[i] for i in chosen])
        scores = torch.zeros(len(chosen), size := int(sizes.max()) + 1, size)
        trees = sample_tree(scores, sizes, generator=generator, single_root=single_root)
        for i, heads in zip(chosen, trees.argmax(-2)[:, 1:].tolist(), strict=True):
            drawn[i] = tuple(heads[: lengths[i]])
    return drawn


def random_agreement(
    gold: Sequence[Heads], *, keep: Keep | None = None, single_root: bool = False
) -> Agreement:
    """How far random projective trees agree with gold ones, as an exact expectation.

    A gold arc is in a random tree with its marginal probability under equal scores; so nothing
    needs to be drawn, and there is no noise. ``exact`` is about whole trees, where all words count.

    Example:
        >>> random_agreement([(0, 1)]).uas  # of the trees (0, 0), (0, 1) and (2, 0)
        50.0
    """
    check_heads(gold)
    right = shared = exact = 0.0
    words = wanted = sentences = 0
    for number, heads in enumerate(gold):
        n = len(heads)
        counted = [i for i in range(n) if keep is None or keep[number][i]]
        share = uniform_marginals(n, single_root)
        pairs = sorted(edges(heads, counted))
        starts, ends = [a for a, _ in pairs], [b for _, b in pairs]
        words += len(counted)
        wanted += len(pairs)
        sentences += bool(counted)
        right += float(share[[heads[i] for i in counted], [i + 1 for i in counted]].sum())
        shared += float((share[starts, ends] + share[ends, starts]).sum())
        if len(counted) == n and _possible(heads, single_root):
            exact += math.exp(-Projective(single_root).log_count(n))
    return Agreement(words, right, wanted, shared, sentences, exact)


@lru_cache(maxsize=LENGTHS_KEPT)
def uniform_marginals(n: int, single_root: bool = False) -> Tensor:
    """Probability of each arc in a random projective tree."""
    scores = torch.zeros(n + 1, n + 1, dtype=torch.float64)
    return Projective(single_root)(scores).marginals


def _possible(heads: Heads, single_root: bool) -> bool:
    """Whether a random tree can be this one."""
    below = subtrees(heads)
    if below is None or (single_root and sum(head == 0 for head in heads) != 1):
        return False
    return all(subtree.contiguous for subtree in below)
