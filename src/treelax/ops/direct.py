"""`soft_tree` in C++ or CUDA with as little Python as a gradient allows, for calls that nobody watches.

For short sentences Python takes longer than the kernels, the more so as these leave little of it in the
processor's caches: a function that is not called saves about a microsecond. Everything else goes through
`treelax.ops.function`, with the same results.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from treelax.ops import dispatch, function, native
from treelax.ops.backend import ALGORITHMS
from treelax.ops.library import unchanged, unwatched
from treelax.ops.native import Plan, pool
from treelax.ops.problems import raise_found


@functools.lru_cache(maxsize=256)
def plan(algorithm: str, backend: str, dtype: torch.dtype, batch: int, size: int) -> Plan | None:
    """None for what goes the long way: other backends, long sentences, calls without a word."""
    if batch == 0 or size == ALGORITHMS[algorithm].rooted:
        return None
    if dispatch.choose(backend, "cpu") != "native":
        return None
    found: Plan | None = dispatch.load(algorithm, "native").plan(dtype, batch, size)
    return found


native.caches.append(plan)


class _SoftTree(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        lengths: Tensor,
        own: Plan,
        algorithm: str,
        relaxation: str,
        single_root: bool,
        validate: bool,
    ) -> tuple[Tensor, Tensor]:
        batch, size, _ = scores.shape
        tree, value = torch.empty_like(scores), scores.new_empty(batch)
        chart = None
        if ctx is not None:
            saved = pool.empty(own.saved, scores.dtype)
            chart = saved.data_ptr()
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(scores, saved, lengths)
            ctx.options = own, algorithm, relaxation, single_root
        status = own.forward(
            *(scores.data_ptr(), lengths.data_ptr(), batch, size, relaxation == "entropy"),
            *(single_root, tree.data_ptr(), value.data_ptr(), chart),
            *(torch.get_num_threads(), None),
        )
        if status:
            native.look_at(status, lengths, size, algorithm != "cky")
            if validate:
                function.explain(ALGORITHMS[algorithm], scores, lengths, value)
        return tree, value

    @staticmethod
    def backward(ctx: Any, grad_tree: Any, grad_value: Any) -> Any:
        return _gradient(ctx, grad_tree, grad_value, "native", _native_backward)


def _native_backward(
    ctx: Any, grad_tree: Tensor, grad_value: Tensor | None, saved: Tensor, lengths: Tensor
) -> Tensor:
    own, algorithm, relaxation, single_root = ctx.options
    batch, size, _ = grad_tree.shape
    saved = native.aligned(unchanged("the chart", saved, (own.saved,), grad_tree))
    grad = torch.empty_like(grad_tree)
    status = own.backward(
        *(grad_tree.data_ptr(), None if grad_value is None else grad_value.data_ptr()),
        *(saved.data_ptr(), lengths.data_ptr(), batch, size, relaxation == "entropy"),
        *(single_root, grad.data_ptr(), torch.get_num_threads(), None),
    )
    if status:
        native.look_at(status, lengths, size, algorithm != "cky")
    return grad


class _OnGPU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        lengths: Tensor,
        module: Any,
        algorithm: str,
        relaxation: str,
        single_root: bool,
        validate: bool,
    ) -> tuple[Tensor, Tensor]:
        tree, value, saved = module.soft_tree(
            scores, lengths, relaxation, single_root, ctx is not None, validate
        )
        if ctx is not None:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(scores, saved, lengths)
            ctx.options = module, algorithm, relaxation, single_root
        return tree, value

    @staticmethod
    def backward(ctx: Any, grad_tree: Any, grad_value: Any) -> Any:
        return _gradient(ctx, grad_tree, grad_value, "cuda", _gpu_backward)


def _gpu_backward(
    ctx: Any, grad_tree: Tensor, grad_value: Tensor | None, saved: Tensor, lengths: Tensor
) -> Tensor:
    module, _, relaxation, single_root = ctx.options
    raise_found(grad_tree.device)
    batch, size, _ = grad_tree.shape
    shape = module.saved_shape(batch, size, grad_tree.dtype)
    saved = unchanged("the chart", saved, shape, grad_tree)
    grad: Tensor = module.soft_tree_backward(
        grad_tree, grad_value, saved, lengths, relaxation, single_root
    )
    return grad


def _gradient(ctx: Any, grad_tree: Any, grad_value: Any, backend: str, direct: Any) -> Any:
    """What both have in common; the long way where a second derivative or somebody who watches is."""
    scores, saved, lengths = ctx.saved_tensors
    if grad_tree is None:
        if grad_value is None:
            return (None,) * 7
        grad_tree = grad_value.new_zeros(scores.shape)
    if torch.is_grad_enabled() or not unwatched(grad_tree):
        grad = function.call_soft_tree_backward(
            *(grad_tree, grad_value, scores, saved, lengths), *ctx.options[1:], backend
        )
        return grad, *(None,) * 6
    grad_tree = grad_tree.contiguous()
    lengths = unchanged("lengths", lengths, grad_tree.shape[:1], grad_tree, torch.int64)
    if grad_value is not None:
        grad_value = grad_value.contiguous()
    return direct(ctx, grad_tree, grad_value, saved, lengths), *(None,) * 6


# what `apply` comes down to where no transform of functorch is active
_apply: Any = super(torch.autograd.Function, _SoftTree).apply
_apply_on_gpu: Any = super(torch.autograd.Function, _OnGPU).apply


def soft_tree(
    scores: Tensor,
    lengths: Tensor,
    algorithm: str,
    relaxation: str,
    single_root: bool,
    backend: str,
    validate: bool,
    save: bool,
) -> tuple[Tensor, Tensor]:
    """Soft tree and value of the chart; the arguments are those of `treelax.ops.function.soft_tree`."""
    if not unwatched(scores) or forward_ad._current_level >= 0:
        pass
    elif scores.is_cuda:
        name, module = dispatch.find(algorithm, backend, "cuda")
        if name == "cuda" and scores.shape[0] and scores.shape[1] > 1:
            if validate:
                raise_found(scores.device)
            options = (scores, lengths, module, algorithm, relaxation, single_root, validate)
            return _apply_on_gpu(*options) if save else _OnGPU.forward(None, *options)
    elif scores.is_cpu:
        batch, size, _ = scores.shape
        own = plan(algorithm, backend, scores.dtype, batch, size)
        if own is not None:
            options = (scores, lengths, own, algorithm, relaxation, single_root, validate)
            found: tuple[Tensor, Tensor] = (
                _apply(*options) if save else _SoftTree.forward(None, *options)
            )
            return found
    tree, value, _ = function.call_soft_tree(
        scores, lengths, algorithm, relaxation, single_root, backend, validate, save
    )
    return tree, value
