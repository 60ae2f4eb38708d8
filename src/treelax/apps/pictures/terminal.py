"""Trees as text: arcs above the words where they fit on a line, a listing of the tree where not.

Above every word stand up to three columns: the stem of the arcs to its left modifiers, its arrow, and
the stem to its right ones. In that order no two arcs of a projective tree cross.
"""

from __future__ import annotations

import operator
import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from torch import Tensor

from treelax.apps.pictures.layout import stacked
from treelax.apps.pictures.text import (
    DOWN,
    LEFT,
    RIGHT,
    UP,
    Canvas,
    Symbols,
    columns,
    cut,
    first_that_fits,
    in_columns,
    prepared,
    printable,
)
from treelax.apps.pictures.words import (
    check_least,
    checked_heads,
    checked_matrix,
    checked_texts,
    named,
)

STARRED = "* in the tree: the best tree as a whole need not have the heaviest head of every word"


class _Tree(NamedTuple):
    """What is drawn, with the right heads or the heads again, and with what."""

    words: list[str]
    heads: list[int]
    gold: list[int]
    labels: list[str]
    symbols: Symbols


class _Arc(NamedTuple):
    """An arc by the columns where it stands; it comes from the edge if it has no head there."""

    modifier: int
    head: int | None
    solid: bool


class _Slot(NamedTuple):
    """The columns of a word: its stems, its arrow, and where its text and its label begin."""

    left: int
    arrow: int
    right: int
    text: int
    label: int


def draw_tree(
    words: Sequence[str],
    heads: Sequence[int] | Tensor,
    *,
    gold: Sequence[int] | Tensor | None = None,
    labels: Sequence[str | None] | None = None,
    width: int | None = None,
    ascii: bool = False,
) -> str:
    """Draw a dependency tree as text, each arc with its arrow at the modifier.

    Where the words fit on one line, the arcs stand above them, and children of the root have an
    arrow from the top. Otherwise every word has a line: left modifiers above their head, right
    ones below, indented, so that a projective tree reads from top to bottom. Where that is too wide,
    every word is listed with its head.

    With gold heads, wrong arcs are dashed, gold arcs are drawn below the words, and the number of
    right arcs is given. The heads need not form a tree: arcs may cross or form a cycle.

    Args:
        words: the n words. Invisible characters are removed, control characters replaced, and words
            wider than a third of the width cut.
        heads: the n heads, ``heads[m - 1]`` that of word ``m``, 0 the root.
        gold: the n right heads.
        labels: a text for the arc of each word, None or empty for none; it stands below the word, or
            beside it.
        width: columns to fit into; the terminal's by default.
        ascii: use ASCII characters only; others are written as ``\\xe9``.

    Example:
        >>> print(draw_tree("[MAX 2 [MIN 4 7 ] ]".split(), [0, 1, 1, 3, 3, 3, 1]))
         ╷
         │ ╭──────────────╮
         │ │      ╭─────╮ │
         │ ├────╮ ├───╮ │ │
         │ ├─╮  │ ├─╮ │ │ │
         ▼ │ ▼  ▼ │ ▼ ▼ ▼ ▼
        [MAX 2 [MIN 4 7 ] ]
    """
    symbols, width, shown = prepared(words, width, ascii)
    n = len(shown)
    chosen = checked_heads(heads, "heads", n)
    right = chosen if gold is None else checked_heads(gold, "gold", n)
    texts = [text and printable(text, symbols) for text in checked_texts(labels, "labels", n)]
    tree = _Tree(shown, chosen, right, texts, symbols)
    rooms = (2, 1) if sum(map(columns, shown)) + n - 1 <= width else ()
    layouts = chain((_arcs(tree, room) for room in rooms), (_listing(tree, i) for i in (3, 2, 1)))
    # the last resort is sorted by the numbers in front
    lines = first_that_fits(layouts, width) or sorted(_listing(tree, 0))
    if gold is not None:
        lines.append(f"{sum(map(operator.eq, chosen, right))} of {n} arcs right")
    return "\n".join(cut(line, width, symbols) for line in lines)


def list_weights(
    words: Sequence[str],
    weights: Sequence[Sequence[float]] | Tensor,
    *,
    heads: Sequence[int] | Tensor | None = None,
    least: float = 0.05,
    width: int | None = None,
    ascii: bool = False,
) -> str:
    """List for every word its heads, the heaviest first, as many as fit on a line.

    The best tree need not have the heaviest head of every word: its heads, where given, have a star and
    come second where they are not the heaviest.

    Args:
        words: the n words, shown as in `treelax.apps.pictures.draw_tree`.
        weights: ``(n + 1, n + 1)``, ``weights[h, m]`` that of the arc from ``h`` to ``m``.
        heads: the n heads of the best tree.
        least: the smallest weight to list; the heaviest head is always listed.
        width: columns to fit into; the terminal's by default.
        ascii: use ASCII characters only.

    Example:
        >>> print(list_weights(["Dogs", "bark"], [[0, 0.25, 1], [0, 0, 0], [0, 0.75, 0]]))
        1 Dogs  bark (2) 0.75  root (0) 0.25
        2 bark  root (0) 1.00
    """
    symbols, width, short = prepared(words, width, ascii)
    n = len(short)
    matrix = checked_matrix(weights, "weights", n)
    chosen = [-1] * n if heads is None else checked_heads(heads, "heads", n)
    check_least(least)
    longest, starred = max(map(columns, short)), False
    lines = []
    for m, word in enumerate(short, 1):
        line = f"{m:{len(str(n))}} {word}{' ' * (longest - columns(word))}"
        order = sorted((h for h in range(n + 1) if h != m), key=lambda h: (-matrix[h][m], h))
        head = chosen[m - 1]
        lighter = head >= 0 and matrix[head][m] < matrix[order[0]][m]
        if lighter:
            order.remove(head)
            order.insert(1, head)
            starred = True
        for rank, h in enumerate(order):
            star = "*" if lighter and rank == 1 else ""
            entry = f"  {named(short, h)} {matrix[h][m]:.2f}{star}"
            if rank > lighter and (matrix[h][m] < least or columns(line + entry) > width):
                break
            line += entry
        lines.append(cut(line, width, symbols))
    if starred:
        lines += textwrap.wrap(STARRED, max(width, 20))
    return "\n".join(lines)


def _arcs(tree: _Tree, room: int) -> Iterator[str]:
    """The words on one line, the arcs above, labels and the arcs that are missing below."""
    words, heads, gold, labels, symbols = tree
    missing = [(m, g) for m, (h, g) in enumerate(zip(heads, gold, strict=True), 1) if h != g]
    slots = _slots(words, labels, [*enumerate(heads, 1), *missing], room)

    def arc(m: int, h: int, solid: bool) -> _Arc:
        head = None if h == 0 else slots[h - 1].right if h < m else slots[h - 1].left
        return _Arc(slots[m - 1].arrow, head, solid)

    above = [arc(m, h, h == gold[m - 1]) for m, h in enumerate(heads, 1)]
    yield from reversed(_rows(above, symbols, symbols.lines, symbols.down))
    yield in_columns((slot.text, word) for slot, word in zip(slots, words, strict=True))
    if any(labels):
        yield in_columns((slot.label, label) for slot, label in zip(slots, labels, strict=True))
    if missing:
        turned = "".join(symbols.lines[m & 12 | (m & 1) << 1 | (m & 2) >> 1] for m in range(16))
        yield from _rows([arc(m, g, True) for m, g in missing], symbols, turned, symbols.up)
    for m, g in missing:
        yield f"{symbols.wrong} {named(words, m)}: gold {named(words, g)}"


def _slots(
    words: list[str], labels: list[str], arcs: list[tuple[int, int]], room: int
) -> list[_Slot]:
    """Stems stand beside the arrow, above the word if it is wide enough."""
    to_left = {h for m, h in arcs if m < h}
    to_right = {h for m, h in arcs if m > h}
    slots: list[_Slot] = []
    start, over = 0, False
    for m, (word, label) in enumerate(zip(words, labels, strict=True), 1):
        text, under = columns(word), columns(label)
        left_room, right_room = room * (m in to_left), room * (m in to_right)
        size = max(text, left_room + 1 + right_room)
        middle = (size - 1) // 2 if right_room >= left_room else size // 2
        arrow = min(max(middle, left_room), size - 1 - right_room)
        shift = min(max(arrow - (text - 1) // 2, 0), size - text)
        start += room - 1 if slots and (over or shift) else 0
        over = shift + text < size
        # word and label have their middles below each other, whichever is the wider
        apart = (under - 1) // 2 - (text - 1) // 2 - shift
        first = start + min(max(apart, 0), max(under - size, 0))
        at, below = first + arrow, first - min(apart, first - start)
        slots.append(_Slot(at - room, at, at + room, first + shift, below))
        start = max(first + size, below + under) + 1
    return slots


def _rows(arcs: list[_Arc], symbols: Symbols, lines: str, arrow: str) -> list[str]:
    """Arcs as rows of text, from the row of the arrows beside the words outwards."""
    ends = ((a, a.modifier, a.head) for a in arcs if a.head is not None)
    spans = {a: (min(one, other), max(one, other)) for a, one, other in ends}
    shortest = sorted(spans, key=lambda a: spans[a][1] - spans[a][0])
    levels = stacked((spans[a][0], spans[a][1] + 1) for a in shortest)
    level = dict(zip(shortest, levels, strict=True))
    edge, canvas = 1 + max(levels, default=0), Canvas()
    for a in arcs:
        top = level.get(a, edge)
        left, right = spans.get(a, (a.modifier, a.modifier))
        for column in {left, right}:
            canvas.stem(column, 0, top, a.solid)
        canvas.bar(top, left, right, a.solid)
        canvas.texts[0, a.modifier] = arrow
    return canvas.rows(symbols, lines)


def _listing(tree: _Tree, step: int) -> Iterator[str]:
    """The tree on its side: left modifiers above their head, right ones below, a step further in."""
    words, heads, gold, labels, symbols = tree
    cycles = _cycles(heads)
    left: list[list[int]] = [[] for _ in range(len(words) + 1)]
    right: list[list[int]] = [[] for _ in range(len(words) + 1)]
    for m, h in enumerate(heads, 1):
        side = left if m < h else right
        side[0 if m in cycles else h].append(m)
    rail, blank = symbols.lines[UP | DOWN].ljust(step)[:step], " " * step

    def branch(mask: int, m: int) -> str:
        across = symbols.lines[LEFT | RIGHT] if heads[m - 1] == gold[m - 1] else symbols.dashed[0]
        return (symbols.lines[mask | RIGHT] + across).ljust(step)[:step]

    # what is still to be listed, the next one last: a word, whether its left modifiers are done,
    # and what stands in front of the lines above it, of its line and of those below it
    todo = [(m, False, "", "", "") for m in sorted(left[0] + right[0], reverse=True)]
    while todo:
        m, ready, above, prefix, below = todo.pop()
        if not ready:
            for k in reversed(right[m]):
                mask, margin = (UP, blank) if k == right[m][-1] else (UP | DOWN, rail)
                todo.append((k, False, below + rail, below + branch(mask, k), below + margin))
            todo.append((m, True, above, prefix, below))
            for k in reversed(left[m]):
                mask, margin = (DOWN, blank) if k == left[m][0] else (UP | DOWN, rail)
                todo.append((k, False, above + margin, above + branch(mask, k), above + rail))
            continue
        line = f"{m:{len(str(len(words)))}} {prefix}{words[m - 1]}"
        if step == 0:  # no lines show the heads
            line += f" {symbols.arrow} {named(words, heads[m - 1])}"
        elif m in cycles:
            line += f"  (a cycle: head {named(words, heads[m - 1])})"
        line += f"  {labels[m - 1]}" if labels[m - 1] else ""
        if heads[m - 1] != gold[m - 1]:
            line += f"  {symbols.wrong} gold {named(words, gold[m - 1])}"
        yield line


def _cycles(heads: list[int]) -> set[int]:
    """The first word of every cycle."""
    firsts, done = set(), {0}
    for m in range(1, len(heads) + 1):
        path: list[int] = []
        while m not in done:
            done.add(m)
            path.append(m)
            m = heads[m - 1]
        if m in path:
            firsts.add(min(path[path.index(m) :]))
    return firsts
