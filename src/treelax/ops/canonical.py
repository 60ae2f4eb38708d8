"""From what a user passes to the one form in which the kernels take it, and back."""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
from torch import Tensor

from treelax.ops.checks import (
    arc_mask,
    check_lengths,
    check_scores,
    check_temperature,
    span_mask,
)
from treelax.ops.library import unwatched

HALF_TYPES = (torch.float16, torch.bfloat16)


def precise(scores: Tensor) -> Tensor:
    """The scores in the type the dynamic program works in: float32 for half types."""
    return scores.float() if scores.dtype in HALF_TYPES else scores


def value_type(scores: Tensor) -> torch.dtype:
    """Type of log-partitions and the like: as torch's losses, float32 for half types in autocast."""
    if scores.dtype in HALF_TYPES and torch.is_autocast_enabled(scores.device.type):
        return torch.float32
    return scores.dtype


@functools.lru_cache(maxsize=64)
def _all_of(length: int, batch: int) -> Tensor:
    """Lengths of sentences that all have ``length`` words; nobody writes to them."""
    with torch.inference_mode(False):  # or a later call could not keep them for its gradient
        return torch.full((batch,), length, device="cpu")


class Canonical(NamedTuple):
    """Scores ``(B, N, N)`` and lengths ``(B,)``, with the way back to the caller's form."""

    scores: Tensor
    lengths: Tensor
    batch_shape: torch.Size
    dtype: torch.dtype

    def restore(self, result: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Give a result ``(B, ...)`` the caller's batch shape, and the scores' type or ``dtype``."""
        dtype = dtype or self.dtype
        # a view that changes nothing still costs a node in the backward pass
        if len(self.batch_shape) != 1:
            result = result.reshape(self.batch_shape + result.shape[1:])
        return result if result.dtype == dtype else result.to(dtype)


def canonical(
    scores: Tensor,
    lengths: Tensor | None,
    temperature: float | Tensor = 1.0,
    validate: bool = True,
    rooted: bool = True,
) -> Canonical:
    """Check shapes, types and devices; flatten the batch; half types to float32; divide by the
    temperature (a temperature τ is the same as running on ``scores / τ``)."""
    check_scores(scores, rooted)
    if type(temperature) is not float or temperature != 1.0:
        check_temperature(temperature, scores, validate)
    batch_shape = scores.shape[:-2]
    size = scores.shape[-1]
    work = precise(scores)
    if work.dim() != 3:
        work = work.reshape(batch_shape.numel(), size, size)
    if lengths is None and work.is_cpu and unwatched(work):
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
        heat = temperature.to(work.dtype).expand(batch_shape).reshape(-1, 1, 1)
        forbidden = work == float("-inf")
        parts = (arc_mask if rooted else span_mask)(flat, size)
        cold = work.masked_fill(forbidden | ~parts, 0)
        work = (cold / heat).masked_fill(forbidden, float("-inf"))
    elif temperature != 1.0:
        work = work / temperature
    return Canonical(work.contiguous(), flat, batch_shape, scores.dtype)
