"""What a structure offers, and what everything built on structures asks of one.

`treelax.structures.Structure` adds the search for the k best and the distribution. This stands outside
the package of structures, whose `__init__` imports them all, and distributions with them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, TypedDict, Unpack

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.ops import checks
from treelax.ops.backend import LIMIT, Relaxation, within_limit
from treelax.ops.problems import Validate
from treelax.ops.sparsemap.result import SparseMap

#: Structures that configurations call by a name.
StructureName = Literal["projective", "nonprojective", "heads", "binary"]
#: Structures by name; a class that sets ``name`` is added when it is defined, unless the name is taken.
BY_NAME: dict[str, type[Any]] = {}


class Options(TypedDict, total=False):
    """What every operation takes: whether to check values, and which backend is to run."""

    validate: Validate
    backend: str | None


class StructureInterface(ABC):
    """The operations of a structure; users subclass `treelax.structures.Structure`, which adds a few."""

    #: Of the structure in configurations and messages.
    name: ClassVar[str]
    #: Dimensions of a structure's tensor, which has the shape of the scores.
    event_dim: ClassVar[int] = 2
    #: Numbers that say how long an instance is; lengths ``(...)`` hold one, ``(..., 2)`` a pair.
    length_count: ClassVar[int] = 1
    #: What it is made of. Those of arcs have the root at index 0 of their scores.
    part: ClassVar[str]
    #: Relaxations that it has, the usual one first.
    relaxations: ClassVar[tuple[Relaxation, ...]] = ("softmax", "entropy")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in vars(cls):
            BY_NAME.setdefault(cls.name, cls)

    # ── scores and lengths ────────────────────────────────────────────────────────────────────

    @property
    def rooted(self) -> bool:
        """Whether scores have a row and a column for the root."""
        return self.part == "arc"

    def check_scores(self, scores: Tensor) -> None:
        """Raise unless scores are a tensor of the right type and shape."""
        checks.check_scores(scores, least=self.event_dim)

    @abstractmethod
    def sizes(self, *shape: int) -> tuple[int, ...]:
        """What scores of a shape have room for: lengths, then numbers of labels and the like.

        These are the arguments of `enumerate` and `log_count`.
        """

    def full_lengths(self, scores: Tensor) -> Tensor:
        """Lengths ``(...)`` for which scores have no padding."""
        batch, event = scores.shape[: -self.event_dim], scores.shape[-self.event_dim :]
        if self.length_count == 1:  # filled, not copied, which would wait for a GPU
            size = self.sizes(*event)[0]
            return torch.full(batch, size, dtype=torch.int64, device=scores.device)
        sizes = torch.tensor(self.sizes(*event)[: self.length_count], device=scores.device)
        return sizes.expand(*batch, -1)

    def lengths_shape(self, batch: torch.Size) -> torch.Size:
        """Shape of the lengths of a batch."""
        return torch.Size(batch if self.length_count == 1 else (*batch, self.length_count))

    # ── operations ────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def argmax(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        """The structure of the highest score, 0/1, without a gradient."""

    @abstractmethod
    def log_partition(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        """Log of the summed weight of all structures, ``(...)``."""

    @abstractmethod
    def marginals(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
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
        """Exact samples, without a gradient; ``sample_shape`` in front of the batch."""

    def check_relaxation(self, relaxation: str) -> None:
        """Raise unless there is such a relaxation of it."""
        if relaxation not in self.relaxations:
            usual = self.relaxations[0]
            raise InputError(
                f'relaxation is "{relaxation}"; expected "{usual}", as in rsample(relaxation='
                f'"{usual}") and Relaxed("{usual}"): {self} has no dynamic program whose choices '
                "could be relaxed one by one."
            )

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
    def sparsemap(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        start: Tensor | None = None,
        max_iterations: int | None = None,
        **options: Unpack[Options],
    ) -> SparseMap:
        """The point nearest to the scores among all mixtures of structures."""

    @abstractmethod
    def top_k(
        self, scores: Tensor, lengths: Tensor | None = None, k: int = 1, **options: Unpack[Options]
    ) -> tuple[Tensor, Tensor]:
        """The ``k`` best structures, best first, and their scores."""

    @abstractmethod
    def max_marginals(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        """For each part the score of the best structure that has it."""

    # ── structures and their parts ────────────────────────────────────────────────────────────

    @abstractmethod
    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        """Whether 0/1 tensors are structures of these lengths, ``(...)``."""

    @abstractmethod
    def enumerate(self, *sizes: Any, **named: Any) -> Tensor:
        """All structures of some `sizes`, 0/1 in float64.

        Raises:
            InputError: there are too many.
        """

    @abstractmethod
    def log_count(self, *sizes: Any, **named: Any) -> float:
        """Log of the number of structures of some `sizes`."""

    @abstractmethod
    def part_mask(self, lengths: Tensor, *shape: int) -> Tensor:
        """True at the parts in scores ``shape``; broadcasts to ``(..., *shape)``."""

    @abstractmethod
    def part_count(self, lengths: Tensor) -> Tensor:
        """How many parts a structure has, ``(...)``; at most, where they differ."""

    def most_parts(self, *shape: int) -> int:
        """How many parts a structure has at most in scores of a shape."""
        full = torch.tensor(self.sizes(*shape)[: self.length_count])
        return int(self.part_count(full[0] if self.length_count == 1 else full))

    def parts_of(self, value: Tensor) -> Tensor:
        """The parts of structures one by one, ``(parts, ...)``, true at each; some may be empty."""
        event = value.shape[-self.event_dim :]
        flat = (value != 0).flatten(-self.event_dim)
        places = flat.byte().argsort(stable=True, dim=-1, descending=True)
        places = places[..., : self.most_parts(*event)].movedim(-1, 0)[..., None]
        one = torch.zeros_like(flat).expand(len(places), *flat.shape)
        return one.scatter(-1, places, flat.expand_as(one).gather(-1, places)).unflatten(-1, event)

    @abstractmethod
    def compatible_parts(self, parts: Tensor) -> Tensor:
        """True at the parts that a structure may have which has all of the given ones.

        They must force those given, unless `force` does: to forbid all others is to force them.
        """

    def force(self, scores: Tensor, parts: Tensor) -> Tensor:
        """Scores whose best structure is the best of those that have all of the given parts.

        Parts that no structure may lack can have ``inf``, which `argmax` then takes unchecked.
        """
        return scores.masked_fill(~self.compatible_parts(parts), -math.inf)

    @property
    def unconstrained(self) -> StructureInterface | None:
        """The structure whose words choose their arcs alone; None where parts belong to no word."""
        return None

    # ── differences of scores ─────────────────────────────────────────────────────────────────

    def shared_score(self, best: Tensor, at_best: Tensor) -> Tensor:
        """What to take off every part, the same sum for all structures; 0 where nothing is known to be.

        Args:
            best: true at the parts of the best structure.
            at_best: the scores there, 0 elsewhere.
        """
        return at_best.new_zeros(())

    def measured_from(self, best: Tensor, scores: Tensor, lengths: Tensor) -> Tensor:
        """Scores less what is the same for all structures, small at the parts of the best one.

        This keeps the digits of huge scores. What is subtracted has no gradient: no probability depends
        on it.
        """
        if scores.numel() == 0:
            return scores
        forbidden = scores == -math.inf
        scores = scores.clamp(-LIMIT, LIMIT)
        at_best = torch.where((best != 0) & ~forbidden, scores.detach(), 0)
        scores = scores - self.shared_score(best != 0, at_best)
        return within_limit(scores, self.event_dim).masked_fill(forbidden, -math.inf)

    def has_extra_support(
        self,
        other: StructureInterface,
        counts: Tensor,
        lengths: Tensor,
        *,
        backend: str | None = None,
    ) -> Tensor:
        """Whether this one allows a structure that ``other`` does not, ``(...)``.

        Args:
            other: of the same kind.
            counts: 1 where the other's scores forbid a part, ``-inf`` where this one's do, else 0.
            lengths: of the structures.
            backend: see `treelax.ops.best_tree`.
        """
        best = self.argmax(counts, lengths, validate=False, backend=backend)
        return (best * counts.clamp(min=0)).flatten(-self.event_dim).sum(-1) > 0

    # ── words for messages ────────────────────────────────────────────────────────────────────

    @property
    def none_left(self) -> str:
        """What forbidden parts leave where they leave no structure."""
        return "no structure"

    @property
    @abstractmethod
    def rules(self) -> str:
        """What makes a 0/1 tensor such a structure."""
