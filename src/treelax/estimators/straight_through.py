"""Discrete structures with the gradient of relaxed ones, or the identity's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.errors import InputError
from treelax.estimators.base import Estimator, with_gradient
from treelax.estimators.relaxed import Relaxed
from treelax.interface import StructureInterface
from treelax.ops.checks import one_of

Gradient = Literal["relaxed", "identity"]


@dataclass(frozen=True)
class StraightThrough(Estimator):
    r"""The best structure of the perturbed scores, exactly 0 and 1, with another one's gradient.

    .. math:: T(W + G), \qquad
        \frac{\partial L}{\partial W} =
        \left(\frac{\partial \mathrm{soft}(W + G)}{\partial W}\right)^\top g
        \quad\text{or}\quad g, \qquad g = \frac{\partial L}{\partial T}

    The gradient is biased. It costs a best structure and, unless it is the identity's, a relaxed one.

    Args:
        relaxed: `treelax.Relaxed`, where noise and gradient come from.
        gradient: that of the "relaxed" structure, or "identity": the loss's gradient at each part.

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
    gradient: Gradient = "relaxed"

    def __post_init__(self) -> None:
        if not isinstance(self.relaxed, Relaxed):
            raise InputError(
                f"relaxed is {self.relaxed!r}; expected treelax.Relaxed(…): its relaxation, temperature "
                "and noise."
            )
        one_of("gradient", self.gradient, get_args(Gradient))

    @property
    def samples(self) -> int:  # type: ignore[override]
        """Structures that `expect` looks at."""
        return self.relaxed.samples

    @property
    def discrete(self) -> bool:
        """Training sees discrete structures."""
        return True

    def check_structure(self, structure: StructureInterface) -> None:
        """Raise unless the structure has the relaxation whose gradient is taken."""
        if self.gradient == "relaxed":
            self.relaxed.check_structure(structure)

    def sample(
        self,
        distribution: StructureDistribution,
        sample_shape: Any = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Discrete structures ``(*sample_shape, ..., n+1, n+1)``."""
        noisy, lengths, _ = distribution.perturbed(
            self.relaxed.noise, sample_shape, generator=generator
        )
        structure = distribution.structure
        hard = structure.argmax(noisy, lengths, **distribution.options)
        if self.gradient == "identity":
            mask = structure.part_mask(lengths, noisy.shape[-structure.event_dim])
            mask = mask & (noisy > float("-inf"))
            result = with_gradient(hard, noisy, lambda g, _, mask: g.masked_fill(~mask, 0), mask)
        else:
            soft = self.relaxed.relax(distribution, noisy, lengths)
            # the bracket is exactly 0, so the value is the discrete structure bit by bit
            result = hard + (soft - soft.detach())
        return result.to(distribution.scores.dtype)

    def soft(self, distribution: StructureDistribution) -> Tensor:
        """The relaxed structure of the scores themselves."""
        return self.relaxed.soft(distribution)
