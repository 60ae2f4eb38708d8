"""The interface of every estimator, and what pathwise ones share."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from treelax.distributions import StructureDistribution
from treelax.errors import InputError
from treelax.interface import StructureInterface
from treelax.noise import Noise
from treelax.ops.call import precise
from treelax.ops.checks import readable

Loss = Callable[[Tensor], Tensor]


class Estimator(ABC):
    """Turns a distribution over structures into something to train on.

    Pathwise estimators give structures with a gradient, by `sample`; all give the expected loss of a
    function, by `expect`.
    """

    #: Structures that `expect` looks at.
    samples: int = 1

    @property
    def discrete(self) -> bool:
        """Whether training sees structures of 0 and 1."""
        return False

    def check_structure(self, structure: StructureInterface) -> None:  # noqa: B027  most need nothing
        """Raise if a structure lacks what the estimator needs, such as a relaxation."""

    @abstractmethod
    def sample(
        self,
        distribution: StructureDistribution,
        sample_shape: Any = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Structures ``(*sample_shape, *scores.shape)`` with a gradient to the scores."""

    def expect(
        self,
        distribution: StructureDistribution,
        f: Loss,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The expected loss ``(...)``, whose gradient trains the scores.

        Args:
            distribution: of the structures.
            f: from structures ``(samples, *scores.shape)`` to losses ``(samples, ...)``.
            generator: source of randomness.
        """
        structures = self._drawn(distribution, (self.samples,), generator, 1 / self.samples)
        return checked_losses(f(structures), structures, distribution).mean(0)

    def _drawn(
        self,
        distribution: StructureDistribution,
        shape: Any,
        generator: torch.Generator | None,
        share: float,
    ) -> Tensor:
        """Samples, of which each one's loss has a share in the loss of all."""
        return self.sample(distribution, shape, generator=generator)

    def soft(self, distribution: StructureDistribution) -> Tensor:
        """The structure with fractional parts that stands for the whole distribution: no noise."""
        return distribution.marginals


class Pathwise(Estimator):
    """An estimator whose samples are made of perturbed scores."""

    noise: Noise | None

    @abstractmethod
    def made(
        self, distribution: StructureDistribution, scores: Tensor, lengths: Tensor, share: float = 1
    ) -> Tensor:
        """Structures of noisy scores, each of whose losses has a ``share`` in the loss of all."""

    def _drawn(
        self,
        distribution: StructureDistribution,
        shape: Any,
        generator: torch.Generator | None,
        share: float,
    ) -> Tensor:
        scores, lengths, _ = distribution.perturbed(self.noise, shape, generator=generator)
        return self.made(distribution, scores, lengths, share).to(distribution.scores.dtype)

    def sample(
        self,
        distribution: StructureDistribution,
        sample_shape: Any = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        return self._drawn(distribution, sample_shape, generator, 1)


class Soft(Pathwise):
    """An estimator whose structures have fractional parts."""

    def soft(self, distribution: StructureDistribution) -> Tensor:
        soft = self.made(distribution, precise(distribution.scores), distribution.lengths)
        return soft.to(distribution.scores.dtype)


#: Estimators whose first gradient has been checked; a GPU would have to wait for every one.
_CHECKED: set[FiniteStep] = set()


class FiniteStep(Pathwise):
    """A discrete estimator that takes a step along the gradient of a loss."""

    step: float

    @property
    def discrete(self) -> bool:
        return True

    def warn_if_zero(
        self, distribution: StructureDistribution, grad: Tensor, result: Tensor
    ) -> None:
        """Warn if the first gradient is 0 for a whole batch although that of the loss is not."""
        size = distribution.batch_shape.numel()
        if size == 1 or self in _CHECKED or not readable(result):
            return
        _CHECKED.add(self)
        if bool(grad.any()) and not bool(result.any()):
            warnings.warn(
                f"treelax: the first gradient of {self} is exactly 0 for all {size} sentences: no step "
                "along the gradient of the loss changes a structure. If the loss is a mean over them, "
                f"step={self.step * size:g} does what {self.step:g} does for one.",
                RuntimeWarning,
                stacklevel=2,
            )


class ExpectedLoss(Estimator):
    """An estimator of expected losses alone: it gives no structure with a gradient."""

    @property
    def discrete(self) -> bool:
        return True

    def sample(
        self,
        distribution: StructureDistribution,
        sample_shape: Any = (),
        *,
        generator: torch.Generator | None = None,
    ) -> NoReturn:
        """There is none with a gradient."""
        raise InputError(
            f"{type(self).__name__} gives no structure with a gradient; expected a call of expect, "
            "with the loss as a function of structures."
        )


def checked_losses(losses: Any, structures: Tensor, distribution: StructureDistribution) -> Tensor:
    """Losses of structures; raise unless there is one for each."""
    expected = tuple(structures.shape[: -distribution.structure.event_dim])
    if not isinstance(losses, Tensor) or tuple(losses.shape) != expected:
        received = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise InputError(
            f"f returned {received} for structures {tuple(structures.shape)}; expected losses "
            f"{expected}, one for each structure."
        )
    # counts of errors, say
    return losses if losses.is_floating_point() else losses.to(structures.dtype)


def check_noise(noise: Any) -> None:
    """Raise unless it is None or an object that draws noise."""
    if not isinstance(noise, Noise | None):
        raise InputError(
            f"noise is {noise!r}; expected treelax.Gumbel(), treelax.Gaussian(), "
            "treelax.SumOfGamma() or None."
        )


def check_samples(samples: int, least: int = 1) -> None:
    """Raise unless there are enough."""
    if not isinstance(samples, int) or samples < least:
        raise InputError(f"samples is {samples!r}; expected a whole number of at least {least}.")


def check_positive(name: str, value: float) -> None:
    """Raise unless a setting is a positive number."""
    if not isinstance(value, Real) or not 0 < value < float("inf"):
        raise InputError(f"{name} is {value!r}; expected a positive number.")


def with_gradient(
    value: Tensor, scores: Tensor, rule: Callable[..., Tensor], *saved: Tensor
) -> Tensor:
    """``value`` bit by bit, whose gradient ``g`` reaches ``scores`` as ``rule(g, value, *saved)``, of
    their shape.

    The rule holds no tensors itself: `torch.func` could not follow those.
    """
    result: Tensor = _WithGradient.apply(scores, value, rule, *saved)  # type: ignore[no-untyped-call]
    return result


class _WithGradient(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        scores: Tensor, value: Tensor, rule: Callable[..., Tensor], *saved: Tensor
    ) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        scores, value, ctx.rule, *saved = inputs
        ctx.dtype = scores.dtype
        ctx.save_for_backward(value, *saved)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        gradient = ctx.rule(grad, *ctx.saved_tensors).to(ctx.dtype)
        return gradient, None, *(None,) * len(ctx.saved_tensors)
