"""Dependency trees as arcs over their words, as SVG: discrete ones, soft ones, right and wrong."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor

from treelax.apps.pictures import style
from treelax.apps.pictures.drawing import Drawing, Line
from treelax.apps.pictures.layout import Distance, stacked
from treelax.apps.pictures.style import ARROW, LABEL, Kind
from treelax.apps.pictures.svg import Picture, number, text_width
from treelax.apps.pictures.words import (
    NEARLY,
    check_least,
    checked_heads,
    checked_matrix,
    checked_texts,
    checked_words,
    named,
)
from treelax.errors import InputError


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
    soft = None if weights is None else checked_matrix(weights, "weights", n)
    for h, row in enumerate(soft or []):
        for m in range(1, n + 1):
            if m != h and not -NEARLY <= row[m] <= 1 + NEARLY:
                problem = f"weights[{h}, {m}] is {row[m]}"
                raise InputError(f"{problem}; expected 0 to 1 (for scores use draw_heat_map)")
    if chosen is None and (soft is None or labels is not None):
        what = "neither heads nor weights" if soft is None else "labels without heads"
        raise InputError(f"heads: received {what}; expected the heads of the words")
    check_least(least)
    texts, below_words = checked_texts(labels, "labels", n), checked_texts(tags, "tags", n)
    above: list[Line] = []
    below: list[Line] = []
    sentences = []
    for m in range(1, n + 1):
        head, gold_head = (None if t is None else t[m - 1] for t in (chosen, right))
        column = {h: row[m] for h, row in enumerate(soft or []) if h != m and row[m] >= least}
        heavy = dict(sorted(column.items(), key=lambda item: -item[1]))
        for h in heavy if head is None else heavy.keys() | {head}:
            kind: Kind = "tree"
            if head not in (None, h):
                kind = "other"
            elif gold_head is not None:
                kind = "right" if h == gold_head else "wrong"
            weight = 1.0 if soft is None else min(max(soft[h][m], 0.0), 1.0)
            label = texts[m - 1] if h == head else ""
            above.append(Line(h, m, kind, weight, label if label or h else "root"))
        if gold_head is not None and gold_head not in (heavy if head is None else {head}):
            below.append(Line(gold_head, m, "missed", 1.0, "" if gold_head else "root"))
        facts = [below_words[m - 1]] if below_words[m - 1] else []
        if head is not None:
            facts.append(f"head {named(words, head)}")
        if gold_head is not None and head == gold_head:
            facts.append("right")
        elif gold_head is not None:
            wrong = "" if head is None else "wrong, "
            facts.append(f"{wrong}should be {named(words, gold_head)}")
        facts += [f"{named(words, h)} weighs {weight:.2f}" for h, weight in heavy.items()]
        sentences.append(f"{named(words, m)}: {', '.join(facts)}.")
    score = ""
    if chosen is not None and right is not None:
        score = f"{sum(map(operator.eq, chosen, right))} of {n} arcs right"
    return _Arcs(
        words,
        below_words,
        (sorted(above), sorted(below)),
        " ".join(sentences),
        title=title,
        score=score,
        soft=soft is not None,
        # a tree that was chosen is to be read, however little its arcs weigh
        faintest=style.FAINTEST if chosen is None else style.READABLE,
        right_to_left=right_to_left,
    ).picture()


class _Arcs(Drawing):
    """Words with arcs; `treelax.apps.pictures.style` says where these stand."""

    name, gaps, between = "Dependency tree", (24.0, 8.0), style.BETWEEN
    narrowest = 2 * style.LEAST_PORT
    steps = (style.STEP, style.LABELLED_STEP, style.LEAST_STEP)

    def measure(self) -> list[Distance]:
        self.stems: dict[Line, float] = {}  # how far from the middle of its head an arc leaves it
        distances = []
        for side in (self.above, self.below):
            with_arrow = {arc.last for arc in side}
            for arc in side:
                stem = style.port(self.widths[arc.first - 1]) if arc.first in with_arrow else 0.0
                self.stems[arc] = stem if arc.last > arc.first else -stem
                room = text_width(arc.label, LABEL) + 8
                if arc.first == 0:
                    self.slots[arc.last - 1] = max(self.slots[arc.last - 1], room)
                elif arc.label:
                    left, right = sorted((arc.first, arc.last))
                    distances.append((left - 1, right - 1, room + abs(self.stems[arc])))
        return distances

    def place(self, centres: Sequence[float]) -> None:
        self.ends, self.levels = {}, {}
        for arc in self.lines:
            x = centres[arc.last - 1]
            self.ends[arc] = (centres[arc.first - 1] + self.stems[arc] if arc.first else x, x)
        for side in (self.above, self.below):
            places = sorted({x for arc in side for x in self.ends[arc]})
            rank = {x: i for i, x in enumerate(places)}
            arcs = [arc for arc in side if arc.first]
            arcs.sort(key=lambda arc: (abs(arc.first - arc.last), arc.first < arc.last))
            gaps = [sorted(rank[x] for x in self.ends[arc]) for arc in arcs]
            levels = stacked((left, right) for left, right in gaps)
            self.levels.update(zip(arcs, levels, strict=True))

    def _highest(self, side: Sequence[Line]) -> int:
        return max((self.levels.get(arc, 0) for arc in side), default=0)

    def height(self, side: Sequence[Line]) -> float:
        root = style.ABOVE_ALL if any(arc.first == 0 for arc in side) else 0
        return ARROW + style.LOWEST + self._highest(side) * self.step + root + LABEL + 2

    def shape(
        self, arc: Line, side: Sequence[Line], base: float, sign: int
    ) -> tuple[str, str, float, float]:
        head, modifier = map(self.x, self.ends[arc])
        tip = base + sign * ARROW
        if arc.first == 0:
            y = tip + sign * (style.LOWEST + style.ABOVE_ALL + self._highest(side) * self.step)
            path, label_x = f"M{number(modifier)} {number(y)}V{number(tip)}", modifier
        else:
            y = tip + sign * (style.LOWEST + self.levels[arc] * self.step)
            path = _arch(head, modifier, base, y, sign)
            label_x = self._label_x(arc, side) if arc.label else 0.0
        arrow = (
            f'<path d="M{number(modifier)} {number(base)}l{number(-ARROW / 2)} '
            f'{number(sign * ARROW)}h{number(ARROW)}z"/>'
        )
        return path, arrow, label_x, y - 4 if sign < 0 else y + LABEL

    def _label_x(self, arc: Line, side: Sequence[Line]) -> float:
        """Where on an arc a label is met by no other arc, or by as few as can be."""
        left, right = sorted(self.ends[arc])
        level = self.levels[arc]
        stems = sorted(
            x
            for other in side
            if other != arc and self.levels.get(other, level + 1) > level
            for x in self.ends[other]
            if left < x < right
        )
        gaps = ((b - a, (a + b) / 2) for a, b in pairwise([left, *stems, right]))
        middle = (left + right) / 2
        return self.x(max(gaps, key=lambda gap: (round(gap[0], 3), -abs(gap[1] - middle)))[1])

    def in_words(self, arc: Line) -> str:
        text = f"{named(self.words, arc.first)} → {named(self.words, arc.last)}"
        text += f", {arc.kind}" if arc.kind in ("right", "wrong", "missed") else ""
        return text + (f", {arc.weight:.3f}" if arc.weight != 1 else "")


def _arch(head: float, modifier: float, base: float, y: float, sign: int) -> str:
    """The path from a head to its modifier, with round corners."""
    side = 1 if modifier > head else -1
    radius = min(style.ROUND, abs(modifier - head) / 2, abs(y - base) - ARROW)
    corner = f"A{number(radius)} {number(radius)} 0 0 {int(side * sign < 0)}"
    down = y - sign * radius
    return (
        f"M{number(head)} {number(base)}V{number(down)}"
        f"{corner} {number(head + side * radius)} {number(y)}H{number(modifier - side * radius)}"
        f"{corner} {number(modifier)} {number(down)}V{number(base + sign * ARROW)}"
    )
