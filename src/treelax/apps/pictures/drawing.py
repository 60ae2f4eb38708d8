"""Trees over their words as SVG: what arcs and brackets share, and several pictures above each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from treelax.apps.pictures import style
from treelax.apps.pictures.layout import Distance, spread
from treelax.apps.pictures.style import Kind, line_width, opacity
from treelax.apps.pictures.svg import (
    TITLE_LONGEST,
    Picture,
    clean,
    is_right_to_left,
    number,
    text_element,
    text_width,
    title_element,
)
from treelax.errors import InputError

MARGIN = 16.0
TITLE, NOTE = 15.0, 12.0  # font sizes of the title and the legend
SAMPLE, BESIDE = 24.0, 14.0  # of a legend: the line, and the room between two items
LEGEND_LEAST = 300.0  # that a row of it may take
KINDS: dict[Kind, str] = {  # as the legend names them
    **{"right": "right", "wrong": "wrong", "missed": "missed"},
    **{"tree": "tree", "other": "other heads"},
}

LegendItem = tuple[Kind | None, float, str]  # a line to show, if any, its weight, and a text
SCALE: list[LegendItem] = [
    (None, 1.0, "weight"),
    *(("tree", weight, f"{weight:g}") for weight in (0.1, 0.4, 0.7, 1.0)),
]


class Line(NamedTuple):
    """An arc from a head, 0 the root, to its modifier, or a bracket from its first word to its last."""

    first: int
    last: int
    kind: Kind
    weight: float = 1.0
    label: str = ""


class Drawing(ABC):
    """Words with lines above and below them.

    Attributes:
        widths: of the words; ``slots`` is the room that they need with their tags and lines.
        distances: the least that the middles of two words may be apart.
        ends: of each line once it is placed, from left to right in the text or from head to modifier.
        levels: of each line, from 1; arcs from the root have none.
    """

    name: ClassVar[str]  # of the picture, unless it has a title
    gaps: ClassVar[tuple[float, float]]  # below words with and without tags
    between: ClassVar[float]  # words
    narrowest: ClassVar[float]  # room of a word
    steps: ClassVar[
        tuple[float, float, float]
    ]  # from one level to the next: usual, labelled, least

    ends: dict[Line, tuple[float, float]]
    levels: dict[Line, int]

    def __init__(
        self,
        words: list[str],
        tags: list[str],
        sides: tuple[list[Line], list[Line]],
        description: str,
        *,
        title: str | None,
        score: str = "",
        soft: bool,
        show_weights: bool = False,
        faintest: float = style.FAINTEST,
        right_to_left: bool | None,
    ) -> None:
        self.words, self.tags, (self.above, self.below) = words, tags, sides
        self.title, self.description, self.score, self.soft = title, description, score, soft
        self.show_weights, self.faintest = show_weights, faintest
        if right_to_left is None:
            right_to_left = 2 * sum(map(is_right_to_left, words)) > len(words)
        self.right_to_left = right_to_left
        self.lines = [*self.above, *self.below]
        self.widths = [text_width(word, style.WORD) for word in words]
        self.slots = [
            max(width, text_width(tag, style.TAG), self.narrowest)
            for width, tag in zip(self.widths, tags, strict=True)
        ]
        self.distances = self.measure()

    @abstractmethod
    def measure(self) -> list[Distance]:
        """Find the distances, and widen the slots of words whose lines need more room."""

    @abstractmethod
    def place(self, centres: Sequence[float]) -> None:
        """Find the ends and levels of the lines over words with these middles."""

    @abstractmethod
    def height(self, side: Sequence[Line]) -> float:
        """The height of the lines on one side, of which there are some, with their labels."""

    @abstractmethod
    def shape(
        self, line: Line, side: Sequence[Line], base: float, sign: int
    ) -> tuple[str, str, float, float]:
        """Path and arrow of a line above (sign -1) or below (1) the words; x and y of its label."""

    @abstractmethod
    def in_words(self, line: Line) -> str:
        """A line in words, for its tooltip."""

    def text(self, line: Line) -> str:
        """What is written at a line."""
        weight = f"{line.weight:.2f}" if self.show_weights and line.kind != "missed" else ""
        return " ".join(filter(None, (line.label, weight)))

    def x(self, place: float) -> float:
        """Where in the picture a place among the words is."""
        return self.start + (self.width - place if self.right_to_left else place)

    def picture(self, others: Sequence[Drawing] = (), least: float = 0.0) -> Picture:
        """The whole, from the title down to the legend.

        Words stand as if the lines of all others were drawn too, in a picture at least so wide.
        """
        drawings = [self, *others]
        slots = [max(room) for room in zip(*(drawing.slots for drawing in drawings), strict=True)]
        distances = (distance for drawing in drawings for distance in drawing.distances)
        centres = spread(slots, max(drawing.between for drawing in drawings), distances)
        self.width = centres[-1] + slots[-1] / 2
        self.place(centres)
        usual, labelled, narrow = self.steps
        self.step = min(usual, max(style.HIGHEST / max([*self.levels.values(), 1]), narrow))
        if any(self.text(line) and line.first for line in self.lines):
            self.step = labelled
        parts, y = [], MARGIN
        rows = self._legend_rows()
        width = max([self.width, least - 2 * MARGIN, *map(_legend_width, rows)])
        if self.title is not None:
            width = max(width, text_width(self.title, TITLE, TITLE_LONGEST))
            parts.append(title_element(MARGIN, y + TITLE - 2, self.title, TITLE))
            y += TITLE + 12
        # words from right to left begin at the right edge
        self.start = MARGIN + (width - self.width if self.right_to_left else 0)
        y += self.height(self.above) if self.above else 0
        parts += self._side(self.above, y, -1)
        y += style.WORD + 1
        quiet = f'opacity="{number(style.TAG_OPACITY)}"'
        for x, word, tag in zip(map(self.x, centres), self.words, self.tags, strict=True):
            parts.append(text_element(x, y, word or "_", size=style.WORD))
            if tag:
                parts.append(text_element(x, y + 17, tag, size=style.TAG, attributes=quiet))
        y += self.gaps[0 if any(self.tags) else 1]
        parts += self._side(self.below, y, 1)
        y += self.height(self.below) if self.below else 0
        for i, row in enumerate(rows):
            y += 18 if i else 22
            parts += self._legend_row(row, MARGIN, y)
        size = width + 2 * MARGIN, y + MARGIN - 2
        return Picture(*size, "\n".join(parts), self.title or self.name, self.description, self)

    def _side(self, side: Sequence[Line], base: float, sign: int) -> list[str]:
        """The lines above (sign -1) or below (1) the words, the light ones first."""
        parts = []
        for line in sorted(side, key=lambda line: (line.kind != "other", line.weight)):
            path, arrow, x, y = self.shape(line, side, base, sign)
            title = f"<title>{clean(self.in_words(line))}</title>"
            faintest = style.FAINTEST_DASHED if line.kind == "other" else self.faintest
            parts.append(_line_group(line.kind, line.weight, path, title, arrow, faintest=faintest))
            if text := self.text(line):  # never faint: it is to be read
                parts.append(_coloured(line.kind, text_element(x, y, text, size=style.LABEL)))
        return parts

    def _legend_rows(self) -> list[list[LegendItem]]:
        """One row if it is no wider than the drawing, else one for kinds and one for weights."""
        present = {line.kind for line in self.lines}
        items: list[LegendItem] = [(None, 1.0, self.score)] if self.score else []
        if present != {"tree"}:
            items += [(kind, 1.0, name) for kind, name in KINDS.items() if kind in present]
        groups = [group for group in (items, SCALE if self.soft else []) if group]
        whole = [item for group in groups for item in group]
        if groups and _legend_width(whole) <= max(self.width, LEGEND_LEAST):
            return [whole]
        return groups

    def _legend_row(self, items: Sequence[LegendItem], x: float, y: float) -> list[str]:
        parts = []
        for kind, weight, text in items:
            at = x
            if kind is not None:
                path = f"M{number(x)} {number(y - 4)}h{number(SAMPLE)}"
                parts.append(_line_group(kind, weight, path, faintest=self.faintest))
                at += SAMPLE + 6
            parts.append(text_element(at, y, text, size=NOTE, anchor="start"))
            x += _legend_width([(kind, weight, text)]) + BESIDE
        return parts


def _legend_width(items: Sequence[LegendItem]) -> float:
    widths = (
        (SAMPLE + 6 if kind else 0) + text_width(text, NOTE) + BESIDE for kind, _, text in items
    )
    return sum(widths) - BESIDE


def _line_group(
    kind: Kind, weight: float, path: str, title: str = "", arrow: str = "", *, faintest: float
) -> str:
    """A line, darker and wider the heavier it is."""
    dashes = style.LOOKS[kind][1]
    strength = opacity(weight, faintest)
    faint = f' opacity="{number(strength)}"' if strength < 1 else ""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    line = (
        f'<path d="{path}" fill="none" stroke="currentColor" '
        f'stroke-width="{number(line_width(weight))}"{dashed}/>'
    )
    return _coloured(kind, title + line + arrow, faint)


def _coloured(kind: Kind, elements: str, attributes: str = "") -> str:
    """Elements whose ``currentColor`` is that of a kind of line."""
    colour = style.LOOKS[kind][0]
    opening = f'<g class="treelax-{colour}" color="{style.COLOURS[colour][0]}" fill="currentColor"'
    return f"{opening}{attributes}>{elements}</g>"


# ------------------------------------------------------------------ several pictures


def align_pictures(pictures: Sequence[Picture]) -> list[Picture]:
    """Draw trees of the same words anew, with every word at the same place in all; others stay.

    Example:
        >>> from treelax.apps.pictures import draw_arcs, draw_brackets
        >>> words = ["Old", "dogs", "bark"]
        >>> one = draw_arcs(words, [2, 3, 0], labels=["amod", "nsubj", "root"])
        >>> other = draw_brackets(words, [(0, 2, None), (0, 1, None)])
        >>> one.width == other.width, len({picture.width for picture in align_pictures([one, other])})
        (False, 1)
    """
    aligned = list(pictures)
    same: dict[tuple[bool, tuple[str, ...]], list[int]] = {}
    for i, picture in enumerate(aligned):
        if (drawing := picture.drawing) is not None:
            same.setdefault((drawing.right_to_left, tuple(drawing.words)), []).append(i)
    for places in same.values():
        drawings: list[Drawing] = [aligned[i].drawing for i in places]
        widest = max(drawing.picture(drawings).width for drawing in drawings)
        for i, drawing in zip(places, drawings, strict=True):
            aligned[i] = drawing.picture(drawings, widest)
    return aligned


def stack_pictures(pictures: Sequence[Picture], *, title: str | None = None) -> Picture:
    """Put pictures above each other, flush left; the title of the whole is not drawn.

    Trees of the same words are aligned, as by `align_pictures`.

    Example:
        >>> one = Picture(20, 10, "", "one", "")
        >>> both = stack_pictures([one, one])
        >>> both.width, both.height, both.title
        (20, 20.0, 'one; one')
    """
    if not pictures:
        raise InputError("pictures: received none; expected at least one")
    if len(pictures) == 1 and title is None:
        return pictures[0]
    pictures = align_pictures(pictures)
    parts, y = [], 0.0
    for picture in pictures:
        parts.append(f'<g transform="translate(0 {number(y)})">\n{picture.body}\n</g>')
        y += picture.height
    return Picture(
        max(picture.width for picture in pictures),
        y,
        "\n".join(parts),
        "; ".join(picture.title for picture in pictures) if title is None else title,
        # with their titles: a screen reader has no other sign of where the next one begins
        " ".join(f"{picture.title}. {picture.description}".strip() for picture in pictures),
    )
