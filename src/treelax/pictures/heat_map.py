"""Scores and marginals of all arcs as a heat map, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from torch import Tensor

from treelax.errors import InputError
from treelax.pictures.characters import named
from treelax.pictures.svg import COLOURS, Picture
from treelax.pictures.svg_text import clean, number, text_element, text_width
from treelax.pictures.words import checked_heads, checked_matrix, checked_words

__all__ = ["draw_heat_map"]

MARGIN, TITLE, WORD, SMALL = 16.0, 15.0, 13.0, 10.0
CELL, LARGE_CELL = 20.0, 34.0
NUMBERS_UP_TO = 12  # words: numbers fit into larger cells and can still be read
TOLD_UP_TO = 60  # words: an element for each of their cells makes 0.4 MB, for 200 words 5 MB
TOO_WIDE = 10_000  # from here on a number does not fit into a cell
TURN = 50  # degrees that the words above the columns are turned by
AXES = "rows: heads, columns: modifiers"
STEPS = 5  # of the legend
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

    The root is the first row; it is never a modifier and has no column. The stronger a cell, the
    greater its number, in one hue, so that it can also be read in black and white. Cells of arcs
    that cannot be are left out: a word as its own head, and ``-inf``, which is crossed out. Every
    cell tells its number on demand with at most 60 words, and shows it with at most 12.

    Args:
        words: the n words.
        values: ``(n + 1, n + 1)``, ``values[h, m]`` that of the arc from ``h`` to ``m``: scores,
            marginals, the weights of a soft tree.
        heads: the n heads of a tree whose cells are framed.
        limits: the numbers of the faintest and of the strongest cell; by default the least and
            the greatest, or 0 and 1 where all are between.
        title: stands above.
        name: what the numbers are, for the legend.

    Returns:
        The picture.

    Raises:
        InputError: there are no words, or something does not fit them.

    Example:
        >>> import torch
        >>> import treelax as tx
        >>> marginals = tx.ProjectiveTrees(torch.zeros(3, 3)).marginals
        >>> picture = draw_heat_map(["Dogs", "bark"], marginals, name="probability")
        >>> "root (0) → Dogs (1): 0.6667" in picture.svg()
        True
    """
    words = checked_words(words)
    n = len(words)
    matrix = checked_matrix(values, "values", n)
    framed = None if heads is None else checked_heads(heads, "heads", n)
    low, high = _limits(matrix, limits)
    return _HeatMap(words, matrix, framed, low, high).picture(title, name)


def _limits(matrix: list[list[float]], limits: tuple[float, float] | None) -> tuple[float, float]:
    if limits is not None:
        low, high = limits
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InputError(
                f"limits: received {limits}; expected two numbers, the lesser one first"
            )
        return low, high
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


class _HeatMap:
    """The parts of a heat map as SVG."""

    def __init__(
        self,
        words: list[str],
        matrix: list[list[float]],
        heads: list[int] | None,
        low: float,
        high: float,
    ) -> None:
        self.words, self.matrix, self.heads = words, matrix, heads
        self.low, self.high = low, high
        greatest = max(abs(low), abs(high), 1)
        self.has_numbers = len(words) <= NUMBERS_UP_TO and greatest < TOO_WIDE
        self.cell = LARGE_CELL if self.has_numbers else CELL
        # numbers of one map have one form: that which the widest range needs
        self.digits = max(0, 2 - int(math.log10(greatest)))

    def picture(self, title: str | None, name: str) -> Picture:
        widths = [text_width(word, WORD) for word in ("root", *self.words)]
        top = MARGIN if title is None else MARGIN + TITLE + 10
        slant = math.radians(TURN)
        left = MARGIN + max(*widths, text_width("head", SMALL)) + 8
        above = top + max(widths[1:]) * math.sin(slant) + WORD + 4
        n = len(self.words)
        right = left + n * self.cell
        bottom = above + (n + 1) * self.cell
        parts = []
        if title is not None:
            parts.append(
                text_element(
                    *(MARGIN, MARGIN + TITLE - 2, title),
                    size=TITLE,
                    anchor="start",
                    attributes='font-weight="600"',
                    longest=200,
                )
            )
        parts += self._axes(left, above)
        parts += self._squares(left, above)
        parts += self._frames(left, above)
        legend_width, legend = self._legend(MARGIN, bottom + 20, name)
        parts += legend
        parts.append(text_element(MARGIN, bottom + 66, AXES, size=12, anchor="start"))
        # the last column's word leans over the right edge
        over = max(widths[m] * math.cos(slant) - (n - m + 0.5) * self.cell for m in range(1, n + 1))
        width = max(right + max(over, 0) + 4, MARGIN + max(legend_width, text_width(AXES, 12, 60)))
        if title is not None:
            width = max(width, MARGIN + text_width(title, TITLE, 200))
        return Picture(
            width + MARGIN,
            bottom + 62 + MARGIN,
            "\n".join(parts),
            title or f"Heat map of arcs ({name})",
            self._description(name),
        )

    def _axes(self, left: float, above: float) -> list[str]:
        parts = []
        for h, word in enumerate(("root", *self.words)):
            y = above + (h + 0.5) * self.cell + WORD / 3
            more = "" if h else 'font-style="italic"'
            parts.append(
                text_element(left - 6, y, word or "_", size=WORD, anchor="end", attributes=more)
            )
        for m, word in enumerate(self.words):
            x, y = left + (m + 0.5) * self.cell + 3, above - 6
            turn = f'transform="rotate({-TURN} {number(x)} {number(y)})"'
            parts.append(
                text_element(x, y, word or "_", size=WORD, anchor="start", attributes=turn)
            )
        return parts

    def _squares(self, left: float, above: float) -> list[str]:
        """All cells, then what stands on them, which must not hide what they tell."""
        blue = f'<g class="treelax-blue" color="{COLOURS["blue"][0]}" fill="currentColor">'
        squares, shown, size = [blue], ['<g pointer-events="none">'], self.cell
        together: dict[str, list[str]] = {}  # of many cells those of one strength
        for h, m, value in _cells(self.matrix):
            x, y = left + (m - 1) * size, above + h * size
            told = f"{named(self.words, h)} → {named(self.words, m)}: {value:.4g}"
            share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
            strength = FAINTEST + (1 - FAINTEST) * share
            if value == -math.inf:
                told, strength = f"{told}, forbidden", 0.0
                shown.append(_cross(x + size * 0.35, y + size * 0.35, size * 0.3))
            elif self.has_numbers:
                shown.append(self._number(x + size / 2, y + size / 2, value, share))
            if len(self.words) > TOLD_UP_TO:
                line = f"M{number(x + 0.5)} {number(y + size / 2)}h{number(size - 1)}"
                together.setdefault(number(strength), []).append(line)
                continue
            squares.append(
                f'<path d="M{number(x + 0.5)} {number(y + 0.5)}h{number(size - 1)}'
                f'v{number(size - 1)}h{number(1 - size)}z" fill-opacity="{number(strength)}">'
                f"<title>{clean(told)}</title></path>"
            )
        squares += [
            f'<path d="{"".join(lines)}" fill="none" stroke="currentColor" '
            f'stroke-width="{number(size - 1)}" stroke-opacity="{strength}"/>'
            for strength, lines in together.items()
        ]
        return [*squares, "</g>", *shown, "</g>"]

    def _number(self, x: float, y: float, value: float, share: float) -> str:
        look = 'class="treelax-on"' if share > DARK_ON_STRONG else ""
        look += ' fill="#FFFFFF"' if share > WHITE_ON_STRONG else ""
        return text_element(x, y + SMALL * 0.36, self._written(value), size=SMALL, attributes=look)

    def _written(self, value: float) -> str:
        if max(abs(self.low), abs(self.high)) >= TOO_WIDE:
            return f"{value:.2g}".replace("-", "−")
        return f"{round(value, self.digits) + 0:.{self.digits}f}".replace("-", "−")

    def _frames(self, left: float, above: float) -> list[str]:
        size = self.cell - 2
        return [
            f'<rect x="{number(left + (m - 1) * self.cell + 1)}" '
            f'y="{number(above + h * self.cell + 1)}" width="{number(size)}" '
            f'height="{number(size)}" fill="none" stroke="currentColor" stroke-width="2"/>'
            for m, h in enumerate(self.heads or [], 1)
        ]

    def _legend(self, x: float, y: float, name: str) -> tuple[float, list[str]]:
        """A row of cells from the least to the greatest number; its width and parts."""
        size = 26.0
        start = x + text_width(name, 12) + 10
        parts = [text_element(x, y + 12, name, size=12, anchor="start")]
        for i in range(STEPS):
            share = i / (STEPS - 1)
            value = self.low + share * (self.high - self.low)
            parts.append(
                f'<rect class="treelax-blue" color="{COLOURS["blue"][0]}" '
                f'x="{number(start + i * (size + 12))}" y="{number(y)}" width="{number(size)}" '
                f'height="14" fill-opacity="{number(FAINTEST + (1 - FAINTEST) * share)}"/>'
            )
            parts.append(
                text_element(
                    start + i * (size + 12) + size / 2, y + 27, self._written(value), size=SMALL
                )
            )
        end = start + STEPS * (size + 12) - x
        if self.heads is not None:
            parts.append(
                f'<rect x="{number(x + end + 6)}" y="{number(y + 1)}" width="12" height="12" '
                'fill="none" stroke="currentColor" stroke-width="2"/>'
            )
            parts.append(text_element(x + end + 24, y + 12, "tree", size=12, anchor="start"))
            end += 24 + text_width("tree", 12)
        return end, parts

    def _description(self, name: str) -> str:
        """For each word its greatest number."""
        told = []
        for m in range(1, len(self.words) + 1):
            value, h = max((self.matrix[h][m], -h) for h in range(len(self.matrix)) if h != m)
            told.append(f"{named(self.words, m)}: {named(self.words, -h)}, {value:.3g}")
        return (
            f"Rows are heads, columns are modifiers, numbers are {name}. "
            f"The greatest for each modifier: {'; '.join(told)}."
        )


def _cross(x: float, y: float, size: float) -> str:
    side = number(size)
    return (
        f'<path d="M{number(x)} {number(y)}l{side} {side}m0 -{side}l-{side} {side}" fill="none" '
        'stroke="currentColor" opacity="0.5"/>'
    )
