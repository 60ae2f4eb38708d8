"""GPU kernels of binary trees: one Triton program per sentence, a few sweeps over widths each.

The READMEs here and in `treelax.ops.chart` explain them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from treelax.ops.chart.triton_parts import (
    FORBIDDEN,
    LN2,
    LOG2E,
    NO_TREE,
    bounded,
    clear,
    sentence,
    sentence_length,
)
from treelax.ops.cky.sweeps_generated import (
    BACKWARD_PLANES,
    CHART_PLANES,
    MEAN_GIVEN,
    MEAN_UP,
    SPAN,
    SPLIT_SPAN,
    TAKEN,
    VALUE_PLANES,
    best_sweep,
    down_sweep,
    inside_sweep,
    lane_splits,
    outside_sweep,
    split_scores,
    up_sweep,
)


# -------------------------------------------------------------------------------- scores and spans
@triton.jit
def span(at, length, size):
    """First and last word of an entry of a plane, and whether it is a span of the sentence."""
    i = at // size
    j = at % size
    return i, j, (i <= j) & (j < length)


@triton.jit
def load_spans(scores, values, shift, length, size, scale: tl.constexpr, BLOCK: tl.constexpr):
    """Bounded scores, less ``shift`` and times ``scale``; 0 for the parts that every tree has.

    Returns 0, or NaN if the score of a part is.
    """
    wrong = tl.zeros((BLOCK,), scores.dtype.element_ty)
    for start in range(0, length * size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        i, j, inside = span(at, length, size)
        raw = tl.load(scores + at, mask=inside, other=0.0)
        wrong = tl.where(raw != raw, raw, wrong)
        w = bounded(raw)
        w = tl.where(w == FORBIDDEN, w, w - shift) * scale
        tl.store(values + at, tl.where((i == j) | (at == length - 1), 0.0, w), mask=inside)
    return tl.sum(wrong, 0)


@triton.jit
def fixed_score(scores, length, size):
    """Score of the parts that every tree has, summed in an order that padding does not change."""
    BLOCK: tl.constexpr = 128
    total = tl.zeros((BLOCK,), scores.dtype.element_ty)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += bounded(tl.load(scores + i * (size + 1), mask=i < length, other=0.0))
    whole = bounded(tl.load(scores + length - 1, mask=length > 1, other=0.0))
    return tl.sum(total, 0) + whole


@triton.jit
def fill_words(plane, number, length, size, BLOCK: tl.constexpr):
    """The same number for every word."""
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(plane + i * (size + 1), number, mask=i < length)


@triton.jit
def spoil(plane, length, size, BLOCK: tl.constexpr):
    """NaN in every span."""
    for start in range(0, length * size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        _, _, inside = span(at, length, size)
        tl.store(plane + at, float("nan"), mask=inside)


@triton.jit
def split_after(p, taken, length, size):
    """Offset of the span of the best tree that is split after word ``p``, for each of many ``p``.

    There is one for every word but the last. Each ``p`` goes down from the whole on its own, always
    to the span that holds p and p + 1, so that no item has to be marked and no barrier is needed.
    """
    i = tl.zeros_like(p)
    j = i + length - 1
    for _ in range(0, length - 2):
        k = tl.load(taken + i * size + j, mask=p < length - 1, other=0.0).to(tl.int32)
        j = tl.where(p < k, k, j)
        i = tl.where(p > k, k + 1, i)
    return i * size + j


# ---------------------------------------------------------------------------------------- kernels
@triton.jit
def centre(scores, chart, length, size, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Scores into the chart, centred by those of the best tree; returns what they take off it."""
    values = chart + SPAN * size * size
    BLOCK: tl.constexpr = 4 * ROWS * LANES
    load_spans(scores, values, 0.0, length, size, 1.0, BLOCK)
    tl.debug_barrier()
    best_sweep(chart, length, size, ROWS, LANES)
    best = tl.load(values + length - 1)
    tl.debug_barrier()
    load_spans(scores, values, best / (length - 2), length, size, LOG2E, BLOCK)
    tl.debug_barrier()
    for start in range(0, length - 1, ROWS * LANES):
        p = start + tl.arange(0, ROWS * LANES)
        at = split_after(p, chart + TAKEN * size * size, length, size)
        w = tl.load(values + at, mask=p < length - 1, other=0.0)
        tl.store(values + (p + 1) * (size + 1), -w, mask=p < length - 1)
    tl.debug_barrier()
    return best


@triton.jit
def fill_chart(
    scores, chart, value, length, size,
    MEAN: tl.constexpr, KEEP: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Inside sweep, in float32 a second one if numbers were large; stores and returns the value.

    If a score is NaN, so is the value, and the first entry of `SPLIT_SPAN` tells later kernels.
    """
    values = chart + SPAN * size * size
    fixed = fixed_score(scores, length, size)
    fixed += load_spans(scores, values, 0.0, length, size, LOG2E, 4 * ROWS * LANES)
    tl.debug_barrier()
    inside_sweep(chart, length, size, MEAN, KEEP, ROWS, LANES)
    whole = tl.load(values + length - 1, mask=length > 0, other=0.0) * LN2
    if scores.dtype.element_ty == tl.float32:
        # much beyond this a tree is off by 1e-5; log Σ exp has the number of trees in it too
        large = tl.maximum(length, 64) * (1 if MEAN else 2)
        if (tl.abs(whole) > large) & (whole > NO_TREE):
            tl.debug_barrier()
            fixed += centre(scores, chart, length, size, ROWS, LANES)
            inside_sweep(chart, length, size, MEAN, KEEP, ROWS, LANES)
            whole = tl.load(values + length - 1) * LN2
    total = whole + fixed
    tl.store(value + tl.program_id(0), total)
    if KEEP:
        tl.store(chart + SPLIT_SPAN * size * size, total)
    return total


@triton.jit(do_not_specialize=["size"])
def soft_tree_kernel(
    scores, lengths, chart, tree, value, size,
    MEAN: tl.constexpr, SAVE: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Soft tree and value of the chart: inside and outside sweep of one sentence."""
    plane = size * size
    chart = sentence(chart, CHART_PLANES, size)
    tree = sentence(tree, 1, size)
    length = sentence_length(lengths, tl.program_id(0), size + 1)
    BLOCK: tl.constexpr = 4 * ROWS * LANES
    clear(tree, plane, BLOCK)
    clear(chart + MEAN_GIVEN * plane, length * size, BLOCK)
    total = fill_chart(
        sentence(scores, 1, size), chart, value, length, size, MEAN, True, ROWS, LANES
    )
    given = chart + MEAN_GIVEN * plane
    outside_sweep(chart, tree, given, length, size, SAVE, ROWS, LANES)
    fill_words(tree, 1.0, length, size, BLOCK)
    if total != total:
        tl.debug_barrier()
        spoil(tree, length, size, BLOCK)


@triton.jit(do_not_specialize=["size"])
def soft_tree_backward_kernel(
    grad_tree, grad_value, chart, lengths, scratch, grad, size,
    MEAN: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Gradient with respect to the scores: up and down sweep of one sentence."""
    plane = size * size
    chart = sentence(chart, CHART_PLANES, size)
    scratch = sentence(scratch, BACKWARD_PLANES, size)
    grad_tree = sentence(grad_tree, 1, size)
    grad = sentence(grad, 1, size)
    length = sentence_length(lengths, tl.program_id(0), size + 1)
    value_slope = tl.load(grad_value + tl.program_id(0))
    BLOCK: tl.constexpr = 4 * ROWS * LANES
    for start in range(0, length * size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        i, j, inside = span(at, length, size)
        g = tl.load(grad_tree + at, mask=inside & (i < j), other=0.0)
        tl.store(scratch + SPAN * plane + at, g, mask=inside)
    clear(grad, plane, BLOCK)
    clear(scratch + MEAN_UP * plane, length * size, BLOCK)
    tl.debug_barrier()
    up_sweep(chart, scratch, length, size, ROWS, LANES)
    down_sweep(chart, scratch, grad, value_slope, length, size, MEAN, ROWS, LANES)
    fill_words(grad, value_slope, length, size, BLOCK)
    mark = tl.load(chart + SPLIT_SPAN * plane)
    if mark != mark:
        tl.debug_barrier()
        spoil(grad, length, size, BLOCK)


@triton.jit(do_not_specialize=["size"])
def log_partition_kernel(
    scores, lengths, chart, value, size,
    KEEP: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """``log Σ_T exp(score(T))``: the inside sweep alone; ``KEEP`` leaves a chart to sample from."""
    chart = sentence(chart, VALUE_PLANES, size)
    length = sentence_length(lengths, tl.program_id(0), size + 1)
    fill_chart(sentence(scores, 1, size), chart, value, length, size, False, KEEP, ROWS, LANES)


@triton.jit(do_not_specialize=["size"])
def best_tree_kernel(
    scores, lengths, chart, tree, value, size, ROWS: tl.constexpr, LANES: tl.constexpr
):  # fmt: skip
    """The best tree and its score."""
    plane = size * size
    chart = sentence(chart, VALUE_PLANES, size)
    tree = sentence(tree, 1, size)
    length = sentence_length(lengths, tl.program_id(0), size + 1)
    BLOCK: tl.constexpr = 4 * ROWS * LANES
    clear(tree, plane, BLOCK)
    scores = sentence(scores, 1, size)
    fixed = fixed_score(scores, length, size)
    fixed += load_spans(scores, chart, 0.0, length, size, 1.0, BLOCK)
    tl.debug_barrier()
    best_sweep(chart, length, size, ROWS, LANES)
    total = tl.load(chart + length - 1, mask=length > 0, other=0.0) + fixed
    tl.store(value + tl.program_id(0), total)
    fill_words(tree, 1.0, length, size, BLOCK)
    for start in range(0, length - 1, ROWS * LANES):
        p = start + tl.arange(0, ROWS * LANES)
        at = split_after(p, chart + TAKEN * plane, length, size)
        tl.store(tree + at, 1.0, mask=p < length - 1)
    if total != total:
        tl.debug_barrier()
        spoil(tree, length, size, BLOCK)


@triton.jit(do_not_specialize=["batch", "size"])
def sample_tree_kernel(
    chart, lengths, uniforms, agenda, trees, batch, size, BLOCK: tl.constexpr
):  # fmt: skip
    """One exact sample: program ``sample·B + b`` draws a tree of sentence b.

    Depth first means that a span takes a block of decisions of known size, one less than its words.
    So the place of both antecedents in the order is known when a split is drawn: the agenda is a
    table by decision, not a stack.
    """
    plane = size * size
    draw = tl.program_id(0).to(tl.int64)
    b = draw % batch
    chart += b * (VALUE_PLANES * plane)
    values = chart + SPAN * plane
    uniforms += draw * (size - 1)
    agenda += draw * size
    trees += draw * plane
    length = sentence_length(lengths, b, size + 1)
    clear(trees, plane, 4 * BLOCK)
    tl.store(agenda, length - 1)  # the whole sentence, as its offset in a plane
    tl.debug_barrier()
    t = tl.arange(0, BLOCK)
    for decision in range(0, length - 1):
        item = tl.load(agenda + decision).to(tl.int32)
        u = tl.load(uniforms + decision)
        i = item // size
        j = item % size
        m = tl.load(chart + SPLIT_SPAN * plane + item)
        rz = tl.load(chart + SPLIT_SPAN * plane + j * size + i)
        at_i, at_j, splits = lane_splits(0, t, i, j - i, t >= 0, size)
        weights = tl.exp2(split_scores(values, values, at_i, at_j, splits) - m) * rz
        chosen = tl.min(tl.where(splits & (tl.cumsum(weights, 0) > u), t, BLOCK), 0)
        # a sum that ends a rounding error below u: the last split with weight takes the rest
        last = tl.max(tl.where(splits & (weights > 0), t, 0), 0)
        chosen = tl.where(chosen < BLOCK, chosen, last)
        k = i + chosen
        tl.store(trees + item, 1.0)
        # the left antecedent comes next, the right one after all decisions of the left one
        tl.store(agenda + decision + 1, i * size + k, mask=k > i)
        tl.store(agenda + decision + 1 + chosen, (k + 1) * size + j, mask=k + 1 < j)
        tl.debug_barrier()
    fill_words(trees, 1.0, length, size, BLOCK)
    mark = tl.load(chart + SPLIT_SPAN * plane)
    if mark != mark:
        tl.debug_barrier()
        spoil(trees, length, size, BLOCK)
