"""Projective trees by enumeration, up to six words: what every dynamic program is held against.

All ``(n + 1) ** n`` head vectors are written down, and those kept that are trees and projective by
the naive definitions below. No dynamic program, no chart, nothing shared with the library. Sums run
over the list of trees in float64 and are differentiable by autograd.

``scores`` are ``(..., N, N)``, ``scores[h, m]`` the weight of the arc from ``h`` to ``m``. A
sentence shorter than ``N - 1`` gives its ``length``; what lies beyond is not read, and zero in a
result.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import torch
from torch import Tensor


def ancestors(heads: Sequence[int], word: int) -> list[int]:
    """The positions met by following heads from a word, up to the root or the first repetition."""
    met: list[int] = []
    while word != 0 and heads[word - 1] not in met:
        word = heads[word - 1]
        met.append(word)
    return met


def is_tree(heads: Sequence[int], single_root: bool = False) -> bool:
    """Every word's heads lead to the root; under a single root one word hangs off it."""
    n = len(heads)
    if not all(0 <= head <= n for head in heads):
        return False
    if not all(0 in ancestors(heads, word) for word in range(1, n + 1)):
        return False
    return not single_root or list(heads).count(0) == 1


def is_projective(heads: Sequence[int]) -> bool:
    """The paper's definition: every word strictly between a head and its modifier descends from
    that head."""
    return all(
        head in ancestors(heads, between)
        for modifier, head in enumerate(heads, 1)
        for between in range(min(head, modifier) + 1, max(head, modifier))
    )


@functools.cache
def all_trees(n: int, single_root: bool = False) -> Tensor:
    """Every projective tree over n words as heads, ``(count, n)``, int64. Do not write into it."""
    return torch.tensor(
        [
            heads
            for heads in itertools.product(range(n + 1), repeat=n)
            if is_tree(heads, single_root) and is_projective(heads)
        ]
    )


def indicators(n: int, single_root: bool = False) -> Tensor:
    """Every projective tree over n words as 0/1 tree tensor, ``(count, n + 1, n + 1)``, float64."""
    trees = all_trees(n, single_root)
    result = torch.zeros(len(trees), n + 1, n + 1, dtype=torch.float64)
    for tree, heads in zip(result, trees.tolist(), strict=True):
        for modifier, head in enumerate(heads, 1):
            tree[head, modifier] = 1
    return result


def tree_scores(scores: Tensor, heads: Tensor) -> Tensor:
    """Score of each tree, the sum of its arcs: ``(..., count)`` from heads ``(count, n)``."""
    modifiers = torch.arange(1, heads.shape[-1] + 1)
    return scores.double()[..., heads, modifiers].sum(-1)


def log_partition(scores: Tensor, single_root: bool = False, length: int | None = None) -> Tensor:
    """``log Σ_T exp(score(T))``, shape ``(...)``."""
    return tree_scores(scores, all_trees(_words(scores, length), single_root)).logsumexp(-1)


def probabilities(scores: Tensor, single_root: bool = False, length: int | None = None) -> Tensor:
    """Probability of each tree, in the order of `all_trees`, ``(..., count)``."""
    return tree_scores(scores, all_trees(_words(scores, length), single_root)).softmax(-1)


def marginals(scores: Tensor, single_root: bool = False, length: int | None = None) -> Tensor:
    """Probability of each arc, ``(..., N, N)``: the trees weighted by their probabilities."""
    n = _words(scores, length)
    p = probabilities(scores, single_root, n)
    return _padded(torch.einsum("...t,thm->...hm", p, indicators(n, single_root)), scores)


def best(
    scores: Tensor, single_root: bool = False, length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The best tree as 0/1, ``(..., N, N)``, and its score ``(...)``; on ties the first listed."""
    n = _words(scores, length)
    value, index = tree_scores(scores, all_trees(n, single_root)).max(-1)
    return _padded(indicators(n, single_root)[index], scores), value


def _words(scores: Tensor, length: int | None) -> int:
    return scores.shape[-1] - 1 if length is None else length


def _padded(tree: Tensor, scores: Tensor) -> Tensor:
    missing = scores.shape[-1] - tree.shape[-1]
    return torch.nn.functional.pad(tree, (0, missing, 0, missing))
