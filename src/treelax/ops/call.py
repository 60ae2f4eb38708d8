"""One call of an operation: from what a user passes to the canonical form of the kernels, and back.

Every check of scores, lengths and settings is here; values are checked within the operations.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.ops import function
from treelax.ops.backend import RELAXATIONS, Algorithm
from treelax.ops.checks import (
    check_lengths,
    check_scores,
    check_temperature,
    one_of,
    sample_size,
)
from treelax.ops.dispatch import BACKENDS
from treelax.ops.function import Settings
from treelax.ops.internals import can_bypass_dispatcher, transforms_active
from treelax.ops.problems import Validate, wait_unless_compiled

HALF_TYPES = (torch.float16, torch.bfloat16)


def precise(scores: Tensor) -> Tensor:
    """The scores in the type the dynamic program works in: float32 for half types."""
    return scores.float() if scores.dtype in HALF_TYPES else scores


def value_type(scores: Tensor, dtype: torch.dtype | None = None) -> torch.dtype:
    """Type of log-partitions and the like of scores, given in ``dtype``: as torch's losses, float32 for
    half types in autocast."""
    dtype = dtype or scores.dtype
    if dtype in HALF_TYPES and torch.is_autocast_enabled(scores.device.type):
        return torch.float32
    return dtype


def draw_uniforms(
    shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None, dims: int = 1
) -> Tensor:
    """Uniform variables of a tensor's type and device, for choices by a distribution function.

    All are positive: 0 would make the first choice however small its weight. They are drawn with one
    dimension for samples and sentences before the last ``dims``, as several processes share them.
    """
    where = like.device if generator is None else generator.device
    flat = (torch.Size(shape[:-dims]).numel(), *shape[-dims:])
    # not `uniform_`, which torch.vmap refuses; nor generator=None, which torch.compile does for sizes
    # that are not fixed
    source: Any = {} if generator is None else {"generator": generator}
    drawn = torch.rand(flat, dtype=like.dtype, device=where, **source)
    return drawn.clamp(min=torch.finfo(like.dtype).eps / 4).to(like.device).reshape(shape)


@functools.lru_cache(maxsize=64)
def _all_of(length: int, batch: int) -> Tensor:
    """Lengths of sentences that all have ``length`` words; read-only."""
    with torch.inference_mode(False):  # or a later call could not keep them for its gradient
        return torch.full((batch,), length, device="cpu")


class Call(NamedTuple):
    """Checked scores ``(B, N, N)`` and lengths ``(B,)``, and how to run an algorithm on them."""

    algorithm: Algorithm
    scores: Tensor
    lengths: Tensor
    settings: Settings
    validate: Validate
    batch_shape: torch.Size
    dtype: torch.dtype

    def restore(self, result: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Give a result ``(B, ...)`` the caller's batch shape, and the scores' type or ``dtype``."""
        dtype = dtype or self.dtype
        # a view that changes nothing still costs a node in the backward pass
        if len(self.batch_shape) != 1:
            result = result.reshape(self.batch_shape + result.shape[1:])
        return result if result.dtype == dtype else result.to(dtype)

    def restore_value(self, value: Tensor) -> Tensor:
        """`restore` for values of charts, in the type of torch's losses."""
        return self.restore(value, value_type(self.scores, self.dtype))

    def wait(self) -> None:
        """Where values are checked "now", raise what is wrong with them."""
        if self.validate == "now":
            wait_unless_compiled(self.scores)

    def best(self) -> Tensor:
        """The tree of the highest score, 0/1, without a gradient."""
        tree = function.call_best_tree(self.scores.detach(), self.lengths, *self.settings)
        self.wait()
        return self.restore(tree)

    def soft(self) -> tuple[Tensor, Tensor]:
        """A tree with fractional parts and the value ``(B,)`` of its chart, both with a gradient."""
        save = (self.scores.requires_grad and torch.is_grad_enabled()) or transforms_active()
        tree, value, *_ = function.call_soft_tree(self.scores, self.lengths, *self.settings, save)
        self.wait()
        return self.restore(tree), value

    def log_partition(self) -> Tensor:
        """Log of the summed weight of all trees, with a gradient."""
        save = (self.scores.requires_grad and torch.is_grad_enabled()) or transforms_active()
        value, *_ = function.call_log_partition(self.scores, self.lengths, *self.settings, save)
        self.wait()
        return self.restore_value(value)

    def sample(self, sample_shape: Any, generator: torch.Generator | None) -> Tensor:
        """Exact samples, without a gradient."""
        shape, scores = sample_size(sample_shape), self.scores.detach()
        batch, size, _ = scores.shape
        decisions = (shape.numel(), batch, self.algorithm.decisions(size))
        uniforms = draw_uniforms(decisions, scores, generator)
        trees = function.call_sample_tree(scores, self.lengths, uniforms, *self.settings)
        self.wait()
        return trees.reshape(*shape, *self.batch_shape, size, size).to(self.dtype)


def make_call(
    algorithm: Algorithm,
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    relaxation: str = "entropy",
    temperature: float | Tensor = 1.0,
    single_root: bool = False,
    validate: Validate = True,
    backend: str | None = None,
) -> Call:
    """Check everything but values; flatten the batch; half types to float32; divide by the temperature
    (a temperature τ is the same as running on ``scores / τ``)."""
    rooted = algorithm.rooted
    check_scores(scores, rooted)
    if relaxation not in RELAXATIONS:
        one_of("relaxation", relaxation, RELAXATIONS)
    if backend is not None:
        one_of("backend", backend, BACKENDS)
    if isinstance(validate, str) and validate != "now":
        raise InputError(f"validate is {validate!r}; expected True, False or 'now'.")
    if type(temperature) is not float or temperature != 1.0:
        check_temperature(temperature, scores, bool(validate))
    batch_shape = scores.shape[:-2]
    size = scores.shape[-1]
    work = scores.float() if scores.dtype in HALF_TYPES else scores
    if work.dim() != 3:
        work = work.reshape(batch_shape.numel(), size, size)
    if lengths is None and work.is_cpu and can_bypass_dispatcher(work):
        flat = _all_of(size - rooted, work.shape[0])
    elif lengths is None:
        flat = torch.full((work.shape[0],), size - rooted, dtype=torch.int64, device=work.device)
    else:
        check_lengths(lengths, batch_shape, scores.device)
        flat = lengths if lengths.dim() == 1 else lengths.reshape(-1)
        flat = flat.to(torch.int64).contiguous()
    if isinstance(temperature, Tensor):
        # one per sentence or one for all; what is not a part, or a forbidden one, must not reach the
        # temperature's gradient: 0 · inf
        divisor = temperature.to(work.dtype).expand(batch_shape).reshape(-1, 1, 1)
        forbidden = work == float("-inf")
        parts = algorithm.parts(flat, size)
        masked = work.masked_fill(forbidden | ~parts, 0)
        work = (masked / divisor).masked_fill(forbidden, float("-inf"))
    elif temperature != 1.0:
        work = work / temperature
    settings = Settings(algorithm.name, relaxation, single_root, backend or "", bool(validate))
    return Call(algorithm, work.contiguous(), flat, settings, validate, batch_shape, scores.dtype)
