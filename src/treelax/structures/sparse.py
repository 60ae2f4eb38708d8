"""SparseMAP by a structure's own argmax, and of words on their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.ops import checks, select_heads
from treelax.ops.canonical import canonical
from treelax.ops.library import derivable
from treelax.ops.problems import Validate
from treelax.ops.sparsemap import columns, face, plain
from treelax.ops.sparsemap.function import assembled, check_iterations, check_start, chosen_start
from treelax.ops.sparsemap.result import SparseMap

if TYPE_CHECKING:
    from treelax.structures.base import Structure


# the number of steps depends on the scores; torch.compiler.disable would import the compiler at once
@torch._disable_dynamo  # type: ignore[attr-defined, untyped-decorator, unused-ignore]
def by_argmax(
    structure: Structure,
    scores: Tensor,
    lengths: Tensor | None,
    start: Tensor | None,
    max_iterations: int | None,
    **options: Any,
) -> SparseMap:
    """See `treelax.structures.Structure.sparsemap`."""
    check_iterations(max_iterations)
    best = structure.argmax(scores, lengths, **options)  # checks what it is given
    dims = structure.event_dim
    batch, event = scores.shape[:-dims], scores.shape[-dims:]
    words = event[0] - structure.rooted
    if lengths is None:
        lengths = torch.full(batch, words, dtype=torch.int64, device=scores.device)
    lengths = lengths.reshape(-1)
    flat = scores.reshape(batch.numel(), *event)
    fixed = flat.detach()
    if start is not None:
        check_start(start, scores)
        start = start.detach().reshape(flat.shape)
    mask = structure.part_mask(lengths, event[0]).expand(flat.shape)
    unchecked = {**options, "validate": False}

    def oracle(own: Tensor, sentences: Tensor | None) -> Tensor:
        return structure.argmax(
            own, lengths if sentences is None else lengths[sentences], **unchecked
        )

    ready = plain.prepared(fixed, mask, structure.rooted)
    found = plain.solve(
        ready,
        chosen_start(fixed, best.reshape(flat.shape), start),
        oracle,
        int(structure.part_count(torch.tensor(words))),
        words,
        max_iterations,
    )
    if derivable(scores):
        found = face.spanned(ready, found, oracle)
    return assembled(flat, plain.spoiled(found, fixed, mask), batch, scores.dtype)


def check_member(
    structure: Structure, start: Tensor, scores: Tensor, lengths: Tensor | None
) -> None:
    """Raise unless ``start`` holds structures over their sentences, as far as values may be read."""
    check_start(start, scores)
    if torch.compiler.is_compiling() or not checks.readable(start):
        return
    batch = start.shape[: start.dim() - structure.event_dim]
    if lengths is None:
        words = start.shape[-structure.event_dim] - structure.rooted
        lengths = torch.full(batch, words, dtype=torch.int64, device=start.device)
    checks.check_lengths(lengths, batch, start.device)
    wrong = ~structure.contains(start, lengths)
    if bool(wrong.any()):
        at = int(wrong.reshape(-1).nonzero()[0, 0])
        raise InputError(
            f"start[{at}] (of the flattened batch) is no structure of {structure}; expected "
            f"{structure.rules}."
        )


def by_word(
    scores: Tensor,
    lengths: Tensor | None,
    start: Tensor | None,
    max_iterations: int | None,
    validate: Validate = True,
) -> SparseMap:
    """The projection of every word's heads on the simplex: one step, from wherever one starts."""
    check_iterations(max_iterations)
    if start is not None:
        check_start(start, scores)
    if validate:
        select_heads(scores.detach(), lengths, hard=True, validate=validate)
    form = canonical(scores, lengths)
    tree, gap = columns.project(form.scores, form.lengths)

    def mixture() -> tuple[Tensor, Tensor]:
        indices, weights = columns.mixture(tree.detach(), form.lengths)
        return indices.reshape(form.batch_shape + indices.shape[1:]), form.restore(weights)

    return SparseMap(form.restore(tree), form.restore(gap), mixture)
