"""Tables and how their cells are written, in a terminal and in a report alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

Cell = str | int | float | None


class Table(NamedTuple):
    """A table to show: whole numbers are grouped by thousands, others get two decimals."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str | None = None
    note: str | None = None
    headings: Mapping[str, str] | None = None  # what columns are, beyond their names

    @property
    def legend(self) -> str | None:
        """What the columns are, then the note."""
        columns = "; ".join(f"{name}: {what}" for name, what in (self.headings or {}).items())
        return " ".join(filter(None, (columns and f"{columns}.", self.note))) or None


def cell_text(cell: Cell) -> str:
    """A cell as text.

    >>> cell_text(1234), cell_text(0.5), cell_text(None)
    ('1,234', '0.50', '')
    """
    if isinstance(cell, float):
        return f"{cell:.2f}"
    if isinstance(cell, int):
        return f"{cell:,}"
    return cell or ""


def looks_like_number(text: str) -> bool:
    """Whether a cell may stand in a column of numbers, which is flush right.

    >>> [looks_like_number(text) for text in ("−9.1 ± 0.2", "–", "", "a 1")]
    [True, True, True, False]
    """
    unsigned = text.lstrip("+-−–")
    return not unsigned or unsigned[0].isdigit()
