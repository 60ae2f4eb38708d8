"""Monotone alignments of two sequences: paths through a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.ops.alignment import ALGORITHM
from treelax.structures.paths import PathStructure


@dataclass(frozen=True)
class Alignment(PathStructure):
    r"""Monotone alignments of two sequences: paths through an n × m grid.

    Parts are moves: ``scores[..., i, j, move]`` is the score of the move into cell ``(i, j)`` by 0, a
    match, from ``(i-1, j-1)``, 1, down, from ``(i-1, j)``, or 2, right, from ``(i, j-1)``. A path leads
    from cell ``(0, 0)`` to the last one. Part ``[0, 0, 0]`` is in all of them; moves from outside the
    grid are never read. Lengths are pairs ``(..., 2)`` of at least 1. There are
    Delannoy(n-1, m-1) paths.

    An edit distance takes an ``(n+1) × (m+1)`` grid, whose cell ``(0, 0)`` is the empty prefix.

    Example:
        >>> paths = Alignment()(torch.zeros(3, 3, 3))
        >>> paths.log_partition.exp().round()
        tensor(13.)
    """

    name: ClassVar[str] = "alignment"
    event_dim: ClassVar[int] = 3
    length_count: ClassVar[int] = 2
    part: ClassVar[str] = "move"
    algorithm: ClassVar[Any] = ALGORITHM
    longest: ClassVar[int] = 2

    def check_scores(self, scores: Tensor) -> None:
        super().check_scores(scores)
        shape = tuple(scores.shape)
        if len(shape) < 3 or shape[-1] != 3 or 0 in shape[-3:]:
            raise InputError(
                f"scores has shape {shape}; expected (..., n, m, 3) with n and m at least 1, where "
                "scores[..., i, j, move] is the score of the move into cell (i, j): 0 match, 1 down, "
                "2 right."
            )

    def sizes(self, *shape: int) -> tuple[int, ...]:
        return shape[0], shape[1]

    def shape(self, n: int, m: int) -> tuple[int, ...]:
        return n, m, 3

    def extent(self, *shape: int) -> tuple[Tensor, Tensor]:
        i, j, move = (torch.arange(size) for size in shape)
        stop = i[:, None, None] + j[:, None] + 2
        return stop - 1 - (move == 0).long(), stop.expand(shape)

    def part_count(self, lengths: Tensor) -> Tensor:
        return lengths.sum(-1) - 1

    @property
    def none_left(self) -> str:
        return "no path to the last cell"

    @property
    def rules(self) -> str:
        return "moves from cell (0, 0), itself entered by [0, 0, 0], to the last cell"
