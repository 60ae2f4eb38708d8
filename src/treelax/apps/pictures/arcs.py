"""Dependency trees as arcs over their words, as SVG: discrete ones, soft ones, right and wrong."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from treelax.apps.pictures import style
from treelax.apps.pictures.arc_layout import Arc, Side, label_distances, place_arcs
from treelax.apps.pictures.lines import SCALE, Drawing, LegendItem, coloured, line_group
from treelax.apps.pictures.style import Kind
from treelax.apps.pictures.svg import (
    Picture,
    clean,
    is_right_to_left,
    number,
    text_element,
    text_width,
)
from treelax.apps.pictures.words import (
    NEARLY,
    checked_heads,
    checked_least,
    checked_matrix,
    checked_texts,
    checked_words,
    named,
)
from treelax.errors import InputError

Matrix = list[list[float]]


def draw_arcs(
    words: Sequence[str],
    heads: Sequence[int] | Tensor | None = None,
    *,
    weights: Sequence[Sequence[float]] | Tensor | None = None,
    gold: Sequence[int] | Tensor | None = None,
    labels: Sequence[str | None] | None = None,
    tags: Sequence[str | None] | None = None,
    title: str | None = None,
    least: float = 0.05,
    right_to_left: bool | None = None,
) -> Picture:
    """Draw a dependency tree as arcs above its words, each with its arrow at the modifier.

    The arcs from a word to one side leave it in one stem, and all arcs to a word end in one arrow. A
    child of the root has an arrow from the top. With weights, all arcs of at least ``least`` are
    drawn, darker and wider the heavier they are; with heads too, the tree is never faint and other
    arcs are dashed. With gold heads, wrong arcs are dashed, and the gold ones are dotted, below the
    words. The heads need not form a tree: arcs may cross or form a cycle.

    Args:
        words: the n words; those of more than 32 characters are cut.
        heads: the n heads, ``heads[m - 1]`` that of word ``m``, 0 the root.
        weights: ``(n + 1, n + 1)``, from 0 to 1, ``weights[h, m]`` that of the arc from ``h`` to
            ``m``: a soft tree, or marginals.
        gold: the n right heads.
        labels: a text for the arc of each word, None or empty for none; with heads only.
        tags: a text below each word.
        least: the smallest weight to draw.
        right_to_left: put the first word on the right; by default where most words run that way.

    Example:
        >>> picture = draw_arcs(["Dogs", "bark"], [2, 0], title="A tree")
        >>> picture.title, picture.description
        ('A tree', 'Dogs (1): head bark (2). bark (2): head root (0).')
        >>> picture.save("tree.svg")  # doctest: +SKIP
    """
    words, n = checked_words(words), len(words)
    chosen = None if heads is None else checked_heads(heads, "heads", n)
    right = None if gold is None else checked_heads(gold, "gold", n)
    soft = None if weights is None else _checked_weights(weights, n)
    if chosen is None and (soft is None or labels is not None):
        what = "neither heads nor weights" if soft is None else "labels without heads"
        raise InputError(f"heads: received {what}; expected the heads of the words")
    checked_least(least)
    if right_to_left is None:
        right_to_left = 2 * sum(map(is_right_to_left, words)) > n
    named_arcs, below_words = checked_texts(labels, "labels", n), checked_texts(tags, "tags", n)
    trees = (chosen, soft, right)
    drawing = _Drawing(words, title, *trees, named_arcs, below_words, least, right_to_left)
    return drawing.picture()


def _checked_weights(weights: Any, n: int) -> Matrix:
    matrix = checked_matrix(weights, "weights", n)
    for h, row in enumerate(matrix):
        for m in range(1, n + 1):
            if m != h and not -NEARLY <= row[m] <= 1 + NEARLY:
                problem = f"weights[{h}, {m}] is {row[m]}"
                raise InputError(f"{problem}; expected 0 to 1 (for scores use draw_heat_map)")
    return matrix


@dataclass
class _Drawing(Drawing):
    """Words with arcs above and below them."""

    words: list[str]
    title: str | None
    heads: list[int] | None
    weights: Matrix | None
    gold: list[int] | None
    labels: list[str]
    tags: list[str]
    least: float
    right_to_left: bool
    name: ClassVar[str] = "Dependency tree"
    gaps: ClassVar[tuple[float, float]] = (24.0, 8.0)
    between: ClassVar[float] = style.BETWEEN

    def __post_init__(self) -> None:
        self.arcs = self._arcs()
        both = [arc for side in self.arcs for arc in side]
        self.kinds = {arc.kind for arc in both}
        self.widths = [text_width(word, style.WORD) for word in self.words]
        self.slots = [
            max(width, text_width(tag, style.TAG), 2 * style.LEAST_PORT)
            for width, tag in zip(self.widths, self.tags, strict=True)
        ]
        for arc in both:
            if arc.head == 0:
                self.slots[arc.modifier - 1] = max(self.slots[arc.modifier - 1], arc.label_width)
        self.distances = [d for side in self.arcs for d in label_distances(side, self.widths)]

    def place(self, centres: Sequence[float]) -> None:
        self.above, self.below = (place_arcs(arcs, self.widths, centres) for arcs in self.arcs)
        highest = max(self.above.highest, self.below.highest, 1)
        self.step = min(style.STEP, max(style.HIGHEST / highest, style.LEAST_STEP))
        if any(arc.label and arc.head for arc in self.arcs[0]):
            self.step = style.LABELLED_STEP

    def _arcs(self) -> tuple[list[Arc], list[Arc]]:
        """The arcs to draw above the words, and below them those that are missing."""
        above, below = [], []
        for m, label in enumerate(self.labels, 1):
            chosen = set() if self.heads is None else {self.heads[m - 1]}
            heavy = self._heavy(m)
            right = None if self.gold is None else self.gold[m - 1]
            for h in sorted(chosen | heavy.keys()):
                kind: Kind = "tree"
                if chosen and h not in chosen:
                    kind = "other"
                elif right is not None:
                    kind = "right" if h == right else "wrong"
                weight = 1.0 if self.weights is None else min(max(self.weights[h][m], 0.0), 1.0)
                text = label if h in chosen else ""
                above.append(Arc(h, m, kind, weight, text if text or h else "root"))
            if right is not None and right not in (chosen or heavy):
                below.append(Arc(right, m, "missed", 1.0, "" if right else "root"))
        return above, below

    def _heavy(self, m: int) -> dict[int, float]:
        """The heads of a word that weigh enough, the heaviest first."""
        column = {h: row[m] for h, row in enumerate(self.weights or []) if h != m}
        heavy = {h: weight for h, weight in column.items() if weight >= self.least}
        return dict(sorted(heavy.items(), key=lambda item: -item[1]))

    def legend(self) -> list[list[LegendItem]]:
        items: list[LegendItem] = []
        if self.gold is not None:
            if self.heads is not None:
                score = sum(map(operator.eq, self.heads, self.gold))
                items.append((None, 1.0, f"{score} of {len(self.gold)} arcs right"))
            kinds: tuple[Kind, ...] = ("right", "wrong", "missed")
            items += [(kind, 1.0, kind) for kind in kinds if kind in self.kinds]
        elif "other" in self.kinds:
            items.append(("tree", 1.0, "tree"))
        if "other" in self.kinds:
            items.append(("other", 1.0, "other heads"))
        return [items, [] if self.weights is None else SCALE]

    def description(self) -> str:
        sentences = []
        for m, tag in enumerate(self.tags, 1):
            facts = [tag] if tag else []
            head, right = (None if t is None else t[m - 1] for t in (self.heads, self.gold))
            if head is not None:
                facts.append(f"head {named(self.words, head)}")
            if right is not None and head == right:
                facts.append("right")
            elif right is not None:
                wrong = "" if head is None else "wrong, "
                facts.append(f"{wrong}should be {named(self.words, right)}")
            for h, weight in self._heavy(m).items():
                facts.append(f"{named(self.words, h)} weighs {weight:.2f}")
            sentences.append(f"{named(self.words, m)}: {', '.join(facts)}.")
        return " ".join(sentences)

    def height(self, side: Side) -> float:
        if not side.ends:
            return 0.0
        root = style.ABOVE_ALL if any(arc.head == 0 for arc in side.ends) else 0
        return style.ARROW + style.LOWEST + side.highest * self.step + root + style.LABEL + 2

    def side(self, side: Side, base: float, sign: int) -> list[str]:
        """The arcs that leave the words upwards (sign -1) or downwards (1), the light ones first."""
        parts, highest = [], side.highest
        for arc in sorted(side.ends, key=lambda arc: (arc.kind != "other", arc.weight, arc)):
            head, modifier = map(self.x, side.ends[arc])
            tip = base + sign * style.ARROW
            if arc.head == 0:
                y = tip + sign * (style.LOWEST + style.ABOVE_ALL + highest * self.step)
                path, label_x = f"M{number(modifier)} {number(y)}V{number(tip)}", modifier
            else:
                y = tip + sign * (style.LOWEST + side.levels[arc] * self.step)
                path = _arch(head, modifier, base, y, sign)
                label_x = self.x(side.label_place(arc)) if arc.label else 0.0
            arrow = (
                f'<path d="M{number(modifier)} {number(base)}l{number(-style.ARROW / 2)} '
                f'{number(sign * style.ARROW)}h{number(style.ARROW)}z"/>'
            )
            title = f"{named(self.words, arc.head)} → {named(self.words, arc.modifier)}"
            if arc.kind in ("right", "wrong", "missed"):
                title += f", {arc.kind}"
            if arc.weight != 1:
                title += f", {arc.weight:.3f}"
            before = f"<title>{clean(title)}</title>"
            faintest = self.faintest(arc.kind)
            parts.append(line_group(arc.kind, arc.weight, path, before, arrow, faintest=faintest))
            if arc.label:  # never faint: it is to be read
                label_y = y - 4 if sign < 0 else y + style.LABEL
                label = text_element(label_x, label_y, arc.label, size=style.LABEL)
                parts.append(coloured(arc.kind, label))
        return parts

    def faintest(self, kind: Kind) -> float:
        """The least opacity: a tree that was chosen is to be read, however little its arcs weigh."""
        if kind == "other":
            return style.FAINTEST_DASHED
        return style.FAINTEST if self.heads is None else style.READABLE


def _arch(head: float, modifier: float, base: float, y: float, sign: int) -> str:
    """The path from a head to its modifier, with round corners."""
    side = 1 if modifier > head else -1
    radius = min(style.ROUND, abs(modifier - head) / 2, abs(y - base) - style.ARROW)
    corner = f"A{number(radius)} {number(radius)} 0 0 {int(side * sign < 0)}"
    down = y - sign * radius
    return (
        f"M{number(head)} {number(base)}V{number(down)}"
        f"{corner} {number(head + side * radius)} {number(y)}H{number(modifier - side * radius)}"
        f"{corner} {number(modifier)} {number(down)}V{number(base + sign * style.ARROW)}"
    )
