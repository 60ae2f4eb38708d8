"""The kernel that finds what is wrong with a batch; see `treelax.ops.problems`."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from treelax.ops.backend import NO_TREE, Algorithm
from treelax.ops.chart.triton import launch_device

LOWEST = tl.constexpr(NO_TREE)
NOWHERE = tl.constexpr(2**30)


#: What the parts of scores are.
ARCS, SPANS, STEPS, GRID = (tl.constexpr(kind) for kind in range(4))


@triton.jit
def validation_kernel(
    scores, lengths, value, slot, form, size, count, longest, tails, states,
    KIND: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program a sentence."""
    b = tl.program_id(0).to(tl.int64)
    reached = tl.load(value + b)
    length = tl.load(lengths + b * (2 if KIND == GRID else 1))
    n = tl.minimum(tl.maximum(length, KIND == GRID), size - (KIND == ARCS))
    second = tl.load(lengths + 2 * b + 1) if KIND == GRID else n  # of a pair
    columns = tl.minimum(tl.maximum(second, 1), longest) if KIND == GRID else n
    found = tl.full([BLOCK], NOWHERE, tl.int32)
    forbidden = tl.zeros([BLOCK], tl.int32)
    for first in range(0, count, BLOCK):
        at = first + tl.arange(0, BLOCK)
        if KIND == STEPS:
            row, i = at // states, at // (states * tails * longest)
            k = row // tails % longest
            part = (i + k < n) & ((i > 0) | (row % tails == 0))
        elif KIND == GRID:
            cell, move = at // 3, at % 3
            i, j = cell // longest, cell % longest
            part = ((i > 0) | (move == 2)) & ((j > 0) | (move == 1)) | (at == 0)
            part = part & (i < n) & (j < columns)
        else:
            i, j = at // size, at % size
            part = (j > 0) & (j <= n) & (i <= n) & (i != j) if KIND == ARCS else (i <= j) & (j < n)
        score = tl.load(scores + b * count + at, mask=part & (at < count), other=0.0)
        found = tl.minimum(found, tl.where(score < float("inf"), NOWHERE, at))
        forbidden += (score == float("-inf")).to(tl.int32)
    wrong = tl.min(found)
    score = tl.load(scores + b * count + tl.where(wrong < NOWHERE, wrong, 0))
    # a length first, then a score, then a sentence without a tree
    kind = tl.where(reached > LOWEST, 0, 4)
    x, y = tl.minimum(tl.sum(forbidden), 0x3FFF).to(tl.int64), n
    kind = tl.where(wrong < NOWHERE, tl.where(score == score, 3, 2), kind)
    if KIND < STEPS:
        place_x, place_y = wrong // size, wrong % size
    else:
        place_x, place_y = wrong & 0x3FFF, tl.minimum(wrong >> 14, 0x3FFF)
    x, y = tl.where(wrong < NOWHERE, place_x, x), tl.where(wrong < NOWHERE, place_y, y)
    kind = tl.where(length != n, 1, tl.where(second != columns, 5, kind))
    told = tl.where(length != n, length, second)
    clipped = tl.minimum(tl.maximum(told, -(2**27)), 2**27 - 1)
    x, y = (
        tl.where((kind == 1) | (kind == 5), clipped, x) & 0x3FFF,
        tl.where((kind == 1) | (kind == 5), clipped >> 14, y) & 0x3FFF,
    )
    number = kind | tl.minimum(form, 0x7FFF) << 3
    tl.store(slot, number | tl.minimum(b, 0x3FFFF) << 18 | x << 36 | y << 50, mask=kind > 0)


def launch(
    algorithm: Algorithm, scores: Tensor, lengths: Tensor, value: Tensor, slot: Tensor
) -> None:
    """Check scores and lengths in canonical form and the values of their charts."""
    batch, size, longest, *labels = scores.shape
    tails, states = labels if len(labels) == 2 else (1, 1)
    kind = ARCS if algorithm.rooted else SPANS
    kind = GRID if lengths.dim() == 2 else STEPS if scores.dim() == 5 else kind
    count = scores.shape[1:].numel()
    with launch_device(scores):
        validation_kernel[(batch,)](
            scores, lengths, value, slot, algorithm.form(scores.shape), size, count, longest, tails,
            states, KIND=kind.value, BLOCK=1024 if count <= 4096 else 4096, num_warps=4,
        )  # fmt: skip
