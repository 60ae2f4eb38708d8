"""SparseMAP as custom operations, and calls from Python.

`sparsemap` finds the trees and the point; `sparsemap_point` returns the point again, tied to the scores
by its gradient. So structures whose support is found elsewhere have the same gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.ops import dispatch
from treelax.ops.backend import Algorithm, Batch
from treelax.ops.call import Call
from treelax.ops.function import SETTINGS, Settings, call_best_tree
from treelax.ops.library import (
    derivable,
    fake,
    gradient,
    no_context,
    no_second_derivative,
    operation,
    unchanged,
)
from treelax.ops.sparsemap import face, plain
from treelax.ops.sparsemap.plain import Oracle, Solution
from treelax.ops.sparsemap.result import SparseMap

#: Backends with the whole loop in a kernel; the others have their best trees in that of `plain`.
FAST = ("native", "triton")


def check_iterations(max_iterations: int | None) -> None:
    """Raise unless it is a whole number or None."""
    if max_iterations is not None and (
        isinstance(max_iterations, bool)
        or not isinstance(max_iterations, int)
        or max_iterations < 0
    ):
        raise InputError(
            f"max_iterations is {max_iterations!r}; expected a whole number of at least 0, or None "
            "for as many as it takes."
        )


def check_start(start: Any, scores: Tensor) -> None:
    """Raise unless ``start`` is a tensor of the scores' shape and device."""
    if not isinstance(start, Tensor):
        raise InputError(f"start is a {type(start).__name__}; expected a torch.Tensor or None.")
    if start.shape != scores.shape or start.device != scores.device:
        raise InputError(
            f"start has shape {tuple(start.shape)} on {start.device}; expected "
            f"{tuple(scores.shape)} on {scores.device}, as scores."
        )


# ── sparsemap ────────────────────────────────────────────────────────────────────────────────────


@operation(
    f"sparsemap(Tensor scores, Tensor lengths, Tensor start, {SETTINGS},"
    " int? max_iterations, bool gradient) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
def _sparsemap(
    scores: Tensor, lengths: Tensor, start: Tensor, *others: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The solution from a tree to start from; scores and lengths have been checked.

    For a ``gradient`` it has all the trees that span its face.
    """
    *given, max_iterations, gradient = others
    settings = Settings(*given)
    single_root, device = settings.single_root, scores.device.type
    algorithm, name, _ = dispatch.find(settings.algorithm, settings.backend, device)
    name = name.replace("cuda", "triton")
    parts = algorithm.parts(lengths, scores.shape[-1])
    ready = plain.prepared(scores, parts, algorithm.rooted)
    lengths = lengths.contiguous()  # those of torch.vmap need not be
    size = scores.shape[-1]
    best = oracle(algorithm, lengths, single_root, name)
    if algorithm.no_words(scores.shape):
        solution = _nothing(ready, algorithm.most_parts(size))
    elif name in FAST:
        module = dispatch.load("sparsemap", name)
        solution = module.solve(ready, lengths, start, algorithm, single_root, max_iterations)
    else:
        most, (words,) = algorithm.most_parts(size), algorithm.room(size)
        solution = plain.solve(ready, start, best, most, words, max_iterations)
    if gradient:
        solution = face.spanned(ready, solution, best)
    return tuple(plain.spoiled(solution, scores, parts))  # type: ignore[return-value]


def oracle(algorithm: Algorithm, lengths: Tensor, single_root: bool, backend: str) -> Oracle:
    """The best trees by a backend."""
    module = dispatch.load(algorithm.name, backend)

    def best(scores: Tensor, sentences: Tensor | None) -> Tensor:
        words = lengths if sentences is None else lengths[sentences]
        given = Batch(scores.contiguous(), words, single_root=single_root)
        tree: Tensor = module.best_tree(given)[0]
        return tree

    return best


def _nothing(scores: Tensor, parts: int) -> Solution:
    """Of no sentence, or of sentences without a word."""
    batch = scores.shape[0]
    return Solution(
        scores.new_zeros(scores.shape),
        scores.new_zeros(batch),
        scores.new_full((batch, 1, parts), scores[0].numel() if batch else 0, dtype=torch.int64),
        scores.new_ones(batch, 1),
        scores.new_zeros(batch, 1, 1),
    )


@fake("sparsemap")
def _(scores: Tensor, lengths: Tensor, start: Any, algorithm: str, *others: Any) -> Any:
    batch, size, _ = scores.shape
    slots = torch.library.get_ctx().new_dynamic_size()
    wide = torch.float64
    return (
        scores.new_empty(scores.shape),
        scores.new_empty(batch, dtype=wide),
        lengths.new_empty(batch, slots, dispatch.described(algorithm).most_parts(size)),
        scores.new_empty((batch, slots), dtype=wide),
        scores.new_empty((batch, slots, slots), dtype=wide),
    )


call_sparsemap = gradient("sparsemap", lambda ctx, *grads: (None,) * 10, no_context)


# ── sparsemap_point ──────────────────────────────────────────────────────────────────────────────


@operation(
    "sparsemap_point(Tensor scores, Tensor tree, Tensor gap, Tensor indices, Tensor inverse)"
    " -> Tensor"
)
def _point(scores: Tensor, tree: Tensor, gap: Tensor, indices: Tensor, inverse: Tensor) -> Tensor:
    """The tree, whose gradient with respect to the scores is that of the projection."""
    return tree.clone()


@fake("sparsemap_point")
def _(scores: Tensor, tree: Tensor, *others: Any) -> Tensor:
    return tree.new_empty(tree.shape)


@operation(
    "sparsemap_backward(Tensor grad, Tensor scores, Tensor gap, Tensor indices, Tensor inverse)"
    " -> Tensor"
)
def _backward(
    grad: Tensor, scores: Tensor, gap: Tensor, indices: Tensor, inverse: Tensor
) -> Tensor:
    """``Z S Zᵀ g``; ``scores`` tie the result to them, so that a second derivative is noticed."""
    shape = tuple(grad.shape)
    unchanged("scores", scores, shape, grad)
    batch, slots, parts = indices.shape
    indices = unchanged("the support", indices, (batch, slots, parts), grad, torch.int64)
    inverse = unchanged("the inverse", inverse, (batch, slots, slots), grad, inverse.dtype)
    if grad.numel() == 0 or parts == 0:
        return torch.zeros_like(grad)
    if grad.is_cuda and dispatch.choose("", "cuda") != "diagonal":
        module = dispatch.load("sparsemap", "triton")
    else:
        module = plain
    wide = grad.to(inverse.dtype)
    result = module.backward(wide, indices, inverse)
    # the second step gives back the digits that the updates of the inverse lost
    result += module.backward(wide - result, indices, inverse)
    # a sentence with NaN in its scores
    return result.to(grad.dtype) + torch.where(gap.isnan(), gap, 0).to(grad.dtype).view(
        -1, *(1,) * (grad.dim() - 1)
    )


@fake("sparsemap_backward")
def _(grad: Tensor, *others: Any) -> Tensor:
    return grad.new_empty(grad.shape)


def _point_context(ctx: Any, inputs: Any, output: Any) -> None:
    scores, _, gap, indices, inverse = inputs
    ctx.save_for_backward(scores, gap, indices, inverse)


def _point_grad(ctx: Any, grad: Tensor) -> Any:
    return call_backward(grad, *ctx.saved_tensors), *(None,) * 4


call_point = gradient("sparsemap_point", _point_grad, _point_context)
call_backward = no_second_derivative("sparsemap_backward")


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def chosen_start(scores: Tensor, best: Tensor, start: Tensor | None) -> Tensor:
    """Trees to start from: those given, or the best where a given one has a forbidden part.

    A sentence with NaN gets no parts.
    """
    if start is not None:
        wrong = ((start != 0) & (scores == float("-inf"))).flatten(1).any(1)
        best = torch.where(wrong.view(-1, *(1,) * (best.dim() - 1)), best, start.to(best.dtype))
    return best.masked_fill(best.flatten(1).isnan().any(1).view(-1, *(1,) * (best.dim() - 1)), 0)


def assembled(
    scores: Tensor, solution: Solution, batch: torch.Size, dtype: torch.dtype
) -> SparseMap:
    """The result in the caller's form, tied to the scores."""
    tree = call_point(scores, solution.tree, solution.gap, solution.indices, solution.inverse)
    tree, gap, indices, weights = (
        x.reshape(batch + x.shape[1:])
        for x in (tree, solution.gap, solution.indices, solution.weights)
    )

    def mixture() -> tuple[Tensor, Tensor]:
        # without the trees that only the gradient needs
        unused = (weights == 0)[..., None]
        return indices.masked_fill(unused, scores[0].numel()), weights.to(dtype)

    return SparseMap(tree.to(dtype), gap.to(dtype), mixture)


def sparsemap(call: Call, start: Tensor | None, max_iterations: int | None) -> SparseMap:
    """The point of the trees' polytope nearest to the scores, and the few trees that it mixes; see
    `treelax.structures.Structure.sparsemap`."""
    check_iterations(max_iterations)
    scores = call.scores.detach()
    if start is not None:
        start = start.detach().reshape(scores.shape)
    # raises for what is wrong with the scores
    best = call_best_tree(scores, call.lengths, *call.settings)
    call.wait()
    start = chosen_start(scores, best, start)
    options = *call.settings, max_iterations, derivable(call.scores)
    solution = call_sparsemap(scores, call.lengths, start, *options)
    return assembled(call.scores, Solution(*solution), call.batch_shape, call.dtype)
