"""Cells of tables and how they are written, in a terminal and in a report alike."""

from __future__ import annotations

__all__ = ["Cell", "cell_text", "looks_like_number"]

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


def looks_like_number(text: str) -> bool:
    """Whether a cell may stand in a column of numbers, which is flush right.

    Args:
        text: of the cell.

    Returns:
        Whether it begins with a digit, with or without a sign, or is empty or only a dash.

    Example:
        >>> [looks_like_number(text) for text in ("−9.1 ± 0.2", "–", "", "a 1")]
        [True, True, True, False]
    """
    unsigned = text.lstrip("+-−–")
    return not unsigned or unsigned[0].isdigit()
