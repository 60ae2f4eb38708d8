"""Trees of spans as brackets over their words, as SVG: discrete ones, soft ones, right and wrong.

A bracket runs from the first word of its span to the last, one level above all that share a word with
it and are shorter.
"""

from __future__ import annotations

from collections.abc import Sequence

from treelax.apps.pictures.drawing import Drawing, Line
from treelax.apps.pictures.layout import Distance, stacked
from treelax.apps.pictures.style import LABEL, Kind
from treelax.apps.pictures.svg import Picture, number, text_width
from treelax.apps.pictures.words import (
    Spans,
    check_least,
    checked_nodes,
    checked_words,
    named_span,
)

LEG, ROUND = 6.0, 4.0  # how far a bracket reaches down, and the radius of its corners


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
    check_least(least)
    nodes = checked_nodes(tree, "tree", n, labels)
    right = None if gold is None else checked_nodes(gold, "gold", n, labels)
    above, missed = [], {} if right is None else {span: right[span] for span in sorted(right)}
    for (i, j), node in sorted(nodes.items(), key=lambda item: (item[0][0], -item[0][1])):
        if i == j or node.weight < least:
            continue
        kind: Kind = "tree"
        if right is not None:
            other = right.get((i, j))
            # labels agree where one of them is not known
            if other and (node.label == other.label or not node.label or not other.label):
                kind = "right"
                del missed[i, j]
            else:
                kind = "wrong"
        above.append(Line(i + 1, j + 1, kind, node.weight, node.label))
    below = [Line(i + 1, j + 1, "missed", 1.0, missed[i, j].label) for i, j in missed if i < j]
    soft, score = any(bracket.weight < 1 for bracket in above), ""
    if right is not None and not soft:
        score = f"{sum(line.kind == 'right' for line in above)} of {len(above)} spans right"
    return _Brackets(
        words,
        [nodes[m, m].label if (m, m) in nodes else "" for m in range(n)],
        (above, below),
        " ".join(f"{_in_words(words, bracket)}." for bracket in [*above, *below]),
        title=title,
        score=score,
        soft=soft,
        show_weights=show_weights,
        right_to_left=right_to_left,
    ).picture()


def _in_words(words: list[str], bracket: Line) -> str:
    facts = [bracket.label, "" if bracket.kind == "tree" else bracket.kind]
    facts.append(f"{bracket.weight:.3f}" if bracket.weight < 1 else "")
    more = ", ".join(filter(None, facts))
    return named_span(words, bracket.first - 1, bracket.last - 1) + (f": {more}" if more else "")


class _Brackets(Drawing):
    """Words with brackets; those of a single word are tags below it."""

    name, gaps, between = "Tree of spans", (23.0, 6.0), 18.0
    narrowest, steps = 14.0, (12.0, 21.0, 5.0)

    def measure(self) -> list[Distance]:
        distances = []
        for line in self.lines:
            if text := self.text(line):
                outside = (self.slots[line.first - 1] + self.slots[line.last - 1]) / 2
                room = text_width(text, LABEL) + 4 - outside
                distances.append((line.first - 1, line.last - 1, room))
        return distances

    def place(self, centres: Sequence[float]) -> None:
        self.levels = {}
        for side in (self.above, self.below):
            lines = sorted(side, key=lambda line: line.last - line.first)
            levels = stacked((line.first, line.last + 1) for line in lines)
            self.levels.update(zip(lines, levels, strict=True))
        edges = [(x - w / 2, x + w / 2) for x, w in zip(centres, self.slots, strict=True)]
        self.ends = {
            line: (edges[line.first - 1][0], edges[line.last - 1][1]) for line in self.lines
        }

    def in_words(self, line: Line) -> str:
        return _in_words(self.words, line)

    def height(self, side: Sequence[Line]) -> float:
        highest = max(self.levels[line] for line in side)
        return LEG + (highest - 1) * self.step + 4 + (LABEL if any(map(self.text, side)) else 0)

    def shape(
        self, line: Line, side: Sequence[Line], base: float, sign: int
    ) -> tuple[str, str, float, float]:
        """A line across with a leg at both ends."""
        left, right = sorted(map(self.x, self.ends[line]))
        y = base + sign * (LEG + (self.levels[line] - 1) * self.step)
        foot = y - sign * min(LEG, self.step - 2)
        corner = f"A{number(ROUND)} {number(ROUND)} 0 0 {int(sign < 0)}"
        bend = number(y - sign * ROUND)
        path = (
            f"M{number(left)} {number(foot)}V{bend}{corner} {number(left + ROUND)} {number(y)}"
            f"H{number(right - ROUND)}{corner} {number(right)} {bend}V{number(foot)}"
        )
        return path, "", (left + right) / 2, y - 4 if sign < 0 else y + LABEL + 2
