"""The best few structures, the best with each part, and all of them, for any structure.

**K best** (Lawler 1972). Take the best structure out of the set of all and split the rest by where it
first differs: class ``i`` has parts 1 … i-1 of the best one and lacks part ``i``. Every class is a set
of the same kind with more parts forbidden, so its best member is found by the same algorithm; the next
best of all is the best of these, and its class is split in turn. The classes of all sentences go through
one call: K calls in all.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.interface import StructureInterface
from treelax.ops.backend import inner
from treelax.ops.checks import readable
from treelax.trees import heads_to_tree

MOST = 10**6  # structures that are enumerated


def _flat(
    structure: StructureInterface, scores: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor, torch.Size]:
    """Scores and lengths with one batch dimension, and the shape that it had."""
    dims = structure.event_dim
    batch, event = scores.shape[:-dims], scores.shape[-dims:]
    if lengths is None:
        lengths = structure.full_lengths(scores)
    return scores.detach().reshape(batch.numel(), *event), lengths.reshape(-1), batch


def top_k(
    structure: StructureInterface, scores: Tensor, lengths: Tensor | None, k: int, **options: Any
) -> tuple[Tensor, Tensor]:
    """See `treelax.structures.Structure.top_k`."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError(f"k is {k!r}; expected a whole number of at least 1.")
    dims = structure.event_dim
    best = structure.argmax(scores, lengths, **options)  # checks what it is given
    flat, lengths, batch = _flat(structure, scores, lengths)
    size = flat.shape[0]
    event = flat.shape[1:]
    unchecked = {**options, "validate": False}
    # the best of each class, its score, and the parts that the class may have: (classes, batch, ...)
    trees = best.reshape(1, size, *event)
    values = inner(trees, flat, dims)
    allowed = (flat > float("-inf"))[None]
    sentence = torch.arange(size, device=flat.device)
    chosen: list[tuple[Tensor, Tensor]] = []
    for left in range(k - 1, -1, -1):
        first = values.argmax(0)
        value, tree, open_parts = (x[first, sentence] for x in (values, trees, allowed))
        chosen.append((value, tree.masked_fill(_over(value == float("-inf"), dims), 0)))
        if not left or _none(value):
            break
        parts = structure.parts_of(tree)
        before = structure.compatible_parts(parts)
        before = torch.cat([torch.ones_like(before[:1]), before[:-1]]).cumprod(0).bool()
        classes = open_parts & before & ~parts
        rest = flat.masked_fill(~classes, float("-inf"))
        count = parts.shape[0]
        new = structure.argmax(rest.flatten(0, 1), lengths.repeat(count), **unchecked).reshape(
            count, size, *event
        )
        new_values = inner(new, rest, dims)
        # a class by a part that is none has no members, nor has one of what is not there
        void = ~parts.flatten(-dims).any(-1) | (value == float("-inf"))
        new_values = new_values.masked_fill(void, float("-inf"))
        values = values.scatter(0, first[None], float("-inf"))
        values = torch.cat([values, new_values])
        values, places = values.topk(min(left, len(values)), dim=0)
        trees, allowed = (
            torch.cat([a, b])[places, sentence] for a, b in ((trees, new), (allowed, classes))
        )
    values = torch.stack([value for value, _ in chosen])
    trees = torch.stack([tree for _, tree in chosen])
    if missing := k - len(chosen):
        values = torch.cat([values, values.new_full((missing, size), float("-inf"))])
        trees = torch.cat([trees, trees.new_zeros(missing, size, *event)])
    shapes = torch.Size((k,)) + batch
    return trees.reshape(shapes + event), values.reshape(shapes)


def _none(values: Tensor) -> bool:
    """Whether all are ``-inf``, as far as they may be read: then no structure is left to find."""
    return readable(values) and bool((values == float("-inf")).all())


def _over(mask: Tensor, dims: int) -> Tensor:
    """A mask ``(batch,)`` with dimensions of a structure behind it."""
    return mask.reshape(-1, *(1,) * dims)


def max_marginals(
    structure: StructureInterface, scores: Tensor, lengths: Tensor | None, **options: Any
) -> Tensor:
    """See `treelax.structures.Structure.max_marginals`: the best structure with each part forced."""
    structure.argmax(scores, lengths, **options)  # checks what it is given
    flat, lengths, batch = _flat(structure, scores, lengths)
    size, n = flat.shape[0], flat.shape[-1]
    if n == 0:
        return scores.detach()
    mask = structure.part_mask(lengths, n)
    unchecked = {**options, "validate": False}
    rows = []
    for row in range(n):  # a row of parts at a time: O(n³) memory a sentence
        parts = torch.zeros(n, n, n, dtype=torch.bool, device=flat.device)
        parts[:, row] = torch.eye(n, dtype=torch.bool, device=flat.device)
        rest = flat.masked_fill(~structure.compatible_parts(parts)[:, None], float("-inf"))
        best = structure.argmax(rest.reshape(-1, n, n), lengths.repeat(n), **unchecked)
        value = inner(best.reshape(n, size, n, n), rest)
        rows.append(value.T.masked_fill(~mask[:, row], float("-inf")))
    return torch.stack(rows, 1).reshape(batch + flat.shape[1:]).to(scores.dtype)


def all_heads(n: int) -> Tensor:
    """Every choice of a head for every word, ``(n^n, n+1, n+1)`` in float64."""
    check_count(n**n, n)
    heads = torch.zeros(1, 0, dtype=torch.int64)
    if n:
        choices = [torch.tensor([h for h in range(n + 1) if h != m]) for m in range(1, n + 1)]
        heads = torch.cartesian_prod(*choices).reshape(-1, n)
    return heads_to_tree(heads, dtype=torch.float64)


def check_count(count: int, n: int) -> None:
    """Raise if there are too many structures to list."""
    if count > MOST:
        many = f"{count:,}" if count < 10**12 else f"about 1e{len(str(count)) - 1}"
        raise InputError(
            f"{n} words have {many} structures to try; expected at most {MOST:,}: fewer words."
        )
