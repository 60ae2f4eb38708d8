"""GPU kernels of projective trees: soft ones, the best one, centring by it, and exact samples.

Each sweep goes over the widths with one barrier a width; the README of `treelax.ops.chart` says how the
tables lie in memory and why one barrier is enough.
"""

from __future__ import annotations

import triton
import triton.language as tl

from treelax.ops.chart.triton_parts import (
    FORBIDDEN,
    LN2,
    LOG2E,
    NO_TREE,
    NOTHING,
    bounded,
    clear,
    is_arc,
    load_both,
    sentence,
    sentence_length,
    spoil,
)
from treelax.ops.eisner.sweeps_generated import (
    BACKWARD_PLANES,
    BEST_ARCS,
    BEST_PLANES,
    CHART_PLANES,
    DOWN_LEFT,
    DOWN_RIGHT,
    FORWARD_PLANES,
    INC,
    LEFT,
    MARK_LEFT,
    MARK_RIGHT,
    RIGHT,
    SPLIT_LEFT,
    SPLIT_RIGHT,
    SPLIT_U,
    TAKEN,
    TAKEN_LEFT,
    best_sweep,
    down_sweep,
    inside_sweep,
    outside_sweep,
    up_sweep,
)


# ------------------------------------------------------------------------------------------- arcs
@triton.jit
def load_arcs(scores, shift, inc, length, size, scale: tl.constexpr, BLOCK: tl.constexpr):
    """Bounded scores, times ``scale``, into the plane of incomplete items; no arcs in column 0.

    ``shift`` is what `centre_kernel` takes off every column, or None. Returns a
    number that is not 0 if the score of an arc is NaN.
    """
    count = (length + 1) * size
    wrong = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        w = tl.load(scores + at, mask=at < count, other=0.0)
        wrong |= ((w != w) & is_arc(at, length, size)).to(tl.int32)
        w = bounded(w)
        if shift is not None:
            columns = shift + tl.program_id(0).to(tl.int64) * size
            taken_off = tl.load(columns + at % size, mask=at < count, other=0.0)
            w = tl.where(w == FORBIDDEN, w, w - taken_off)
        tl.store(inc + at, tl.where(at % size == 0, 0.0, w * scale), mask=at < count)
    return tl.max(wrong, 0)


@triton.jit
def load_gradients(grad_tree, inc, length, size, BLOCK: tl.constexpr):
    """The adjoint of the soft tree into the plane of adjoints of incomplete items."""
    count = (length + 1) * size
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        g = tl.load(grad_tree + at, mask=at < count, other=0.0)
        tl.store(inc + at, tl.where(at % size == 0, 0.0, g), mask=at < count)


# ------------------------------------------------------------------------------------- soft trees
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


# -------------------------------------------------------------------------------------- best tree
@triton.jit
def follow_splits(chart, tree, length, size, BLOCK: tl.constexpr):
    """Mark the items of the best derivation top-down; an item has at most one consequent in it."""
    plane = size * size
    mark_right = chart + MARK_RIGHT * plane  # above the diagonal by U, below it by C→
    mark_left = chart + MARK_LEFT * plane  # above the diagonal by C←, below it by U
    for step in range(0, length):
        w = length - step
        for first in range(0, step + 1, BLOCK):
            i = first + tl.arange(0, BLOCK)
            live = i <= step
            row_i = i * size + i
            row_j = row_i + w * size  # offsets of [i][k] and [j][k] for k = i
            upper = row_i + w
            lower = row_j
            k_u, k_right = load_both(chart + TAKEN * plane, upper, lower, live)
            k_left = tl.load(chart + TAKEN_LEFT * plane + upper, mask=live, other=0.0)
            k_u, k_right, k_left = k_u.to(tl.int32), k_right.to(tl.int32), k_left.to(tl.int32)
            by_u, by_right = load_both(mark_right, upper, lower, live)
            in_right = live & ((step == 0) | (by_u + by_right > 0))
            by_left, by_u = load_both(mark_left, upper, lower, live)
            in_left = live & (by_left + by_u > 0)
            t_right, t_left = load_both(tree, upper, lower, live)
            in_u = live & (
                (t_right + t_left > 0) | (in_right & (k_right == w)) | (in_left & (k_left == 0))
            )
            # C→(i,j) = <I→(i,k), C→(k,j)>
            tl.store(tree + row_i + k_right, 1.0, mask=in_right)
            tl.store(mark_right + row_j + k_right, 1.0, mask=in_right & (k_right < w))
            # C←(i,j) = <C←(i,k), I←(k,j)>
            tl.store(mark_left + row_i + k_left, 1.0, mask=in_left & (k_left > 0))
            tl.store(tree + row_j + k_left, 1.0, mask=in_left)
            # U(i,j) = <C→(i,k), C←(k+1,j)>
            tl.store(mark_right + row_i + k_u, 1.0, mask=in_u & (k_u > 0))
            tl.store(mark_left + row_j + k_u + 1, 1.0, mask=in_u & (k_u < w - 1))
        tl.debug_barrier()


@triton.jit
def find_best(
    scores, chart, tree, length, size, single_root, ROWS: tl.constexpr, LANES: tl.constexpr
):  # fmt: skip
    """Mark the arcs of the best tree in ``tree``, which holds zeros; its score is the chart's.

    Returns a number that is not 0 if the score of an arc is NaN.
    """
    plane = size * size
    BLOCK: tl.constexpr = 4 * ROWS * LANES
    wrong = load_arcs(scores, None, chart + INC * plane, length, size, 1.0, BLOCK)
    clear(chart + MARK_RIGHT * plane, (length + 1) * size, BLOCK)
    clear(chart + MARK_LEFT * plane, (length + 1) * size, BLOCK)
    tl.debug_barrier()
    best_sweep(chart, length, size, single_root, ROWS, LANES)
    follow_splits(chart, tree, length, size, ROWS)
    return wrong


@triton.jit(do_not_specialize=["size", "single_root"])
def best_tree_kernel(
    scores, lengths, chart, tree, value, size, single_root,
    ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The best tree and its score."""
    plane = size * size
    chart = sentence(chart, BEST_PLANES, size)
    tree = sentence(tree, 1, size)
    length = sentence_length(lengths, tl.program_id(0), size)
    BLOCK: tl.constexpr = 4 * ROWS * LANES
    clear(tree, plane, BLOCK)
    arcs = sentence(scores, 1, size)
    wrong = find_best(arcs, chart, tree, length, size, single_root, ROWS, LANES)
    best = tl.load(chart + RIGHT * plane + length, mask=length > 0, other=0.0)
    tl.store(value + tl.program_id(0), tl.where(wrong != 0, float("nan"), best))
    if wrong != 0:
        spoil(tree, length, size, BLOCK)


# -------------------------------------------------------------------------------------- centring
#: The size of chart values from which float32 loses too much in their differences.
CENTRE_ABOVE = tl.constexpr(256.0)


@triton.jit
def value_size(scores, length, size, BLOCK: tl.constexpr):
    """About how large chart values get: the sum over words of ``|max_h W[h, m]|``."""
    total = 0.0
    for first_word in range(1, length + 1, BLOCK):
        m = first_word + tl.arange(0, BLOCK)[None, :]
        top = tl.full((BLOCK, BLOCK), FORBIDDEN, scores.dtype.element_ty)
        for first_head in range(0, length + 1, BLOCK):
            h = first_head + tl.arange(0, BLOCK)[:, None]
            arcs = (m <= length) & (h <= length) & (h != m)
            w = tl.load(scores + h * size + m, mask=arcs, other=float("-inf"))
            top = tl.maximum(top, bounded(w))
        best = tl.where(first_word + tl.arange(0, BLOCK) <= length, tl.abs(tl.max(top, 0)), 0.0)
        total += tl.sum(best, 0)
    return total


@triton.jit(do_not_specialize=["size", "single_root"])
def centre_kernel(
    scores, lengths, chart, shift, size, single_root,
    PLANES: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """``shift[b, m]``, the score to take off column m so that the best tree scores 0; float32 only.

    A constant added to a column changes no tree, soft or discrete. Chart values grow with the
    length and the scores, and with them the rounding of the differences that a softmax sees; after
    the shift the items on the best derivation are 0 and their rivals small. Column 0 has no arcs:
    its place takes the score of that tree, to be added to the value. A sentence of small scores or
    without a tree keeps its scores: all zeros, and the former costs no more than a look at them.
    """
    plane = size * size
    shift += tl.program_id(0).to(tl.int64) * size
    scores = sentence(scores, 1, size)
    length = sentence_length(lengths, tl.program_id(0), size)
    BLOCK: tl.constexpr = 4 * ROWS * LANES
    clear(shift, size, BLOCK)
    if value_size(scores, length, size, ROWS) > CENTRE_ABOVE:
        chart = sentence(chart, PLANES, size)
        arcs = chart + BEST_ARCS * plane
        count = (length + 1) * size
        clear(arcs, count, BLOCK)
        find_best(scores, chart, arcs, length, size, single_root, ROWS, LANES)
        value = tl.load(chart + RIGHT * plane + length)
        if value > NO_TREE:
            tl.store(shift, value)
            for start in range(0, count, BLOCK):
                at = start + tl.arange(0, BLOCK)
                mark = tl.load(arcs + at, mask=at < count, other=0.0)
                w = tl.load(scores + at, mask=at < count, other=0.0)
                tl.store(shift + at % size, bounded(w), mask=mark > 0)


# --------------------------------------------------------------------------------------- sampling
# Kinds of item on the agenda of a sample; I→ and I← are a choice of U with its arc.
TO_RIGHT = tl.constexpr(0)  # C→
TO_LEFT = tl.constexpr(1)  # C←
ARC_RIGHT = tl.constexpr(2)  # I→
ARC_LEFT = tl.constexpr(3)  # I←


@triton.jit
def pack(kind, i, j):
    """An item as one number: kind + 4·j + 2³²·i."""
    return kind.to(tl.int64) + j.to(tl.int64) * 4 + (i.to(tl.int64) << 32)


@triton.jit(do_not_specialize=["batch", "size", "single_root"])
def sample_tree_kernel(
    chart, lengths, uniforms, agenda, trees, batch, size, single_root, BLOCK: tl.constexpr
):  # fmt: skip
    """One exact sample: program ``sample·B + b`` draws a derivation of sentence b.

    Depth first means that an item of width ``w`` takes a block of decisions of known size, ``2w``
    for a complete and ``2w - 1`` for an incomplete one. So the place of every antecedent in the
    order is known when its consequent is drawn: the agenda is a table by decision, not a stack.
    """
    plane = size * size
    draw = tl.program_id(0).to(tl.int64)
    b = draw % batch
    chart += b * (CHART_PLANES * plane)
    uniforms += draw * (2 * (size - 1))
    agenda += draw * (2 * size)
    trees += draw * plane
    length = sentence_length(lengths, b, size)
    clear(trees, plane, 4 * BLOCK)
    tl.store(agenda, length.to(tl.int64) * 4)  # C→(0,length)
    tl.debug_barrier()
    t = tl.arange(0, BLOCK)
    for decision in range(0, 2 * length):
        item = tl.load(agenda + decision)
        u = tl.load(uniforms + decision)
        kind = (item & 3).to(tl.int32)
        i = (item >> 32).to(tl.int32)
        j = ((item & 0xFFFFFFFF) >> 2).to(tl.int32)
        w = j - i
        is_right = kind == TO_RIGHT
        is_u = kind >= ARC_RIGHT
        # U = <C→(i,k), C←(k+1,j)>;  C→(i,j) = <I→(i,k), C→(k,j)>;  C←(i,j) = <C←(i,k), I←(k,j)>
        plane_1 = tl.where(is_u, RIGHT, tl.where(is_right, INC, LEFT))
        plane_2 = tl.where(is_u, LEFT, tl.where(is_right, RIGHT, INC))
        plane_m = tl.where(is_u, SPLIT_U, tl.where(is_right, SPLIT_RIGHT, SPLIT_LEFT))
        m = tl.load(chart + plane_m * plane + i * size + j)
        rz = tl.load(chart + plane_m * plane + j * size + i)
        lowest = tl.where(is_right, 1, 0)  # k > i in C→
        gap = tl.where(is_u, 1, 0)  # the right antecedent of U starts at k + 1
        only_first = is_u & (i == 0) & (single_root != 0)
        splits = (t >= lowest) & (t < tl.where(only_first, 1, w + lowest))
        s_1 = tl.load(chart + plane_1 * plane + i * size + i + t, mask=splits & (t > 0), other=0.0)
        s_2 = tl.load(
            chart + plane_2 * plane + j * size + i + t + gap, mask=splits & (t + gap < w), other=0.0
        )
        weights = tl.exp2(tl.where(splits, s_1 + s_2, NOTHING) - m) * rz
        chosen = tl.min(tl.where(splits & (tl.cumsum(weights, 0) > u), t, BLOCK), 0)
        # a sum that ends a rounding error below u: the last split with weight takes the rest
        last = tl.max(tl.where(splits & (weights > 0), t, lowest), 0)
        chosen = tl.where(chosen < BLOCK, chosen, last)
        k = i + chosen
        arc = tl.where(kind == ARC_RIGHT, i * size + j, j * size + i)
        tl.store(trees + arc, 1.0, mask=is_u)
        kind_1 = tl.where(is_u, TO_RIGHT, tl.where(is_right, ARC_RIGHT, TO_LEFT))
        kind_2 = tl.where(is_u, TO_LEFT, tl.where(is_right, TO_RIGHT, ARC_LEFT))
        # the left antecedent comes next, the right one after all decisions of the left one
        after = decision + 1 + 2 * chosen - lowest
        tl.store(agenda + decision + 1, pack(kind_1, i, k), mask=k > i)
        tl.store(agenda + after, pack(kind_2, k + gap, j), mask=k + gap < j)
        tl.debug_barrier()
    mark = tl.load(chart)
    if mark != mark:
        spoil(trees, length, size, BLOCK)
