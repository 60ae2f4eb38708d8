"""Cells of tables and how they are written, in a terminal and in a report alike."""

from __future__ import annotations

__all__ = ["Cell", "cell_text"]

Cell = str | int | float | None


def cell_text(cell: Cell) -> str:
    """A cell as text.

    Args:
        cell: a whole number is grouped by thousands, another one gets two decimals.

    Returns:
        The text, empty for None.

    Example:
        >>> cell_text(1234), cell_text(0.5), cell_text(None)
        ('1,234', '0.50', '')
    """
    match cell:
        case None:
            return ""
        case float():
            return f"{cell:.2f}"
        case int():
            return f"{cell:,}"
        case _:
            return cell
