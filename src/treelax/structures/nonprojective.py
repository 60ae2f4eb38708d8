"""Non-projective dependency trees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from treelax.ops.backend import Algorithm, Relaxation
from treelax.ops.matrix_tree import ALGORITHM
from treelax.structures.arcs import DependencyTrees


@dataclass(frozen=True)
class NonProjective(DependencyTrees):
    r"""Dependency trees whose arcs may cross, by the matrix-tree theorem: O(n³).

    Parts are arcs as in `Projective`. The partition function is a determinant; it and the marginals are
    computed by elimination without subtraction, so that scores of any width keep their digits. There
    are :math:`(n+1)^{n-1}` trees over ``n`` words, :math:`n^{n-1}` with a single root.

    Args:
        single_root: allow one modifier of the root only.

    Example:
        >>> import torch
        >>> trees = NonProjective()(torch.zeros(2, 5, 5), torch.tensor([4, 3]))
        >>> trees.log_partition.exp().round()
        tensor([125.,  16.])

    Reference:
        Koo, Globerson, Carreras & Collins (2007), Structured prediction models via the matrix-tree
        theorem, EMNLP.
    """

    single_root: bool = False
    name: ClassVar[str] = "nonprojective"
    #: There is no dynamic program whose choices could be relaxed one by one.
    relaxations: ClassVar[tuple[Relaxation, ...]] = ("entropy",)
    algorithm: ClassVar[Algorithm] = ALGORITHM

    def log_count(self, n: int) -> float:
        return (n - 1) * math.log(n if self.single_root else n + 1) if n else 0.0
