"""Trees of spans as brackets over their words, as SVG: discrete ones, soft ones, right and wrong.

A bracket runs from the first word of its span to the last, one level above all that share a word with
it and are shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from treelax.apps.pictures.lines import SCALE, Drawing, LegendItem, coloured, line_group
from treelax.apps.pictures.style import HIGHEST, LABEL, TAG, WORD, Kind
from treelax.apps.pictures.svg import (
    Picture,
    clean,
    is_right_to_left,
    number,
    text_element,
    text_width,
)
from treelax.apps.pictures.words import (
    Nodes,
    Spans,
    checked_least,
    checked_nodes,
    checked_words,
    named_span,
)

BETWEEN, NARROWEST = 18.0, 14.0  # words
STEP, LABELLED_STEP, LEAST_STEP = 12.0, 21.0, 5.0  # from one level to the next
LEG, ROUND = 6.0, 4.0  # how far a bracket reaches down, and the radius of its corners


class _Bracket(NamedTuple):
    """A span of a drawing."""

    first: int
    last: int
    kind: Kind
    weight: float
    label: str


def draw_brackets(
    words: Sequence[str],
    tree: Spans,
    *,
    gold: Spans | None = None,
    labels: Sequence[str] | None = None,
    show_weights: bool = False,
    title: str | None = None,
    least: float = 0.05,
    right_to_left: bool | None = None,
) -> Picture:
    """Draw a tree of spans, binary or not, as brackets above its words.

    Spans of a soft tree, or marginals, are darker and wider the heavier they are. With a gold tree,
    wrong brackets are dashed, and the missing ones are dotted, below the words. Labels stand above
    their bracket, those of single words below the word. Spans may cross.

    Args:
        words: the n words; those of more than 32 characters are cut.
        tree: ``(n, n)``, from 0 to 1, ``tree[i, j]`` the weight of the span from word ``i`` to word
            ``j``, both included, or ``(n, n, L)`` with labels, where the heaviest label is shown; or
            spans as `treelax.trees.read_brackets` gives them.
        gold: the right tree, in either form.
        labels: the L names of labels, by default their numbers.
        show_weights: write the weight of every span beside its label.
        least: the smallest weight to draw.
        right_to_left: put the first word on the right; by default where most words run that way.

    Example:
        >>> from treelax.trees import read_brackets
        >>> picture = draw_brackets(*read_brackets("((Old dogs) bark)"), title="A tree")
        >>> picture.title, picture.description
        ('A tree', 'Old dogs bark (0 to 2). Old dogs (0 to 1).')
        >>> picture.save("tree.svg")  # doctest: +SKIP
    """
    words, n = checked_words(words), len(words)
    checked_least(least)
    nodes = checked_nodes(tree, "tree", n, labels)
    right = None if gold is None else checked_nodes(gold, "gold", n, labels)
    if right_to_left is None:
        right_to_left = 2 * sum(map(is_right_to_left, words)) > n
    return _Drawing(words, title, nodes, right, show_weights, least, right_to_left).picture()


@dataclass
class _Drawing(Drawing):
    """Words with brackets above and below them."""

    words: list[str]
    title: str | None
    nodes: Nodes
    gold: Nodes | None
    show_weights: bool
    least: float
    right_to_left: bool
    name: ClassVar[str] = "Tree of spans"
    gaps: ClassVar[tuple[float, float]] = (23.0, 6.0)
    between: ClassVar[float] = BETWEEN

    def __post_init__(self) -> None:
        single = [self.nodes.get((m, m)) for m in range(len(self.words))]
        self.tags = [node.label if node else "" for node in single]
        self.above, self.below = self._brackets()
        self.slots = [
            max(text_width(word, WORD), text_width(tag, TAG), NARROWEST)
            for word, tag in zip(self.words, self.tags, strict=True)
        ]
        self.distances = []
        for bracket in [*self.above, *self.below]:
            if text := self._text(bracket):
                outside = (self.slots[bracket.first] + self.slots[bracket.last]) / 2
                least = text_width(text, LABEL) + 4 - outside
                self.distances.append((bracket.first, bracket.last, least))
        self.levels = {**_levels(self.above), **_levels(self.below)}
        step = min(STEP, max(HIGHEST / max([*self.levels.values(), 1]), LEAST_STEP))
        self.step = LABELLED_STEP if any(map(self._text, self.levels)) else step

    def _brackets(self) -> tuple[list[_Bracket], list[_Bracket]]:
        """Those above the words, outer ones first, and below them those that are missing."""
        above, matched = [], set()
        for (i, j), node in sorted(self.nodes.items(), key=lambda item: (item[0][0], -item[0][1])):
            if i == j or node.weight < self.least:
                continue
            kind: Kind = "tree"
            if self.gold is not None:
                right = self.gold.get((i, j))
                kind = "right" if right is not None and _agree(node.label, right.label) else "wrong"
                if kind == "right":
                    matched.add((i, j))
            above.append(_Bracket(i, j, kind, node.weight, node.label))
        missed = sorted(key for key in self.gold or {} if key[0] < key[1] and key not in matched)
        return above, [
            _Bracket(i, j, "missed", 1.0, (self.gold or {})[i, j].label) for i, j in missed
        ]

    def place(self, centres: Sequence[float]) -> None:
        self.ends = [(x - w / 2, x + w / 2) for x, w in zip(centres, self.slots, strict=True)]

    def _text(self, bracket: _Bracket) -> str:
        """What stands at a bracket."""
        weight = f"{bracket.weight:.2f}" if self.show_weights and bracket.kind != "missed" else ""
        return " ".join(filter(None, (bracket.label, weight)))

    def legend(self) -> list[list[LegendItem]]:
        items: list[LegendItem] = []
        soft = any(bracket.weight < 1 for bracket in self.above)
        if self.gold is not None:
            kinds = [bracket.kind for bracket in [*self.above, *self.below]]
            if not soft:
                score = f"{kinds.count('right')} of {len(self.above)} spans right"
                items.append((None, 1.0, score))
            shown: tuple[Kind, ...] = ("right", "wrong", "missed")
            items += [(kind, 1.0, kind) for kind in shown if kind in kinds]
        return [items, SCALE if soft else []]

    def description(self) -> str:
        return " ".join(f"{self._in_words(bracket)}." for bracket in [*self.above, *self.below])

    def _in_words(self, bracket: _Bracket) -> str:
        """A bracket in words."""
        facts = [bracket.label, "" if bracket.kind == "tree" else bracket.kind]
        facts.append(f"{bracket.weight:.3f}" if bracket.weight < 1 else "")
        more = ", ".join(filter(None, facts))
        return named_span(self.words, bracket.first, bracket.last) + (f": {more}" if more else "")

    def height(self, side: Sequence[_Bracket]) -> float:
        if not side:
            return 0.0
        highest = max(self.levels[bracket] for bracket in side)
        return LEG + (highest - 1) * self.step + 4 + (LABEL if any(map(self._text, side)) else 0)

    def side(self, side: Sequence[_Bracket], base: float, sign: int) -> list[str]:
        """The brackets above (sign -1) or below (1) the words, the light ones first."""
        parts = []
        for bracket in sorted(side, key=lambda bracket: bracket.weight):
            left, right = sorted(
                self.x(x) for x in (self.ends[bracket.first][0], self.ends[bracket.last][1])
            )
            y = base + sign * (LEG + (self.levels[bracket] - 1) * self.step)
            before = f"<title>{clean(self._in_words(bracket))}</title>"
            path = _path(left, right, y, y - sign * min(LEG, self.step - 2), sign)
            parts.append(line_group(bracket.kind, bracket.weight, path, before))
            if text := self._text(bracket):  # never faint: it is to be read
                label_y = y - 4 if sign < 0 else y + LABEL + 2
                element = text_element((left + right) / 2, label_y, text, size=LABEL)
                parts.append(coloured(bracket.kind, element))
        return parts


def _agree(label: str, other: str) -> bool:
    """Whether two labels are the same, or one of them is not known."""
    return label == other or not label or not other


def _levels(side: Sequence[_Bracket]) -> dict[_Bracket, int]:
    """The level of each bracket, from 1: above all shorter ones that share a word with it."""
    levels: dict[_Bracket, int] = {}
    skyline = [0] * (1 + max((bracket.last for bracket in side), default=0))
    for bracket in sorted(side, key=lambda bracket: bracket.last - bracket.first):
        under = slice(bracket.first, bracket.last + 1)
        levels[bracket] = 1 + max(skyline[under])
        skyline[under] = [levels[bracket]] * (bracket.last + 1 - bracket.first)
    return levels


def _path(left: float, right: float, y: float, foot: float, sign: int) -> str:
    """A line across with a leg at both ends."""
    corner = f"A{number(ROUND)} {number(ROUND)} 0 0 {int(sign < 0)}"
    bend = number(y - sign * ROUND)
    return (
        f"M{number(left)} {number(foot)}V{bend}{corner} {number(left + ROUND)} {number(y)}"
        f"H{number(right - ROUND)}{corner} {number(right)} {bend}V{number(foot)}"
    )
