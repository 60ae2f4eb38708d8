"""The perturbed optimiser."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.errors import InputError
from treelax.estimators.base import (
    Estimator,
    Loss,
    check_samples,
    checked_losses,
    with_gradient,
)
from treelax.noise import Gaussian, Gumbel
from treelax.ops.backend import inner
from treelax.ops.checks import sample_size


@dataclass(frozen=True)
class Perturbed(Estimator):
    r"""The mean of the best structures of perturbed scores, with an unbiased gradient of that mean.

    .. math:: y = \frac1M \sum_i T(W + \sigma \epsilon_i), \qquad
        \frac{\partial L}{\partial W} = \frac{1}{M} \sum_i
        \frac{\langle T_i - \bar T_{-i},\, g\rangle}{\sigma}\, \nabla\nu(\epsilon_i)

    for noise of density :math:`\propto e^{-\nu}`: :math:`\nabla\nu(\epsilon)` is :math:`\epsilon` for
    Gaussian noise and :math:`1 - e^{-\epsilon}` for Gumbel noise. :math:`\bar T_{-i}`, the mean of the
    other structures, changes no expectation and lowers the variance; with one sample there is none.
    Unbiased for :math:`\partial\, \mathbb E[y]^\top g`; M best structures.

    Args:
        samples: M.
        noise: `treelax.Gumbel` or `treelax.Gaussian` of scale :math:`\sigma`.

    Example:
        >>> from treelax import Gaussian, Projective
        >>> trees = Projective()(torch.randn(2, 5, 5, requires_grad=True))
        >>> Perturbed(samples=8, noise=Gaussian(0.5)).sample(trees).sum((1, 2))
        tensor([4., 4.], grad_fn=<SumBackward1>)

    Reference:
        Berthet, Blondel, Teboul, Cuturi, Vert & Bach (2020), Learning with differentiable perturbed
        optimizers, NeurIPS, proposition 3.1.
    """

    samples: int = 8
    noise: Gumbel | Gaussian = Gumbel()  # noqa: RUF009  frozen

    def __post_init__(self) -> None:
        check_samples(self.samples)
        if not isinstance(self.noise, Gumbel | Gaussian) or self.noise.scale == 0:
            raise InputError(
                f"noise is {self.noise}; expected treelax.Gumbel or treelax.Gaussian of a positive "
                "scale: the gradient needs the density."
            )

    def sample(
        self,
        distribution: StructureDistribution,
        sample_shape: Any = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        shape = (self.samples, *sample_size(sample_shape))
        noisy, lengths, drawn = distribution.perturbed(self.noise, shape, generator=generator)
        structure, event = distribution.structure, distribution.event_shape
        trees = structure.argmax(noisy, lengths, **distribution.options)
        mean = trees.mean(0)
        mask = structure.part_mask(lengths, *event) & (noisy > -math.inf)
        assert drawn is not None
        slope = self.noise.score(drawn).masked_fill(~mask, 0)

        def rule(grad: Tensor, mean: Tensor, trees: Tensor, slope: Tensor) -> Tensor:
            # T - (mean of the others) = M/(M-1) · (T - mean of all)
            m, dims = self.samples, len(event)
            apart = m / (m - 1) * (trees - mean) if m > 1 else trees
            along = (apart * grad).flatten(-dims).sum(-1)
            return (along.reshape(along.shape + (1,) * dims) * slope).mean(0)

        # the gradient is that of all samples: any one of them leads to the scores
        result = with_gradient(mean, noisy[0], rule, trees, slope)
        return result.to(distribution.scores.dtype)

    def expect(
        self,
        distribution: StructureDistribution,
        f: Loss,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The loss of the mean structure, of which ``f`` gets one."""
        mean = self.sample(distribution, (1,), generator=generator)
        return checked_losses(f(mean), mean, distribution)[0]

    def conjugate(
        self, distribution: StructureDistribution, generator: torch.Generator | None = None
    ) -> Tensor:
        """Mean score of the best structures, with their mean as gradient; see `fenchel_young_loss`."""
        noisy, lengths, _ = distribution.perturbed(self.noise, (self.samples,), generator=generator)
        trees = distribution.structure.argmax(noisy, lengths, **distribution.options)
        return inner(trees, noisy, distribution.structure.event_dim).mean(0)
