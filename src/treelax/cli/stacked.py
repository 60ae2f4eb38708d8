"""Tables for terminals that are too narrow for them: a line for each cell."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

__all__ = ["fill", "stacked_lines"]

INDENT = "  "


def stacked_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> list[tuple[str, bool]]:
    """The rows of a table below each other: the first cell as a heading, a line for each other.

    Args:
        columns: the heads of the columns.
        rows: the texts of the cells; empty ones are left out.
        width: columns of the terminal.

    Returns:
        Lines, each with whether it is a heading.

    Example:
        >>> for line, heading in stacked_lines(["run", "nats", "gap"], [["a", "3.4", "1.0"]], 40):
        ...     print(line)
        a
          nats  3.4
          gap   1.0
    """
    widest = max(map(len, columns[1:]), default=0)
    found = []
    for i, (first, *cells) in enumerate(rows):
        if i and cells:
            found.append(("", False))
        found += [(line, True) for line in fill(first, width)]
        for name, cell in zip(columns[1:], cells, strict=True):
            if cell:
                line = f"{INDENT}{name.ljust(widest)}{INDENT}{cell}"
                found += [(part, False) for part in fill(line, width, indent=2 * INDENT)]
    return found


def fill(text: str, width: int, *, indent: str = "") -> list[str]:
    """The lines of a text that is cut at spaces where it can be, so that none is too long.

    Args:
        text: line ends in it count as spaces only where it is too long.
        width: the most characters of a line.
        indent: before all lines but the first.

    Returns:
        The lines.

    Example:
        >>> fill("two words", 6)
        ['two', 'words']
    """
    if all(len(line) <= width for line in text.split("\n")):
        return text.split("\n")
    space = text[: len(text) - len(text.lstrip(" "))]
    width = max(width, len(indent) + 1, len(space) + 1)
    return textwrap.wrap(
        text.strip(), width, initial_indent=space, subsequent_indent=indent, break_on_hyphens=False
    )
