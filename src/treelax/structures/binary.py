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
from treelax.ops.checks import check_scores, span_mask
from treelax.ops.cky import ALGORITHM
from treelax.structures.base import AlgorithmStructure
from treelax.structures.search import check_count


@dataclass(frozen=True)
class Binary(AlgorithmStructure):
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

    def check_scores(self, scores: Tensor) -> None:
        check_scores(scores, rooted=False)

    def sizes(self, *shape: int) -> tuple[int, ...]:
        return (shape[0],)

    def part_mask(self, lengths: Tensor, *shape: int) -> Tensor:
        return span_mask(lengths, shape[0])

    def part_count(self, lengths: Tensor) -> Tensor:
        return (2 * lengths - 1).clamp(min=0)

    def most_parts(self, *shape: int) -> int:
        return max(2 * shape[0] - 1, 0)

    def compatible_parts(self, parts: Tensor) -> Tensor:
        return spans_beside(parts)  # one that crosses nothing in a binary tree is in it

    def shared_score(self, best: Tensor, at_best: Tensor) -> Tensor:
        # a span that every tree has loses its score, any other that of a span in the best tree
        place = torch.arange(best.shape[-1], device=best.device)
        last = best.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None] - 1
        always = (place[:, None] == place) | ((place[:, None] == 0) & (place == last))
        others = at_best.masked_fill(always | ~best, -math.inf).amax((-2, -1), keepdim=True)
        return torch.where(always, at_best, others.masked_fill(others == -math.inf, 0))

    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        # 2n-1 spans of the sentence that do not cross are a binary tree
        spans = value == 1
        inside = self.part_mask(lengths, value.shape[-1])
        good = ((value == 0) | (spans & inside)).flatten(-2).all(-1)
        good &= spans.flatten(-2).sum(-1) == self.part_count(lengths)
        return good & (self.compatible_parts(spans) | ~spans).flatten(-2).all(-1)

    def enumerate(self, n: int) -> Tensor:
        check_count(math.comb(2 * n - 2, n - 1) // n if n else 1, n)
        if n == 0:
            return torch.zeros(1, 0, 0, dtype=torch.float64)
        spans = _trees(0, n - 1)
        trees = torch.zeros(len(spans), n, n, dtype=torch.float64)
        for tree, nodes in zip(trees, spans, strict=True):
            for i, j in nodes:
                tree[i, j] = 1
        return trees

    def log_count(self, n: int) -> float:
        return math.log(math.comb(2 * n - 2, n - 1)) - math.log(n) if n else 0.0

    @property
    def none_left(self) -> str:
        return "no binary tree"

    @property
    def rules(self) -> str:
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
