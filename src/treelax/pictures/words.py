"""Checks of what every picture of trees takes: words, heads, matrices over arcs, a width."""

from __future__ import annotations

import math
import operator
import shutil
from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from treelax.errors import InputError

__all__ = ["checked_heads", "checked_matrix", "checked_texts", "checked_width", "checked_words"]


def checked_words(words: Sequence[str]) -> list[str]:
    """The words as a list.

    Raises:
        InputError: there are none, or one is no string.

    Example:
        >>> checked_words(("Dogs", "bark"))
        ['Dogs', 'bark']
    """
    if isinstance(words, str):
        raise InputError("words: received one string; expected a sequence with a string a word")
    if len(words) == 0:
        raise InputError("words: received none; expected at least one")
    for m, word in enumerate(words, 1):
        if not isinstance(word, str):
            raise InputError(f"words: word {m} is {word!r}; expected a string")
    return list(words)


def checked_heads(heads: Iterable[int], name: str, n: int) -> list[int]:
    """The heads of n words as integers; they need not form a tree.

    Raises:
        InputError: there are fewer or more, or one is no integer, out of range or the word itself.

    Example:
        >>> checked_heads((2, 0), "heads", 2)
        [2, 0]
    """
    if isinstance(heads, Tensor) and heads.dim() != 1:
        raise InputError(f"{name}: received shape {tuple(heads.shape)}; expected (n,)")
    checked = heads.tolist() if isinstance(heads, Tensor) else list(heads)
    if len(checked) != n:
        raise InputError(f"{name}: received {len(checked)}; expected one for each of the {n} words")
    for m, head in enumerate(checked, 1):
        try:
            checked[m - 1] = operator.index(head)
            fine = 0 <= checked[m - 1] <= n and checked[m - 1] != m and not isinstance(head, bool)
        except TypeError:
            fine = False
        if not fine:
            raise InputError(
                f"{name}: word {m} has head {head!r}; expected one of the positions 0 to {n} "
                f"other than {m} itself"
            )
    return checked


def checked_texts(texts: Sequence[str | None] | None, name: str, n: int) -> list[str]:
    """A text for each of n words, empty where there is none.

    Raises:
        InputError: there are fewer or more, or one is no string.

    Example:
        >>> checked_texts(["DET", None], "tags", 2)
        ['DET', '']
    """
    if texts is None:
        return [""] * n
    if isinstance(texts, str) or len(texts) != n:
        what = "one string" if isinstance(texts, str) else str(len(texts))
        raise InputError(f"{name}: received {what}; expected one for each of the {n} words")
    for m, text in enumerate(texts, 1):
        if text is not None and not isinstance(text, str):
            raise InputError(f"{name}: that of word {m} is {text!r}; expected a string or None")
    return [text or "" for text in texts]


def checked_matrix(values: Any, name: str, n: int) -> list[list[float]]:
    """A number for every arc over n words, ``values[h][m]``, as lists.

    Only arcs count: column 0 and the diagonal may hold anything.

    Raises:
        InputError: the shape is another one, or a number of an arc is nan or infinite; ``-inf``,
            which forbids an arc, is allowed.

    Example:
        >>> checked_matrix([[0, 1, 0.5], [0, 0, 0.5], [0, 0, 0]], "weights", 2)[1]
        [0.0, 0.0, 0.5]
    """
    rows = values.tolist() if isinstance(values, Tensor) else values
    try:
        checked = [[float(value) for value in row] for row in rows]
    except (TypeError, ValueError):
        raise InputError(
            f"{name}: received {type(values).__name__}; expected a matrix of numbers "
            f"({n + 1}, {n + 1}) for {n} words and the root"
        ) from None
    if len(checked) != n + 1 or any(len(row) != n + 1 for row in checked):
        shape = (len(checked), max(map(len, checked), default=0))
        raise InputError(
            f"{name}: received shape {shape}; expected {(n + 1, n + 1)}, {n} words and the root"
        )
    for h, row in enumerate(checked):
        for m, value in enumerate(row):
            if m and m != h and not value < math.inf:
                raise InputError(
                    f"{name}: the arc from {h} to {m} has {value}; expected a finite number"
                )
    return checked


def checked_width(width: int | None) -> int:
    """Columns to fit into: those asked for, or the terminal's.

    Raises:
        InputError: the width is no positive integer.

    Example:
        >>> checked_width(40)
        40
    """
    if width is None:
        return max(shutil.get_terminal_size().columns, 1)
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise InputError(f"width: received {width!r}; expected a positive number of columns")
    return width
