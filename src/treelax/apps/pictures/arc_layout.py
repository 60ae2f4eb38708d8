"""Where the arcs of a drawing stand; `treelax.apps.pictures.style` says by which rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from treelax.apps.pictures.style import LABEL, Kind, port
from treelax.apps.pictures.svg import text_width


class Arc(NamedTuple):
    """An arc of a drawing; the root is head 0."""

    head: int
    modifier: int
    kind: Kind
    weight: float = 1.0
    label: str = ""

    @property
    def label_width(self) -> float:
        """With some room on both sides."""
        return text_width(self.label, LABEL) + 8

    @property
    def size(self) -> tuple[int, bool]:
        """Arcs in this order lie above each other; never equal for two arcs over the same words."""
        return abs(self.head - self.modifier), self.head < self.modifier


class Side(NamedTuple):
    """The arcs above or below the words."""

    ends: dict[Arc, tuple[float, float]]  # x at the head and at the modifier; equal for the root's
    levels: dict[Arc, int]  # from 1; the root's arcs have none

    @property
    def highest(self) -> int:
        """The number of levels."""
        return max(self.levels.values(), default=0)

    def label_place(self, arc: Arc) -> float:
        """Where on an arc a label is met by no other arc, or by as few as can be."""
        left, right = sorted(self.ends[arc])
        level = self.levels[arc]
        stems = sorted(
            x
            for other, ends in self.ends.items()
            if other != arc and self.levels.get(other, level + 1) > level
            for x in ends
            if left < x < right
        )
        gaps = ((b - a, (a + b) / 2) for a, b in pairwise([left, *stems, right]))
        middle = (left + right) / 2
        return max(gaps, key=lambda gap: (round(gap[0], 3), -abs(gap[1] - middle)))[1]


def label_distances(
    arcs: Sequence[Arc], widths: Sequence[float]
) -> Iterator[tuple[int, int, float]]:
    """How far apart the middles of two words, counted from 0, have to be for labels to fit."""
    stems = _offsets(arcs, widths)
    for arc in arcs:
        if arc.head and arc.label:
            left, right = sorted((arc.head, arc.modifier))
            inner = stems[arc] if arc.head == left else -stems[arc]
            yield left - 1, right - 1, arc.label_width + inner


def place_arcs(arcs: Sequence[Arc], widths: Sequence[float], centres: Sequence[float]) -> Side:
    """The arcs on one side of words of these widths and middles."""
    stems, ends = _offsets(arcs, widths), {}
    for arc in arcs:
        x = centres[arc.modifier - 1]
        ends[arc] = (centres[arc.head - 1] + stems[arc] if arc.head else x, x)
    places = sorted({x for pair in ends.values() for x in pair})
    rank = {x: i for i, x in enumerate(places)}
    skyline = [0] * len(places)  # of the gap behind each place: arcs may meet at their ends
    levels = {}
    for arc in sorted((arc for arc in arcs if arc.head), key=lambda arc: arc.size):
        left, right = sorted(rank[x] for x in ends[arc])
        levels[arc] = 1 + max(skyline[left:right])
        skyline[left:right] = [levels[arc]] * (right - left)
    return Side(ends, levels)


def _offsets(arcs: Sequence[Arc], widths: Sequence[float]) -> dict[Arc, float]:
    """How far from the middle of its head each arc leaves it."""
    with_arrow = {arc.modifier for arc in arcs}
    return {
        arc: (1 if arc.modifier > arc.head else -1) * port(widths[arc.head - 1])
        if arc.head in with_arrow
        else 0.0
        for arc in arcs
    }
