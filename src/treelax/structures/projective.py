"""Projective dependency trees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.ops.backend import Algorithm
from treelax.ops.eisner import ALGORITHM
from treelax.ops.problems import Validate
from treelax.structures.arcs import DependencyTrees
from treelax.trees import crosses_nothing, one_head_each


@dataclass(frozen=True)
class Projective(DependencyTrees):
    r"""Projective dependency trees over the words of a sentence, by Eisner's algorithm: O(n³).

    Parts are arcs: ``scores[..., h, m]`` is the weight of the arc from head ``h`` to modifier ``m``,
    index 0 the root. There are :math:`\binom{3n}{n}/(2n+1)` trees over ``n`` words.

    Args:
        single_root: allow one modifier of the root only.

    Example:
        >>> import torch
        >>> trees = Projective()(torch.zeros(2, 5, 5), torch.tensor([4, 3]))
        >>> trees.log_partition.exp().round()
        tensor([55., 12.])
    """

    single_root: bool = False
    name: ClassVar[str] = "projective"
    kind: ClassVar[str] = "projective tree"
    algorithm: ClassVar[Algorithm] = ALGORITHM

    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        heads, word, _ = one_head_each(value, lengths)
        return super().contains(value, lengths) & crosses_nothing(heads, word)

    def log_count(self, n: int) -> float:
        if n == 0:
            return 0.0
        if self.single_root:
            return math.log(math.comb(3 * n - 2, n - 1)) - math.log(n)
        return math.log(math.comb(3 * n, n)) - math.log(2 * n + 1)

    @property
    def rules(self) -> str:
        advice = "see treelax.apps.data.projectivity.nearest_projective"
        return f"{super().rules}, no crossing arcs ({advice})"


class ProjectiveTrees(StructureDistribution):
    r"""All projective trees of a sentence: ``Projective(single_root)(scores, lengths)``.

    .. math:: p(T) = \frac{\exp \sum_{h,m} W_{h,m} T_{h,m}}{Z}

    Args:
        scores: ``(..., n+1, n+1)`` arc scores ``W``; ``-inf`` forbids an arc.
        lengths: ``(...)`` words per sentence (the root not counted), or None if all have ``n``.
        single_root: allow one modifier of the root only.
        backend: see `treelax.ops.best_tree`.
        validate_args: see `treelax.distributions.StructureDistribution`.

    Example:
        >>> import torch
        >>> trees = ProjectiveTrees(torch.zeros(2, 5, 5), torch.tensor([4, 3]))
        >>> trees.log_partition.exp().round()  # 55 trees over four words, 12 over three
        tensor([55., 12.])
        >>> trees.entropy().exp().round()
        tensor([55., 12.])
        >>> trees.log_prob(trees.mode).exp().allclose(1 / torch.tensor([55.0, 12.0]))
        True
        >>> trees.rsample((7,), generator=torch.Generator().manual_seed(0)).shape
        torch.Size([7, 2, 5, 5])

    Reference:
        Corro & Titov (2019), sections 2.1 and 3.
    """

    def __init__(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        single_root: bool = False,
        backend: str | None = None,
        validate_args: Validate | None = None,
    ) -> None:
        super().__init__(
            Projective(single_root), scores, lengths, backend=backend, validate_args=validate_args
        )

    @property
    def single_root(self) -> bool:
        """Whether one modifier of the root is allowed only."""
        return self.structure == Projective(single_root=True)
