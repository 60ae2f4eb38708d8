"""Checks of what every picture of trees takes: words, heads, texts, matrices over arcs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from treelax.errors import InputError


def named(words: list[str], position: int) -> str:
    """A word with its position, 0 the root: ``bark (2)``."""
    return f"{words[position - 1] if position else 'root'} ({position})"


def checked_words(words: Sequence[str]) -> list[str]:
    """The words as a list."""
    if isinstance(words, str) or len(words) == 0:
        got = "one string" if isinstance(words, str) else "none"
        raise InputError(f"words: received {got}; expected a list of one or more words")
    return list(words)


def checked_heads(heads: Iterable[int], name: str, n: int) -> list[int]:
    """The heads of n words as integers; they need not form a tree."""
    found = heads.tolist() if isinstance(heads, Tensor) else list(heads)
    if len(found) != n:
        raise InputError(f"{name}: received {len(found)}; expected one for each of the {n} words")
    for m, head in enumerate(found, 1):
        if not hasattr(head, "__index__") or head not in range(n + 1) or head == m:
            raise InputError(f"{name}: word {m} has head {head!r}; expected 0 to {n}, but not {m}")
    return list(map(operator.index, found))


def checked_texts(texts: Sequence[str | None] | None, name: str, n: int) -> list[str]:
    """A text for each of n words, empty where there is none."""
    if texts is not None and len(texts) != n:
        raise InputError(f"{name}: received {len(texts)}; expected one for each of the {n} words")
    return [text or "" for text in texts or [""] * n]


def checked_matrix(values: Any, name: str, n: int) -> list[list[float]]:
    """A number or -inf for every arc over n words; column 0 and the diagonal are not checked."""
    try:
        matrix = torch.as_tensor(values, dtype=torch.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}: received {values!r:.60}; expected a matrix of numbers") from None
    if matrix.shape != (n + 1, n + 1):
        expected = f"expected {(n + 1, n + 1)}, {n} words and the root"
        raise InputError(f"{name}: received shape {tuple(matrix.shape)}; {expected}")
    found: list[list[float]] = matrix.tolist()
    for h, row in enumerate(found):
        for m, value in enumerate(row):
            if m not in (0, h) and not value < torch.inf:
                raise InputError(f"{name}[{h}, {m}] is {value}; expected a finite number")
    return found
