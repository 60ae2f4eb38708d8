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
def _all_of(length: tuple[int, ...], batch: int) -> Tensor:
    """Lengths of sentences on the CPU that are all as long; read-only."""
    with torch.inference_mode(False):  # or a later call could not keep them for its gradient
        return full_lengths(length, batch, torch.device("cpu"))


def full_lengths(length: tuple[int, ...], batch: int, device: torch.device) -> Tensor:
    """Lengths ``(B,)`` or ``(B, 2)`` of sentences that are all as long."""
    columns = [torch.full((batch,), n, dtype=torch.int64, device=device) for n in length]
    return columns[0] if len(columns) == 1 else torch.stack(columns, -1)


class Call(NamedTuple):
    """Checked scores and lengths in canonical form, and how to run an algorithm on them."""

    algorithm: Algorithm
    scores: Tensor
    lengths: Tensor
    settings: Settings
    validate: Validate
    batch_shape: torch.Size
    #: The user's shape of a sentence's scores.
    event_shape: torch.Size
    dtype: torch.dtype

    def restore(self, result: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Give a result ``(B, ...)`` the caller's batch shape, and the scores' type or ``dtype``."""
        dtype = dtype or self.dtype
        event = result.shape[1:]
        if event == self.scores.shape[1:]:
            event = self.event_shape
        # a view that changes nothing still costs a node in the backward pass
        if len(self.batch_shape) != 1 or result.shape[1:] != event:
            result = result.reshape(self.batch_shape + event)
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

    def max_marginals(self) -> tuple[Tensor, Tensor]:
        """The score of the best structure with each part, and what may be taken off it; no gradient."""
        settings = self.settings._replace(backend="diagonal")
        found = function.call_max_marginals(self.scores.detach(), self.lengths, *settings)
        self.wait()
        return self.restore(found[0]), self.restore(found[1], found[1].dtype)

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
        decisions = self.algorithm.decisions(*scores.shape[1:])
        uniforms = draw_uniforms((shape.numel(), len(scores), decisions), scores, generator)
        trees = function.call_sample_tree(scores, self.lengths, uniforms, *self.settings)
        self.wait()
        return trees.reshape(shape + self.batch_shape + self.event_shape).to(self.dtype)


def make_call(
    algorithm: Algorithm,
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    relaxation: str = "entropy",
    temperature: float | Tensor = 1.0,
    single_root: bool = False,
    event_dim: int = 2,
    validate: Validate = True,
    backend: str | None = None,
) -> Call:
    """Check everything but values; flatten the batch; half types to float32; divide by the temperature
    (a temperature τ is the same as running on ``scores / τ``)."""
    # a structure of more dimensions has looked at them
    check_scores(scores, algorithm.rooted, least=event_dim if event_dim > 2 else 0)
    if relaxation not in RELAXATIONS:
        one_of("relaxation", relaxation, RELAXATIONS)
    if backend is not None:
        one_of("backend", backend, BACKENDS)
    if isinstance(validate, str) and validate != "now":
        raise InputError(f"validate is {validate!r}; expected True, False or 'now'.")
    if type(temperature) is not float or temperature != 1.0:
        check_temperature(temperature, scores, bool(validate), event_dim)
    batch_shape, event = scores.shape[:-event_dim], scores.shape[-event_dim:]
    shape = algorithm.canonical(event)
    work = scores.float() if scores.dtype in HALF_TYPES else scores
    if len(batch_shape) != 1 or shape != event:
        work = work.reshape(batch_shape.numel(), *shape)
    room = algorithm.room(*shape)
    if lengths is None and work.is_cpu and can_bypass_dispatcher(work):
        flat = _all_of(room, work.shape[0])
    elif lengths is None:
        flat = full_lengths(room, work.shape[0], work.device)
    else:
        pair = room[1:] and (len(room),)
        check_lengths(lengths, batch_shape + pair, scores.device)
        flat = lengths.reshape(-1, *pair) if lengths.dim() != 1 + len(pair) else lengths
        flat = flat.to(torch.int64).contiguous()
    if isinstance(temperature, Tensor):
        # one per sentence or one for all; what is not a part, or a forbidden one, must not reach the
        # temperature's gradient: 0 · inf
        divisor = temperature.to(work.dtype).expand(batch_shape).reshape(-1, *(1,) * len(shape))
        forbidden = work == float("-inf")
        parts = algorithm.parts(flat, *shape)
        masked = work.masked_fill(forbidden | ~parts, 0)
        work = (masked / divisor).masked_fill(forbidden, float("-inf"))
    elif temperature != 1.0:
        work = work / temperature
    settings = Settings(algorithm.name, relaxation, single_root, backend or "", bool(validate))
    return Call(
        algorithm, work.contiguous(), flat, settings, validate, batch_shape, event, scores.dtype
    )
