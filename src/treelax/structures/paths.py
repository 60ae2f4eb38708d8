"""What structures that are paths over positions share: chains, segments, alignments."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor
from torch.nn import functional as F

from treelax.errors import InputError
from treelax.interface import Options
from treelax.ops.call import Call, make_call
from treelax.ops.chain.rules import NONE
from treelax.ops.sparsemap.result import SparseMap
from treelax.structures.base import AlgorithmStructure, Structure
from treelax.structures.search import check_count


class PathStructure(AlgorithmStructure):
    """Paths from position 0 to the last one, by a program over positions."""

    algorithm: ClassVar[Any]  # a `PathAlgorithm`
    #: Positions that a part covers at most.
    longest: ClassVar[int] = 1

    def _call(self, scores: Tensor, lengths: Tensor | None, **settings: Any) -> Call:
        self.check_scores(scores)
        return make_call(self.algorithm, scores, lengths, event_dim=self.event_dim, **settings)

    def max_marginals(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        return self._call(scores, lengths, **options).max_marginals()[0]

    def measured_from(self, best: Tensor, scores: Tensor, lengths: Tensor) -> Tensor:
        scores = super().measured_from(best, scores, lengths)
        if self.longest == 1:  # as many parts in every path
            return scores
        # nothing above 0 is left, and so nothing large that cancels out
        shared = self._call(scores, lengths, validate=False).max_marginals()[1]
        return (scores - shared).to(scores.dtype)

    def sparsemap(self, *arguments: Any, **options: Any) -> SparseMap:
        return Structure.sparsemap(self, *arguments, **options)

    @abstractmethod
    def shape(self, *sizes: Any, **named: Any) -> tuple[int, ...]:
        """The shape of scores of some `sizes`."""

    @abstractmethod
    def extent(self, *shape: int) -> tuple[Tensor, Tensor]:
        """The positions where parts begin and end; both broadcast to the shape of scores.

        Two parts that cover a position in common are never in one path."""

    def part_mask(self, lengths: Tensor, *shape: int) -> Tensor:
        return self.algorithm.parts(lengths, *shape)

    def compatible_parts(self, parts: Tensor) -> Tensor:
        # a path covers every position once: what overlaps a part of it is that part
        start, stop = self._extent(parts)
        covered = self._per_position(parts.to(torch.int64), start) - self._per_position(
            parts.to(torch.int64), stop
        )
        covered = (covered.cumsum(-1) > 0).long()
        before = F.pad(covered.cumsum(-1), (1, 0))
        return parts | (self._at(before, start) == self._at(before, stop))

    def shared_score(self, best: Tensor, at_best: Tensor) -> Tensor:
        # every part loses what the best path has between its positions: the same in all for every path
        start, stop = self._extent(best)
        # summed up from the first position of each part: differences of sums would lose digits
        ended = F.pad(self._per_position(at_best, stop), (0, self.longest - 1))
        sums = ended.unfold(-1, self.longest, 1).cumsum(-1).flatten(-2)
        return self._at(sums, (start + 1) * self.longest + stop - start - 1)

    def _extent(self, parts: Tensor) -> tuple[Tensor, Tensor]:
        shape = parts.shape[-self.event_dim :]
        start, stop = (x.to(parts.device).expand(shape) for x in self.extent(*shape))
        return start, stop

    def _per_position(self, values: Tensor, place: Tensor) -> Tensor:
        """Sums ``(..., positions)`` of what is at parts, by a position of theirs."""
        flat = values.flatten(-self.event_dim)
        last = sum(values.shape[-self.event_dim :]) + 1
        return flat.new_zeros(*flat.shape[:-1], last).scatter_add(
            -1, place.flatten().expand_as(flat), flat
        )

    def _at(self, values: Tensor, place: Tensor) -> Tensor:
        """Values of positions at the parts, in the shape of the scores."""
        index = place.flatten().expand(*values.shape[:-1], -1)
        return values.gather(-1, index).unflatten(-1, place.shape)

    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        # the only path of its parts is the best one
        allowed = torch.where(value == 1, 0.0, -math.inf)
        batch = value.shape[: -self.event_dim]
        lengths = lengths.expand(self.lengths_shape(batch))
        path = self.argmax(allowed, lengths, validate=False)
        return (path == value).flatten(-self.event_dim).all(-1)

    def enumerate(self, *sizes: Any, **named: Any) -> Tensor:
        shape = self._shape(*sizes, **named)
        if self._too_short(shape):
            return torch.zeros(0, *shape, dtype=torch.float64)
        check_count(round(math.exp(min(self.log_count(*sizes, **named), 50))), sizes[0])
        canonical = torch.Size(self.algorithm.canonical(shape))
        lengths = self.full_lengths(torch.zeros(1, *shape))
        program = self.algorithm.program
        edges: list[list[tuple[int, int]]] = [[]]
        for level in program.levels(canonical):
            for row in zip(level.tails.tolist(), level.parts.tolist(), strict=True):
                edges.append([edge for edge in zip(*row, strict=True) if edge[0] != NONE])
        paths: list[list[int]] = []
        ends = program.goals(lengths, canonical)[0].tolist()
        stack: list[tuple[int, list[int]]] = [(node, []) for node in ends if node != NONE]
        while stack:
            node, parts = stack.pop()
            if node == 0:
                paths.append(parts)
            for tail, part in edges[node]:
                stack.append((tail, parts if part == NONE else [*parts, part]))
        result = torch.zeros(len(paths), math.prod(shape), dtype=torch.float64)
        for row, parts in zip(result, paths, strict=True):
            row[parts] = 1
        return result.reshape(len(paths), *shape)

    def log_count(self, *sizes: Any, **named: Any) -> float:
        shape = self._shape(*sizes, **named)
        if self._too_short(shape):
            return -math.inf
        return float(self.log_partition(torch.zeros(shape, dtype=torch.float64)))

    def _too_short(self, shape: tuple[int, ...]) -> bool:
        """Whether there is no path at all: an alignment has a cell."""
        return min(shape[: self.length_count]) < self.algorithm.program.least

    def _shape(self, *sizes: Any, **named: Any) -> tuple[int, ...]:
        """`shape`, of sizes that there are."""
        shape = self.shape(*sizes, **named)
        counts = self.sizes(*shape)
        least = 0, 2 - self.length_count  # of labels, where there are any
        if any(
            type(size) is not int or size < low for size, low in zip(counts, least, strict=True)
        ):
            raise InputError(f"The sizes are {counts}; expected whole numbers of at least {least}.")
        return shape
