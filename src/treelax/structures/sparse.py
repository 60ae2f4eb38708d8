"""SparseMAP by a structure's argmax."""

from __future__ import annotations

from dataclasses import fields
from operator import index
from typing import Any

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.interface import StructureInterface
from treelax.ops import checks
from treelax.ops.internals import constant_in_graphs
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
    compiling = torch.compiler.is_compiling()
    number = _number_while_traced(_settings(structure)) if compiling else _number(structure)
    solution = call_by_argmax(fixed, lengths, start, number, *how)
    return assembled(flat, Solution(*solution), batch, scores.dtype)


#: Operations of torch take no objects: they find a structure by its place here.
_known: list[StructureInterface] = []


def _number(structure: StructureInterface) -> str:
    """The place of a structure among those known."""
    if structure not in _known:
        _known.append(structure)
    return str(_known.index(structure))


def _settings(structure: StructureInterface) -> tuple[Any, ...]:
    """Class and fields of a structure: constants, which `torch.compile` can pass on, unlike objects."""

    def constant(value: Any) -> Any:
        if isinstance(value, StructureInterface):
            return _settings(value)
        return index(value) if type(value) is int else value  # of two numbers it makes a symbol

    names = [field.name for field in fields(structure)]  # type: ignore[arg-type]
    return type(structure), *(constant(getattr(structure, name)) for name in names)


@constant_in_graphs
def _number_while_traced(settings: tuple[Any, ...]) -> str:
    def made(kind: Any, *values: Any) -> Any:
        return kind(*(made(*value) if isinstance(value, tuple) else value for value in values))

    return _number(made(*settings))


@operation(
    "sparsemap_by_argmax(Tensor scores, Tensor lengths, Tensor start, str structure,"
    " int? max_iterations, bool gradient, str backend) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
def _by_argmax(
    scores: Tensor,
    lengths: Tensor,
    start: Tensor,
    number: str,
    max_iterations: int | None,
    gradient: bool,
    backend: str,
) -> tuple[Tensor, ...]:
    """The solution for a flat batch from structures to start from; for a ``gradient`` with all that span
    its face."""
    structure = _known[int(number)]
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
    return tuple(plain.spoiled(solution, scores, mask))


@fake("sparsemap_by_argmax")
def _(scores: Tensor, lengths: Tensor, *others: Any) -> Any:
    batch = scores.shape[0]
    slots, parts = (torch.library.get_ctx().new_dynamic_size() for _ in range(2))
    wide = torch.float64
    return (
        scores.new_empty(scores.shape),
        scores.new_empty(batch, dtype=wide),
        lengths.new_empty(batch, slots, parts),
        scores.new_empty((batch, slots), dtype=wide),
        scores.new_empty((batch, slots, slots), dtype=wide),
    )


call_by_argmax = with_gradient("sparsemap_by_argmax", lambda ctx, *grads: (None,) * 7, no_context)


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
