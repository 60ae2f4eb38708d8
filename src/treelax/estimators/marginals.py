"""Structured attention: the mean structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.estimators.base import Estimator
from treelax.estimators.relaxed import Relaxed
from treelax.ops.call import precise
from treelax.ops.checks import sample_size


@dataclass(frozen=True)
class Marginals(Estimator):
    r"""The mean structure :math:`\mu(W/\tau)`: the probability of each part, with its exact gradient.

    No noise, no sample: for a loss that is linear in the structure, its expectation. It is
    `Relaxed` with the entropy relaxation and no noise, and costs one inside and one outside pass.

    Args:
        temperature: the scores are divided by it.

    Example:
        >>> from treelax import Projective
        >>> trees = Projective()(torch.randn(2, 5, 5, requires_grad=True))
        >>> torch.equal(Marginals().sample(trees), trees.marginals)
        True

    Reference:
        Kim, Denton, Hoang & Rush (2017), Structured attention networks, ICLR.
    """

    temperature: float | Tensor = 1.0

    def __post_init__(self) -> None:
        self._relaxed  # noqa: B018  checks the temperature

    @property
    def _relaxed(self) -> Relaxed:
        return Relaxed("entropy", self.temperature, noise=None)

    def sample(
        self,
        distribution: StructureDistribution,
        sample_shape: Any = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        soft = self.soft(distribution)  # the same for each sample
        return soft.expand(sample_size(sample_shape) + soft.shape)

    def soft(self, distribution: StructureDistribution) -> Tensor:
        return self._relaxed.soft(distribution)

    def conjugate(
        self, distribution: StructureDistribution, generator: torch.Generator | None = None
    ) -> Tensor:
        """``τ log Z(W/τ)``, whose gradient is the mean structure; see `fenchel_young_loss`."""
        structure, heat = distribution.structure, self.temperature
        scores = precise(distribution.scores)
        wide = heat[(..., *(None,) * structure.event_dim)] if isinstance(heat, Tensor) else heat
        options = distribution.options
        return heat * structure.log_partition(scores / wide, distribution.lengths, **options)
