"""The custom operations on trees: schemas, fake kernels, gradients.

Operations take the canonical form of `treelax.ops.backend` and `Settings`, which name an algorithm, a
folder of ops whose backends they run. From Python they are called by the functions ``call_…``.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.ops import checks, dispatch, native, problems
from treelax.ops.backend import NO_TREE, Algorithm, Batch, spoil
from treelax.ops.library import (
    fake,
    fold,
    gradient,
    no_context,
    no_second_derivative,
    operation,
    unchanged,
    unsaved,
)

#: Backends that themselves check the lengths before they touch memory, and write NaN for NaN.
KERNELS = ("native", "triton", "cuda")


class Settings(NamedTuple):
    """How an operation runs: the arguments of its schema that are not tensors."""

    algorithm: str
    relaxation: str = "entropy"
    single_root: bool = False
    #: Empty to have the fastest chosen.
    backend: str = ""
    validate: bool = True


SETTINGS = "str algorithm, str relaxation, bool single_root, str backend, bool validate"


class Run(NamedTuple):
    """Checked inputs of an operation, and what is to compute it."""

    given: Batch
    validate: bool
    algorithm: Algorithm
    backend: str
    module: Any
    #: There is no sentence, or none with room for a word.
    empty: bool

    def report(self, value: Tensor, *trees: Tensor) -> None:
        """Write NaN where the input has it, and report errors, deferred on a GPU."""
        scores, lengths, validate = self.given.scores, self.given.lengths, self.validate
        if self.backend == "native":
            # the kernel has seen every score and every value
            suspect = validate and native.last_call_flagged()
        elif self.backend in KERNELS:
            suspect = False
            if validate:
                problems.launch_validation(self.algorithm, scores, lengths, value)
                if not scores.is_cuda:  # Triton's interpreter
                    problems.raise_on_error(scores.device)
        else:
            spoil(scores, self.algorithm.parts(lengths, *scores.shape[1:]), value, *trees)
            suspect = validate and value.numel() > 0 and checks.readable(value)
            # false for NaN too
            suspect = suspect and not ((value > NO_TREE).all() & (scores.amax() < float("inf")))
        if suspect:
            self.algorithm.raise_cause(scores, lengths, value)


def lengths_shape(algorithm: Algorithm, shape: torch.Size) -> tuple[int, ...]:
    """``(B,)``, or ``(B, 2)`` where lengths are pairs, for scores of a shape."""
    counts = len(algorithm.room(*shape[1:]))
    return (shape[0],) if counts == 1 else (shape[0], counts)


def begin(scores: Tensor, lengths: Tensor, settings: Settings) -> Run:
    """Check what a backend trusts with memory."""
    algorithm, backend, module = dispatch.find(
        settings.algorithm, settings.backend, scores.device.type
    )
    shape = scores.shape[1:]
    if scores.dtype not in (torch.float32, torch.float64) or not algorithm.fits(*shape):
        raise InputError(
            f"scores is {scores.dtype} {tuple(scores.shape)}; expected float32 or float64 and "
            f"the form of {algorithm.name}. Call treelax.ops, which sees to it."
        )
    expected = lengths_shape(algorithm, scores.shape)
    if lengths.shape != expected or lengths.dtype != torch.int64:
        raise InputError(
            f"lengths has shape {tuple(lengths.shape)} and dtype {lengths.dtype}; expected "
            f"{expected} and int64. Call treelax.ops, which sees to it."
        )
    empty = algorithm.no_words(scores.shape)
    if backend in KERNELS and not empty:
        if settings.validate:
            problems.raise_on_error(scores.device)
    elif (settings.validate or scores.is_cpu) and checks.readable(lengths):
        algorithm.check_lengths(lengths, *shape)
    options = settings.relaxation, settings.single_root
    given = Batch(scores.contiguous(), lengths.contiguous(), *options)
    return Run(given, settings.validate, algorithm, backend, module, empty)


# ── soft_tree ────────────────────────────────────────────────────────────────────────────────────


@operation(
    f"soft_tree(Tensor scores, Tensor lengths, {SETTINGS}, bool save) -> (Tensor, Tensor, Tensor)"
)
def soft_tree(scores: Tensor, lengths: Tensor, *others: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Soft tree, value of the chart, and what the backward pass needs (empty unless ``save``)."""
    *settings, save = others
    run = begin(scores, lengths, Settings(*settings))
    if run.empty:
        tree, value, saved = _soft_tree_fake(scores, lengths, *others)
        return tree.zero_(), value.zero_(), saved.zero_()
    tree, value, saved = run.module.soft_tree(run.given, save)
    run.report(value, tree)
    return tree, value, saved


@fake("soft_tree")
def _soft_tree_fake(scores: Tensor, lengths: Tensor, *others: Any) -> tuple[Tensor, Tensor, Tensor]:
    *settings, save = others
    shape: tuple[int, ...] = (0,)
    if save:
        how = Settings(*settings)
        module = dispatch.find(how.algorithm, how.backend, scores.device.type)[2]
        shape = module.saved_shape(scores.shape, scores.dtype)
    value = scores.new_empty(scores.shape[0])
    return scores.new_empty(scores.shape), value, scores.new_empty(shape)


@operation(
    "soft_tree_backward(Tensor grad_tree, Tensor? grad_value, Tensor scores, Tensor saved,"
    f" Tensor lengths, {SETTINGS}) -> Tensor"
)
def soft_tree_backward(
    grad_tree: Tensor,
    grad_value: Tensor | None,
    scores: Tensor,
    saved: Tensor,
    lengths: Tensor,
    *others: Any,
) -> Tensor:
    """``scores`` tie the result to them, so that a second derivative is noticed."""
    settings = Settings(*others)
    algorithm, backend, module = dispatch.find(
        settings.algorithm, settings.backend, grad_tree.device.type
    )
    if algorithm.no_words(grad_tree.shape):
        return torch.zeros_like(grad_tree)
    problems.raise_on_error(grad_tree.device)
    batch, *event = grad_tree.shape
    scores = unchanged("scores", scores, grad_tree.shape, grad_tree)
    expected = lengths_shape(algorithm, grad_tree.shape)
    lengths = unchanged("lengths", lengths, expected, grad_tree, torch.int64)
    shape = module.saved_shape(grad_tree.shape, grad_tree.dtype)
    saved = unchanged("the chart", saved, shape, grad_tree)
    if grad_value is not None:
        grad_value = grad_value.contiguous()
    elif backend not in ("native", "cuda"):
        grad_value = grad_tree.new_zeros(batch)
    given = Batch(scores, lengths, settings.relaxation, settings.single_root)
    grad: Tensor = module.soft_tree_backward(grad_tree.contiguous(), grad_value, saved, given)
    if backend not in KERNELS:
        spoil(scores, algorithm.parts(lengths, *event), grad)
    return grad


@fake("soft_tree_backward")
def _(grad_tree: Tensor, *others: Any) -> Tensor:
    return grad_tree.new_empty(grad_tree.shape)


def _soft_tree_context(ctx: Any, inputs: Any, output: Any) -> None:
    scores, lengths, *ctx.options, save = inputs
    if not save:
        raise unsaved("soft_tree")
    ctx.set_materialize_grads(False)  # or autograd would fill a gradient the size of `saved`
    ctx.save_for_backward(scores, output[2], lengths)


def _soft_tree_grad(ctx: Any, grad_tree: Any, grad_value: Any, *others: Any) -> Any:
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
        rows = [
            [x if dim is None else x.select(dim, i) for x, dim in zip(inputs, in_dims, strict=True)]
            for i in range(size)
        ]
        return torch.stack([call(*row) for row in rows]), 0
    saved = inputs[3]
    parts = [
        fold(x, dim, size) if isinstance(x, Tensor) and x is not saved else x
        for x, dim in zip(inputs, in_dims, strict=True)
    ]
    return call(*parts).unflatten(0, (size, -1)), 0


def _plans(device: torch.device, dtype: torch.dtype, shape: torch.Size, *others: Any) -> Any:
    """`soft_tree` and its gradient with less Python, for calls of one kind."""
    *settings, save = others
    how = Settings(*settings)
    algorithm, backend, module = dispatch.find(how.algorithm, how.backend, device.type)
    if algorithm.no_words(shape):
        return None, None
    if backend == "native":
        return module.planned(dtype, shape, how, save)
    if backend != "cuda":
        return None, None

    def on_gpu(scores: Tensor, lengths: Tensor, *others: Any) -> Any:
        if how.validate:
            problems.raise_on_error(device)
        given = Batch(scores, lengths, how.relaxation, how.single_root)
        return module.soft_tree(given, save, how.validate)

    return on_gpu, None


@functools.lru_cache(maxsize=256)
def forward_plan(*key: Any) -> Any:
    """See `treelax.ops.library.gradient`."""
    return _plans(*key)[0]


@functools.lru_cache(maxsize=256)
def backward_plan(*key: Any) -> Any:
    """See `treelax.ops.library.gradient`."""
    return _plans(*key, True)[1]


native.caches += [forward_plan, backward_plan]
call_soft_tree = gradient(
    "soft_tree", _soft_tree_grad, _soft_tree_context, _soft_tree_vmap, forward_plan, results=2
)
call_soft_tree_backward = no_second_derivative(
    "soft_tree_backward", _soft_tree_backward_vmap, backward_plan
)


# ── log_partition ────────────────────────────────────────────────────────────────────────────────


@operation(
    f"log_partition(Tensor scores, Tensor lengths, {SETTINGS}, bool save) -> (Tensor, Tensor)"
)
def log_partition(scores: Tensor, lengths: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    """Log-partition, and its gradient, the marginals (empty unless ``save``)."""
    *settings, save = others
    run = begin(scores, lengths, Settings(*settings))
    if run.empty:
        value, marginals = _log_partition_fake(scores, lengths, *others)
        return value.zero_(), marginals.zero_()
    if save:
        marginals, value, _ = run.module.soft_tree(run.given._replace(relaxation="entropy"), False)
    else:
        value = run.module.log_partition(run.given)
        marginals = scores.new_empty(0)
    run.report(value, *([marginals] if save else []))
    return value, marginals


@fake("log_partition")
def _log_partition_fake(scores: Tensor, lengths: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape[0]), scores.new_empty(scores.shape if others[-1] else (0,))


@operation("log_partition_backward(Tensor grad_value, Tensor scores, Tensor marginals) -> Tensor")
def log_partition_backward(grad_value: Tensor, scores: Tensor, marginals: Tensor) -> Tensor:
    """``scores`` only ties the result to them, so that a second derivative is noticed."""
    shape = (grad_value.shape[0], *scores.shape[1:])
    unchanged("scores", scores, shape, grad_value)
    marginals = unchanged("the marginals", marginals, shape, grad_value)
    return grad_value.reshape(-1, *(1,) * (scores.dim() - 1)) * marginals


@fake("log_partition_backward")
def _(grad_value: Tensor, scores: Tensor, marginals: Tensor) -> Tensor:
    return marginals.new_empty(marginals.shape)


def _log_partition_context(ctx: Any, inputs: Any, output: Any) -> None:
    if not inputs[-1]:
        raise unsaved("log_partition")
    ctx.set_materialize_grads(False)
    ctx.options = inputs[0].shape  # a hook on saved tensors may return another one
    ctx.save_for_backward(inputs[0], output[1])


def _log_partition_grad(ctx: Any, grad_value: Any, *others: Any) -> Any:
    scores, marginals = ctx.saved_tensors
    for name, kept in (("scores", scores), ("the marginals", marginals)):
        if kept.shape != ctx.options:
            unchanged(name, kept, tuple(ctx.options), kept)
    grad = None
    if grad_value is not None:
        grad = call_log_partition_backward(grad_value, scores, marginals)
    return grad, *(None,) * 7


call_log_partition = gradient(
    "log_partition", _log_partition_grad, _log_partition_context, results=1
)
call_log_partition_backward = no_second_derivative("log_partition_backward")


# ── best_tree and sample_tree: piecewise constant, so their gradient is nothing ──────────────────


@operation(f"best_tree(Tensor scores, Tensor lengths, {SETTINGS}) -> Tensor")
def best_tree(scores: Tensor, lengths: Tensor, *settings: Any) -> Tensor:
    """The best tree."""
    run = begin(scores, lengths, Settings(*settings))
    if run.empty:
        return scores.new_zeros(scores.shape)
    tree, value = run.module.best_tree(run.given)
    run.report(value, tree)
    result: Tensor = tree
    return result


@fake("best_tree")
def _(scores: Tensor, *others: Any) -> Tensor:
    return scores.new_empty(scores.shape)


@operation(f"sample_tree(Tensor scores, Tensor lengths, Tensor uniforms, {SETTINGS}) -> Tensor")
def sample_tree(scores: Tensor, lengths: Tensor, uniforms: Tensor, *settings: Any) -> Tensor:
    """Samples ``(S, B, N, N)`` from ``uniforms`` ``(S, B, decisions)``."""
    run = begin(scores, lengths, Settings(*settings))
    if uniforms.shape[0] == 0 or run.empty:
        return scores.new_zeros((uniforms.shape[0], *scores.shape))
    uniforms = uniforms.to(scores.dtype).contiguous()
    trees, value = run.module.sample_tree(run.given, uniforms)
    run.report(value, trees)
    result: Tensor = trees
    return result


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


@operation(f"max_marginals(Tensor scores, Tensor lengths, {SETTINGS}) -> (Tensor, Tensor)")
def max_marginals(scores: Tensor, lengths: Tensor, *settings: Any) -> tuple[Tensor, Tensor]:
    """For each part the score of the best structure that has it, and what may be taken off the part: the
    same sum for all structures, which leaves no part of any above 0."""
    run = begin(scores, lengths, Settings(*settings))
    if run.empty:
        empty, shared = _max_marginals_fake(scores)
        return empty.zero_(), shared.zero_()
    result, shared, value = run.module.max_marginals(run.given)
    run.report(value, result)
    return result, shared


@fake("max_marginals")
def _max_marginals_fake(scores: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    wide = scores.dtype if scores.device.type == "mps" else torch.float64  # MPS has no float64
    return scores.new_empty(scores.shape), scores.new_empty(scores.shape, dtype=wide)


call_max_marginals = gradient("max_marginals", lambda ctx, *grads: (None,) * 7, no_context)
call_best_tree = gradient("best_tree", lambda ctx, grad: (None,) * 7, no_context)
call_sample_tree = gradient(
    "sample_tree", lambda ctx, grad: (None,) * 8, no_context, _sample_tree_vmap
)
