"""Best, relaxed and sampled trees and their partition function, by any algorithm.

From a user's scores to the custom operations of `treelax.ops.function` and back. The arguments are those
of `treelax.ops.best_tree` and its neighbours.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active

from treelax.ops import direct, dispatch, function
from treelax.ops.backend import RELAXATIONS, Algorithm
from treelax.ops.canonical import Canonical, canonical, value_type
from treelax.ops.checks import one_of, sample_size
from treelax.ops.problems import Validate, settle


def wants_gradient(scores: Tensor) -> bool:
    """Whether autograd needs saved tensors; within a transform of `torch.func` nothing tells."""
    return _are_functorch_transforms_active() or (torch.is_grad_enabled() and scores.requires_grad)


def draw_uniforms(
    shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None, dims: int = 1
) -> Tensor:
    """Uniform variables of a tensor's type and device, for choices by a distribution function.

    None is 0, which would make the first choice however small its weight. They are drawn with one
    dimension for samples and sentences before the last ``dims``, as several processes share them.
    """
    where = like.device if generator is None else generator.device
    flat = (torch.Size(shape[:-dims]).numel(), *shape[-dims:])
    # not `uniform_`, which torch.vmap refuses; nor generator=None, which torch.compile does for sizes
    # that are not fixed
    source: Any = {} if generator is None else {"generator": generator}
    drawn = torch.rand(flat, dtype=like.dtype, device=where, **source)
    return drawn.clamp(min=torch.finfo(like.dtype).eps / 4).to(like.device).reshape(shape)


def chosen(backend: str | None) -> str:
    """The name as the operations take it: empty to have the fastest chosen, when they run."""
    if backend is not None:
        one_of("backend", backend, dispatch.BACKENDS)
    return backend or ""


def best(
    algorithm: Algorithm,
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    single_root: bool = False,
    validate: Validate = True,
    backend: str | None = None,
) -> Tensor:
    """The tree of the highest score, 0/1, without a gradient."""
    scores = scores.detach() if isinstance(scores, Tensor) else scores
    form = canonical(scores, lengths, rooted=algorithm.rooted)
    tree = function.call_best_tree(
        form.scores, form.lengths, algorithm.name, single_root, chosen(backend), bool(validate)
    )
    settle(form.scores, validate)
    return form.restore(tree)


def soft(
    algorithm: Algorithm,
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    relaxation: str = "entropy",
    temperature: float | Tensor = 1.0,
    single_root: bool = False,
    validate: Validate = True,
    backend: str | None = None,
) -> tuple[Canonical, Tensor, Tensor]:
    """A tree with fractional parts and the value of its chart, both with a gradient, and the form that
    they are in."""
    one_of("relaxation", relaxation, RELAXATIONS)
    form = canonical(scores, lengths, temperature, bool(validate), rooted=algorithm.rooted)
    tree, value = direct.soft_tree(
        form.scores,
        form.lengths,
        algorithm.name,
        relaxation,
        single_root,
        chosen(backend),
        bool(validate),
        wants_gradient(form.scores),
    )
    settle(form.scores, validate)
    return form, tree, value


def log_sum(
    algorithm: Algorithm,
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    single_root: bool = False,
    validate: Validate = True,
    backend: str | None = None,
) -> Tensor:
    """Log of the summed weight of all trees, with a gradient."""
    form = canonical(scores, lengths, rooted=algorithm.rooted)
    value, _ = function.call_log_partition(
        form.scores,
        form.lengths,
        algorithm.name,
        single_root,
        chosen(backend),
        bool(validate),
        wants_gradient(form.scores),
    )
    settle(form.scores, validate)
    return form.restore(value, value_type(scores))


def sample(
    algorithm: Algorithm,
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    sample_shape: tuple[int, ...] = (),
    generator: torch.Generator | None = None,
    single_root: bool = False,
    validate: Validate = True,
    backend: str | None = None,
) -> Tensor:
    """Exact samples, without a gradient."""
    scores = scores.detach() if isinstance(scores, Tensor) else scores
    form = canonical(scores, lengths, rooted=algorithm.rooted)
    shape = sample_size(sample_shape)
    batch, size, _ = form.scores.shape
    decisions = (shape.numel(), batch, algorithm.decisions(size))
    trees = function.call_sample_tree(
        form.scores,
        form.lengths,
        draw_uniforms(decisions, form.scores, generator),
        algorithm.name,
        single_root,
        chosen(backend),
        bool(validate),
    )
    settle(form.scores, validate)
    return trees.reshape(*shape, *form.batch_shape, size, size).to(form.dtype)
