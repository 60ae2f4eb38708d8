"""The interface of every estimator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from treelax.errors import InputError

if TYPE_CHECKING:
    from treelax.distributions import StructureDistribution

Loss = Callable[[Tensor], Tensor]


class Estimator(ABC):
    """Turns a distribution over structures into something to train on.

    Pathwise estimators give structures with a gradient, by `sample`; all give the expected loss of a
    function, by `expect`.
    """

    #: Structures that `expect` looks at.
    samples: int = 1

    @abstractmethod
    def sample(
        self,
        distribution: StructureDistribution,
        sample_shape: Any = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Structures ``(*sample_shape, ..., n+1, n+1)`` with a gradient to the scores."""

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
            f: from structures ``(samples, ..., n+1, n+1)`` to losses ``(samples, ...)``.
            generator: source of randomness.

        Raises:
            InputError: ``f`` returns another shape.
        """
        structures = self.sample(distribution, (self.samples,), generator=generator)
        return checked_losses(f(structures), structures, distribution.structure.event_dim).mean(0)


def checked_losses(losses: Any, structures: Tensor, dims: int = 2) -> Tensor:
    """Losses of structures; raise unless there is one for each."""
    expected = tuple(structures.shape[:-dims])
    if not isinstance(losses, Tensor) or tuple(losses.shape) != expected:
        received = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise InputError(
            f"f returned {received} for structures {tuple(structures.shape)}; expected losses "
            f"{expected}, one for each structure."
        )
    return losses
