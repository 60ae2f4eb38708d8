"""Scores and marginals of all arcs as a heat map, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from treelax.apps.pictures.style import COLOURS
from treelax.apps.pictures.svg import (
    TITLE_LONGEST,
    Picture,
    clean,
    number,
    text_element,
    text_width,
    title_element,
)
from treelax.apps.pictures.words import checked_heads, checked_matrix, checked_words, named
from treelax.errors import InputError

MARGIN, TITLE, WORD, SMALL = 16.0, 15.0, 13.0, 10.0
CELL, LARGE_CELL = 20.0, 34.0
NUMBERS_UP_TO = 12  # words: numbers fit into larger cells and can still be read
TITLES_UP_TO = 60  # words: the tooltips of more would make a file of megabytes
TURN = math.radians(50)  # by which the words above the columns are turned
AXES = "rows: heads, columns: modifiers"
STEPS = 5  # of the legend
BLUE = f'class="treelax-blue" color="{COLOURS["blue"][0]}"'
FAINTEST = 0.04  # strength of the cell of the least number
# from where on a number on a cell is better seen in the other colour, on dark and on light pages
DARK_ON_STRONG, WHITE_ON_STRONG = 0.62, 0.9


def draw_heat_map(
    words: Sequence[str],
    values: Sequence[Sequence[float]] | Tensor,
    *,
    heads: Sequence[int] | Tensor | None = None,
    limits: tuple[float, float] | None = None,
    title: str | None = None,
    name: str = "value",
) -> Picture:
    """Draw a number for every arc, a row for each head and a column for each modifier.

    The root is the first row and has no column. The stronger its colour, the greater a number. Forbidden
    arcs (``-inf``) are crossed out. Cells show their numbers up to 12 words, as tooltips up to 60.

    Args:
        words: the n words.
        values: ``(n + 1, n + 1)``, ``values[h, m]`` that of the arc from ``h`` to ``m``: scores,
            marginals, the weights of a soft tree.
        heads: the n heads of a tree whose cells are framed.
        limits: the numbers of the faintest and of the strongest cell; by default the least and
            the greatest, or 0 and 1 where all are between.
        name: what the numbers are, for the legend.

    Example:
        >>> import torch
        >>> import treelax as tx
        >>> marginals = tx.ProjectiveTrees(torch.zeros(3, 3)).marginals
        >>> picture = draw_heat_map(["Dogs", "bark"], marginals, name="probability")
        >>> "root (0) → Dogs (1): 0.6667" in picture.svg()
        True
    """
    words = checked_words(words)
    matrix = checked_matrix(values, "values", len(words))
    framed = [] if heads is None else checked_heads(heads, "heads", len(words))
    low, high = limits or _limits(matrix)
    if not -math.inf < low < high < math.inf:
        raise InputError(f"limits: received {limits}; expected two numbers, the lesser first")
    return _HeatMap(words, matrix, framed, low, high).picture(title, name)


def _limits(matrix: list[list[float]]) -> tuple[float, float]:
    finite = [value for _, _, value in _cells(matrix) if value > -math.inf]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return (low, high) if low < high else (low - 1, high)


def _cells(matrix: list[list[float]]) -> Iterator[tuple[int, int, float]]:
    """Head, modifier and value of every arc."""
    for h, row in enumerate(matrix):
        for m, value in enumerate(row):
            if m not in (0, h):
                yield h, m, value


@dataclass
class _HeatMap:
    """The parts of a heat map as SVG."""

    words: list[str]
    matrix: list[list[float]]
    heads: list[int]
    low: float
    high: float

    def __post_init__(self) -> None:
        n = len(self.words)
        self.cell = LARGE_CELL if n <= NUMBERS_UP_TO else CELL
        # numbers of one map have one form: that which the widest range needs
        self.digits = max(0, 2 - int(math.log10(max(abs(self.low), abs(self.high), 1))))
        widths = [text_width(word, WORD) for word in ("root", *self.words)]
        self.left = MARGIN + max(*widths, text_width("head", SMALL)) + 8
        self.above = MARGIN + max(widths[1:]) * math.sin(TURN) + WORD + 4
        # the words above the last columns lean over the right edge
        leaning = (widths[m] * math.cos(TURN) + (m - 0.5) * self.cell for m in range(1, n + 1))
        self.right = self.left + max(*leaning, n * self.cell) + 4

    def picture(self, title: str | None, name: str) -> Picture:
        parts, right = [], self.right
        if title is not None:
            parts.append(title_element(MARGIN, MARGIN + TITLE - 2, title, TITLE))
            self.above += TITLE + 10
            right = max(right, MARGIN + text_width(title, TITLE, TITLE_LONGEST))
        bottom = self.above + (len(self.words) + 1) * self.cell
        legend_width, legend = self._legend(bottom + 20, name)
        frames = [
            _frame(self.left + 1 + m * self.cell, self.above + 1 + h * self.cell, self.cell - 2)
            for m, h in enumerate(self.heads)
        ]
        parts += [*self._axes(), *self._squares(), *frames, *legend]
        parts.append(text_element(MARGIN, bottom + 66, AXES, size=12, anchor="start"))
        right = max(right, MARGIN + legend_width, MARGIN + text_width(AXES, 12, 60))
        size = right + MARGIN, bottom + 62 + MARGIN
        about = title or f"Heat map of arcs ({name})"
        return Picture(*size, "\n".join(parts), about, self._description(name))

    def _axes(self) -> Iterator[str]:
        for h, word in enumerate(("root", *self.words)):
            y = self.above + (h + 0.5) * self.cell + WORD / 3
            more, x = "" if h else 'font-style="italic"', self.left - 6
            yield text_element(x, y, word or "_", size=WORD, anchor="end", attributes=more)
        for m, word in enumerate(self.words):
            x, y = self.left + (m + 0.5) * self.cell + 3, self.above - 6
            turn = f'transform="rotate({-math.degrees(TURN):.0f} {number(x)} {number(y)})"'
            yield text_element(x, y, word or "_", size=WORD, anchor="start", attributes=turn)

    def _squares(self) -> list[str]:
        """All cells, then what stands on them, which must not hide their tooltips."""
        squares, shown, size = [f'<g {BLUE} fill="currentColor">'], [], self.cell
        for h, m, value in _cells(self.matrix):
            x, y = self.left + (m - 1) * size, self.above + h * size
            title = f"{named(self.words, h)} → {named(self.words, m)}: {value:.4g}"
            share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
            strength = FAINTEST + (1 - FAINTEST) * share
            if value == -math.inf:
                title, strength = f"{title}, forbidden", 0.0
                start, side = f"{number(x + size * 0.35)} {number(y + size * 0.35)}", size * 0.3
                shown.append(
                    f'<path d="M{start}l{number(side)} {number(side)}m0 -{number(side)}'
                    f'l-{number(side)} {number(side)}" fill="none" stroke="currentColor" '
                    'opacity="0.5"/>'
                )
            elif len(self.words) <= NUMBERS_UP_TO:
                colour = 'class="treelax-on"' if share > DARK_ON_STRONG else ""
                colour += ' fill="#FFFFFF"' if share > WHITE_ON_STRONG else ""
                at, text = (x + size / 2, y + size / 2 + SMALL * 0.36), self._written(value)
                shown.append(text_element(*at, text, size=SMALL, attributes=colour))
            tip = f"<title>{clean(title)}</title>" if len(self.words) <= TITLES_UP_TO else ""
            squares.append(
                f'<path d="M{number(x + 0.5)} {number(y + 0.5)}h{number(size - 1)}'
                f'v{number(size - 1)}h{number(1 - size)}z" fill-opacity="{number(strength)}">'
                f"{tip}</path>"
            )
        return [*squares, "</g>", '<g pointer-events="none">', *shown, "</g>"]

    def _written(self, value: float) -> str:
        return f"{round(value, self.digits) + 0:.{self.digits}f}".replace("-", "−")

    def _legend(self, y: float, name: str) -> tuple[float, list[str]]:
        """A row of cells from the least to the greatest number; its width and parts."""
        size, start = 26.0, MARGIN + text_width(name, 12) + 10
        parts = [text_element(MARGIN, y + 12, name, size=12, anchor="start")]
        for i in range(STEPS):
            share, x = i / (STEPS - 1), start + i * (size + 12)
            value = self.low + share * (self.high - self.low)
            parts.append(
                f'<rect {BLUE} x="{number(x)}" y="{number(y)}" width="{number(size)}" '
                f'height="14" fill-opacity="{number(FAINTEST + (1 - FAINTEST) * share)}"/>'
            )
            parts.append(text_element(x + size / 2, y + 27, self._written(value), size=SMALL))
        end = start + STEPS * (size + 12)
        if self.heads:
            parts.append(_frame(end + 6, y + 1, 12))
            parts.append(text_element(end + 24, y + 12, "tree", size=12, anchor="start"))
            end += 24 + text_width("tree", 12)
        return end - MARGIN, parts

    def _description(self, name: str) -> str:
        """For each word its greatest number."""
        largest = []
        for m in range(1, len(self.words) + 1):
            value, h = max((self.matrix[h][m], -h) for h in range(len(self.matrix)) if h != m)
            largest.append(f"{named(self.words, m)}: {named(self.words, -h)}, {value:.3g}")
        return (
            f"Rows are heads, columns are modifiers, numbers are {name}. "
            f"The greatest for each modifier: {'; '.join(largest)}."
        )


def _frame(x: float, y: float, size: float) -> str:
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(size)}" height="{number(size)}" '
        'fill="none" stroke="currentColor" stroke-width="2"/>'
    )
