"""Chart programs as data, from which every sweep follows: `reference` and `plain` run any of them.

An item ``X(i, j)`` is a span with a state. A rule chooses among all ways to make it, the splits of one
or more pairs of operands, and the program's relaxation says how (`treelax.ops.eisner`, "Items"):

    <L(i,k), R(k+gap,j)>,   i + first <= k < j + first

Each item that the rule makes has the value of this choice, plus a score if it is a part. The two items
of an arc differ only in that score, so one choice serves both. An item of width 0 has its score or 0,
or does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from treelax.ops.chart import centring
from treelax.ops.checks import arc_mask, span_mask


@dataclass(frozen=True, eq=False)
class Item:
    """A kind of item; compared by identity, so that looking it up in a dictionary is cheap."""

    name: str
    #: The part that ``X(i, j)`` is: ``[i, j]`` (1), ``[j, i]`` (-1) or none (0).
    part: int = 0
    #: The label of the part, where parts have labels.
    label: int | None = None
    #: Items of width 0 exist.
    empty: bool = True

    def entry(self, i: int, j: int) -> tuple[int, ...]:
        """Where the scores hold the part ``X(i, j)``."""
        arc = (i, j) if self.part > 0 else (j, i)
        return arc if self.label is None else (*arc, self.label)


@dataclass(frozen=True, eq=False)
class Operands:
    """``left(i, k)`` and ``right(k+gap, j)`` for every split ``k``, or ``left(i, j)`` alone."""

    left: Item
    right: Item | None = None
    #: The smallest split is ``k = i + first``.
    first: int = 0
    #: The right operand begins at ``k + gap``.
    gap: int = 0


@dataclass(frozen=True, eq=False)
class Rule:
    """Items made from one choice among the splits of all ``operands``, plus the scores of parts."""

    makes: tuple[Item, ...]
    operands: tuple[Operands, ...]
    #: Spans of the root have this rule.
    root: bool = True
    #: Under a single root, spans of the root have the smallest splits only.
    one_root: bool = False


@dataclass(frozen=True, eq=False)
class Program:
    """Rules in an order in which those of one span can be applied, and what a sentence is.

    No item is made by two rules. Several items may be the same part.
    """

    rules: tuple[Rule, ...]
    #: The item that spans a whole sentence.
    goal: Item
    #: Position 0 is the root.
    rooted: bool
    #: ``(lengths, size)`` to a mask of the parts: ``(B, N, N)``, with labels ``(B, N, N, 1)``.
    parts: Callable[[Tensor, int], Tensor]
    #: Makes the values of charts small and changes no tree: `treelax.ops.chart.centring`.
    shift: centring.Shift

    def last(self, lengths: Tensor) -> Tensor:
        """The last position of every sentence, -1 if there is none."""
        return lengths if self.rooted else lengths - 1

    def widths(self, size: int) -> range:
        """Those of spans with parts: a word is one of width 0 where there is no root."""
        return range(1 if self.rooted else 0, size)


ARC_RIGHT, ARC_LEFT = Item("I→", part=1), Item("I←", part=-1)
RIGHT, LEFT = Item("C→"), Item("C←")
EISNER = Program(
    rules=(
        # U(i,j) = <C→(i,k), C←(k+1,j)>, i <= k < j;  I→ = U + W[i,j], I← = U + W[j,i]
        Rule((ARC_RIGHT, ARC_LEFT), (Operands(RIGHT, LEFT, gap=1),), one_root=True),
        # C→(i,j) = <I→(i,k), C→(k,j)>, i < k <= j
        Rule((RIGHT,), (Operands(ARC_RIGHT, RIGHT, first=1),)),
        # C←(i,j) = <C←(i,k), I←(k,j)>, i <= k < j
        Rule((LEFT,), (Operands(LEFT, ARC_LEFT),), root=False),
    ),
    goal=RIGHT,
    rooted=True,
    parts=arc_mask,
    shift=centring.shift_columns,
)

SPAN = Item("v", part=1)
CKY = Program(
    # v(i,j) = <v(i,k), v(k+1,j)> + w[i,j], i <= k < j
    rules=(Rule((SPAN,), (Operands(SPAN, SPAN, gap=1),)),),
    goal=SPAN,
    rooted=False,
    parts=span_mask,
    shift=centring.shift_spans,
)
