"""Words and arcs as SVG elements, with what explains them."""

from __future__ import annotations

from collections.abc import Sequence

from treelax.pictures.arc_layout import Arc, Kind, Side, lay_out
from treelax.pictures.characters import named
from treelax.pictures.svg import COLOURS, Picture
from treelax.pictures.svg_text import clean, number, text_element, text_width

__all__ = ["FAINTEST", "READABLE", "ArcDrawing", "Legend", "LegendItem", "new_arc"]

LegendItem = tuple[Kind | None, float, str]  # an arc to show, if any, its weight, and a text
Legend = Sequence[Sequence[LegendItem]]  # groups that stay together

MARGIN = 16.0
WORD, TAG, LABEL, TITLE = 16.0, 12.0, 11.0, 15.0  # sizes of fonts
TITLE_LONGEST = 200  # characters
STEP, LABELLED_STEP, LEAST_STEP = 15.0, 19.0, 7.0  # from one level of arcs to the next
ARROW = 7.0
ROUND = 12.0  # radius of corners
SAMPLE, BESIDE = 24.0, 14.0  # of a legend: the line, and the room between two items
LEGEND_LEAST = 300.0  # that a row of it may take
HIGHEST = 300.0  # of arcs without labels, as long as levels stay LEAST_STEP apart
FAINTEST, READABLE = (
    0.2,
    0.6,
)  # opacity of arcs that weigh nothing, and of a tree's own among others
ROOT = "root"
# colour and dashes
LOOKS: dict[Kind, tuple[str, str]] = {
    "tree": ("blue", ""),
    "other": ("grey", "3 3"),
    "right": ("blue", ""),
    "wrong": ("vermillion", "7 4"),
    "missed": ("green", "1.5 3.5"),
}


def new_arc(head: int, modifier: int, kind: Kind, weight: float = 1.0, label: str = "") -> Arc:
    """An arc that knows how wide its label is; those from the root always have one.

    Example:
        >>> new_arc(0, 2, "tree").label
        'root'
    """
    label = label or ("" if head else ROOT)
    return Arc(head, modifier, kind, weight, label, text_width(label, LABEL) + 8 if label else 0.0)


class ArcDrawing:
    """Words with arcs above and below them.

    Args:
        words: the words.
        tags: what stands below each, or nothing.
        above: arcs above the words.
        below: arcs below them.
        right_to_left: the first word is on the right.
        floor: opacity of an arc of the tree that weighs nothing.
    """

    def __init__(
        self,
        words: list[str],
        tags: list[str],
        above: list[Arc],
        below: list[Arc],
        right_to_left: bool,
        floor: float = FAINTEST,
    ) -> None:
        self.words, self.tags, self.floor = words, tags, floor
        widths = [
            max(text_width(word, WORD), text_width(tag, TAG))
            for word, tag in zip(words, tags, strict=True)
        ]
        self.layout = lay_out(widths, above, below)
        self.right_to_left = right_to_left
        if any(arc.label and arc.head for arc in above):
            self.step = LABELLED_STEP
        else:
            highest = max(self.layout.above.highest, self.layout.below.highest, 1)
            self.step = min(STEP, max(HIGHEST / highest, LEAST_STEP))
        self.start = MARGIN

    def picture(self, title: str | None, legend: Legend, about: str) -> Picture:
        """The whole, from the title down to the legend.

        Args:
            title: stands above, if there is one.
            legend: stands below.
            about: the picture in words.

        Returns:
            The picture.
        """
        layout, parts = self.layout, list[str]()
        rows = _legend_rows(legend, max(layout.width, LEGEND_LEAST))
        width = max([layout.width, *(sum(map(_legend_width, row)) - BESIDE for row in rows)])
        y = MARGIN
        if title is not None:
            width = max(width, text_width(title, TITLE, TITLE_LONGEST))
            parts.append(_title(title, y + TITLE - 2))
            y += TITLE + 12
        # a drawing from right to left begins at the right edge
        self.start = MARGIN + (width - layout.width if self.right_to_left else 0.0)
        y += self._height(layout.above)
        parts += self._side(layout.above, y, -1)
        y += WORD + 1
        parts += self._words(y)
        y += 24 if any(self.tags) else 8
        if layout.below.arcs:
            parts += self._side(layout.below, y, 1)
            y += self._height(layout.below)
        for i, row in enumerate(rows):
            y += 18 if i else 22
            parts += _legend(row, y, self.floor)
        return Picture(
            width + 2 * MARGIN, y + MARGIN - 2, "\n".join(parts), title or "Dependency tree", about
        )

    def _x(self, x: float) -> float:
        return self.start + (self.layout.width - x if self.right_to_left else x)

    def _height(self, side: Side) -> float:
        """Of the arcs on one side, with the labels of the highest ones."""
        if not side.arcs:
            return 0.0
        root = 12 if any(arc.head == 0 for arc in side.arcs) else 0
        return ARROW + 5 + side.highest * self.step + root + LABEL + 2

    def _words(self, y: float) -> list[str]:
        parts = []
        for x, word, tag in zip(self.layout.centres, self.words, self.tags, strict=True):
            parts.append(text_element(self._x(x), y, word or "_", size=WORD))
            if tag:
                more = 'opacity="0.75"'
                parts.append(text_element(self._x(x), y + 17, tag, size=TAG, attributes=more))
        return parts

    def _side(self, side: Side, base: float, sign: int) -> list[str]:
        """The arcs that leave the words upwards (sign -1) or downwards (1), the light ones first."""
        parts = []
        for arc in sorted(side.arcs, key=lambda arc: (arc.kind != "other", arc.weight, arc)):
            head, modifier = (self._x(x) for x in side.ends[arc])
            if arc.head == 0:
                y = base + sign * (ARROW + 17 + side.highest * self.step)
                path = f"M{number(modifier)} {number(y)}V{number(base + sign * ARROW)}"
                label_x = modifier
            else:
                y = base + sign * (ARROW + 5 + side.levels[arc] * self.step)
                path = _arch(head, modifier, base, y, sign)
                label_x = self._x(side.label_place(arc)) if arc.label else 0.0
            label = ""
            if arc.label:
                label = text_element(
                    label_x, y - 4 if sign < 0 else y + LABEL, arc.label, size=LABEL
                )
            tip = (
                f"M{number(modifier)} {number(base)}l{number(-ARROW / 2)} {number(sign * ARROW)}"
                f"h{number(ARROW)}z"
            )
            more = f'<path d="{tip}"/>{label}'
            parts.append(_group(arc, path, self._told(arc), more, self.floor))
        return parts

    def _told(self, arc: Arc) -> str:
        told = f"{named(self.words, arc.head)} → {named(self.words, arc.modifier)}"
        if arc.kind in ("right", "wrong", "missed"):
            told += f", {arc.kind}"
        return told if arc.weight == 1 else f"{told}, {arc.weight:.3f}"


def _group(arc: Arc, path: str, told: str, more: str, floor: float) -> str:
    """An arc with what belongs to it."""
    colour, dashes = LOOKS[arc.kind]
    least = FAINTEST if arc.kind == "other" else floor
    strength = least + (1 - least) * arc.weight
    faint = f' opacity="{number(strength)}"' if strength < 1 else ""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    tip = f"<title>{clean(told)}</title>" if told else ""
    return (
        f'<g class="treelax-{colour}" color="{COLOURS[colour][0]}" fill="currentColor"{faint}>{tip}'
        f'<path d="{path}" fill="none" stroke="currentColor" '
        f'stroke-width="{number(0.7 + 1.1 * arc.weight)}"{dashed}/>{more}</g>'
    )


def _arch(head: float, modifier: float, base: float, y: float, sign: int) -> str:
    """From a head over to its modifier, with round corners."""
    side = 1 if modifier > head else -1
    radius = min(ROUND, abs(modifier - head) / 2, abs(y - base) - ARROW)
    corner = f"A{number(radius)} {number(radius)} 0 0 {int(side * sign < 0)}"
    down = y - sign * radius
    return (
        f"M{number(head)} {number(base)}V{number(down)}"
        f"{corner} {number(head + side * radius)} {number(y)}H{number(modifier - side * radius)}"
        f"{corner} {number(modifier)} {number(down)}V{number(base + sign * ARROW)}"
    )


def _title(title: str, y: float) -> str:
    return text_element(
        *(MARGIN, y, title),
        size=TITLE,
        anchor="start",
        attributes='font-weight="600"',
        longest=TITLE_LONGEST,
    )


def _legend_width(item: LegendItem) -> float:
    kind, _, text = item
    return (SAMPLE + 6 if kind else 0) + text_width(text, TAG) + BESIDE


def _legend_rows(legend: Legend, width: float) -> list[list[LegendItem]]:
    """One row if it is no wider than the drawing, else one for each group."""
    whole = [item for group in legend for item in group]
    if not whole or sum(map(_legend_width, whole)) - BESIDE <= width:
        return [whole] if whole else []
    return [list(group) for group in legend]


def _legend(items: Sequence[LegendItem], y: float, floor: float) -> list[str]:
    """The items beside each other on a line."""
    parts, x = [], MARGIN
    for item in items:
        kind, weight, text = item
        at = x
        if kind is not None:
            path = f"M{number(x)} {number(y - 4)}h{number(SAMPLE)}"
            parts.append(_group(Arc(0, 0, kind, weight), path, "", "", floor))
            at += SAMPLE + 6
        parts.append(text_element(at, y, text, size=TAG, anchor="start"))
        x += _legend_width(item)
    return parts
