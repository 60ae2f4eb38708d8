"""The custom operations on trees: schemas, fake kernels, gradients.

Operations take the canonical form of `treelax.ops.backend` and the name of an algorithm, a folder of
ops whose backends they run. From Python they are called by the functions ``call_…``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.ops import checks, dispatch, native, problems
from treelax.ops.backend import ALGORITHMS, NO_TREE, Algorithm, Backend, spoil
from treelax.ops.library import (
    fake,
    fold,
    gradient,
    needs_saved,
    no_context,
    no_second_derivative,
    operation,
    unchanged,
)

#: Backends that themselves check the lengths before they touch memory, and write NaN for NaN.
KERNELS = ("native", "triton", "cuda")


def resolve(algorithm: str, backend: str, device: torch.device) -> tuple[Algorithm, str, Backend]:
    """Algorithm, name and module of the backend to run."""
    name, module = dispatch.find(algorithm, backend, device.type)
    return ALGORITHMS[algorithm], name, module


def no_words(algorithm: Algorithm, scores: Tensor) -> bool:
    """Whether there is nothing to compute: no sentence, or none with room for a word."""
    batch, size, _ = scores.shape
    return batch == 0 or size == algorithm.rooted


def before(
    algorithm: Algorithm, scores: Tensor, lengths: Tensor, backend: str, validate: bool
) -> tuple[Tensor, Tensor]:
    """Scores and lengths as a backend takes them, which trusts them with memory."""
    batch, size, width = scores.shape
    if size != width or scores.dtype not in (torch.float32, torch.float64):
        raise InputError(
            f"scores is {scores.dtype} {tuple(scores.shape)}; expected float32 or float64 and square "
            "matrices. Call treelax.ops, which sees to it."
        )
    if lengths.shape != (batch,) or lengths.dtype != torch.int64:
        raise InputError(
            f"lengths has shape {tuple(lengths.shape)} and dtype {lengths.dtype}; expected "
            f"({batch},) and int64. Call treelax.ops, which sees to it."
        )
    looks_itself = backend in KERNELS and batch != 0 and size != algorithm.rooted
    if validate and looks_itself:
        problems.raise_found(scores.device)
    elif validate and checks.readable(lengths):
        checks.check_length_values(lengths, size, algorithm.rooted)
    return scores.contiguous(), lengths.contiguous()


def after(
    algorithm: Algorithm,
    scores: Tensor,
    lengths: Tensor,
    value: Tensor,
    backend: str,
    validate: bool,
    *trees: Tensor,
) -> None:
    """NaN where the input has it, and a word on what was wrong: soon, where the GPU's kernels look."""
    if backend == "native":
        # the kernel has seen every score and every value
        if validate and native.suspicious():
            explain(algorithm, scores, lengths, value)
        return
    if backend in KERNELS:
        if validate:
            problems.look(algorithm, scores, lengths, value)
            if not scores.is_cuda:  # Triton's interpreter
                problems.raise_found(scores.device)
        return
    spoil(scores, algorithm.parts(lengths, scores.shape[-1]), value, *trees)
    if validate and value.numel() and checks.readable(value):
        good = (value > NO_TREE).all() & (scores.amax() < float("inf"))  # false for NaN too
        if not good:
            explain(algorithm, scores, lengths, value)


def explain(algorithm: Algorithm, scores: Tensor, lengths: Tensor, value: Tensor) -> None:
    """Find out why a result looks wrong and raise the error that says so.

    Called only when something is suspicious, so it may be slow and read values.
    """
    checks.check_length_values(lengths, scores.shape[-1], algorithm.rooted)
    parts = algorithm.parts(lengths, scores.shape[-1])
    checks.check_finite(scores, parts, algorithm.part)
    suspects = (~(value > NO_TREE)).nonzero()[:, 0]
    if len(suspects):
        b = int(suspects[0])
        forbidden = int(((scores[b] == float("-inf")) & parts[b]).sum())
        raise algorithm.no_tree(b, int(lengths[b]), forbidden)


# ── soft_tree ────────────────────────────────────────────────────────────────────────────────────


@operation(
    "soft_tree(Tensor scores, Tensor lengths, str algorithm, str relaxation, bool single_root,"
    " str backend, bool validate, bool save) -> (Tensor, Tensor, Tensor)"
)
def soft_tree(
    scores: Tensor,
    lengths: Tensor,
    algorithm: str,
    relaxation: str,
    single_root: bool,
    backend: str,
    validate: bool,
    save: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Soft tree, value of the chart, and what the backward pass needs (empty unless ``save``)."""
    kind, name, module = resolve(algorithm, backend, scores.device)
    scores, lengths = before(kind, scores, lengths, name, validate)
    if no_words(kind, scores):
        options = (algorithm, relaxation, single_root, backend, validate, save)
        made = _soft_tree_fake(scores, lengths, *options)
        return made[0].zero_(), made[1].zero_(), made[2].zero_()
    tree, value, saved = module.soft_tree(scores, lengths, relaxation, single_root, save)
    after(kind, scores, lengths, value, name, validate, tree)
    return tree, value, saved


@fake("soft_tree")
def _soft_tree_fake(
    scores: Tensor,
    lengths: Tensor,
    algorithm: str,
    relaxation: str,
    single_root: bool,
    backend: str,
    validate: bool,
    save: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    batch, size, _ = scores.shape
    shape: tuple[int, ...] = (0,)
    if save:
        module = resolve(algorithm, backend, scores.device)[2]
        shape = module.saved_shape(batch, size, scores.dtype)
    return scores.new_empty(scores.shape), scores.new_empty(batch), scores.new_empty(shape)


@operation(
    "soft_tree_backward(Tensor grad_tree, Tensor? grad_value, Tensor scores, Tensor saved,"
    " Tensor lengths, str algorithm, str relaxation, bool single_root, str backend) -> Tensor"
)
def soft_tree_backward(
    grad_tree: Tensor,
    grad_value: Tensor | None,
    scores: Tensor,
    saved: Tensor,
    lengths: Tensor,
    algorithm: str,
    relaxation: str,
    single_root: bool,
    backend: str,
) -> Tensor:
    """``scores`` tie the result to them, so that a second derivative is noticed."""
    kind, name, module = resolve(algorithm, backend, grad_tree.device)
    if no_words(kind, grad_tree):
        return torch.zeros_like(grad_tree)
    problems.raise_found(grad_tree.device)
    batch, size, _ = grad_tree.shape
    unchanged("scores", scores, (batch, size, size), grad_tree)
    lengths = unchanged("lengths", lengths, (batch,), grad_tree, torch.int64)
    if grad_value is not None:
        grad_value = grad_value.contiguous()
    elif name not in ("native", "cuda"):
        grad_value = grad_tree.new_zeros(batch)
    grad = module.soft_tree_backward(
        grad_tree.contiguous(),
        grad_value,
        unchanged("the chart", saved, module.saved_shape(batch, size, grad_tree.dtype), grad_tree),
        lengths,
        relaxation,
        single_root,
    )
    if name not in KERNELS:
        spoil(scores, kind.parts(lengths, size), grad)
    return grad


@fake("soft_tree_backward")
def _(grad_tree: Tensor, *others: Any) -> Tensor:
    return grad_tree.new_empty(grad_tree.shape)


def _soft_tree_context(ctx: Any, inputs: Any, output: Any) -> None:
    scores, lengths, algorithm, relaxation, single_root, backend, _, save = inputs
    needs_saved("soft_tree", save)
    ctx.set_materialize_grads(False)  # or autograd would fill a gradient the size of `saved`
    ctx.mark_non_differentiable(output[2])
    ctx.save_for_backward(scores, output[2], lengths)
    ctx.options = (algorithm, relaxation, single_root, backend)


def _soft_tree_grad(ctx: Any, grad_tree: Any, grad_value: Any, grad_saved: Any) -> Any:
    scores, saved, lengths = ctx.saved_tensors
    if grad_tree is None and grad_value is None:
        return (None,) * 8
    if grad_tree is None:
        grad_tree = grad_value.new_zeros(scores.shape)
    grad = call_soft_tree_backward(grad_tree, grad_value, scores, saved, lengths, *ctx.options)
    return grad, *(None,) * 7


def _soft_tree_vmap(
    call: Any, info: Any, in_dims: Any, scores: Any, lengths: Any, *rest: Any
) -> Any:
    """As `folded`; the chart, whose sentences lie side by side, stays that of the whole batch."""
    size = info.batch_size
    tree, value, saved = call(
        fold(scores, in_dims[0], size), fold(lengths, in_dims[1], size), *rest
    )
    return (tree.unflatten(0, (size, -1)), value.unflatten(0, (size, -1)), saved), (0, 0, None)


def _soft_tree_backward_vmap(call: Any, info: Any, in_dims: Any, *inputs: Any) -> Any:
    size = info.batch_size
    if in_dims[2] is None and in_dims[4] is None:  # many gradients through one chart
        own = [
            [x if dim is None else x.select(dim, i) for x, dim in zip(inputs, in_dims, strict=True)]
            for i in range(size)
        ]
        return torch.stack([call(*one) for one in own]), 0
    saved = inputs[3]
    parts = [
        fold(x, dim, size) if isinstance(x, Tensor) and x is not saved else x
        for x, dim in zip(inputs, in_dims, strict=True)
    ]
    return call(*parts).unflatten(0, (size, -1)), 0


call_soft_tree = gradient("soft_tree", _soft_tree_grad, _soft_tree_context, _soft_tree_vmap)
call_soft_tree_backward = no_second_derivative("soft_tree_backward", _soft_tree_backward_vmap)


# ── log_partition ────────────────────────────────────────────────────────────────────────────────


@operation(
    "log_partition(Tensor scores, Tensor lengths, str algorithm, bool single_root, str backend,"
    " bool validate, bool save) -> (Tensor, Tensor)"
)
def log_partition(
    scores: Tensor,
    lengths: Tensor,
    algorithm: str,
    single_root: bool,
    backend: str,
    validate: bool,
    save: bool,
) -> tuple[Tensor, Tensor]:
    """Log-partition, and its gradient, the marginals (empty unless ``save``)."""
    kind, name, module = resolve(algorithm, backend, scores.device)
    scores, lengths = before(kind, scores, lengths, name, validate)
    if no_words(kind, scores):
        options = (algorithm, single_root, backend, validate, save)
        made = _log_partition_fake(scores, lengths, *options)
        return made[0].zero_(), made[1].zero_()
    if save:
        marginals, value, _ = module.soft_tree(scores, lengths, "entropy", single_root, False)
    else:
        value = module.log_partition(scores, lengths, single_root)
        marginals = scores.new_empty(0)
    after(kind, scores, lengths, value, name, validate, *([marginals] if save else []))
    return value, marginals


@fake("log_partition")
def _log_partition_fake(
    scores: Tensor,
    lengths: Tensor,
    algorithm: str,
    single_root: bool,
    backend: str,
    validate: bool,
    save: bool,
) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape[0]), scores.new_empty(scores.shape if save else (0,))


@operation("log_partition_backward(Tensor grad_value, Tensor scores, Tensor marginals) -> Tensor")
def log_partition_backward(grad_value: Tensor, scores: Tensor, marginals: Tensor) -> Tensor:
    """``scores`` only ties the result to them, so that a second derivative is noticed."""
    shape = (grad_value.shape[0], scores.shape[1], scores.shape[1])
    unchanged("scores", scores, shape, grad_value)
    marginals = unchanged("the marginals", marginals, shape, grad_value)
    return grad_value[:, None, None] * marginals


@fake("log_partition_backward")
def _(grad_value: Tensor, scores: Tensor, marginals: Tensor) -> Tensor:
    return marginals.new_empty(marginals.shape)


def _log_partition_context(ctx: Any, inputs: Any, output: Any) -> None:
    needs_saved("log_partition", inputs[-1])
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(inputs[0], output[1])


def _log_partition_grad(ctx: Any, grad_value: Any, grad_marginals: Any) -> Any:
    scores, marginals = ctx.saved_tensors
    grad = None
    if grad_value is not None:
        grad = call_log_partition_backward(grad_value, scores, marginals)
    return grad, *(None,) * 6


call_log_partition = gradient("log_partition", _log_partition_grad, _log_partition_context)
call_log_partition_backward = no_second_derivative("log_partition_backward")


# ── best_tree and sample_tree: piecewise constant, so their gradient is nothing ──────────────────


@operation(
    "best_tree(Tensor scores, Tensor lengths, str algorithm, bool single_root, str backend,"
    " bool validate) -> Tensor"
)
def best_tree(
    scores: Tensor,
    lengths: Tensor,
    algorithm: str,
    single_root: bool,
    backend: str,
    validate: bool,
) -> Tensor:
    """The best tree."""
    kind, name, module = resolve(algorithm, backend, scores.device)
    scores, lengths = before(kind, scores, lengths, name, validate)
    if no_words(kind, scores):
        return scores.new_zeros(scores.shape)
    tree, value = module.best_tree(scores, lengths, single_root)
    after(kind, scores, lengths, value, name, validate, tree)
    return tree


@fake("best_tree")
def _(scores: Tensor, *others: Any) -> Tensor:
    return scores.new_empty(scores.shape)


@operation(
    "sample_tree(Tensor scores, Tensor lengths, Tensor uniforms, str algorithm, bool single_root,"
    " str backend, bool validate) -> Tensor"
)
def sample_tree(
    scores: Tensor,
    lengths: Tensor,
    uniforms: Tensor,
    algorithm: str,
    single_root: bool,
    backend: str,
    validate: bool,
) -> Tensor:
    """Samples ``(S, B, N, N)`` from ``uniforms`` ``(S, B, decisions)``."""
    kind, name, module = resolve(algorithm, backend, scores.device)
    scores, lengths = before(kind, scores, lengths, name, validate)
    if uniforms.shape[0] == 0 or no_words(kind, scores):
        return scores.new_zeros((uniforms.shape[0], *scores.shape))
    trees, value = module.sample_tree(
        scores, lengths, uniforms.to(scores.dtype).contiguous(), single_root
    )
    after(kind, scores, lengths, value, name, validate, trees)
    return trees


@fake("sample_tree")
def _(scores: Tensor, lengths: Tensor, uniforms: Tensor, *others: Any) -> Tensor:
    return scores.new_empty((uniforms.shape[0], *scores.shape))


def _sample_tree_vmap(
    call: Any, info: Any, in_dims: Any, scores: Any, lengths: Any, uniforms: Any, *rest: Any
) -> Any:
    """As `folded`, where samples come before sentences."""
    size = info.batch_size
    trees = call(
        fold(scores, in_dims[0], size),
        fold(lengths, in_dims[1], size),
        fold(uniforms, in_dims[2], size, batch=1),
        *rest,
    )
    return trees.unflatten(1, (size, -1)), 1


call_best_tree = gradient("best_tree", lambda ctx, grad: (None,) * 6, no_context)
call_sample_tree = gradient(
    "sample_tree", lambda ctx, grad: (None,) * 7, no_context, _sample_tree_vmap
)
