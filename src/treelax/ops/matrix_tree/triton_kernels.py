"""GPU kernels of non-projective marginals and their gradient: one Triton program per sentence.

The README of this folder explains them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from treelax.ops.chart.triton_parts import (
    FORBIDDEN,
    NO_TREE,
    bounded,
    clear,
    max_lanes,
    sentence_length,
    spoil,
    sum_lanes,
)

FREE = tl.constexpr(0)
PAID = tl.constexpr(1)
# What saved[b, 0, 0], no arc's place, tells later kernels; NaN: a score was.
LINEAR = tl.constexpr(0)
LOGARITHMIC = tl.constexpr(1)


# ------------------------------------------------------------------------------------- arithmetic
@triton.jit
def nothing(LOG: tl.constexpr):
    """The number 0."""
    return FORBIDDEN if LOG else 0.0


@triton.jit
def plus(x, dx, y, dy, LOG: tl.constexpr):
    """Sum of two numbers and its tangent."""
    if LOG:
        smaller = tl.exp(-tl.abs(x - y))
        share = smaller / (1.0 + smaller)
        share = tl.where(y > x, 1.0 - share, share)  # of y in the sum
        total = tl.maximum(x, y) + tl.log(1.0 + smaller)
        return tl.maximum(total, FORBIDDEN), dx + share * (dy - dx)
    else:
        return x + y, dx + dy


@triton.jit
def times(x, dx, y, dy, LOG: tl.constexpr):
    """Product of two numbers and its tangent."""
    if LOG:
        return x + y, dx + dy
    else:
        return x * y, dx * y + x * dy


@triton.jit
def over(x, dx, y, dy, LOG: tl.constexpr):
    """Quotient of two numbers and its tangent."""
    if LOG:
        return x - y, dx - dy
    else:
        ratio = x / y
        return ratio, (dx - ratio * dy) / y


@triton.jit
def total_of_lanes(x, dx, LOG: tl.constexpr, LANES: tl.constexpr):
    """Sum over the lanes of every row and its tangent, in every lane."""
    if LOG:
        top = max_lanes(x, LANES)
        share = tl.exp(x - top)
        total = sum_lanes(share, LANES)
        return top + tl.log(total), sum_lanes(share * dx, LANES) / total
    else:
        return sum_lanes(x, LANES), sum_lanes(dx, LANES)


@triton.jit
def in_range(x):
    """Whether a linear sum is far enough from 0 that what underflowed beside it does not matter.

    Entries below the smallest normal number, 2^-126 in float32, are lost; divided by this threshold
    they must still vanish beside this threshold. Its inverse keeps the weights of one root finite.
    """
    lowest: tl.constexpr = 2.0**-480 if x.dtype == tl.float64 else 2.0**-48
    return (x >= lowest) & (x <= 1.0 / lowest)


@triton.jit
def load_number(at, tangents, mask, LOG: tl.constexpr, TANGENT: tl.constexpr):
    """A number and its tangent, which lies ``tangents`` entries further."""
    x = tl.load(at, mask=mask, other=nothing(LOG))
    if TANGENT:
        return x, tl.load(at + tangents, mask=mask, other=0.0)
    else:
        return x, x


@triton.jit
def store_number(at, tangents, x, dx, mask, TANGENT: tl.constexpr):
    """Write a number and its tangent."""
    tl.store(at, x, mask=mask)
    if TANGENT:
        tl.store(at + tangents, dx, mask=mask)


# ------------------------------------------------------------------------------------------ set-up
# ``chain`` holds planes of n rows of ``width = n + 3·levels`` entries: `stays`, `goes`, with LOG `paid`.
# The first n entries of a row are for words; that of the word itself holds the column's maximum. Two
# roots and one S for every level follow. Tangents lie ``tangents`` entries further.
@triton.jit
def total_at(level, levels, n):
    """Offset of a row's ``S``, in `goes`."""
    return n + 2 * levels + level


@triton.jit
def arc_scores(scores, h, x, n, size):
    """Where there is an arc from position ``h`` to word ``x``, and its score."""
    arc = (x < n) & (h <= n) & (h != x + 1)
    score = tl.load(scores + h * size + x + 1, mask=arc, other=float("-inf"))
    return arc, score


@triton.jit
def arc_weight(score, top, LOG: tl.constexpr):
    """``exp(score - top)``; a forbidden arc stays one, whatever the maximum."""
    if LOG:
        return tl.where(score <= NO_TREE, FORBIDDEN, score.to(tl.float64) - top)
    else:
        return tl.exp(score - top)


@triton.jit
def prepare(
    scores, direction, saved, chain, tangents, n, size, width, single_root,
    LOG: tl.constexpr, TANGENT: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The walk from the scores, which are copied into ``saved`` unless that is None.

    Returns a number that is not 0 if the score of an arc is NaN. Of the direction every column's mean
    is taken off, which changes no derivative.
    """
    lane = tl.arange(0, ROWS * LANES) % LANES
    row = tl.arange(0, ROWS * LANES) // LANES
    number = chain.dtype.element_ty
    root = n + tl.where(single_root != 0, PAID, FREE)
    no_root = n + tl.where(single_root != 0, FREE, PAID)
    wrong = tl.zeros((ROWS * LANES,), tl.int32)
    for first in range(0, n, ROWS):
        x = first + row
        entry = chain + x * width
        one = (x < n) & (lane == 0)
        top = tl.full((ROWS * LANES,), FORBIDDEN, scores.dtype.element_ty)
        for h0 in range(0, n + 1, LANES):
            arc, score = arc_scores(scores, h0 + lane, x, n, size)
            wrong |= (arc & (score != score)).to(tl.int32)
            if saved is not None:
                tl.store(saved + (h0 + lane) * size + x + 1, score, mask=arc)
            top = tl.maximum(top, bounded(score))
        top = max_lanes(top, LANES)
        tl.store(entry + x, top.to(number), mask=one)
        tl.store(entry + no_root, tl.full((ROWS * LANES,), nothing(LOG), number), mask=one)
        mean = tl.zeros((ROWS * LANES,), number)
        mass = mean
        for h0 in range(0, n + 1, LANES):
            h = h0 + lane
            arc, score = arc_scores(scores, h, x, n, size)
            w = arc_weight(bounded(score), top, LOG).to(number)
            tl.store(entry + tl.where(h == 0, root, h - 1), w, mask=arc)
            if TANGENT:
                share = tl.where(arc, tl.exp(w) if LOG else w, 0.0)
                mass += share
                mean += share * tl.load(direction + h * size + x + 1, mask=arc, other=0.0)
        if TANGENT:
            mean = sum_lanes(mean, LANES) / tl.maximum(sum_lanes(mass, LANES), 1.0)
            tl.store(entry + tangents + x, mean, mask=one)
            tl.store(entry + tangents + no_root, tl.zeros((ROWS * LANES,), number), mask=one)
            for h0 in range(0, n + 1, LANES):
                h = h0 + lane
                arc, score = arc_scores(scores, h, x, n, size)
                slope = tl.load(direction + h * size + x + 1, mask=arc, other=0.0) - mean
                if not LOG:
                    slope *= tl.exp(bounded(score) - top)
                at = entry + tangents + tl.where(h == 0, root, h - 1)
                tl.store(at, slope.to(number), mask=arc)
    tl.debug_barrier()
    return tl.max(wrong, 0)


# ------------------------------------------------------------------------------------- elimination
@triton.jit
def interval(x, level, n):
    """The interval of ``x``: where it begins, where its second half begins, where it ends."""
    low = x * 0
    high = low + n
    middle = (low + high + 1) >> 1
    for _ in range(0, level):
        second = x >= middle
        low = tl.where(second, middle, low)
        high = tl.where(second, high, middle)
        middle = (low + high + 1) >> 1
    return low, middle, high


@triton.jit
def settle(
    row, tangents, total, d_total, paid, d_paid, roots, total_offset, next_one, bad, lane,
    LOG: tl.constexpr, TANGENT: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Store ``S`` in the rows of `goes` that are eliminated next, the sum of all lanes."""
    total, d_total = total_of_lanes(total, d_total, LOG, LANES)
    if LOG:
        # nothing of order 0: order 1 takes its place
        paid = sum_lanes(paid, LANES)
        d_paid = sum_lanes(d_paid, LANES)
        only_root = total <= NO_TREE
        total = tl.where(only_root, paid, total)
        d_total = tl.where(only_root, d_paid, d_total)
        left = tl.where(lane == FREE, paid, FORBIDDEN)
        swaps = next_one & only_root & (lane < 2)
        store_number(row + roots + lane, tangents, left, d_paid, swaps, TANGENT)
    else:
        bad |= (next_one & ~in_range(total)).to(tl.int32)
    store_number(row + total_offset, tangents, total, d_total, next_one & (lane == 0), TANGENT)
    return bad


@triton.jit
def open_level(
    chain, tangents, level, levels, n, width, bad,
    LOG: tl.constexpr, TANGENT: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Copy the intervals of a level from `stays` to `goes`; ``S`` of the first words to go."""
    lane = tl.arange(0, ROWS * LANES) % LANES
    row = tl.arange(0, ROWS * LANES) // LANES
    for first in range(0, n, ROWS):
        x = first + row
        low, middle, high = interval(x, level, n)
        goes_first = ((x == low) | (x == middle)) & (middle < high)
        stays = chain + x * width
        goes = stays + n * width
        total = tl.full((ROWS * LANES,), nothing(LOG), chain.dtype.element_ty)
        d_total = tl.zeros((ROWS * LANES,), chain.dtype.element_ty)
        paid = d_total
        d_paid = d_total
        for i0 in range(0, 2 + tl.cdiv(n, 1 << level), LANES):
            i = i0 + lane
            is_root = i < 2
            h = low + i - 2
            live = (x < n) & (is_root | ((h < high) & (h != x)))
            j = tl.where(is_root, n + 2 * tl.maximum(level - 1, 0) + i, h)
            w, dw = load_number(stays + j, tangents, live, LOG, TANGENT)
            j = tl.where(is_root, n + 2 * level + i, h)
            store_number(stays + j, tangents, w, dw, live & is_root, TANGENT)
            store_number(goes + j, tangents, w, dw, live, TANGENT)
            counts = live & (i != PAID)
            w_counted = tl.where(counts, w, nothing(LOG))
            total, d_total = plus(total, d_total, w_counted, tl.where(counts, dw, 0.0), LOG)
            paid += tl.where(i == PAID, w, 0.0)
            d_paid += tl.where(i == PAID, dw, 0.0)
        bad = settle(
            goes, tangents, total, d_total, paid, d_paid, n + 2 * level,
            total_at(level, levels, n), (x < n) & goes_first, bad, lane,
            LOG, TANGENT, LANES,
        )  # fmt: skip
    tl.debug_barrier()
    return bad


@triton.jit
def eliminate(
    chain, tangents, step, level, levels, n, width, bad,
    LOG: tl.constexpr, TANGENT: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Word number ``step`` of every half goes: ``w[x, h] += w[k, h]·w[x, k]/S_k``."""
    lane = tl.arange(0, ROWS * LANES) % LANES
    row = tl.arange(0, ROWS * LANES) // LANES
    total_offset = total_at(level, levels, n)
    for first in range(0, 2 * n, ROWS):
        c = first + row  # a row of `stays`, or one of `goes`
        in_goes = c >= n
        x = tl.where(in_goes, c - n, c)
        # the half that is eliminated from this row: its own or the other
        low, middle, high = interval(x, level, n)
        second = (x >= middle) == in_goes
        k = tl.where(second, middle, low) + step
        last = tl.where(second, high, middle)
        kept = tl.where(second, low, middle)
        many = tl.where(second, middle, high) - kept
        busy = (c < 2 * n) & (k < last) & ~(in_goes & (x == k))
        own = chain + c * width
        pivot = chain + (n + k) * width
        u, du = load_number(own + k, tangents, busy, LOG, TANGENT)
        s, ds = load_number(pivot + total_offset, tangents, busy, LOG, TANGENT)
        u, du = over(u, du, s, ds, LOG)
        total = tl.full((ROWS * LANES,), nothing(LOG), u.dtype)
        d_total = tl.zeros((ROWS * LANES,), u.dtype)
        paid = d_total
        d_paid = d_total
        for i0 in range(0, 1 + tl.cdiv(n, 1 << level) - step, LANES):
            # two roots, the half that remains, and what is still there of the other
            i = i0 + lane
            is_root = i < 2
            h = i - 2 + tl.where(i < 2 + many, kept, k + 1 - many)
            live = busy & (is_root | ((i < 2 + many) | (h < last)) & (h != x))
            j = tl.where(is_root, n + 2 * level + i, h)
            w, dw = load_number(own + j, tangents, live, LOG, TANGENT)
            p, dp = load_number(pivot + j, tangents, live, LOG, TANGENT)
            p, dp = times(p, dp, u, du, LOG)
            w, dw = plus(w, dw, p, dp, LOG)
            store_number(own + j, tangents, w, dw, live, TANGENT)
            counts = live & (i != PAID)
            w_counted = tl.where(counts, w, nothing(LOG))
            total, d_total = plus(total, d_total, w_counted, tl.where(counts, dw, 0.0), LOG)
            paid += tl.where(i == PAID, w, 0.0)
            d_paid += tl.where(i == PAID, dw, 0.0)
        bad = settle(
            own, tangents, total, d_total, paid, d_paid, n + 2 * level, total_offset,
            busy & in_goes & (x == k + 1), bad, lane, LOG, TANGENT, LANES,
        )  # fmt: skip
    tl.debug_barrier()
    return bad


@triton.jit
def return_level(
    chain, reach, order, tangents, level, levels, n, width,
    LOG: tl.constexpr, TANGENT: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """``reach[x, h] = q_h(x)`` for ``h`` of the other half: ``Σ_a F[h, a]·q_a(x) + F[h, root]``."""
    lane = tl.arange(0, ROWS * LANES) % LANES
    row = tl.arange(0, ROWS * LANES) // LANES
    half = tl.cdiv(n, 2 << level)
    for first in range(0, n * half, ROWS):
        x = (first + row) // half
        low, middle, high = interval(x, level, n)
        second = x >= middle
        h = tl.where(second, low, middle) + (first + row) % half
        live = (x < n) & (h < tl.where(second, middle, high))
        goes = chain + (n + h) * width
        at_root = live & (lane == 0)
        q, dq = load_number(goes + n + 2 * level + order, tangents, at_root, LOG, TANGENT)
        dq = tl.where(at_root, dq, 0.0)
        s, ds = load_number(goes + total_at(level, levels, n), tangents, live, LOG, TANGENT)
        for a0 in range(0, half, LANES):
            a = tl.where(second, middle, low) + a0 + lane
            there = live & (a < tl.where(second, high, middle)) & (a != x)
            f, df = load_number(goes + a, tangents, there, LOG, TANGENT)
            r, dr = load_number(reach + x * width + a, tangents, there, LOG, TANGENT)
            f, df = times(f, df, r, dr, LOG)
            q, dq = plus(q, dq, f, df, LOG)
        q, dq = total_of_lanes(q, dq, LOG, LANES)
        q, dq = over(q, dq, s, ds, LOG)
        store_number(reach + x * width + h, tangents, q, dq, live & (lane == 0), TANGENT)
    tl.debug_barrier()


@triton.jit
def walk(
    chain, tangents, levels, n, width, single_root,
    LOG: tl.constexpr, TANGENT: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Down all levels and back up. Returns what is not 0 where a linear sum was out of range.

    Leaves q in the words' entries of `stays`, which are needed no more, and with LOG those of order 1
    in `paid`.
    """
    bad = tl.zeros((ROWS * LANES,), tl.int32)
    for level in range(0, levels):
        if (1 << level) < n:
            bad = open_level(
                chain, tangents, level, levels, n, width, bad, LOG, TANGENT, ROWS, LANES
            )
            for step in range(0, tl.cdiv(n, 2 << level)):
                bad = eliminate(
                    chain, tangents, step, level, levels, n, width, bad,
                    LOG, TANGENT, ROWS, LANES,
                )  # fmt: skip
    for back in range(0, levels):
        level = levels - 1 - back
        if (1 << level) < n:
            # sums here are short: fewer lanes
            return_level(
                chain, chain, tl.where(single_root != 0, PAID, FREE) if not LOG else FREE,
                tangents, level, levels, n, width, LOG, TANGENT, 2 * ROWS, LANES // 2,
            )  # fmt: skip
            if LOG:
                return_level(
                    chain, chain + 2 * n * width, PAID, tangents, level, levels, n, width,
                    LOG, TANGENT, 2 * ROWS, LANES // 2,
                )  # fmt: skip
    return bad


# ----------------------------------------------------------------------------------------- results
@triton.jit
def column_weights(
    scores, direction, chain, order, tangents, h, x, n, size, width, single_root,
    LOG: tl.constexpr, TANGENT: tl.constexpr,
):  # fmt: skip
    """``w[x, h]·q_h(x)`` of one order for every head, the root's q being 1 or of order 1."""
    arc, score = arc_scores(scores, h, x, n, size)
    entry = chain + x * width
    top = tl.load(entry + x, mask=x < n, other=0.0)
    w = arc_weight(bounded(score), top, LOG)
    dw = w
    if TANGENT:
        mean = tl.load(entry + tangents + x, mask=x < n, other=0.0)
        dw = tl.load(direction + h * size + x + 1, mask=arc, other=0.0) - mean
        if not LOG:
            dw *= w
    plane = tl.where(order == PAID, 2 * n * width, 0) if LOG else 0
    q, dq = load_number(entry + plane + h - 1, tangents, arc & (h > 0), LOG, TANGENT)
    counts = order == tl.where(single_root != 0, PAID, FREE)
    q = tl.where(h == 0, tl.where(counts, 0.0 if LOG else 1.0, nothing(LOG)), q)
    w, dw = times(w, dw, q, tl.where(h == 0, 0.0, dq), LOG)
    return arc, tl.where(arc, w, nothing(LOG)), tl.where(arc, dw, 0.0)


@triton.jit
def write_columns(
    scores, direction, chain, tangents, result, grad_value, n, size, width, single_root, bad,
    LOG: tl.constexpr, TANGENT: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Marginals, or with tangents the gradient. Returns the expected number of the root's children,
    and ``bad`` with the sums of the columns."""
    lane = tl.arange(0, ROWS * LANES) % LANES
    row = tl.arange(0, ROWS * LANES) // LANES
    none = tl.zeros((ROWS * LANES,), chain.dtype.element_ty)
    children = none
    # the lowest order with a weight counts; linear arithmetic has but one
    for first in range(0, n, ROWS):
        x = first + row
        order = x * 0 + tl.where(single_root != 0, PAID, FREE)
        total = none + nothing(LOG)
        d_total = none
        if LOG:
            for h0 in range(0, n + 1, LANES):
                arc, w, dw = column_weights(
                    scores, direction, chain, FREE, tangents, h0 + lane, x, n, size, width,
                    single_root, LOG, TANGENT,
                )  # fmt: skip
                total, d_total = plus(total, d_total, w, dw, LOG)
            order = tl.where(max_lanes(total, LANES) <= NO_TREE, PAID, FREE)
            total = none + nothing(LOG)
            d_total = none
        for h0 in range(0, n + 1, LANES):
            arc, w, dw = column_weights(
                scores, direction, chain, order, tangents, h0 + lane, x, n, size, width,
                single_root, LOG, TANGENT,
            )  # fmt: skip
            total, d_total = plus(total, d_total, w, dw, LOG)
        total, d_total = total_of_lanes(total, d_total, LOG, LANES)
        if not LOG:
            bad |= ((x < n) & ~in_range(total)).to(tl.int32)
        for h0 in range(0, n + 1, LANES):
            h = h0 + lane
            arc, w, dw = column_weights(
                scores, direction, chain, order, tangents, h, x, n, size, width,
                single_root, LOG, TANGENT,
            )  # fmt: skip
            p, dp = over(w, dw, total, d_total, LOG)
            if LOG:
                p = tl.exp(tl.minimum(p, 0.0))
                dp *= p
            children += tl.where(arc & (h == 0), p, 0.0)
            if TANGENT:
                p = dp + grad_value * p
            tl.store(result + h * size + x + 1, p.to(result.dtype.element_ty), mask=arc)
    return tl.sum(children, 0), bad


@triton.jit
def log_partition(
    chain, levels, n, width, single_root, LOG: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Logarithms of all ``S`` on the way to word 0, of its last weight, and the columns' maxima.

    On that way the words from ``half`` to ``whole`` go at a level.
    """
    total = tl.zeros((BLOCK,), tl.float64)
    for first in range(0, n, BLOCK):
        x = first + tl.arange(0, BLOCK)
        stays = chain + x * width
        goes = stays + n * width
        s = tl.zeros((BLOCK,), chain.dtype.element_ty)
        whole = n
        last = 0
        for level in range(0, levels):
            half = (whole + 1) // 2
            leaves = (x >= half) & (x < whole)
            s += tl.load(goes + total_at(level, levels, n), mask=leaves, other=0.0)
            last = tl.where(half < whole, level, last)
            whole = half
        free = tl.load(stays + n + 2 * last + FREE, mask=x == 0, other=0.0)
        paid = tl.load(stays + n + 2 * last + PAID, mask=x == 0, other=0.0)
        s += tl.where(free > NO_TREE, free, paid) if LOG else free + paid
        top = tl.load(stays + x, mask=x < n, other=0.0)
        if not LOG:
            s = tl.log(tl.where(x < n, s, 1.0))
        total += tl.where(x < n, s, 0.0).to(tl.float64) + top
    return tl.sum(total, 0)


# ----------------------------------------------------------------------------------------- kernels
@triton.jit(do_not_specialize=["size", "levels", "entries", "single_root"])
def soft_tree_kernel(
    scores, lengths, chain, saved, tree, value, size, levels, entries, single_root,
    LOG: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Marginals and log-partition of a sentence; with ``LOG`` only if the linear launch asked for it."""
    b = tl.program_id(0).to(tl.int64)
    plane = size * size
    saved += b * plane
    tree += b * plane
    chain += b * entries
    n = sentence_length(lengths, b, size)
    BLOCK: tl.constexpr = ROWS * LANES
    width = n + 3 * levels
    busy = n > 0
    if LOG:
        busy = busy & (tl.load(saved) == LOGARITHMIC)
    else:
        clear(tree, plane, BLOCK)
        clear(saved, plane, BLOCK)
        tl.store(value + b, 0.0)
        tl.debug_barrier()
    if busy:
        wrong = prepare(
            saved if LOG else scores + b * plane, None, None if LOG else saved, chain, 0,
            n, size, width, single_root, LOG, False, ROWS, LANES,
        )  # fmt: skip
        bad = walk(chain, 0, levels, n, width, single_root, LOG, False, ROWS, LANES)
        children, bad = write_columns(
            saved, None, chain, 0, tree, 0.0, n, size, width, single_root, bad,
            LOG, False, ROWS, LANES,
        )  # fmt: skip
        total = log_partition(chain, levels, n, width, single_root, LOG, BLOCK)
        if LOG:
            # two words that only the root can take
            total = tl.where((single_root != 0) & (children > 1.5), FORBIDDEN, total)
        total = total.to(value.dtype.element_ty)
        tl.store(value + b, tl.where(wrong != 0, float("nan"), total))
        if not LOG:
            way = tl.where(tl.max(bad, 0) != 0, LOGARITHMIC, LINEAR).to(total.dtype)
            tl.store(saved, tl.where(wrong != 0, float("nan"), way))
            if wrong != 0:
                tl.debug_barrier()
                spoil(tree, n, size, BLOCK)


@triton.jit(do_not_specialize=["size", "levels", "entries", "single_root"])
def soft_tree_backward_kernel(
    grad_tree, grad_value, saved, lengths, chain, grad, size, levels, entries, single_root,
    LOG: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Gradient with respect to the scores: the derivative of the marginals along ``grad_tree``."""
    b = tl.program_id(0).to(tl.int64)
    plane = size * size
    saved += b * plane
    grad_tree += b * plane
    grad += b * plane
    chain += b * entries
    tangents = entries // 2
    n = sentence_length(lengths, b, size)
    BLOCK: tl.constexpr = ROWS * LANES
    width = n + 3 * levels
    way = tl.load(saved)
    if not LOG:
        clear(grad, plane, BLOCK)
        tl.debug_barrier()
        if way != way:
            spoil(grad, n, size, BLOCK)
    if (n > 0) & (way == (LOGARITHMIC if LOG else LINEAR)):
        prepare(
            saved, grad_tree, None, chain, tangents, n, size, width, single_root,
            LOG, True, ROWS, LANES,
        )  # fmt: skip
        bad = walk(chain, tangents, levels, n, width, single_root, LOG, True, ROWS, LANES)
        write_columns(
            saved, grad_tree, chain, tangents, grad, tl.load(grad_value + b), n, size, width,
            single_root, bad, LOG, True, ROWS, LANES,
        )  # fmt: skip
