"""Where the words and arcs of a drawing stand.

Every arc has its own end at each of its words: those to the left before those to the right, longer
arcs further in, so no two arcs of a projective tree meet. An arc is one level above those under it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from treelax.pictures.lines import Kind
from treelax.pictures.svg import text_width

LABEL = 11.0  # font size of the labels of arcs
PORT = 8.0  # between the ends of arcs at a word
MOST = 96.0  # that the ends at a word may take, however many
BETWEEN = 15.0  # words


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


def lay_out(
    widths: Sequence[float], above: Sequence[Arc], below: Sequence[Arc]
) -> tuple[list[float], float, Side, Side]:
    """The middles of words of these widths, from x = 0, the width of all, the arcs above and below."""
    ports = [_ports(arcs, len(widths)) for arcs in (above, below)]
    slots = [max(width, *(_room(side[m]) for side in ports)) for m, width in enumerate(widths)]
    centres, x = [], 0.0
    for slot in slots:
        centres.append(x + slot / 2)
        x += slot + BETWEEN
    offsets = _offsets(ports[0]), _offsets(ports[1])
    for arcs, own in zip((above, below), offsets, strict=True):
        for arc in sorted((arc for arc in arcs if arc.head and arc.label), key=lambda a: a.size):
            left, right = sorted((arc.head, arc.modifier))
            start, end = (centres[m - 1] + own[arc, m] for m in (left, right))
            missing = arc.label_width - (end - start)
            if missing > 0:  # move words apart until the label fits on its arc
                centres[right - 1 :] = [centre + missing for centre in centres[right - 1 :]]
    width = centres[-1] + slots[-1] / 2
    return centres, width, _side(above, offsets[0], centres), _side(below, offsets[1], centres)


def _ports(arcs: Sequence[Arc], n: int) -> list[list[Arc]]:
    """The arcs of each word in the order in which they stand at it."""
    found: list[list[Arc]] = [[] for _ in range(n)]
    for arc in arcs:
        for position in {arc.head, arc.modifier} - {0}:
            found[position - 1].append(arc)

    def place(arc: Arc, m: int) -> tuple[int, int, int]:
        span, forwards = arc.size
        if arc.head == 0:
            return 1, 0, 0
        if max(arc.head, arc.modifier) == m:
            return 0, span, forwards
        return 2, -span, -forwards

    for m, own in enumerate(found, 1):
        own.sort(key=lambda arc: place(arc, m))
    return found


def _room(own: Sequence[Arc]) -> float:
    """The width that the ends of its arcs and the label of that from the root need at a word."""
    if not own:
        return 0.0
    labels = (arc.label_width for arc in own if arc.head == 0)
    return max(min((len(own) - 1) * PORT, MOST) + PORT, *labels, 0.0)


def _offsets(ports: Sequence[Sequence[Arc]]) -> dict[tuple[Arc, int], float]:
    """How far from the middle of a word its end of an arc stands."""
    offsets = {}
    for m, own in enumerate(ports, 1):
        step = min(PORT, MOST / max(len(own) - 1, 1))
        for i, arc in enumerate(own):
            offsets[arc, m] = (i - (len(own) - 1) / 2) * step
    return offsets


def _side(
    arcs: Sequence[Arc], offsets: dict[tuple[Arc, int], float], centres: Sequence[float]
) -> Side:
    ends = {}
    for arc in arcs:
        x = centres[arc.modifier - 1] + offsets[arc, arc.modifier]
        head = centres[arc.head - 1] + offsets[arc, arc.head] if arc.head else x
        ends[arc] = (head, x)
    places = sorted({x for pair in ends.values() for x in pair})
    rank = {x: i for i, x in enumerate(places)}
    skyline = [0] * len(places)
    levels = {}
    for arc in sorted((arc for arc in arcs if arc.head), key=lambda arc: arc.size):
        left, right = sorted(rank[x] for x in ends[arc])
        levels[arc] = 1 + max(skyline[left : right + 1])
        skyline[left : right + 1] = [levels[arc]] * (right - left + 1)
    return Side(ends, levels)
