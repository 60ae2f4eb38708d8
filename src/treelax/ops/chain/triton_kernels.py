"""The sweeps of programs over positions on a GPU; the README here has the formulas.

One program a sentence goes from position to position. The edges of a position are a tile: a row for
every edge, a lane for every state, at which the edges end on the way up and begin on the way down.

States lie in planes of float64 ``(positions, width)``. The last one of a position is the node that joins
the others: the goal at the last position, and a node of every position where paths forget their state.
Values stand there in full, and only their differences become numbers of the scores' type, so that long
sentences keep their digits.
"""

from __future__ import annotations

import triton
import triton.language as tl

from treelax.ops.chain import plain
from treelax.ops.chart.triton_parts import FORBIDDEN, LOG2E, bounded

#: Of what is no edge.
MISSING = tl.constexpr(plain.MISSING)
#: Kinds of programs, as the C++ kernel numbers them; 0 are steps that know their state.
JOINED, GRID = tl.constexpr(1), tl.constexpr(2)
#: How a node chooses.
BEST, SOFTMAX = tl.constexpr(0), tl.constexpr(1)
#: No choice.
NOWHERE = tl.constexpr(2**30)
#: Planes of a sentence: value, largest score, 1/normaliser, contribution; ḡ, gradient of the value.
PLANES, ADJOINTS = tl.constexpr(4), tl.constexpr(2)


@triton.jit
def extent(lengths, b, n, longest, KIND: tl.constexpr):
    """The last position of a sentence, and rows and columns of a grid; never more than there is."""
    if KIND == GRID:
        rows = tl.minimum(tl.maximum(tl.load(lengths + 2 * b), 1), n).to(tl.int32)
        columns = tl.minimum(tl.maximum(tl.load(lengths + 2 * b + 1), 1), longest).to(tl.int32)
        last = rows + columns
    else:
        last = tl.minimum(tl.maximum(tl.load(lengths + b), 0), n).to(tl.int32)
        rows, columns = last, last
    return last, rows, columns


@triton.jit
def edges(
    p, e, x, last, rows, columns, n, longest, tails, states, width, UP: tl.constexpr, KIND: tl.constexpr
):  # fmt: skip
    """Edges ``e`` into states ``x`` of position ``p``, or out of them: the nodes of tail and head, the
    part, whether it is an edge of this sentence, and whether scores have it at all. Where it is no edge
    the nodes are any, and where scores lack it the part is no address."""
    if KIND == GRID:
        steps, down, right = tl.where(e == 0, 2, 1), (e != 2).to(tl.int32), (e != 1).to(tl.int32)
        if UP:
            position, state = p, x + 0 * e
        else:
            position, state = p + steps, x + down
        i, j = state - 1, position - state - 1
        exists = (e < 3) & (i >= 0) & (i < n) & (j >= 0) & (j < longest)
        start = (i == 0) & (j == 0) & (e == 0)
        live = exists & (i < rows) & (j < columns) & (((i >= down) & (j >= right)) | start)
        head = tl.where(live, position * width + state, 2 * width)
        tail = tl.where(live, head - steps * width - down, 0)
        part = (i.to(tl.int64) * longest + j) * 3 + e
    else:
        others = tails if UP else states
        k, state = e // others, e % others
        if UP:
            i, before, after = p - 1 - k, state, x
        else:
            i, before, after = p + 0 * k, x, state
        exists = (k < longest) & (i >= 0) & (i < n) & (before < tails) & (after < states)
        live = exists & (i + k < last) & ((i > 0) | (before == 0))
        head = tl.minimum(i + k + 1, n) * width + tl.minimum(after, states - 1)
        tail = tl.maximum(i, 0) * width
        tail += states if KIND == JOINED else tl.minimum(before, tails - 1)
        part = ((i.to(tl.int64) * longest + k) * tails + before) * states + after
    return tail, head, part, live, exists


@triton.jit
def joins(p, last, KIND: tl.constexpr):
    """Whether the states of a position have a node that joins them."""
    return p >= 0 if KIND == JOINED else p == last


@triton.jit
def chooses_state(p, last, states, KIND: tl.constexpr):
    """Whether a path that comes to a position from behind chooses a state of it."""
    if KIND == JOINED:
        return p >= 0
    else:
        return (p == last) & (states > 1) & (KIND != GRID)


@triton.jit
def power(d, scores):
    """``e^d`` in the type of the scores."""
    return tl.exp2((d * LOG2E).to(scores.dtype.element_ty))


@triton.jit
def normalised(m, z, mean, CHOICE: tl.constexpr):
    """The value of a node of maximum ``m`` and Σ e^d = ``z``, Σ e^d·d = ``mean``; 1/z."""
    v = m
    if CHOICE == SOFTMAX:
        v += (mean / z).to(tl.float64)
    elif CHOICE != BEST:
        v += tl.log(z).to(tl.float64)
    return tl.maximum(v, FORBIDDEN), (1.0 / z).to(tl.float64)


@triton.jit
def inside_kernel(
    scores, lengths, nodes, goal, n, longest, tails, states, width, plane, part_count,
    KIND: tl.constexpr, CHOICE: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Sweep 1: values of all nodes, and of the sentence."""
    b = tl.program_id(0).to(tl.int64)
    last, rows, columns = extent(lengths, b, n, longest, KIND)
    count = 3 if KIND == GRID else longest * tails
    scores += b * part_count
    value = nodes + b * PLANES * plane
    top, scale = value + plane, value + 2 * plane
    x, row, join = tl.arange(0, LANES)[None, :], tl.arange(0, ROWS)[:, None], width - 1
    tl.store(value + x, tl.where(x == 0, 0.0, FORBIDDEN).to(tl.float64), mask=x < join)
    tl.store(value + join, 0.0)
    tl.debug_barrier()
    nan = (row + x) < 0
    _, _, part, live, _ = edges(
        1, row, x, last, rows, columns, n, longest, tails, states, width, True, KIND
    )
    ahead = tl.load(scores + part, mask=live, other=0.0)  # the scores of the next tile
    for p in range(1, last + 1):
        m = tl.full([1, LANES], MISSING, tl.float64)
        z = tl.zeros([1, LANES], scores.dtype.element_ty)
        mean = z
        for first in range(0, count, ROWS):
            tail, _, _, live, _ = edges(
                p, first + row, x, last, rows, columns, n, longest, tails, states, width, True, KIND
            )
            w = ahead
            ends = (first + ROWS >= count).to(tl.int32)
            _, _, part, coming, _ = edges(
                p + ends, (1 - ends) * (first + ROWS) + row, x,
                last, rows, columns, n, longest, tails, states, width, True, KIND,
            )  # fmt: skip
            ahead = tl.load(scores + part, mask=coming, other=0.0)
            nan = nan | (live & (w != w))
            s = tl.load(value + tail) + bounded(w).to(tl.float64)
            s = tl.where(live, s, MISSING)
            largest = tl.maximum(m, tl.max(s, 0, keep_dims=True))
            if CHOICE != BEST:
                y, old = power(s - largest, scores), power(m - largest, scores)
                if CHOICE == SOFTMAX:
                    d = (s - largest).to(scores.dtype.element_ty)
                    moved = (m - largest).to(scores.dtype.element_ty)
                    mean = old * (mean + z * moved) + tl.sum(y * d, 0, keep_dims=True)
                z = old * z + tl.sum(y, 0, keep_dims=True)
            m = largest
        if CHOICE == BEST:
            z += 1.0
        v, r = normalised(m, z, mean, CHOICE)
        at = p * width + x
        tl.store(value + at, v, mask=x < join)
        tl.store(top + at, m, mask=x < join)
        tl.store(scale + at, r, mask=x < join)
        if joins(p, last, KIND):
            v = tl.where(x < join, v, MISSING)
            most = tl.max(v)
            y, d = power(v - most, scores), (v - most).to(scores.dtype.element_ty)
            total = tl.sum(y) if CHOICE != BEST else tl.max(y)  # 1
            v_join, r_join = normalised(most, total, tl.sum(y * d), CHOICE)
            tl.store(value + p * width + join, v_join)
            tl.store(top + p * width + join, most)
            tl.store(scale + p * width + join, r_join)
        tl.debug_barrier()
    reached = tl.load(value + last * width + join)
    reached = tl.where(tl.max(nan.to(tl.int32)) > 0, float("nan"), reached)
    tl.store(goal + b, reached.to(scores.dtype.element_ty))
    # at position 0 stands the contribution of the goal: those of a sentence with a NaN are NaN
    tl.store(value + 3 * plane, tl.where(reached == reached, 1.0, float("nan")).to(tl.float64))


@triton.jit
def mean_kernel(
    scores, lengths, nodes, adjoints, grad_tree, n, longest, tails, states, width, plane, part_count,
    KIND: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Sweep 3: adjoints of all contributions, ``ḡ = Σ b_k (g_k + ḡ(tail_k))``."""
    b = tl.program_id(0).to(tl.int64)
    last, rows, columns = extent(lengths, b, n, longest, KIND)
    count = 3 if KIND == GRID else longest * tails
    scores += b * part_count
    grad_tree += b * part_count
    value = nodes + b * PLANES * plane
    top, scale = value + plane, value + 2 * plane
    mean = adjoints + b * ADJOINTS * plane
    x, row, join = tl.arange(0, LANES)[None, :], tl.arange(0, ROWS)[:, None], width - 1
    tl.store(mean + x, tl.zeros([1, LANES], tl.float64), mask=x < join)
    tl.store(mean + join, 0.0)
    tl.debug_barrier()
    for p in range(1, last + 1):
        at = p * width + x
        m = tl.load(top + at, mask=x < join, other=0.0)
        total = tl.zeros([1, LANES], tl.float64)
        for first in range(0, count, ROWS):
            tail, _, part, live, _ = edges(
                p, first + row, x, last, rows, columns, n, longest, tails, states, width, True, KIND
            )
            s = tl.load(value + tail)
            s += bounded(tl.load(scores + part, mask=live, other=0.0)).to(tl.float64)
            g = tl.load(mean + tail)
            g += tl.load(grad_tree + part, mask=live, other=0.0).to(tl.float64)
            weight = tl.where(live, power(s - m, scores).to(tl.float64), 0.0)
            total += tl.sum(weight * g, 0, keep_dims=True)
        total *= tl.load(scale + at, mask=x < join, other=0.0)
        tl.store(mean + at, total, mask=x < join)
        if joins(p, last, KIND):
            weight = join_weights(scores, value, top, scale, p, x, width)
            tl.store(mean + p * width + join, tl.sum(weight * total))
        tl.debug_barrier()


@triton.jit
def join_weights(scores, value, top, scale, p, x, width):
    """``b`` of the states of a position for the node that joins them."""
    join = p * width + width - 1
    v = tl.load(value + p * width + x, mask=x < width - 1, other=MISSING)
    weight = power(v - tl.load(top + join), scores).to(tl.float64) * tl.load(scale + join)
    return tl.where(x < width - 1, weight, 0.0)


@triton.jit
def down_kernel(
    scores, lengths, nodes, adjoints, grad_tree, grad_value, result,
    n, longest, tails, states, width, plane, part_count, positions,
    KIND: tl.constexpr, CHOICE: tl.constexpr, GRADIENT: tl.constexpr,
    ROWS: tl.constexpr, LANES: tl.constexpr, STATES: tl.constexpr,
):  # fmt: skip
    """Sweep 2, contributions and the tree; or sweep 4, the gradient of values and scores:

    ds_k = b_k [ gv (1 + (s_k - v)) + a (g_k + ḡ(tail_k) - ḡ) ], without s_k - v for entropy
    """
    b = tl.program_id(0).to(tl.int64)
    last, rows, columns = extent(lengths, b, n, longest, KIND)
    count = 3 if KIND == GRID else longest * states
    scores += b * part_count
    result += b * part_count
    value = nodes + b * PLANES * plane
    top, scale, given = value + plane, value + 2 * plane, value + 3 * plane
    if GRADIENT:
        grad_tree += b * part_count
        mean = adjoints + b * ADJOINTS * plane
        handed = mean + plane  # what goes down
        goal = tl.load(grad_value + b).to(tl.float64)
    else:
        handed = given
        goal = tl.load(given)  # 1, or NaN
    x, row, join = tl.arange(0, LANES)[None, :], tl.arange(0, ROWS)[:, None], width - 1
    c = tl.arange(0, STATES)[None, :]
    for back in range(1, positions + 1):
        p = positions - back
        total = tl.zeros([1, LANES], tl.float64)
        for first in range(0, count, ROWS):
            tail, head, part, live, exists = edges(
                p, first + row, x,
                last, rows, columns, n, longest, tails, states, width, False, KIND,
            )  # fmt: skip
            s = tl.load(value + tail)
            s += bounded(tl.load(scores + part, mask=live, other=0.0)).to(tl.float64)
            weight = power(s - tl.load(top + head), scores).to(tl.float64)
            weight *= tl.load(scale + head)
            share = tl.load(handed + head)
            if GRADIENT:
                if CHOICE == SOFTMAX:
                    v = tl.load(value + head)
                    share *= 1.0 + tl.maximum(s - v, -1e4)
                g = tl.load(mean + tail)
                g += tl.load(grad_tree + part, mask=live, other=0.0).to(tl.float64)
                g -= tl.load(mean + head)
                share += tl.load(given + head) * g
            share = tl.where(live, weight * share, 0.0)
            tl.store(result + part, share.to(scores.dtype.element_ty), mask=exists)
            total += tl.sum(share, 0, keep_dims=True)
        if p <= last:
            stored = tl.where(p > 0, join, 0)
            if KIND == JOINED:
                at_join = tl.where(p == last, goal, tl.sum(total))
                tl.store(handed + p * width + join, at_join)
            else:
                at_join = goal
                tl.store(handed + p * width + x, total, mask=x < stored)
            if joins(p, last, KIND):
                v = tl.load(value + p * width + c, mask=c < join, other=0.0)
                shares = join_weights(scores, value, top, scale, p, c, width)
                if GRADIENT:
                    slope = at_join + 0 * v
                    if CHOICE == SOFTMAX:
                        slope *= 1.0 + tl.maximum(v - tl.load(value + p * width + join), -1e4)
                    g = tl.load(mean + p * width + c, mask=c < join, other=0.0)
                    g -= tl.load(mean + p * width + join)
                    a = tl.load(given + p * width + join) if KIND == JOINED else tl.load(given)
                    shares *= slope + a * g
                else:
                    shares *= at_join
                tl.debug_barrier()  # the same places were written above
                tl.store(handed + p * width + c, shares, mask=c < stored)
        tl.debug_barrier()


@triton.jit
def first_above(weight, uniform, at, before):
    """The first of the choices ``at`` where the sum of weights exceeds a uniform variable, or `NOWHERE`;
    the last of any weight; the sum of weights."""
    reached = before + tl.cumsum(weight, 0)
    chosen = tl.min(tl.where((weight > 0) & (reached > uniform), at, NOWHERE))
    return chosen, tl.max(tl.where(weight > 0, at, -1)), before + tl.sum(weight)


@triton.jit
def follow_kernel(
    scores, lengths, uniforms, nodes, trees,
    batch, decisions, n, longest, tails, states, width, plane, part_count,
    KIND: tl.constexpr, CHOICE: tl.constexpr, ROWS: tl.constexpr, STATES: tl.constexpr,
):  # fmt: skip
    """A path from the goal back to the start, the best or a sample; one program each.

    The best one takes the first edge of the largest score: all others weigh 0, and the uniform is 0.
    """
    draw = tl.program_id(0).to(tl.int64)
    b = draw % batch
    last, rows, columns = extent(lengths, b, n, longest, KIND)
    count = 3 if KIND == GRID else longest * tails
    scores += b * part_count
    trees += draw * part_count
    uniforms += draw * decisions
    value = nodes + b * PLANES * plane
    top, scale = value + plane, value + 2 * plane
    row, c, join = tl.arange(0, ROWS), tl.arange(0, STATES), width - 1
    p, x = last, rows * (KIND == GRID)
    while p > 0:
        if chooses_state(p, last, states, KIND):
            at_join = p * width + join
            v = tl.load(value + p * width + c, mask=c < states, other=MISSING)
            v -= tl.load(top + at_join)
            weight = (v == 0).to(tl.float64) if CHOICE == BEST else power(v, scores).to(tl.float64)
            weight = tl.where(c < states, weight * tl.load(scale + at_join), 0.0)
            uniform = 0.0 if CHOICE == BEST else tl.load(uniforms).to(tl.float64)
            chosen, final, _ = first_above(weight, uniform, c, 0.0)
            x = tl.maximum(tl.where(chosen < NOWHERE, chosen, final), 0)
            uniforms += 1
        uniform = 0.0 if CHOICE == BEST else tl.load(uniforms).to(tl.float64)
        uniforms += 1
        m, r = tl.load(top + p * width + x), tl.load(scale + p * width + x)
        edge, final, reached = p * 0 + NOWHERE, p * 0, r * 0
        for first in range(0, count, ROWS):
            e = first + row
            tail, _, part, live, _ = edges(
                p, e, x + 0 * e, last, rows, columns, n, longest, tails, states, width, True, KIND
            )
            s = tl.load(value + tail) - m
            s += bounded(tl.load(scores + part, mask=live, other=0.0)).to(tl.float64)
            weight = (s == 0).to(tl.float64) if CHOICE == BEST else power(s, scores).to(tl.float64)
            chosen, later, reached = first_above(
                tl.where(live, weight * r, 0.0), uniform, e, reached
            )
            edge, final = tl.minimum(edge, chosen), tl.maximum(final, later)
        edge = tl.where(edge < NOWHERE, edge, final)
        tail, _, part, live, _ = edges(
            p, edge, x, last, rows, columns, n, longest, tails, states, width, True, KIND
        )
        if live:  # there may be no path
            tl.store(trees + part, 1.0)
        p, x = tl.minimum(tail // width, p - 1), tail % width
