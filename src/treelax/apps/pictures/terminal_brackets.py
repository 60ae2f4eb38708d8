"""Trees of spans as text: above the words where they fit on a line, else on their side."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from treelax.apps.pictures.text import (
    ASCII,
    DOWN,
    LEFT,
    RIGHT,
    UP,
    Canvas,
    Symbols,
    columns,
    cut,
    first_that_fits,
    prepared,
    printable,
)
from treelax.apps.pictures.words import Node, Nodes, Spans, check_least, checked_nodes
from treelax.brackets import check_spans, spans_to_tensor, write_brackets
from treelax.errors import InputError


@dataclass(eq=False)
class _Node:
    """A word, or a span with its children; its stem is in a column, from a row upwards."""

    first: int
    last: int
    label: str
    children: list[_Node] = field(default_factory=list)
    level: int = 0
    column: int = 0
    top: int = 0


def draw_binary_tree(
    words: Sequence[str],
    tree: Spans,
    *,
    labels: Sequence[str] | None = None,
    width: int | None = None,
    ascii: bool = False,
) -> str:
    """Draw a tree of spans, binary or not, as text above its words.

    Where that is too wide, the tree is drawn on its side, a line for each word, and where that is too
    wide as well it is written in brackets.

    Args:
        words: the n words, shown as in `treelax.apps.pictures.draw_tree`.
        tree: ``(n, n)``, 0/1, ``tree[i, j]`` is 1 if words ``i`` to ``j``, both included, are a span;
            or ``(n, n, L)`` with labels; or spans as `treelax.trees.read_brackets` gives them.
        labels: the L names of labels, by default their numbers.
        width: columns to fit into; the terminal's by default.
        ascii: use ASCII characters only.

    Example:
        >>> from treelax.trees import read_brackets
        >>> print(draw_binary_tree(*read_brackets("((The cat) (sat down))")))
           ╭────┴────╮
         ╭─┴──╮    ╭─┴──╮
        The  cat  sat  down
    """
    symbols, width, shown = prepared(words, width, ascii)
    nodes = _nodes(tree, len(shown), labels, symbols)
    nodes.setdefault((0, len(shown) - 1), Node(1.0, ""))
    for (i, j), node in nodes.items():
        if node.weight != 1:
            advice = "expected 0 or 1 (for a soft tree use list_brackets)"
            raise InputError(f"tree[{i}, {j}] is {node.weight:g}; {advice}")
    check_spans(spans_to_tensor(nodes, len(shown)), "tree")
    built = _built(nodes, len(shown))
    layouts: list[Iterable[str]] = [_above(shown, built, room, symbols) for room in (2, 1)]
    layouts.append(_beside(shown, built[-1], symbols))
    if lines := first_that_fits(layouts, width):
        return "\n".join(lines)
    spans = [
        (i, j, node.label.replace(" ", "_"))
        for (i, j), node in nodes.items()
        if i < j or node.label
    ]
    line = write_brackets([word.replace(" ", "_") for word in shown], spans)
    rows = textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(cut(row, width, symbols) for row in rows)


def list_brackets(
    words: Sequence[str],
    tree: Spans,
    *,
    labels: Sequence[str] | None = None,
    least: float = 0.05,
    width: int | None = None,
    ascii: bool = False,
) -> str:
    """List the spans of two or more words of a soft tree, or marginals, the heaviest first.

    Args:
        words: the n words, shown as in `treelax.apps.pictures.draw_tree`.
        tree: ``(n, n)``, from 0 to 1, or another form that `treelax.apps.pictures.draw_brackets` takes.
        labels: the L names of labels, by default their numbers.
        least: the smallest weight to list.
        width: columns to fit into; the terminal's by default.
        ascii: use ASCII characters only.

    Example:
        >>> import treelax as tx, torch
        >>> marginals = tx.Binary()(torch.tensor([[0., 1., 0.], [0., 0., 0.], [0., 0., 0.]])).marginals
        >>> print(list_brackets(["Old", "dogs", "bark"], marginals))
        1.00  0-2  Old dogs bark
        0.73  0-1  Old dogs
        0.27  1-2  dogs bark
    """
    symbols, width, shown = prepared(words, width, ascii)
    check_least(least)
    nodes = _nodes(tree, len(shown), labels, symbols)
    heavy = [(i, j) for (i, j), node in nodes.items() if i < j and node.weight >= least]
    places = max((len(f"{i}-{j}") for i, j in heavy), default=0)
    labelled = max((columns(nodes[span].label) for span in heavy), default=0)
    lines = []
    for i, j in sorted(heavy, key=lambda span: (-nodes[span].weight, span)):
        weight, label = nodes[i, j]
        line = f"{weight:.2f}  {f'{i}-{j}':>{places}}  "
        if labelled:
            line += label + " " * (labelled - columns(label) + 2)
        lines.append(cut(line + " ".join(shown[i : j + 1]), width, symbols))
    return "\n".join(lines)


def _nodes(tree: Spans, n: int, labels: Sequence[str] | None, symbols: Symbols) -> Nodes:
    """The spans of a tree, with labels as they can be printed."""
    nodes = checked_nodes(tree, "tree", n, labels)
    return {
        span: Node(weight, label and printable(label, symbols))
        for span, (weight, label) in nodes.items()
    }


def _built(nodes: Nodes, n: int) -> list[_Node]:
    """The words, then all spans, children before their parents; the root is the last."""
    spans = [(m, m) for m in range(n)] + sorted(
        (span for span in nodes if span[0] < span[1]), key=lambda span: span[1] - span[0]
    )
    built = [_Node(*span, nodes[span].label if span in nodes else "") for span in spans]
    tops = built[:n]  # the highest node so far over each word
    for parent in built[n:]:
        over = slice(parent.first, parent.last + 1)
        parent.children = list(dict.fromkeys(tops[over]))
        parent.level = 1 + max(child.level for child in parent.children)
        tops[over] = [parent] * (parent.last + 1 - parent.first)
    return built


def _above(words: list[str], nodes: list[_Node], room: int, symbols: Symbols) -> list[str]:
    """The words on one line and the tree above."""
    leaves = nodes[: len(words)]
    slots = _slots(words, nodes, leaves, room)
    levels = 1 + any(node.label for node in nodes if node.children)  # rows of one: lines and labels
    base, canvas = 1 + any(leaf.label for leaf in leaves), Canvas()

    def write(row: int, node: _Node, text: str) -> None:
        first, last = slots[node.first][0], slots[node.last][1]
        column = max(min(node.column - (columns(text) - 1) // 2, last - columns(text)), first)
        canvas.texts[row, column] = text

    for node in nodes:
        if node.children:
            left, right = node.children[0].column, node.children[-1].column
            node.column, row = (left + right) // 2, base + (node.level - 1) * levels
            canvas.mark(row, node.column, UP)
            canvas.bar(row, left, right)
            for child in node.children:
                canvas.stem(child.column, child.top, row)
        else:
            row = 0
            node.column = (sum(slots[node.first]) - 1) // 2
            write(0, node, words[node.first])
        node.top = row + 1
        if node.label:
            write(node.top, node, node.label)
            node.top += 1
    # nothing crosses here, so where all four ways meet is a corner in ASCII too
    lines = symbols.lines[:15] + symbols.lines[14] if symbols is ASCII else symbols.lines
    return canvas.rows(symbols, lines)[::-1]


def _slots(
    words: list[str], nodes: list[_Node], leaves: list[_Node], room: int
) -> list[tuple[int, int]]:
    """Where each word begins and ends, so far apart that labels fit above their span."""
    slots, at = [], 0
    for word, leaf in zip(words, leaves, strict=True):
        size = max(columns(word), columns(leaf.label))
        slots.append((at, at + size))
        at += size + room
    for node in nodes:
        missing = columns(node.label) - (slots[node.last][1] - slots[node.first][0])
        if missing > 0:
            slots[node.last :] = [(a + missing, b + missing) for a, b in slots[node.last :]]
    return slots


def _beside(words: list[str], root: _Node, symbols: Symbols) -> Iterator[str]:
    """The tree on its side, from left to right: a line for each word."""
    across, down = symbols.lines[LEFT | RIGHT], symbols.lines[UP | DOWN]
    branch, last = (symbols.lines[mask | RIGHT] + across for mask in (UP | DOWN, UP))
    # what is still to be drawn, the next one last: a node, and what stands before it on its first
    # line and on the lines below that
    todo = [(root, "", "")]
    while todo:
        node, prefix, below = todo.pop()
        if not node.children:
            yield " ".join(filter(None, (prefix, node.label, words[node.first])))
            continue
        prefix += node.label + across if node.label else ""
        below += " " * (columns(node.label) + 1) if node.label else ""
        fork = symbols.lines[DOWN | RIGHT | (LEFT if prefix else 0)] + across
        first, *middle, end = node.children
        todo.append((end, below + last, below + "  "))
        todo += [(child, below + branch, below + down + " ") for child in reversed(middle)]
        todo.append((first, prefix + fork, below + down + " "))
