"""Binary trees over the words of a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import torch
from torch import Tensor

from treelax.brackets import spans_beside
from treelax.ops.backend import Algorithm
from treelax.ops.cky import ALGORITHM
from treelax.structures.base import TreeStructure
from treelax.structures.search import check_count


@dataclass(frozen=True)
class Binary(TreeStructure):
    r"""Binary (constituency) trees over the words of a sentence, by the CKY algorithm: O(n³).

    Parts are spans: ``scores[..., i, j]`` is the score of the span from word ``i`` to word ``j``, both
    included, ``i <= j``, words counted from 0; there is no root. A tree over ``n`` words is
    :math:`2n-1` spans, single words and the whole sentence among them, and there are
    :math:`\binom{2n-2}{n-1}/n` trees.

    Example:
        >>> trees = Binary()(torch.zeros(2, 5, 5), torch.tensor([5, 4]))
        >>> trees.log_partition.exp().round()
        tensor([14.,  5.])
        >>> Binary()(torch.zeros(3, 3)).marginals
        tensor([[1.0000, 0.5000, 1.0000],
                [0.0000, 1.0000, 0.5000],
                [0.0000, 0.0000, 1.0000]])
    """

    name: ClassVar[str] = "binary"
    part: ClassVar[str] = ALGORITHM.part
    algorithm: ClassVar[Algorithm] = ALGORITHM

    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        """Whether 2n-1 spans of the sentence do not cross: then they are a binary tree."""
        spans = value == 1
        inside = self.part_mask(lengths, value.shape[-1])
        good = ((value == 0) | (spans & inside)).flatten(-2).all(-1)
        good &= spans.flatten(-2).sum(-1) == self.part_count(lengths)
        return good & (self.compatible_parts(spans) | ~spans).flatten(-2).all(-1)

    def part_count(self, lengths: Tensor) -> Tensor:
        """How many spans a tree has, ``(...)``."""
        return (2 * lengths - 1).clamp(min=0)

    def parts_of(self, value: Tensor) -> Tensor:
        """The spans of trees one by one, ``(2n-1, ...)``."""
        flat = (value != 0).flatten(-2)
        places = flat.byte().argsort(stable=True, dim=-1, descending=True)
        places = places[..., : max(2 * value.shape[-1] - 1, 0)].movedim(-1, 0)[..., None]
        one = torch.zeros_like(flat).expand(len(places), *flat.shape)
        return one.scatter(-1, places, flat.expand_as(one).gather(-1, places)).unflatten(
            -1, value.shape[-2:]
        )

    def compatible_parts(self, parts: Tensor) -> Tensor:
        """True at the spans that cross none of the given ones.

        They force those given: a span that crosses nothing in a binary tree is in it.
        """
        return spans_beside(parts)

    def enumerate(self, n: int) -> Tensor:
        """All trees over ``n`` words, by the split of every span."""
        check_count(math.comb(2 * n - 2, n - 1) // n if n else 1, n)
        trees = torch.zeros(1, 0, 0, dtype=torch.float64)
        if n:
            spans = _trees(0, n - 1)
            trees = torch.zeros(len(spans), n, n, dtype=torch.float64)
            for tree, nodes in zip(trees, spans, strict=True):
                for i, j in nodes:
                    tree[i, j] = 1
        return trees

    def log_count(self, n: int) -> float:
        r""":math:`\log \binom{2n-2}{n-1}/n`.

        Example:
            >>> round(math.exp(Binary().log_count(5)))
            14
        """
        return math.log(math.comb(2 * n - 2, n - 1)) - math.log(n) if n else 0.0

    @property
    def none_left(self) -> str:
        """What forbidden spans leave where they leave no tree."""
        return "no binary tree"

    @property
    def rules(self) -> str:
        """What makes a 0/1 tensor a binary tree."""
        return "2n-1 spans (i, j), i <= j, that do not cross"


@cache
def _trees(i: int, j: int) -> list[tuple[tuple[int, int], ...]]:
    """The spans of every binary tree over words i to j."""
    if i == j:
        return [((i, i),)]
    return [
        ((i, j), *left, *right)
        for k in range(i, j)
        for left in _trees(i, k)
        for right in _trees(k + 1, j)
    ]
