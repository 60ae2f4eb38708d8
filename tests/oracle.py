"""Naive definitions of trees, and projective trees by enumeration, up to six words.

All ``(n + 1) ** n`` head vectors are written down, and those kept that are trees and projective by
the definitions below. No dynamic program, no chart, nothing shared with the library. What is computed
of all trees is held against sums over such lists (``matrix.py``).
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
