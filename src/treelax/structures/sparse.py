"""SparseMAP by a structure's argmax."""

from __future__ import annotations

from typing import Any, get_args

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.interface import BY_NAME, StructureInterface, StructureName
from treelax.ops import checks
from treelax.ops.internals import never_compiled
from treelax.ops.library import derivable, fake, no_context, operation
from treelax.ops.library import gradient as with_gradient
from treelax.ops.problems import Validate
from treelax.ops.sparsemap import face, plain
from treelax.ops.sparsemap.function import assembled, check_iterations, check_start, chosen_start
from treelax.ops.sparsemap.plain import Solution
from treelax.ops.sparsemap.result import SparseMap


def by_argmax(
    structure: StructureInterface,
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
    if lengths is None:
        lengths = structure.full_lengths(scores)
    lengths = lengths.reshape(structure.lengths_shape(torch.Size((batch.numel(),))))
    lengths = lengths.to(torch.int64)
    flat = scores.reshape(batch.numel(), *event)
    fixed = flat.detach()
    if start is not None:
        start = start.detach().reshape(flat.shape)
    start = chosen_start(fixed, best.reshape(flat.shape), start)
    how = max_iterations, derivable(scores), options.get("backend") or ""
    inner = getattr(structure, "structure", None)
    # an operation of torch takes no objects, so it finds the structure again by its name
    if inner is not None and type(inner) in [BY_NAME[name] for name in get_args(StructureName)]:
        root = getattr(inner, "single_root", False)
        solution = call_labelled(fixed, lengths, start, inner.name, root, *how)
    else:
        solution = _solve(structure, fixed, lengths, start, *how)
    return assembled(flat, Solution(*solution), batch, scores.dtype)


# the number of steps depends on the scores; torch.compiler.disable would import the compiler at once
@never_compiled
def _solve(
    structure: StructureInterface,
    scores: Tensor,
    lengths: Tensor,
    start: Tensor,
    max_iterations: int | None,
    gradient: bool,
    backend: str,
) -> Solution:
    """The solution for a flat batch from structures to start from; for a ``gradient`` with all that span
    its face."""
    event = scores.shape[1:]
    mask = structure.part_mask(lengths, *event).expand(scores.shape)

    def oracle(scores: Tensor, sentences: Tensor | None) -> Tensor:
        return structure.argmax(
            scores,
            lengths if sentences is None else lengths[sentences],
            validate=False,
            backend=backend or None,
        )

    ready = plain.prepared(scores, mask, structure.rooted)
    most, size = structure.most_parts(*event), structure.sizes(*event)[0]
    solution = plain.solve(ready, start, oracle, most, size, max_iterations)
    if gradient:
        solution = face.spanned(ready, solution, oracle)
    return plain.spoiled(solution, scores, mask)


@operation(
    "sparsemap_labelled(Tensor scores, Tensor lengths, Tensor start, str structure,"
    " bool single_root, int? max_iterations, bool gradient, str backend)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
def _labelled(
    scores: Tensor,
    lengths: Tensor,
    start: Tensor,
    structure: str,
    single_root: bool,
    max_iterations: int | None,
    gradient: bool,
    backend: str,
) -> tuple[Tensor, ...]:
    """The loop as an operation, for `torch.compile` and the transforms of `torch.func`."""
    kind = BY_NAME[structure]
    labelled = BY_NAME["labelled"](kind(single_root=True) if single_root else kind())
    how = max_iterations, gradient, backend
    return tuple(_solve(labelled, scores, lengths, start, *how))


@fake("sparsemap_labelled")
def _(scores: Tensor, lengths: Tensor, start: Tensor, structure: str, *others: Any) -> Any:
    batch, *event = scores.shape
    parts = BY_NAME[structure]().most_parts(*event[:-1])
    slots = torch.library.get_ctx().new_dynamic_size()
    wide = torch.float64
    return (
        scores.new_empty(scores.shape),
        scores.new_empty(batch, dtype=wide),
        lengths.new_empty(batch, slots, parts),
        scores.new_empty((batch, slots), dtype=wide),
        scores.new_empty((batch, slots, slots), dtype=wide),
    )


call_labelled = with_gradient("sparsemap_labelled", lambda ctx, *grads: (None,) * 8, no_context)


def check_member(
    structure: StructureInterface,
    start: Tensor,
    scores: Tensor,
    lengths: Tensor | None,
    validate: Validate,
) -> None:
    """Raise unless ``start`` fits the scores and holds structures over their sentences, as far as values
    are to be read and may be."""
    check_start(start, scores)
    if not validate or not checks.readable(start):
        return
    if lengths is None:
        lengths = structure.full_lengths(start)
    batch = start.shape[: -structure.event_dim]
    checks.check_lengths(lengths, structure.lengths_shape(batch), start.device)
    wrong = ~structure.contains(start, lengths)
    if bool(wrong.any()):
        at = int(wrong.reshape(-1).nonzero()[0, 0])
        raise InputError(
            f"start[{at}] (of the flattened batch) is no structure of {structure}; expected "
            f"{structure.rules}."
        )
