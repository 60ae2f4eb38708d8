"""Discrete structures with the gradient of relaxed ones, or the identity's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.errors import InputError
from treelax.estimators.base import Pathwise, with_gradient
from treelax.estimators.relaxed import Relaxed
from treelax.interface import StructureInterface
from treelax.noise import Noise
from treelax.ops.checks import one_of

Gradient = Literal["relaxed", "identity"]


@dataclass(frozen=True)
class StraightThrough(Pathwise):
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
        >>> import torch
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
        return self.relaxed.samples

    @property
    def noise(self) -> Noise | None:  # type: ignore[override]
        return self.relaxed.noise

    @property
    def discrete(self) -> bool:
        return True

    def check_structure(self, structure: StructureInterface) -> None:
        if self.gradient == "relaxed":
            self.relaxed.check_structure(structure)

    def made(
        self, distribution: StructureDistribution, scores: Tensor, lengths: Tensor, share: float = 1
    ) -> Tensor:
        structure = distribution.structure
        hard = structure.argmax(scores, lengths, **distribution.options)
        if self.gradient == "identity":
            mask = structure.part_mask(lengths, *distribution.event_shape) & (scores > -math.inf)
            return with_gradient(hard, scores, lambda g, _, mask: g.masked_fill(~mask, 0), mask)
        soft = self.relaxed.made(distribution, scores, lengths)
        # the bracket is exactly 0, so the value is the discrete structure bit by bit
        return hard + (soft - soft.detach())

    def soft(self, distribution: StructureDistribution) -> Tensor:
        return self.relaxed.soft(distribution)
