"""GPU kernels of the soft tree, its gradient and the log-partition.

Four sweeps over the widths, two a launch, with one barrier a width; `triton_parts` says how the
tables lie in memory and why one barrier is enough. In each sweep the loads of the first chunk of
splits stand before any arithmetic: sentences are short, so the time goes into waiting for memory.
"""

from __future__ import annotations

import triton
import triton.language as tl

from treelax.ops.eisner.sweeps_generated import (
    BACKWARD_PLANES,
    CHART_PLANES,
    DOWN_LEFT,
    DOWN_RIGHT,
    FORWARD_PLANES,
    INC,
    RIGHT,
    down_sweep,
    inside_sweep,
    outside_sweep,
    up_sweep,
)
from treelax.ops.eisner.triton_parts import (
    LN2,
    LOG2E,
    clear,
    load_arcs,
    load_gradients,
    sentence,
    sentence_length,
    spoil,
)


# ---------------------------------------------------------------------------------------- kernels
@triton.jit
def store_value(value, chart, shift, length, size, wrong):
    """The value of the whole chart in natural units, with what centring took off put back.

    If a score was ``wrong``, NaN; the first entry of the chart, no item's place, tells later kernels.
    """
    total = tl.load(chart + RIGHT * size * size + length, mask=length > 0, other=0.0) * LN2
    if shift is not None:
        total += tl.load(shift + tl.program_id(0).to(tl.int64) * size)
    tl.store(value + tl.program_id(0), tl.where(wrong != 0, float("nan"), total))
    tl.store(chart, tl.where(wrong != 0, float("nan"), 0.0).to(total.dtype))


@triton.jit(do_not_specialize=["size", "single_root"])
def soft_tree_kernel(
    scores, shift, lengths, chart, scratch, tree, value, size, single_root,
    MEAN: tl.constexpr, SAVE: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Soft tree and value of the chart: inside and outside sweep of one sentence."""
    plane = size * size
    chart = sentence(chart, CHART_PLANES, size)
    tree = sentence(tree, 1, size)
    given_right = sentence(scratch, FORWARD_PLANES, size)
    given_left = given_right + plane
    length = sentence_length(lengths, tl.program_id(0), size)
    BLOCK: tl.constexpr = 4 * ROWS * LANES
    arcs = sentence(scores, 1, size)
    wrong = load_arcs(arcs, shift, chart + INC * plane, length, size, LOG2E, BLOCK)
    clear(tree, plane, BLOCK)
    clear(given_right, (length + 1) * size, BLOCK)
    clear(given_left, (length + 1) * size, BLOCK)
    tl.debug_barrier()
    inside_sweep(chart, length, size, single_root, MEAN, True, ROWS, LANES)
    store_value(value, chart, shift, length, size, wrong)
    outside_sweep(
        chart, given_right, given_left, tree, length, size, single_root, SAVE, ROWS, LANES
    )
    if wrong != 0:
        spoil(tree, length, size, BLOCK)


@triton.jit(do_not_specialize=["size", "single_root"])
def soft_tree_backward_kernel(
    grad_tree, grad_value, chart, lengths, scratch, grad, size, single_root,
    MEAN: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Gradient with respect to the scores: up and down sweep of one sentence."""
    plane = size * size
    chart = sentence(chart, CHART_PLANES, size)
    scratch = sentence(scratch, BACKWARD_PLANES, size)
    grad = sentence(grad, 1, size)
    length = sentence_length(lengths, tl.program_id(0), size)
    value_slope = tl.load(grad_value + tl.program_id(0))
    BLOCK: tl.constexpr = 4 * ROWS * LANES
    load_gradients(sentence(grad_tree, 1, size), scratch + INC * plane, length, size, BLOCK)
    clear(grad, plane, BLOCK)
    clear(scratch + DOWN_RIGHT * plane, (length + 1) * size, BLOCK)
    clear(scratch + DOWN_LEFT * plane, (length + 1) * size, BLOCK)
    tl.debug_barrier()
    up_sweep(chart, scratch, length, size, single_root, ROWS, LANES)
    down_sweep(chart, scratch, grad, value_slope, length, size, single_root, MEAN, ROWS, LANES)
    mark = tl.load(chart)
    if mark != mark:
        spoil(grad, length, size, BLOCK)


@triton.jit(do_not_specialize=["size", "single_root"])
def log_partition_kernel(
    scores, shift, lengths, chart, value, size, single_root,
    PLANES: tl.constexpr, KEEP: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """``log Σ_T exp(score(T))``: the inside sweep alone; ``KEEP`` leaves a chart to sample from."""
    plane = size * size
    chart = sentence(chart, PLANES, size)
    length = sentence_length(lengths, tl.program_id(0), size)
    BLOCK: tl.constexpr = 4 * ROWS * LANES
    arcs = sentence(scores, 1, size)
    wrong = load_arcs(arcs, shift, chart + INC * plane, length, size, LOG2E, BLOCK)
    tl.debug_barrier()
    inside_sweep(chart, length, size, single_root, False, KEEP, ROWS, LANES)
    store_value(value, chart, shift, length, size, wrong)
