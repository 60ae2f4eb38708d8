"""What distributions, searches and SparseMAP ask of a structure.

`treelax.structures.Structure` adds what is built on those. It stands outside the package of structures,
whose `__init__` imports them all, and distributions with them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, TypedDict, Unpack

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.ops.backend import LIMIT, Relaxation, within_limit
from treelax.ops.checks import arc_mask, span_mask
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
    #: Dimensions of a structure's tensor.
    event_dim: ClassVar[int] = 2
    #: What it is made of: arcs, with the root at index 0, or spans.
    part: ClassVar[str] = "arc"
    #: Relaxations that it has, the usual one first.
    relaxations: ClassVar[tuple[Relaxation, ...]] = ("softmax", "entropy")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in vars(cls):
            BY_NAME.setdefault(cls.name, cls)

    @property
    def rooted(self) -> bool:
        """Whether scores have a row and a column for the root."""
        return self.part == "arc"

    def full_lengths(self, scores: Tensor) -> Tensor:
        """Lengths ``(...)`` of sentences for which scores have no padding."""
        batch, words = scores.shape[: -self.event_dim], scores.shape[-self.event_dim] - self.rooted
        return torch.full(batch, words, dtype=torch.int64, device=scores.device)

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

    def measured_from(self, best: Tensor, scores: Tensor) -> Tensor:
        """Scores less what is the same for all structures, small at the parts of the best one.

        This keeps the digits of huge scores. The arcs of a word lose the score of the arc that the best
        structure has; a span that every tree has loses its score, any other that of a span in the best
        tree. What is subtracted has no gradient: no probability depends on it.
        """
        if scores.numel() == 0:
            return scores
        labels = (-1,) if self.event_dim == 3 else ()  # of which a part in a structure has one
        forbidden = scores == float("-inf")
        scores = scores.clamp(-LIMIT, LIMIT)
        at_best = torch.where((best != 0) & ~forbidden, scores.detach(), 0)
        if self.rooted:
            taken = at_best.sum((-2 - len(labels), *labels), keepdim=True)
        else:
            inside = best != 0
            if labels:
                at_best, inside = at_best.sum(-1), inside.any(-1)
            place = torch.arange(inside.shape[-1], device=scores.device)
            last = inside.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None] - 1
            shared = (place[:, None] == place) | ((place[:, None] == 0) & (place == last))
            others = at_best.masked_fill(shared | ~inside, float("-inf")).amax(
                (-2, -1), keepdim=True
            )
            taken = torch.where(shared, at_best, others.masked_fill(others == float("-inf"), 0))
            if labels:
                taken = taken[..., None]
        return within_limit(scores - taken, self.event_dim).masked_fill(forbidden, float("-inf"))

    @abstractmethod
    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        """Whether 0/1 tensors are structures over their sentences, ``(...)``."""

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
            lengths: words per sentence.
            backend: see `treelax.ops.best_tree`.
        """
        # the best structure counts what the other forbids: a part is 2, a root 1 if only one may be
        counts = 2 * counts
        one_root, other_has_one = (getattr(s, "single_root", False) for s in (self, other))
        more_roots = other_has_one and not one_root
        if more_roots:
            counts = counts + (torch.arange(counts.shape[-1], device=counts.device) == 0)[:, None]
        tree = self.argmax(counts, lengths, validate=False, backend=backend)
        return (tree * counts.clamp(min=0)).sum((-2, -1)) > (1 if more_roots else 0)

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

    def part_mask(self, lengths: Tensor, size: int) -> Tensor:
        """True at the entries that are parts, ``(..., size, size)``."""
        return (arc_mask if self.rooted else span_mask)(lengths, size)

    def part_count(self, lengths: Tensor) -> Tensor:
        """How many parts a structure has, ``(...)``: an arc for every word."""
        return lengths

    def parts_of(self, value: Tensor) -> Tensor:
        """The parts of structures one by one, ``(parts, ...)``, true at each; some may be empty."""
        column = torch.arange(1, value.shape[-1], device=value.device)
        column = column.view(-1, *(1,) * value.dim()) == torch.arange(
            value.shape[-1], device=value.device
        )
        return column & (value != 0)

    @property
    def unconstrained(self) -> StructureInterface | None:
        """The structure whose words choose their arcs alone; None where parts belong to no word."""
        return None

    def compatible_parts(self, parts: Tensor) -> Tensor:
        """True at the parts that a structure may have which has all of the given ones.

        They force those given: every word has a head, so forbidding all others forces one.
        """
        return parts | ~parts.any(-2, keepdim=True)

    @abstractmethod
    def enumerate(self, n: int) -> Tensor:
        """All structures over ``n`` words, 0/1 in float64; for short sentences.

        Raises:
            InputError: there are too many.
        """

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
