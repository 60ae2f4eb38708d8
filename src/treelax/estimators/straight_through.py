"""Discrete structures with the gradient of relaxed ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from treelax.estimators.base import Estimator
from treelax.estimators.relaxed import Relaxed

if TYPE_CHECKING:
    from treelax.distributions import StructureDistribution


@dataclass(frozen=True)
class StraightThrough(Estimator):
    """The best structure of the perturbed scores, exactly 0 and 1, with the gradient of the soft one.

    The gradient is biased.

    Args:
        relaxed: where noise and gradient come from.

    Example:
        >>> from treelax import Projective
        >>> trees = Projective()(torch.randn(2, 5, 5, requires_grad=True))
        >>> StraightThrough().sample(trees).unique()
        tensor([0., 1.], grad_fn=<Unique2Backward0>)

    Reference:
        Bengio et al. (2013), Estimating or propagating gradients through stochastic neurons; Corro &
        Titov (2019), section 5.2.
    """

    relaxed: Relaxed = Relaxed()  # noqa: RUF009  frozen

    @property
    def samples(self) -> int:  # type: ignore[override]
        """Structures that `expect` looks at."""
        return self.relaxed.samples

    def sample(
        self,
        distribution: StructureDistribution,
        sample_shape: Any = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Discrete structures ``(*sample_shape, ..., n+1, n+1)``."""
        noisy, lengths = self.relaxed.perturbed(distribution, sample_shape, generator)
        soft = self.relaxed.relax(distribution, noisy, lengths)
        hard = distribution.structure.argmax(noisy, lengths, **distribution.options)
        # the bracket is exactly 0, so the value is the discrete structure bit by bit
        return (hard + (soft - soft.detach())).to(distribution.scores.dtype)
