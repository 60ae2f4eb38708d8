"""Where the words of a drawing stand, and how lines over them are stacked; for SVG and the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Distance = tuple[int, int, float]  # two words, counted from 0, and the least between their middles


def stacked(intervals: Iterable[tuple[int, int]]) -> list[int]:
    """The level of each interval ``[start, end)``, from 1: above all earlier ones that it overlaps.

    >>> stacked([(0, 2), (2, 4), (1, 3)])
    [1, 1, 2]
    """
    skyline: dict[int, int] = {}
    levels = []
    for start, end in intervals:
        levels.append(1 + max(skyline.get(place, 0) for place in range(start, end)))
        skyline.update(dict.fromkeys(range(start, end), levels[-1]))
    return levels


def spread(slots: Sequence[float], between: float, distances: Iterable[Distance]) -> list[float]:
    """The middles of words with so much room each, as close as the distances allow."""
    least: list[list[tuple[int, float]]] = [[] for _ in slots]
    for first, second, distance in distances:
        least[second].append((first, distance))
    centres = [slots[0] / 2]
    for m in range(1, len(slots)):
        beside = centres[-1] + (slots[m - 1] + slots[m]) / 2 + between
        centres.append(max([beside, *(centres[i] + distance for i, distance in least[m])]))
    return centres
