"""GPU kernels of the soft tree, its gradient and the log-partition.

Four sweeps over the widths, two a launch, with one barrier a width; `triton_parts` says how the
tables lie in memory and why one barrier is enough. In each sweep the loads of the first chunk of
splits stand before any arithmetic: sentences are short, so the time goes into waiting for memory.
"""

from __future__ import annotations

import triton
import triton.language as tl

from treelax.ops.eisner.triton_parts import (
    BACKWARD_PLANES,
    CHART_PLANES,
    DOWN_LEFT,
    DOWN_RIGHT,
    FORWARD_PLANES,
    GIVEN,
    INC,
    LEFT,
    LN2,
    LOG2E,
    MEAN_GIVEN,
    MEANS,
    RIGHT,
    SPLIT_LEFT,
    SPLIT_RIGHT,
    SPLIT_U,
    UP_U,
    absorb,
    cell_value,
    cells,
    clear,
    join_lanes,
    lane_splits,
    load_arcs,
    load_both,
    load_gradients,
    load_six,
    pair_sums,
    sentence,
    sentence_length,
    split_scores,
    spoil,
    store_both,
    store_six,
    sum_lanes,
)


# ----------------------------------------------------------------------------------------- sweeps
@triton.jit
def inside_sweep(
    chart, length, size, single_root,
    MEAN: tl.constexpr, KEEP: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """All items bottom-up. ``MEAN``: softmax, else entropy. ``KEEP``: store m, 1/z, mean_d too."""
    plane = size * size
    right = chart + RIGHT * plane
    left = chart + LEFT * plane
    inc = chart + INC * plane
    lane = tl.arange(0, ROWS * LANES) % LANES
    for w in range(1, length + 1):
        count = length + 1 - w
        for first in range(0, count, ROWS):
            i, live, upper, lower = cells(first, w, count, size, ROWS, LANES)
            arc_right, arc_left = load_both(inc, upper, lower, live)  # W[i,j], W[j,i]
            at_i, at_j, splits_u, between, before_last = lane_splits(
                0, lane, i, w, live, size, single_root
            )
            m_u, m_right, m_left = split_scores(
                right, left, inc, at_i, at_j, splits_u, between, before_last
            )
            z_u = tl.full((ROWS * LANES,), 1.0, m_u.dtype)
            z_right = z_u
            z_left = z_u
            e_u = tl.zeros((ROWS * LANES,), m_u.dtype)
            e_right = e_u
            e_left = e_u
            for t0 in range(LANES, w, LANES):
                at_i, at_j, splits_u, between, before_last = lane_splits(
                    t0, lane, i, w, live, size, single_root
                )
                s_u, s_right, s_left = split_scores(
                    right, left, inc, at_i, at_j, splits_u, between, before_last
                )
                m_u, z_u, e_u = absorb(m_u, z_u, e_u, s_u, MEAN)
                m_right, z_right, e_right = absorb(m_right, z_right, e_right, s_right, MEAN)
                m_left, z_left, e_left = absorb(m_left, z_left, e_left, s_left, MEAN)
            m_u, z_u, e_u = join_lanes(m_u, z_u, e_u, MEAN, LANES)
            m_right, z_right, e_right = join_lanes(m_right, z_right, e_right, MEAN, LANES)
            m_left, z_left, e_left = join_lanes(m_left, z_left, e_left, MEAN, LANES)
            # I→(i,j) = U(i,j) + W[i,j];  I←(i,j) = U(i,j) + W[j,i]
            v_u, rz_u, mean_u = cell_value(m_u, z_u, e_u, MEAN)
            inc_right = v_u + arc_right
            inc_left = v_u + arc_left
            # C→(i,j) also takes <I→(i,j), C→(j,j)>, C←(i,j) also takes <C←(i,i), I←(i,j)>
            m_right, z_right, e_right = absorb(m_right, z_right, e_right, inc_right, MEAN)
            m_left, z_left, e_left = absorb(m_left, z_left, e_left, inc_left, MEAN)
            v_right, rz_right, mean_right = cell_value(m_right, z_right, e_right, MEAN)
            v_left, rz_left, mean_left = cell_value(m_left, z_left, e_left, MEAN)

            one = live & (lane == 0)
            store_both(right, upper, lower, v_right, v_right, one)
            store_both(left, upper, lower, v_left, v_left, one)
            store_both(inc, upper, lower, inc_right, inc_left, one)
            if KEEP:
                store_both(chart + SPLIT_U * plane, upper, lower, m_u, rz_u, one)
                store_both(chart + SPLIT_RIGHT * plane, upper, lower, m_right, rz_right, one)
                store_both(chart + SPLIT_LEFT * plane, upper, lower, m_left, rz_left, one)
                if MEAN:
                    store_both(chart + MEANS * plane, upper, lower, mean_u, mean_right, one)
                    tl.store(chart + MEAN_GIVEN * plane + upper, mean_left, mask=one)
        tl.debug_barrier()


@triton.jit
def outside_sweep(
    chart, given_right, given_left, tree, length, size, single_root,
    SAVE: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Contributions top-down, 1 at C→(0,length): every item hands ``b·a`` to both antecedents."""
    plane = size * size
    right = chart + RIGHT * plane
    left = chart + LEFT * plane
    inc = chart + INC * plane
    lane = tl.arange(0, ROWS * LANES) % LANES
    for step in range(0, length):
        w = length - step
        count = step + 1
        for first in range(0, count, ROWS):
            i, live, upper, lower = cells(first, w, count, size, ROWS, LANES)
            m_u, rz_u = load_both(chart + SPLIT_U * plane, upper, lower, live)
            m_right, rz_right = load_both(chart + SPLIT_RIGHT * plane, upper, lower, live)
            m_left, rz_left = load_both(chart + SPLIT_LEFT * plane, upper, lower, live)
            inc_right, inc_left = load_both(inc, upper, lower, live)
            from_u, from_right = load_both(given_right, upper, lower, live)
            a_right = tl.where(step == 0, 1.0, from_u + from_right)
            from_left, from_u = load_both(given_left, upper, lower, live)
            a_left = from_left + from_u
            t_right, t_left = load_both(tree, upper, lower, live)
            # the first chunk is on its way before any arithmetic on what the cells load
            at_i, at_j, splits_u, between, before_last = lane_splits(
                0, lane, i, w, live, size, single_root
            )
            s_u, s_right, s_left = split_scores(
                right, left, inc, at_i, at_j, splits_u, between, before_last
            )
            old = load_six(given_right, given_left, tree, at_i, at_j, between, before_last)
            # what C→(i,j) gives to I→(i,j), and C←(i,j) to I←(i,j)
            share_right = rz_right * a_right
            share_left = rz_left * a_left
            t_right += tl.exp2(inc_right - m_right) * share_right
            t_left += tl.exp2(inc_left - m_left) * share_left
            a_u = t_right + t_left
            share_u = rz_u * a_u
            store_six(
                given_right, given_left, tree, at_i, at_j, between, before_last, old,
                tl.exp2(s_u - m_u) * share_u,
                tl.exp2(s_right - m_right) * share_right,
                tl.exp2(s_left - m_left) * share_left,
            )  # fmt: skip
            for t0 in range(LANES, w, LANES):
                at_i, at_j, splits_u, between, before_last = lane_splits(
                    t0, lane, i, w, live, size, single_root
                )
                s_u, s_right, s_left = split_scores(
                    right, left, inc, at_i, at_j, splits_u, between, before_last
                )
                old = load_six(given_right, given_left, tree, at_i, at_j, between, before_last)
                store_six(
                    given_right, given_left, tree, at_i, at_j, between, before_last, old,
                    tl.exp2(s_u - m_u) * share_u,
                    tl.exp2(s_right - m_right) * share_right,
                    tl.exp2(s_left - m_left) * share_left,
                )  # fmt: skip
            one = live & (lane == 0)
            store_both(tree, upper, lower, t_right, t_left, one)
            if SAVE:
                tl.store(chart + MEAN_GIVEN * plane + lower, a_u, mask=one)
                store_both(chart + GIVEN * plane, upper, lower, a_right, a_left, one)
        tl.debug_barrier()


@triton.jit
def up_sweep(
    chart, scratch, length, size, single_root, ROWS: tl.constexpr, LANES: tl.constexpr
):  # fmt: skip
    """Adjoints of contributions bottom-up: ``ḡ = Σ b_k·g_k``, g_k the sum over both antecedents.

    ``scratch`` holds them in planes laid out as the chart's own; I starts from the tree's adjoint.
    """
    plane = size * size
    right = chart + RIGHT * plane
    left = chart + LEFT * plane
    inc = chart + INC * plane
    g_right = scratch + RIGHT * plane
    g_left = scratch + LEFT * plane
    g_inc = scratch + INC * plane
    lane = tl.arange(0, ROWS * LANES) % LANES
    for w in range(1, length + 1):
        count = length + 1 - w
        for first in range(0, count, ROWS):
            i, live, upper, lower = cells(first, w, count, size, ROWS, LANES)
            m_u, rz_u = load_both(chart + SPLIT_U * plane, upper, lower, live)
            m_right, rz_right = load_both(chart + SPLIT_RIGHT * plane, upper, lower, live)
            m_left, rz_left = load_both(chart + SPLIT_LEFT * plane, upper, lower, live)
            inc_right, inc_left = load_both(inc, upper, lower, live)
            gt_right, gt_left = load_both(g_inc, upper, lower, live)
            at_i, at_j, splits_u, between, before_last = lane_splits(
                0, lane, i, w, live, size, single_root
            )
            s_u, s_right, s_left = split_scores(
                right, left, inc, at_i, at_j, splits_u, between, before_last
            )
            gk_u, gk_right, gk_left = pair_sums(
                g_right, g_left, g_inc, at_i, at_j, between, before_last
            )
            sum_u = tl.exp2(s_u - m_u) * gk_u
            sum_right = tl.exp2(s_right - m_right) * gk_right
            sum_left = tl.exp2(s_left - m_left) * gk_left
            for t0 in range(LANES, w, LANES):
                at_i, at_j, splits_u, between, before_last = lane_splits(
                    t0, lane, i, w, live, size, single_root
                )
                s_u, s_right, s_left = split_scores(
                    right, left, inc, at_i, at_j, splits_u, between, before_last
                )
                gk_u, gk_right, gk_left = pair_sums(
                    g_right, g_left, g_inc, at_i, at_j, between, before_last
                )
                sum_u += tl.exp2(s_u - m_u) * gk_u
                sum_right += tl.exp2(s_right - m_right) * gk_right
                sum_left += tl.exp2(s_left - m_left) * gk_left
            mean_u = rz_u * sum_lanes(sum_u, LANES)
            gt_right += mean_u  # of I→(i,j)
            gt_left += mean_u  # of I←(i,j)
            own_right = tl.exp2(inc_right - m_right) * gt_right
            own_left = tl.exp2(inc_left - m_left) * gt_left
            mean_right = rz_right * (sum_lanes(sum_right, LANES) + own_right)
            mean_left = rz_left * (sum_lanes(sum_left, LANES) + own_left)
            one = live & (lane == 0)
            store_both(g_inc, upper, lower, gt_right, gt_left, one)
            store_both(g_right, upper, lower, mean_right, mean_right, one)
            store_both(g_left, upper, lower, mean_left, mean_left, one)
            tl.store(scratch + UP_U * plane + upper, mean_u, mask=one)
        tl.debug_barrier()


@triton.jit
def slope(rz, a, mean_d, mean_g, gv, MEAN: tl.constexpr):
    """Coefficients of ``ds = 2^d·(with_d·d + with_g·g + rest)``, the adjoint of a split's score.

    softmax: ``ds = b·[gv·(1 + ln2·(d − mean_d)) + a·(g − ḡ)]``;
    entropy: ``ds = b·[gv + a·(g − ḡ)]``.
    """
    with_g = rz * a
    with_d = rz * gv
    rest = with_d - with_g * mean_g
    if MEAN:
        with_d *= LN2
        rest -= with_d * mean_d
    return with_d, with_g, rest


@triton.jit
def split_slope(s, m, g, line, MEAN: tl.constexpr):
    """``ds`` of one split. ``d`` is bounded: a forbidden split gives 0·finite, never 0·inf."""
    with_d, with_g, rest = line
    lowest: tl.constexpr = -1100.0 if s.dtype == tl.float64 else -200.0  # 2^lowest is 0
    d = tl.maximum(s - m, lowest)
    if MEAN:
        rest = with_d * d + rest
    return tl.exp2(d) * (with_g * g + rest)


@triton.jit
def down_sweep(
    chart, scratch, grad, grad_value, length, size, single_root,
    MEAN: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Adjoints of values top-down, ``grad_value`` at C→(0,length); those of I are the gradient."""
    plane = size * size
    right = chart + RIGHT * plane
    left = chart + LEFT * plane
    inc = chart + INC * plane
    g_right = scratch + RIGHT * plane
    g_left = scratch + LEFT * plane
    g_inc = scratch + INC * plane
    down_right = scratch + DOWN_RIGHT * plane
    down_left = scratch + DOWN_LEFT * plane
    lane = tl.arange(0, ROWS * LANES) % LANES
    for step in range(0, length):
        w = length - step
        count = step + 1
        for first in range(0, count, ROWS):
            i, live, upper, lower = cells(first, w, count, size, ROWS, LANES)
            m_u, rz_u = load_both(chart + SPLIT_U * plane, upper, lower, live)
            m_right, rz_right = load_both(chart + SPLIT_RIGHT * plane, upper, lower, live)
            m_left, rz_left = load_both(chart + SPLIT_LEFT * plane, upper, lower, live)
            a_right, a_left = load_both(chart + GIVEN * plane, upper, lower, live)
            inc_right, inc_left = load_both(inc, upper, lower, live)
            gt_right, gt_left = load_both(g_inc, upper, lower, live)
            if MEAN:
                mean_u, mean_right = load_both(chart + MEANS * plane, upper, lower, live)
                mean_left, a_u = load_both(chart + MEAN_GIVEN * plane, upper, lower, live)
            else:
                a_u = tl.load(chart + MEAN_GIVEN * plane + lower, mask=live, other=0.0)
                mean_u = a_u
                mean_right = a_u
                mean_left = a_u
            mean_g_u = tl.load(scratch + UP_U * plane + upper, mask=live, other=0.0)
            mean_g_right = tl.load(g_right + upper, mask=live, other=0.0)
            mean_g_left = tl.load(g_left + upper, mask=live, other=0.0)
            from_u, from_right = load_both(down_right, upper, lower, live)
            gv_right = tl.where(step == 0, grad_value, from_u + from_right)
            from_left, from_u = load_both(down_left, upper, lower, live)
            gv_left = from_left + from_u
            dw_right, dw_left = load_both(grad, upper, lower, live)

            at_i, at_j, splits_u, between, before_last = lane_splits(
                0, lane, i, w, live, size, single_root
            )
            s_u, s_right, s_left = split_scores(
                right, left, inc, at_i, at_j, splits_u, between, before_last
            )
            gk_u, gk_right, gk_left = pair_sums(
                g_right, g_left, g_inc, at_i, at_j, between, before_last
            )
            old = load_six(down_right, down_left, grad, at_i, at_j, between, before_last)
            line_right = slope(rz_right, a_right, mean_right, mean_g_right, gv_right, MEAN)
            line_left = slope(rz_left, a_left, mean_left, mean_g_left, gv_left, MEAN)
            # C→(i,j) through I→(i,j), C←(i,j) through I←(i,j); then U(i,j) through both
            dw_right += split_slope(inc_right, m_right, gt_right, line_right, MEAN)
            dw_left += split_slope(inc_left, m_left, gt_left, line_left, MEAN)
            line_u = slope(rz_u, a_u, mean_u, mean_g_u, dw_right + dw_left, MEAN)
            store_six(
                down_right, down_left, grad, at_i, at_j, between, before_last, old,
                split_slope(s_u, m_u, gk_u, line_u, MEAN),
                split_slope(s_right, m_right, gk_right, line_right, MEAN),
                split_slope(s_left, m_left, gk_left, line_left, MEAN),
            )  # fmt: skip
            for t0 in range(LANES, w, LANES):
                at_i, at_j, splits_u, between, before_last = lane_splits(
                    t0, lane, i, w, live, size, single_root
                )
                s_u, s_right, s_left = split_scores(
                    right, left, inc, at_i, at_j, splits_u, between, before_last
                )
                gk_u, gk_right, gk_left = pair_sums(
                    g_right, g_left, g_inc, at_i, at_j, between, before_last
                )
                old = load_six(down_right, down_left, grad, at_i, at_j, between, before_last)
                store_six(
                    down_right, down_left, grad, at_i, at_j, between, before_last, old,
                    split_slope(s_u, m_u, gk_u, line_u, MEAN),
                    split_slope(s_right, m_right, gk_right, line_right, MEAN),
                    split_slope(s_left, m_left, gk_left, line_left, MEAN),
                )  # fmt: skip
            store_both(grad, upper, lower, dw_right, dw_left, live & (lane == 0))
        tl.debug_barrier()


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
