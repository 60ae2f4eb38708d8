"""Soft trees as text: for every word its heads and what they weigh."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from treelax.errors import InputError
from treelax.pictures.characters import ASCII, UNICODE, columns, cut, named, shown
from treelax.pictures.words import checked_matrix, checked_width, checked_words

__all__ = ["list_weights"]


def list_weights(
    words: Sequence[str],
    weights: Sequence[Sequence[float]] | Tensor,
    *,
    least: float = 0.05,
    width: int | None = None,
    ascii: bool = False,
) -> str:
    """List for every word its heads, the heaviest first, as many as fit on a line.

    Args:
        words: the n words, shown as in `treelax.pictures.draw_tree`.
        weights: ``(n + 1, n + 1)``, ``weights[h, m]`` that of the arc from ``h`` to ``m``.
        least: the smallest weight to list; the heaviest head is always listed.
        width: columns to fit into; the terminal's by default.
        ascii: use ASCII characters only.

    Returns:
        A line for each word, with no line end after the last.

    Raises:
        InputError: there are no words, or the weights do not fit them.

    Example:
        >>> print(list_weights(["Dogs", "bark"], [[0, 0.25, 1], [0, 0, 0], [0, 0.75, 0]]))
        1 Dogs  bark (2) 0.75  root (0) 0.25
        2 bark  root (0) 1.00
    """
    symbols = ASCII if ascii else UNICODE
    whole = [shown(word, symbols) for word in checked_words(words)]
    n = len(whole)
    matrix = checked_matrix(weights, "weights", n)
    if not 0 < least <= 1:
        raise InputError(f"least: received {least}; expected more than 0 and at most 1")
    width = checked_width(width)
    short = [cut(word, max(width // 4, 1), symbols) for word in whole]
    longest = max(map(columns, short))
    lines = []
    for m, word in enumerate(short, 1):
        line = f"{m:{len(str(n))}} {word}{' ' * (longest - columns(word))}"
        order = sorted((h for h in range(n + 1) if h != m), key=lambda h: (-matrix[h][m], h))
        for rank, h in enumerate(order):
            told = f"  {named(short, h)} {matrix[h][m]:.2f}"
            if rank and (matrix[h][m] < least or columns(line + told) > width):
                break
            line += told
        lines.append(cut(line, width, symbols))
    return "\n".join(lines)
