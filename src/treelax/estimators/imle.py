"""Implicit maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.estimators.base import (
    FiniteStep,
    check_noise,
    check_positive,
    check_samples,
    with_gradient,
)
from treelax.noise import Noise, SumOfGamma


@dataclass(frozen=True)
class IMLE(FiniteStep):
    r"""The best structure of perturbed scores; its gradient is a difference of two best structures.

    .. math:: T(W + \epsilon), \qquad
        \frac{\partial L}{\partial W} =
        \frac{T(W + \epsilon) - T(W + \epsilon - \lambda g)}{\lambda}, \qquad
        g = \frac{\partial L}{\partial T}

    with the same noise twice: a finite difference along the loss's gradient, 0 unless the step is long
    enough to change the structure. Two best structures a sample.

    Args:
        step: :math:`\lambda`. It multiplies the gradient of the loss that is differentiated: with a
            mean over a batch of 64 sentences, a step of 640 does what 10 does for one sentence. The
            first gradient of a batch that is 0 throughout is a `RuntimeWarning`.
        noise: usually `treelax.SumOfGamma`, or None.
        samples: structures that `expect` looks at.

    Example:
        >>> import torch
        >>> from treelax import Projective
        >>> trees = Projective()(torch.randn(2, 5, 5, requires_grad=True))
        >>> IMLE(step=10.0).sample(trees).unique()
        tensor([0., 1.], grad_fn=<Unique2Backward0>)

    Reference:
        Niepert, Minervini & Franceschi (2021), Implicit MLE: backpropagating through discrete
        exponential family distributions, NeurIPS, algorithm 1.
    """

    step: float = 10.0
    noise: Noise | None = SumOfGamma()  # noqa: RUF009  frozen
    samples: int = 1

    def __post_init__(self) -> None:
        check_positive("step", self.step)
        check_noise(self.noise)
        check_samples(self.samples)

    def made(
        self, distribution: StructureDistribution, scores: Tensor, lengths: Tensor, share: float = 1
    ) -> Tensor:
        best, options = distribution.structure.argmax, distribution.options
        hard = best(scores, lengths, **options)
        step = self.step / share

        def rule(grad: Tensor, hard: Tensor, scores: Tensor, lengths: Tensor) -> Tensor:
            gradient = (hard - best(scores - step * grad, lengths, **options)) / step
            self.warn_if_zero(distribution, grad, gradient)
            return gradient

        return with_gradient(hard, scores, rule, scores.detach(), lengths)
