"""The kernel that finds what is wrong with a batch; see `treelax.ops.problems`."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from treelax.ops.backend import NO_TREE, Algorithm
from treelax.ops.chart.triton import launch_device

LOWEST = tl.constexpr(NO_TREE)
NOWHERE = tl.constexpr(2**30)


@triton.jit
def validation_kernel(
    scores, lengths, value, slot, size, ROOTED: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """One program a sentence."""
    b = tl.program_id(0).to(tl.int64)
    length, reached = tl.load(lengths + b), tl.load(value + b)
    n = tl.minimum(tl.maximum(length, 0), size - ROOTED)
    found = tl.full([BLOCK], NOWHERE, tl.int32)
    forbidden = tl.zeros([BLOCK], tl.int32)
    for first in range(0, size * size, BLOCK):
        at = first + tl.arange(0, BLOCK)
        i, j = at // size, at % size
        part = (j > 0) & (j <= n) & (i <= n) & (i != j) if ROOTED else (i <= j) & (j < n)
        score = tl.load(scores + b * size * size + at, mask=part, other=0.0)
        found = tl.minimum(found, tl.where(score < float("inf"), NOWHERE, at))
        forbidden += (score == float("-inf")).to(tl.int32)
    wrong = tl.min(found)
    clipped = tl.minimum(tl.maximum(length, -(2**27)), 2**27 - 1)
    score = tl.load(scores + b * size * size + tl.where(wrong < NOWHERE, wrong, 0))
    # a length first, then a score, then a sentence without a tree
    kind = tl.where(reached > LOWEST, 0, 4)
    x, y = tl.minimum(tl.sum(forbidden), 0x3FFF).to(tl.int64), n
    kind = tl.where(wrong < NOWHERE, tl.where(score == score, 3, 2), kind)
    x, y = tl.where(wrong < NOWHERE, wrong // size, x), tl.where(wrong < NOWHERE, wrong % size, y)
    kind = tl.where(length != n, 1, kind)
    x, y = (
        tl.where(length != n, clipped, x) & 0x3FFF,
        tl.where(length != n, clipped >> 14, y) & 0x3FFF,
    )
    number = kind | tl.minimum(size, 0x7FFF) << 3
    tl.store(slot, number | tl.minimum(b, 0x3FFFF) << 18 | x << 36 | y << 50, mask=kind > 0)


def launch(
    algorithm: Algorithm, scores: Tensor, lengths: Tensor, value: Tensor, slot: Tensor
) -> None:
    """Check scores and lengths in canonical form and the values of their charts."""
    batch, size, _ = scores.shape
    block = 1024 if size <= 64 else 4096
    with launch_device(scores):
        validation_kernel[(batch,)](
            scores, lengths, value, slot, size,
            ROOTED=int(algorithm.rooted), BLOCK=block, num_warps=4,
        )  # fmt: skip
