"""Score-function estimators: exact samples, whose losses weigh the gradient of their probability."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from treelax.distributions import StructureDistribution
from treelax.errors import InputError
from treelax.estimators.base import ExpectedLoss, Loss, check_samples, checked_losses
from treelax.ops.call import value_type


class ScoreFunction(ExpectedLoss):
    r"""Unbiased for the expected loss of any function, which need not be differentiable.

    .. math:: \frac{\partial}{\partial W} \mathbb E_{T \sim p_W} f(T) =
        \mathbb E\bigl[(f(T) - b)\,(T - \mu)\bigr]

    since :math:`\partial \log p(T)/\partial W = T - \mu`; any baseline :math:`b` that does not look at
    :math:`T` leaves the mean as it is. The gradient for parameters of ``f`` is that of the mean
    loss. Exact samples and their marginals.
    """

    def expect(
        self,
        distribution: StructureDistribution,
        f: Loss,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The mean loss of exact samples, ``(...)``."""
        trees = distribution.sample((self.samples,), generator=generator)
        losses = checked_losses(f(trees), trees, distribution)
        advantage = self.advantage(losses.detach())
        # samples need no check
        term = advantage * (distribution.score(trees) - distribution.log_partition)
        # a term of value 0, whose gradient is the scores'
        return (losses + (term - term.detach())).mean(0).to(value_type(distribution.scores))

    @abstractmethod
    def advantage(self, losses: Tensor) -> Tensor:
        """Losses ``(samples, ...)`` less a baseline."""


class REINFORCE(ScoreFunction, nn.Module):
    r"""The score function with a moving mean of the loss as its baseline.

    .. math:: \frac{\partial L}{\partial W} = \frac1S \sum_i (f(T_i) - b)\,(T_i - \mu),
        \qquad T_i \sim p_W

    with marginals :math:`\mu` and the moving mean :math:`b` of earlier losses. Unbiased for any loss,
    which need not be differentiable. It costs S exact samples and their marginals.

    The mean belongs to the state of a module that holds the estimator: it is saved and loaded with it.
    Each of several processes has one.

    Args:
        samples: structures that `expect` looks at.
        decay: of the moving mean; 0 takes the last mean loss.

    Example:
        >>> from treelax import Projective
        >>> trees = Projective()(torch.zeros(2, 5, 5, requires_grad=True))
        >>> loss = REINFORCE(samples=4).expect(trees, lambda tree: tree[..., 0, 1])
        >>> loss.sum().backward()

    Reference:
        Williams (1992), Simple statistical gradient-following algorithms for connectionist
        reinforcement learning, Machine Learning 8.
    """

    total: Tensor
    weight: Tensor

    def __init__(self, samples: int = 1, decay: float = 0.9) -> None:
        nn.Module.__init__(self)
        check_samples(samples)
        if not 0 <= decay < 1:
            raise InputError(f"decay is {decay}; expected at least 0 and less than 1.")
        self.samples, self.decay = samples, decay
        # Σ decay^age · loss and Σ decay^age, whose quotient is a mean from the first loss on
        self.register_buffer("total", torch.zeros(()))
        self.register_buffer("weight", torch.zeros(()))

    def advantage(self, losses: Tensor) -> Tensor:
        """Losses less the mean of those before; then they count in it too."""
        if self.total.device != losses.device:
            self.to(losses.device)
        baseline = self.total / self.weight.clamp(min=torch.finfo(self.weight.dtype).tiny)
        result = losses - baseline.to(losses.dtype)
        mean = losses.mean()
        if self.training:  # a loss that is no number is not remembered
            good = mean.isfinite()
            self.total.mul_(self.decay).add_(torch.where(good, mean, 0))
            self.weight.mul_(self.decay).add_(good)
        return result

    def extra_repr(self) -> str:
        return f"samples={self.samples}, decay={self.decay}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, REINFORCE) and repr(self) == repr(other)

    __hash__ = nn.Module.__hash__


@dataclass(frozen=True)
class RLOO(ScoreFunction):
    r"""The score function with the mean loss of the other samples as each one's baseline.

    .. math:: \frac{\partial L}{\partial W} = \frac1S \sum_i
        \Bigl(f(T_i) - \frac1{S-1} \sum_{j \ne i} f(T_j)\Bigr)\,(T_i - \mu), \qquad T_i \sim p_W

    with marginals :math:`\mu`. Unbiased for any loss, which need not be differentiable. It costs S exact
    samples and their marginals.

    Example:
        >>> from treelax import Projective
        >>> trees = Projective()(torch.zeros(2, 5, 5, requires_grad=True))
        >>> RLOO(samples=4).expect(trees, lambda tree: tree[..., 0, 1]).shape
        torch.Size([2])

    Reference:
        Kool, van Hoof & Welling (2019), Buy 4 REINFORCE samples, get a baseline for free!, ICLR
        workshop on deep RL meets structured prediction.
    """

    samples: int = 4

    def __post_init__(self) -> None:
        check_samples(self.samples, least=2)

    def advantage(self, losses: Tensor) -> Tensor:
        """Losses less the mean of the others: S/(S-1) times the distance to the mean of all."""
        return self.samples / (self.samples - 1) * (losses - losses.mean(0))
