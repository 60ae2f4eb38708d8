"""Checks of what every picture of trees takes: words, heads, texts, matrices over arcs, spans."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from treelax.brackets import Span
from treelax.errors import InputError, short

NEARLY = 1e-3  # by which rounding may take a weight out of its range


class Node(NamedTuple):
    """What is known of a span."""

    weight: float
    label: str


Spans: TypeAlias = Tensor | Iterable[Span]
Nodes: TypeAlias = dict[tuple[int, int], Node]  # by first and last word, counted from 0


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
    values = heads.tolist() if isinstance(heads, Tensor) else list(heads)
    if len(values) != n:
        raise InputError(f"{name}: received {len(values)}; expected one for each of the {n} words")
    for m, head in enumerate(values, 1):
        if not hasattr(head, "__index__") or head not in range(n + 1) or head == m:
            raise InputError(f"{name}: word {m} has head {head!r}; expected 0 to {n}, but not {m}")
    return list(map(operator.index, values))


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
    rows: list[list[float]] = matrix.tolist()
    for h, row in enumerate(rows):
        for m, value in enumerate(row):
            if m not in (0, h) and not value < torch.inf:
                raise InputError(f"{name}[{h}, {m}] is {value}; expected a finite number")
    return rows


def checked_nodes(tree: Any, name: str, n: int, labels: Sequence[str] | None = None) -> Nodes:
    """The spans over n words that weigh something, of a tensor or a list, with weights and labels."""
    if not hasattr(tree, "shape"):
        return _listed_nodes(tree, name, n)
    values = torch.as_tensor(tree, dtype=torch.float64, device="cpu").detach()
    if tuple(values.shape[:2]) != (n, n) or values.dim() not in (2, 3):
        expected = f"expected {(n, n)} or ({n}, {n}, labels), {n} words"
        raise InputError(f"{name} has shape {tuple(values.shape)}; {expected}")
    if labels is not None and len(labels) != (values.shape[2] if values.dim() == 3 else 0):
        received = f"({name} has shape {tuple(values.shape)})"
        raise InputError(f"labels has {len(labels)} names; expected one for each label {received}")
    labelled = values.dim() == 3
    weights = (values.sum(-1) if labelled else values).tolist()
    best = values.argmax(-1).tolist() if labelled else None
    nodes = {}
    for i in range(n):
        for j in range(i, n):
            weight = round(weights[i][j], 6)  # the same for every backend
            if not -NEARLY <= weight <= 1 + NEARLY:
                raise InputError(f"{name}[{i}, {j}] is {weight:g}; expected 0 to 1")
            label = "" if best is None else best[i][j] if labels is None else labels[best[i][j]]
            if weight > NEARLY:
                nodes[i, j] = Node(min(weight, 1.0), str(label))
    return nodes


def _listed_nodes(spans: Any, name: str, n: int) -> Nodes:
    """Those of spans as `treelax.trees.read_brackets` gives them; unary chains become one label."""
    nodes: Nodes = {}
    for span in spans:
        try:
            i, j, label = span
            good = isinstance(label, str | None) and 0 <= i <= j < n
        except (TypeError, ValueError):
            good = False
        if not good:
            wanted = f"a tensor, or spans (i, j, label) with 0 <= i <= j < {n}, {n} words"
            raise InputError(f"{name} holds {short(span)}; expected {wanted}")
        above = nodes[i, j].label if (i, j) in nodes else ""
        nodes[i, j] = Node(1.0, "+".join(filter(None, (above, label))))
    return nodes


def check_least(least: float) -> None:
    """Raise unless it may be the smallest weight to show."""
    if not 0 < least <= 1:
        raise InputError(f"least: received {least}; expected more than 0 and at most 1")


def named_span(words: list[str], i: int, j: int) -> str:
    """Some words of a span with its first and last position: ``Old dogs bark (0 to 2)``."""
    shown = words[i : j + 1] if j - i < 4 else [*words[i : i + 2], "…", words[j]]
    return f"{' '.join(shown)} ({i} to {j})"
