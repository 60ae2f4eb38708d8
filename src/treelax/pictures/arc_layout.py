"""Where the words and arcs of a drawing stand.

Every arc has an end of its own at both of its words. At a word, the ends of arcs to the left stand
left of those to the right, and on both sides longer arcs stand further in: so no two arcs of a
projective tree meet or cross. An arc is one level above all arcs that lie under it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

__all__ = ["Arc", "Layout", "Side", "lay_out"]

Kind = Literal["tree", "other", "right", "wrong", "missed"]
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
    label_width: float = 0.0

    @property
    def size(self) -> tuple[int, bool]:
        """Arcs in this order lie above each other; never equal for two arcs over the same words."""
        return abs(self.head - self.modifier), self.head < self.modifier


@dataclass(frozen=True)
class Side:
    """The arcs on one side of the words.

    Attributes:
        arcs: what is drawn there.
        ends: of each arc where it leaves its head and where it meets its modifier; the same for an
            arc from the root.
        levels: of each arc, from 1; those from the root have none.
        highest: the number of levels.
    """

    arcs: list[Arc]
    ends: dict[Arc, tuple[float, float]]
    levels: dict[Arc, int]
    highest: int

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
        edges = [left, *stems, right]
        _, place = max(
            ((b - a, (a + b) / 2) for a, b in pairwise(edges)),
            key=lambda gap: (round(gap[0], 3), -abs(gap[1] - (left + right) / 2)),
        )
        return place


@dataclass(frozen=True)
class Layout:
    """Where all stands, from the left end of the first word.

    Attributes:
        centres: of the words.
        width: up to the right end of the last word.
        above: the arcs above the words.
        below: those below.
    """

    centres: list[float]
    width: float
    above: Side
    below: Side


def lay_out(widths: Sequence[float], above: Sequence[Arc], below: Sequence[Arc]) -> Layout:
    """Place words and arcs.

    Args:
        widths: of the words, each with what stands under it.
        above: the arcs above the words.
        below: those below.

    Returns:
        The places.

    Example:
        >>> arcs = [Arc(0, 2, "tree"), Arc(2, 1, "tree"), Arc(2, 3, "tree")]
        >>> layout = lay_out([30, 30, 30], arcs, [])
        >>> layout.centres, layout.above.highest
        ([15.0, 60.0, 105.0], 1)
    """
    both = (above, below)
    ports = [_ports(arcs, len(widths)) for arcs in both]
    slots = [max(width, *(_room(side[m]) for side in ports)) for m, width in enumerate(widths)]
    centres, x = [], 0.0
    for slot in slots:
        centres.append(x + slot / 2)
        x += slot + BETWEEN
    offsets = [_offsets(side) for side in ports]
    for arcs, own in zip(both, offsets, strict=True):
        for arc in sorted(arcs, key=lambda arc: arc.size):
            _make_room(arc, own, centres)
    width = centres[-1] + slots[-1] / 2
    sides = (_side(arcs, own, centres) for arcs, own in zip(both, offsets, strict=True))
    return Layout(centres, width, *sides)


def _ports(arcs: Sequence[Arc], n: int) -> list[list[Arc]]:
    """The arcs of each word in the order in which they stand at it."""
    found: list[list[Arc]] = [[] for _ in range(n)]
    for arc in arcs:
        for position in {arc.head, arc.modifier} - {0}:
            found[position - 1].append(arc)

    def place(arc: Arc, m: int) -> tuple[int, tuple[int, int]]:
        if arc.head == 0:
            return 1, (0, 0)
        span, forwards = arc.size
        if max(arc.head, arc.modifier) == m:
            return 0, (span, forwards)
        return 2, (-span, -forwards)

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


def _make_room(arc: Arc, offsets: dict[tuple[Arc, int], float], centres: list[float]) -> None:
    """Move words apart until the label of an arc fits on it."""
    if arc.head == 0 or not arc.label:
        return
    left, right = sorted((arc.head, arc.modifier))
    ends = [centres[m - 1] + offsets[arc, m] for m in (left, right)]
    missing = arc.label_width - (ends[1] - ends[0])
    if missing > 0:
        for m in range(right, len(centres) + 1):
            centres[m - 1] += missing


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
    return Side(list(arcs), ends, levels, max(levels.values(), default=0))
