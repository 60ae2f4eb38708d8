"""The interface of every latent structure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypedDict, Unpack

import torch
from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.ops.checks import arc_mask
from treelax.ops.eisner.common import Relaxation


class Options(TypedDict, total=False):
    """What every operation takes: whether to check values, and which backend is to run."""

    validate: bool
    backend: str | None


class Structure(ABC):
    """What a latent variable is: which entries of a score tensor are its parts, and exact algorithms.

    A structure is a small frozen object, equal to any other with the same settings. Its value is a
    tensor of the shape of the scores, 1 at the parts that it is made of. Calling it with scores gives
    their distribution.

    All methods take scores ``(..., n+1, n+1)`` and lengths ``(...)`` as `treelax.ops.best_tree` does,
    ``validate`` to check values, and ``backend`` where there is a choice.

    Example:
        >>> from treelax.structures import Projective
        >>> Projective(single_root=True)(torch.zeros(5, 5)).log_partition.exp().round()
        tensor(30.)
    """

    #: Of the structure in configurations and messages.
    name: ClassVar[str]

    def __call__(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        backend: str | None = None,
        validate_args: bool | None = None,
    ) -> StructureDistribution:
        """The distribution with probabilities proportional to the exponential of the summed scores."""
        return StructureDistribution(
            self, scores, lengths, backend=backend, validate_args=validate_args
        )

    @abstractmethod
    def argmax(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        **options: Unpack[Options],
    ) -> Tensor:
        """The structure of the highest score, 0/1, without a gradient."""

    @abstractmethod
    def log_partition(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        **options: Unpack[Options],
    ) -> Tensor:
        """Log of the summed weight of all structures, ``(...)``."""

    @abstractmethod
    def marginals(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        **options: Unpack[Options],
    ) -> tuple[Tensor, Tensor]:
        """Probability of each part, and the log-partition, which costs nothing beside it."""

    @abstractmethod
    def sample(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        sample_shape: Any = (),
        generator: torch.Generator | None = None,
        **options: Unpack[Options],
    ) -> Tensor:
        """Exact samples ``(*sample_shape, ..., n+1, n+1)``, without a gradient."""

    @abstractmethod
    def relaxed(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        relaxation: Relaxation = "softmax",
        temperature: float | Tensor = 1.0,
        **options: Unpack[Options],
    ) -> Tensor:
        """A structure with fractional parts and a gradient."""

    @abstractmethod
    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        """Whether 0/1 tensors ``(..., n+1, n+1)`` are structures over their sentences, ``(...)``."""

    @abstractmethod
    def exceeds(
        self, other: Structure, counts: Tensor, lengths: Tensor, *, backend: str | None = None
    ) -> Tensor:
        """Whether this one allows a structure that ``other`` does not, ``(...)``.

        Args:
            other: of the same kind.
            counts: 1 where the other's scores forbid a part, ``-inf`` where one's own do, else 0.
            lengths: words per sentence.
            backend: see `treelax.ops.best_tree`.
        """

    def part_mask(self, lengths: Tensor, size: int) -> Tensor:
        """True at the entries that are parts, ``(..., size, size)``: arcs, none to the root."""
        return arc_mask(lengths, size)

    def part_count(self, lengths: Tensor) -> Tensor:
        """How many parts a structure has, ``(...)``: an arc for every word."""
        return lengths

    @abstractmethod
    def log_count(self, n: int) -> float:
        """Log of the number of structures over ``n`` words."""

    @property
    def none_left(self) -> str:
        """What forbidden parts leave where they leave no structure, for messages."""
        return "a word without a head"

    @property
    def rules(self) -> str:
        """What makes a 0/1 tensor such a structure, for messages."""
        return "one head per word"
