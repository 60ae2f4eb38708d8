"""The best few structures, the best with each part, and all of them, for any structure.

**K best** (Lawler 1972). Take the best structure out of the set of all and split the rest by where it
first differs: class ``i`` has parts 1 … i-1 of the best one and lacks part ``i``. Every class is a set
of the same kind with more parts forbidden, so its best member is found by the same algorithm; the next
best of all is the best of these, and its class is split in turn. The classes of all sentences go through
one call: K calls in all.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.interface import StructureInterface
from treelax.ops.backend import inner
from treelax.ops.checks import readable

MOST = 10**6  # structures that are enumerated


def _flat(
    structure: StructureInterface, scores: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor, torch.Size]:
    """Scores and lengths with one batch dimension, and the shape that it had."""
    dims = structure.event_dim
    batch, event = scores.shape[:-dims], scores.shape[-dims:]
    if lengths is None:
        lengths = structure.full_lengths(scores)
    lengths = lengths.reshape(structure.lengths_shape(torch.Size((batch.numel(),))))
    return scores.detach().reshape(batch.numel(), *event), lengths, batch


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
    # the best of each class, its score, and scores whose best structure it is: (classes, batch, ...)
    trees = best.reshape(1, size, *event)
    values = inner(trees, flat, dims)
    classes = flat[None]
    sentence = torch.arange(size, device=flat.device)
    chosen: list[tuple[Tensor, Tensor]] = []
    for left in range(k - 1, -1, -1):
        first = values.argmax(0)
        value, tree, narrowed = (x[first, sentence] for x in (values, trees, classes))
        chosen.append((value, tree.masked_fill(_over(value == -math.inf, dims), 0)))
        if not left or _none(value):
            break
        parts = structure.parts_of(tree)
        before = parts.cumsum(0, dtype=torch.int32) > parts.int()
        rest = structure.force(narrowed, before).masked_fill(parts, -math.inf)
        count = parts.shape[0]
        new = structure.argmax(rest.flatten(0, 1), _repeated(lengths, count), **unchecked)
        new = new.view_as(rest)
        new_values = inner(new, flat.masked_fill(rest == -math.inf, -math.inf), dims)
        # no structure is without a part that is none, or one that was forced, nor is any left of none
        void = ~(parts & (narrowed < math.inf)).flatten(-dims).any(-1) | (value == -math.inf)
        new_values = new_values.masked_fill(void, -math.inf)
        values = values.scatter(0, first[None], -math.inf)
        values = torch.cat([values, new_values])
        values, places = values.topk(min(left, len(values)), dim=0)
        trees, classes = (
            torch.cat([a, b])[places, sentence] for a, b in ((trees, new), (classes, rest))
        )
    values = torch.stack([value for value, _ in chosen])
    trees = torch.stack([tree for _, tree in chosen])
    if missing := k - len(chosen):
        values = torch.cat([values, values.new_full((missing, size), -math.inf)])
        trees = torch.cat([trees, trees.new_zeros(missing, size, *event)])
    shapes = torch.Size((k,)) + batch
    return trees.reshape(shapes + event), values.reshape(shapes)


def _none(values: Tensor) -> bool:
    """Whether all are ``-inf``, as far as they may be read: then no structure is left to find."""
    return readable(values) and bool((values == -math.inf).all())


def _over(mask: Tensor, dims: int) -> Tensor:
    """A mask ``(batch,)`` with dimensions of a structure behind it."""
    return mask.reshape(-1, *(1,) * dims)


def max_marginals(
    structure: StructureInterface, scores: Tensor, lengths: Tensor | None, **options: Any
) -> Tensor:
    """See `treelax.structures.Structure.max_marginals`: the best structure with each part forced."""
    structure.argmax(scores, lengths, **options)  # checks what it is given
    flat, lengths, _ = _flat(structure, scores, lengths)
    event = flat.shape[1:]
    if event.numel() == 0:
        return scores.detach()
    unchecked = {**options, "validate": False}
    found = []
    # as many parts at a time as there are in a row: of n² parts O(n³) memory a sentence
    for places in torch.arange(event.numel(), device=flat.device).split(event[-1]):
        parts = torch.zeros(len(places), event.numel(), dtype=torch.bool, device=flat.device)
        parts = parts.scatter(1, places[:, None], True).view(-1, 1, *event)
        rest = flat.masked_fill(~structure.compatible_parts(parts), -math.inf)
        best = structure.argmax(rest.flatten(0, 1), _repeated(lengths, len(places)), **unchecked)
        found.append(inner(best.view_as(rest), rest, len(event)))
    values = torch.cat(found).T.reshape(flat.shape)
    mask = structure.part_mask(lengths, *event)
    return values.masked_fill(~mask, -math.inf).reshape(scores.shape).to(scores.dtype)


def _repeated(lengths: Tensor, times: int) -> Tensor:
    """Lengths of a batch that stands in another one several times."""
    return lengths.repeat(times, *(1,) * (lengths.dim() - 1))


def check_count(count: int, n: int, units: str = "words") -> None:
    """Raise if there are too many structures to list."""
    if count > MOST:
        many = f"{count:,}" if count < 10**12 else f"about 1e{len(str(count)) - 1}"
        raise InputError(
            f"{n} {units} have {many} structures to try; expected at most {MOST:,}: fewer {units}."
        )
