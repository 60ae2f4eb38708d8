"""The lines of a drawing of trees: how each kind looks, and the legend below the words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from treelax.pictures.svg import COLOURS, number, text_element, text_width

Kind = Literal["tree", "other", "right", "wrong", "missed"]
LOOKS: dict[Kind, tuple[str, str]] = {  # colour and dashes
    "tree": ("blue", ""),
    "other": ("grey", "3 3"),
    "right": ("blue", ""),
    "wrong": ("vermillion", "7 4"),
    "missed": ("green", "1.5 3.5"),
}
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
