"""Drawings of trees over their words: how each kind of line looks, the legend, and the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from treelax.pictures.svg import (
    COLOURS,
    TITLE_LONGEST,
    Picture,
    number,
    text_element,
    text_width,
    title_element,
)

Kind = Literal["tree", "other", "right", "wrong", "missed"]
LOOKS: dict[Kind, tuple[str, str]] = {  # colour and dashes
    "tree": ("blue", ""),
    "other": ("grey", "3 3"),
    "right": ("blue", ""),
    "wrong": ("vermillion", "7 4"),
    "missed": ("green", "1.5 3.5"),
}
MARGIN = 16.0
WORD, TAG, TITLE = 16.0, 12.0, 15.0  # sizes of fonts
HIGHEST = 300.0  # of lines without labels, as long as their levels can be told apart
FAINTEST = 0.2  # opacity of a line that weighs nothing
NOTE = 12.0  # size of the legend's font
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
    faintest: float = FAINTEST,
) -> str:
    """A line, darker and wider the heavier it is, with what belongs to it."""
    dashes = LOOKS[kind][1]
    strength = faintest + (1 - faintest) * weight
    faint = f' opacity="{number(strength)}"' if strength < 1 else ""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    line = (
        f'<path d="{path}" fill="none" stroke="currentColor" '
        f'stroke-width="{number(0.7 + 1.1 * weight)}"{dashed}/>'
    )
    return coloured(kind, before + line + after, faint)


def coloured(kind: Kind, elements: str, attributes: str = "") -> str:
    """Elements whose ``currentColor`` is that of a kind of line."""
    colour = LOOKS[kind][0]
    opening = f'<g class="treelax-{colour}" color="{COLOURS[colour][0]}" fill="currentColor"'
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
    items: Sequence[LegendItem], x: float, y: float, *, faintest: float = FAINTEST
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


class Drawing:
    """Words with lines above and below them.

    A drawing has ``tags``, ``width``, ``start``, ``right_to_left``, lines ``above`` and ``below``; it
    says what these take up (``height``), how they and the words look (``side``, ``words_line``) and
    what they mean (``legend``, ``description``).
    """

    name: ClassVar[str]  # of the picture, unless it has a title
    gaps: ClassVar[tuple[float, float]]  # below words with and without tags

    def picture(self: Any, title: str | None) -> Picture:
        """The whole, from the title down to the legend."""
        parts, y = [], MARGIN
        rows = legend_rows(self.legend(), self.width)
        width = max([self.width, *map(legend_width, rows)])
        if title is not None:
            width = max(width, text_width(title, TITLE, TITLE_LONGEST))
            parts.append(title_element(MARGIN, y + TITLE - 2, title, TITLE))
            y += TITLE + 12
        if self.right_to_left:  # begins at the right edge
            self.start = MARGIN + width - self.width
        y += self.height(self.above)
        parts += self.side(self.above, y, -1)
        y += WORD + 1
        parts += self.words_line(y)
        y += self.gaps[0 if any(self.tags) else 1]
        parts += self.side(self.below, y, 1)
        y += self.height(self.below)
        for i, row in enumerate(rows):
            y += 18 if i else 22
            parts += legend_row(row, MARGIN, y, faintest=self.faintest("tree"))
        size = width + 2 * MARGIN, y + MARGIN - 2
        return Picture(*size, "\n".join(parts), title or self.name, self.description())

    def faintest(self, kind: Kind) -> float:
        """Opacity of a line of a kind that weighs nothing."""
        return FAINTEST
