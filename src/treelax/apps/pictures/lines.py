"""Drawings of trees over their words: how each kind of line looks, the legend, and the whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from treelax.apps.pictures import style
from treelax.apps.pictures.style import Kind, line_width, opacity
from treelax.apps.pictures.svg import (
    TITLE_LONGEST,
    Picture,
    number,
    text_element,
    text_width,
    title_element,
)

MARGIN = 16.0
TITLE, NOTE = 15.0, 12.0  # font sizes of the title and the legend
SAMPLE, BESIDE = 24.0, 14.0  # of a legend: the line, and the room between two items
LEGEND_LEAST = 300.0  # that a row of it may take

LegendItem = tuple[Kind | None, float, str]  # a line to show, if any, its weight, and a text
SCALE: list[LegendItem] = [
    (None, 1.0, "weight"),
    *(("tree", weight, f"{weight:g}") for weight in (0.1, 0.4, 0.7, 1.0)),
]


def line_group(
    kind: Kind,
    weight: float,
    path: str,
    before: str = "",
    after: str = "",
    *,
    faintest: float = style.FAINTEST,
) -> str:
    """A line, darker and wider the heavier it is, with what belongs to it."""
    dashes = style.LOOKS[kind][1]
    strength = opacity(weight, faintest)
    faint = f' opacity="{number(strength)}"' if strength < 1 else ""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    line = (
        f'<path d="{path}" fill="none" stroke="currentColor" '
        f'stroke-width="{number(line_width(weight))}"{dashed}/>'
    )
    return coloured(kind, before + line + after, faint)


def coloured(kind: Kind, elements: str, attributes: str = "") -> str:
    """Elements whose ``currentColor`` is that of a kind of line."""
    colour = style.LOOKS[kind][0]
    opening = f'<g class="treelax-{colour}" color="{style.COLOURS[colour][0]}" fill="currentColor"'
    return f"{opening}{attributes}>{elements}</g>"


def legend_rows(groups: Sequence[list[LegendItem]], width: float) -> list[list[LegendItem]]:
    """One row if it is no wider than the drawing, else a row for each group."""
    groups = [group for group in groups if group]
    whole = [item for group in groups for item in group]
    if groups and legend_width(whole) <= max(width, LEGEND_LEAST):
        return [whole]
    return list(groups)


def legend_width(items: Sequence[LegendItem]) -> float:
    """The width of a row."""
    widths = (
        (SAMPLE + 6 if kind else 0) + text_width(text, NOTE) + BESIDE for kind, _, text in items
    )
    return sum(widths) - BESIDE


def legend_row(
    items: Sequence[LegendItem], x: float, y: float, *, faintest: float = style.FAINTEST
) -> list[str]:
    """The items beside each other on a line."""
    parts = []
    for kind, weight, text in items:
        at = x
        if kind is not None:
            path = f"M{number(x)} {number(y - 4)}h{number(SAMPLE)}"
            parts.append(line_group(kind, weight, path, faintest=faintest))
            at += SAMPLE + 6
        parts.append(text_element(at, y, text, size=NOTE, anchor="start"))
        x += legend_width([(kind, weight, text)]) + BESIDE
    return parts


class Drawing(ABC):
    """Words with lines above and below them.

    Attributes:
        title: of the picture.
        tags: what stands below the words.
        right_to_left: the first word is on the right.
        slots: the room that each word needs.
        distances: the least that the middles of two words may be apart, as ``(first, second, least)``;
            words are counted from 0.
        above: the lines above the words, once they have their places; ``below`` likewise.
    """

    name: ClassVar[str]  # of the picture, unless it has a title
    gaps: ClassVar[tuple[float, float]]  # below words with and without tags
    between: ClassVar[float]  # words

    words: list[str]
    title: str | None
    tags: list[str]
    right_to_left: bool
    slots: list[float]
    distances: list[tuple[int, int, float]]
    above: Any
    below: Any

    @abstractmethod
    def place(self, centres: Sequence[float]) -> None:
        """Place the lines over words with these middles."""

    @abstractmethod
    def height(self, side: Any) -> float:
        """The height of the lines on one side, with the labels of the highest ones."""

    @abstractmethod
    def side(self, side: Any, base: float, sign: int) -> list[str]:
        """The lines above (sign -1) or below (1) the words."""

    @abstractmethod
    def legend(self) -> list[list[LegendItem]]:
        """What has to be explained, in groups that stay together; nothing for a tree alone."""

    @abstractmethod
    def description(self) -> str:
        """The tree in words."""

    def faintest(self, kind: Kind) -> float:
        """Opacity of a line of a kind that weighs nothing."""
        return style.FAINTEST

    def x(self, place: float) -> float:
        """Where in the picture a place among the words is."""
        return self.start + (self.width - place if self.right_to_left else place)

    def picture(self, others: Sequence[Drawing] = (), least: float = 0.0) -> Picture:
        """The whole, from the title down to the legend.

        Words stand as if the lines of all others were drawn too, in a picture at least so wide.
        """
        centres, self.width = _spread([self, *others])
        self.place(centres)
        parts, y = [], MARGIN
        rows = legend_rows(self.legend(), self.width)
        width = max([self.width, least - 2 * MARGIN, *map(legend_width, rows)])
        if self.title is not None:
            width = max(width, text_width(self.title, TITLE, TITLE_LONGEST))
            parts.append(title_element(MARGIN, y + TITLE - 2, self.title, TITLE))
            y += TITLE + 12
        # words from right to left begin at the right edge
        self.start = MARGIN + (width - self.width if self.right_to_left else 0)
        y += self.height(self.above)
        parts += self.side(self.above, y, -1)
        y += style.WORD + 1
        parts += self._words_line(y, centres)
        y += self.gaps[0 if any(self.tags) else 1]
        parts += self.side(self.below, y, 1)
        y += self.height(self.below)
        for i, row in enumerate(rows):
            y += 18 if i else 22
            parts += legend_row(row, MARGIN, y, faintest=self.faintest("tree"))
        size = width + 2 * MARGIN, y + MARGIN - 2
        shown = "\n".join(parts)
        return Picture(*size, shown, self.title or self.name, self.description(), self)

    def _words_line(self, y: float, centres: Sequence[float]) -> list[str]:
        parts, quiet = [], f'opacity="{number(style.TAG_OPACITY)}"'
        for x, word, tag in zip(map(self.x, centres), self.words, self.tags, strict=True):
            parts.append(text_element(x, y, word or "_", size=style.WORD))
            if tag:
                parts.append(text_element(x, y + 17, tag, size=style.TAG, attributes=quiet))
        return parts


def _spread(drawings: Sequence[Drawing]) -> tuple[list[float], float]:
    """The middles of the words that all drawings have, as close as each allows, and the width of all."""
    slots = [max(room) for room in zip(*(drawing.slots for drawing in drawings), strict=True)]
    between = max(drawing.between for drawing in drawings)
    least: list[list[tuple[int, float]]] = [[] for _ in slots]
    for drawing in drawings:
        for first, second, distance in drawing.distances:
            least[second].append((first, distance))
    centres = [slots[0] / 2]
    for m in range(1, len(slots)):
        beside = centres[-1] + (slots[m - 1] + slots[m]) / 2 + between
        centres.append(max([beside, *(centres[i] + distance for i, distance in least[m])]))
    return centres, centres[-1] + slots[-1] / 2
