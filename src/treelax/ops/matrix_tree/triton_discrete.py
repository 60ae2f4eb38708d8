"""GPU kernels of discrete non-projective trees: the best one, and exact samples."""

from __future__ import annotations

import triton
import triton.language as tl

from treelax.ops.chart.triton_parts import (
    FORBIDDEN,
    NO_TREE,
    bounded,
    by_row,
    clear,
    in_every_lane,
    max_lanes,
    sentence_length,
    spoil,
)
from treelax.ops.matrix_tree.triton_kernels import (
    arc_scores,
    arc_weight,
    in_range,
    nothing,
    over,
    plus,
    times,
    total_of_lanes,
)

# -------------------------------------------------------------------------------------- best tree
# Vectors of whole numbers, ``size`` entries each; then three for every round.
LABEL = tl.constexpr(0)  # two each: of a step of `find_cycles` and of the one before
NEXT = tl.constexpr(2)
ON_CYCLE = tl.constexpr(4)  # of a component
HEAD = tl.constexpr(5)  # of a word's best arc from outside of its component
RANK = tl.constexpr(6)
RANK_OFF = tl.constexpr(7)  # of a word, what to take off the rank of its arcs
BEST_RANK = tl.constexpr(8)  # of the arc that a component took
CHOSEN = tl.constexpr(9)  # the head of a word in the tree
ENTERED = tl.constexpr(10)  # whether a component holds a word with a head
VECTORS = tl.constexpr(11)
COMPONENT = tl.constexpr(0)  # of a position
ARC_HEAD = tl.constexpr(1)  # of the arc that a component took
ARC_WORD = tl.constexpr(2)
ROUND_VECTORS = tl.constexpr(3)
# Vectors of float64, two each.
GAIN = tl.constexpr(0)
SCORE_OFF = tl.constexpr(2)
BEST_GAIN = tl.constexpr(4)
GAINS = tl.constexpr(6)

LOWEST_RANK = tl.constexpr(-(2**30))
AFTER_ALL = tl.constexpr(0x7FFFFFFF)


@triton.jit
def add_exactly(x, x_rest, y, y_rest):
    """Sum of two numbers that are sums of two themselves."""
    total = x + y
    part = total - x
    rest = (x - (total - part)) + (y - part) + (x_rest + y_rest)
    large = total + rest
    return large, rest - (large - total)


@triton.jit
def take_better(rank, score, rest, at, new_rank, new_score, new_rest, new_at):
    """The larger of two arcs, the first of equal ones."""
    larger = (new_score > score) | ((new_score == score) & (new_rest > rest))
    better = (new_rank > rank) | ((new_rank == rank) & larger)
    return (
        tl.where(better, new_rank, rank),
        tl.where(better, new_score, score),
        tl.where(better, new_rest, rest),
        tl.where(better, new_at, at),
    )


@triton.jit
def best_of_lanes(rank, score, rest, at, LANES: tl.constexpr):
    """The largest arc of a row, the one with the smallest ``at`` of equal ones, in every lane."""
    top_rank = max_lanes(rank, LANES)
    left = rank == top_rank
    top = max_lanes(tl.where(left, score, float("-inf")), LANES)
    left = left & (score == top)
    top_rest = max_lanes(tl.where(left, rest, float("-inf")), LANES)
    first = tl.where(left & (rest == top_rest), at, AFTER_ALL)
    return top_rank, top, top_rest, in_every_lane(tl.min(by_row(first, LANES), 1), LANES)


@triton.jit
def best_of_words(
    arcs, whole, gains, component, n, size, single_root, ROWS: tl.constexpr, LANES: tl.constexpr
):  # fmt: skip
    """For every word its best arc from outside of its component; ``arcs[m, h]`` are bounded."""
    lane = tl.arange(0, ROWS * LANES) % LANES
    row = tl.arange(0, ROWS * LANES) // LANES
    root_rank = tl.where(single_root != 0, -2 * (n + 1), 0)
    for first in range(1, n + 1, ROWS):
        m = first + row
        mine = tl.load(component + m, mask=m <= n, other=0)
        rank = tl.full((ROWS * LANES,), LOWEST_RANK, tl.int32)
        score = tl.full((ROWS * LANES,), float("-inf"), arcs.dtype.element_ty)
        none = tl.zeros((ROWS * LANES,), arcs.dtype.element_ty)
        head = tl.zeros((ROWS * LANES,), tl.int32)
        for h0 in range(0, n + 1, LANES):
            h = h0 + lane
            live = (m <= n) & (h <= n)
            theirs = tl.load(component + h, mask=h <= n, other=0)
            w = tl.load(arcs + m * size + h, mask=live, other=FORBIDDEN)
            forbidden = w <= NO_TREE
            new_rank = tl.where(h == 0, root_rank, 0) - forbidden.to(tl.int32)
            new_rank = tl.where(live & (theirs != mine), new_rank, LOWEST_RANK)
            w = tl.where(forbidden, 0.0, w)
            rank, score, _, head = take_better(rank, score, none, head, new_rank, w, none, h)
        rank, score, _, head = best_of_lanes(rank, score, none, head, LANES)
        one = (m <= n) & (lane == 0)
        rank -= tl.load(whole + RANK_OFF * size + m, mask=m <= n, other=0)
        off = gains + SCORE_OFF * size + m
        off, off_rest = (
            tl.load(off, mask=m <= n, other=0.0),
            tl.load(off + size, mask=m <= n, other=0.0),
        )
        gain, rest = add_exactly(score.to(tl.float64), 0.0, -off, -off_rest)
        tl.store(whole + HEAD * size + m, head, mask=one)
        tl.store(whole + RANK * size + m, rank, mask=one)
        tl.store(gains + GAIN * size + m, gain, mask=one)
        tl.store(gains + GAIN * size + size + m, rest, mask=one)
    tl.debug_barrier()


@triton.jit
def best_of_components(
    whole, gains, record, n, size, ROWS: tl.constexpr, LANES: tl.constexpr
):  # fmt: skip
    """For every component the best of its words' arcs, and the component where that comes from."""
    lane = tl.arange(0, ROWS * LANES) % LANES
    row = tl.arange(0, ROWS * LANES) // LANES
    component = record + COMPONENT * size
    for first in range(0, n + 1, ROWS):
        c = first + row
        rank = tl.full((ROWS * LANES,), LOWEST_RANK, tl.int32)
        gain = tl.full((ROWS * LANES,), float("-inf"), tl.float64)
        rest = tl.zeros((ROWS * LANES,), tl.float64)
        word = tl.zeros((ROWS * LANES,), tl.int32)
        # its words are not before the component's name
        for m0 in range(tl.maximum(first, 1), n + 1, LANES):
            m = m0 + lane
            member = (m <= n) & (tl.load(component + m, mask=m <= n, other=-1) == c)
            new_rank = tl.load(whole + RANK * size + m, mask=member, other=LOWEST_RANK)
            new_gain = tl.load(gains + GAIN * size + m, mask=member, other=float("-inf"))
            new_rest = tl.load(gains + GAIN * size + size + m, mask=member, other=0.0)
            rank, gain, rest, word = take_better(
                rank, gain, rest, word, new_rank, new_gain, new_rest, m
            )
        rank, gain, rest, word = best_of_lanes(rank, gain, rest, word, LANES)
        is_one = (c > 0) & (c <= n) & (rank > LOWEST_RANK)
        head = tl.load(whole + HEAD * size + word, mask=is_one, other=0)
        comes_from = tl.load(component + head, mask=is_one, other=0)
        one = (c <= n) & (lane == 0)
        tl.store(whole + BEST_RANK * size + c, rank, mask=one)
        tl.store(gains + BEST_GAIN * size + c, gain, mask=one)
        tl.store(gains + BEST_GAIN * size + size + c, rest, mask=one)
        tl.store(record + ARC_HEAD * size + c, head, mask=one)
        tl.store(record + ARC_WORD * size + c, tl.where(is_one, word, 0), mask=one)
        # what is no component, and the root, leads to the root
        tl.store(whole + NEXT * size + c, comes_from, mask=one)
        tl.store(whole + LABEL * size + c, c, mask=one)
        tl.store(whole + ON_CYCLE * size + c, 0, mask=one)
    tl.debug_barrier()


@triton.jit
def find_cycles(whole, levels, n, size, BLOCK: tl.constexpr):
    """Mark the components on cycles and label them with the smallest one of the cycle.

    After ``2^t`` steps along the arcs taken, ``2^t > n``, one is on a cycle or at the root, and every
    component of a cycle is where somebody arrives.
    """
    for t in range(0, levels):
        before = t % 2 * size
        after = size - before
        for first in range(0, n + 1, BLOCK):
            c = first + tl.arange(0, BLOCK)
            live = c <= n
            to = tl.load(whole + NEXT * size + before + c, mask=live, other=0)
            label = tl.load(whole + LABEL * size + before + c, mask=live, other=0)
            further = tl.load(whole + NEXT * size + before + to, mask=live, other=0)
            other = tl.load(whole + LABEL * size + before + to, mask=live, other=0)
            tl.store(whole + NEXT * size + after + c, further, mask=live)
            tl.store(whole + LABEL * size + after + c, tl.minimum(label, other), mask=live)
        tl.debug_barrier()
    for first in range(0, n + 1, BLOCK):
        c = first + tl.arange(0, BLOCK)
        to = tl.load(whole + NEXT * size + levels % 2 * size + c, mask=c <= n, other=0)
        tl.store(whole + ON_CYCLE * size + to, 1, mask=(c <= n) & (to > 0))
    tl.debug_barrier()


@triton.jit
def contract(whole, gains, record, levels, n, size, BLOCK: tl.constexpr):
    """Components of the next round. Returns a number that is not 0 if there was a cycle."""
    found = tl.zeros((BLOCK,), tl.int32)
    for first in range(0, n + 1, BLOCK):
        m = first + tl.arange(0, BLOCK)
        live = m <= n
        c = tl.load(record + COMPONENT * size + m, mask=live, other=0)
        cycle = tl.load(whole + ON_CYCLE * size + c, mask=live, other=0) != 0
        label = tl.load(whole + LABEL * size + levels % 2 * size + c, mask=live, other=0)
        next_record = record + ROUND_VECTORS * size
        tl.store(next_record + COMPONENT * size + m, tl.where(cycle, label, c), mask=live)
        rank = tl.load(whole + BEST_RANK * size + c, mask=cycle, other=0)
        rank += tl.load(whole + RANK_OFF * size + m, mask=cycle, other=0)
        tl.store(whole + RANK_OFF * size + m, rank, mask=cycle)
        gain = tl.load(gains + BEST_GAIN * size + c, mask=cycle, other=0.0)
        rest = tl.load(gains + BEST_GAIN * size + size + c, mask=cycle, other=0.0)
        off = tl.load(gains + SCORE_OFF * size + m, mask=cycle, other=0.0)
        off_rest = tl.load(gains + SCORE_OFF * size + size + m, mask=cycle, other=0.0)
        off, off_rest = add_exactly(off, off_rest, gain, rest)
        tl.store(gains + SCORE_OFF * size + m, off, mask=cycle)
        tl.store(gains + SCORE_OFF * size + size + m, off_rest, mask=cycle)
        found |= cycle.to(tl.int32)
    tl.debug_barrier()
    return tl.max(found, 0)


@triton.jit
def undo_round(whole, record, n, size, BLOCK: tl.constexpr):
    """Components that no arc enters yet take the one of this round."""
    for first in range(0, n + 1, BLOCK):
        c = first + tl.arange(0, BLOCK)
        tl.store(whole + ENTERED * size + c, 0, mask=c <= n)
    tl.debug_barrier()
    for first in range(0, n + 1, BLOCK):
        m = first + tl.arange(0, BLOCK)
        has_head = tl.load(whole + CHOSEN * size + m, mask=m <= n, other=-1) >= 0
        c = tl.load(record + COMPONENT * size + m, mask=has_head, other=0)
        tl.store(whole + ENTERED * size + c, 1, mask=has_head)
    tl.debug_barrier()
    for first in range(0, n + 1, BLOCK):
        c = first + tl.arange(0, BLOCK)
        word = tl.load(record + ARC_WORD * size + c, mask=c <= n, other=0)
        head = tl.load(record + ARC_HEAD * size + c, mask=c <= n, other=0)
        entered = tl.load(whole + ENTERED * size + c, mask=c <= n, other=1)
        tl.store(whole + CHOSEN * size + word, head, mask=(word > 0) & (entered == 0))
    tl.debug_barrier()


@triton.jit(do_not_specialize=["size", "levels", "single_root"])
def best_tree_kernel(
    scores, lengths, arcs, whole, gains, tree, value, size, levels, single_root,
    ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The best tree and its score."""
    b = tl.program_id(0).to(tl.int64)
    plane = size * size
    scores += b * plane
    arcs += b * plane
    tree += b * plane
    whole += b * ((VECTORS + ROUND_VECTORS * (size + 1)) * size)
    gains += b * (GAINS * size)
    n = sentence_length(lengths, b, size)
    BLOCK: tl.constexpr = ROWS * LANES
    clear(tree, plane, BLOCK)
    wrong = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, (n + 1) * size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        h = at // size
        m = at % size
        live = (h <= n) & (m <= n) & (m > 0) & (h != m)
        w = tl.load(scores + at, mask=live, other=0.0)
        wrong |= (w != w).to(tl.int32)
        tl.store(arcs + m * size + h, bounded(w), mask=live)
    rounds = whole + VECTORS * size
    for start in range(0, n + 1, BLOCK):
        m = start + tl.arange(0, BLOCK)
        live = m <= n
        tl.store(rounds + COMPONENT * size + m, m, mask=live)
        tl.store(whole + RANK_OFF * size + m, 0, mask=live)
        none = tl.zeros((BLOCK,), tl.float64)
        tl.store(gains + SCORE_OFF * size + m, none, mask=live)
        tl.store(gains + SCORE_OFF * size + size + m, none, mask=live)
        tl.store(whole + CHOSEN * size + m, -1, mask=live)
    tl.debug_barrier()
    count = 0
    found = n
    while found > 0:
        record = rounds + count * (ROUND_VECTORS * size)
        best_of_words(arcs, whole, gains, record, n, size, single_root, ROWS, LANES)
        best_of_components(whole, gains, record, n, size, ROWS, LANES)
        find_cycles(whole, levels, n, size, BLOCK)
        found = contract(whole, gains, record, levels, n, size, BLOCK)
        count += 1
    for back in range(0, count):
        undo_round(whole, rounds + (count - 1 - back) * (ROUND_VECTORS * size), n, size, BLOCK)
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(1, n + 1, BLOCK):
        m = start + tl.arange(0, BLOCK)
        head = tl.load(whole + CHOSEN * size + m, mask=m <= n, other=0)
        total += tl.load(arcs + m * size + head, mask=m <= n, other=0.0).to(tl.float64)
        tl.store(tree + head * size + m, 1.0, mask=m <= n)
    score = tl.sum(total, 0).to(value.dtype.element_ty)
    is_wrong = tl.max(wrong, 0) != 0
    tl.store(value + b, tl.where(is_wrong, float("nan"), score))
    if is_wrong:
        tl.debug_barrier()
        spoil(tree, n, size, BLOCK)


# --------------------------------------------------------------------------------------- sampling
# A row of ``size + 1`` entries: words, the root at ``size - 1``, and S at ``size``.
@triton.jit
def open_walk(
    scores, chain, child, n, size, LOG: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr
):  # fmt: skip
    """The walk from the scores. Position ``child``, if not 0, is the root's one child: its walk stops
    there for sure, and whoever steps to it stops too."""
    lane = tl.arange(0, ROWS * LANES) % LANES
    row = tl.arange(0, ROWS * LANES) // LANES
    one: tl.constexpr = 0.0 if LOG else 1.0
    for first in range(0, n, ROWS):
        x = first + row
        top = tl.full((ROWS * LANES,), FORBIDDEN, scores.dtype.element_ty)
        for h0 in range(0, n + 1, LANES):
            _, score = arc_scores(scores, h0 + lane, x, n, size)
            top = tl.maximum(top, bounded(score))
        top = max_lanes(top, LANES)
        entry = chain + x * (size + 1)
        tl.store(entry + size, top.to(chain.dtype.element_ty), mask=(x < n) & (lane == 0))
        for h0 in range(0, n + 1, LANES):
            h = h0 + lane
            arc, score = arc_scores(scores, h, x, n, size)
            w = arc_weight(bounded(score), top, LOG)
            w = tl.where(x + 1 == child, tl.where(h == 0, one, nothing(LOG)), w)
            to_child = (h == child) & (h > 0)
            j = tl.where((h == 0) | to_child, size - 1, h - 1)
            from_root = (h == 0) & (h < child) & (x + 1 != child)
            tl.store(entry + j, w.to(chain.dtype.element_ty), mask=arc & ~from_root)
            none = tl.full((ROWS * LANES,), nothing(LOG), chain.dtype.element_ty)
            tl.store(entry + child - 1, none, mask=arc & to_child)
    tl.debug_barrier()


@triton.jit
def reach_root(
    chain, walk, m, n, size, bad, LOG: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr
):  # fmt: skip
    """Eliminate all words after ``m`` in a copy: ``q_x = walk[x, root]/walk[x, S]`` for ``x > m``."""
    lane = tl.arange(0, ROWS * LANES) % LANES
    row = tl.arange(0, ROWS * LANES) // LANES
    width = size + 1
    for step in range(m, n):  # the first one copies
        for first in range(m + 1, n, ROWS):
            x = first + row
            k = x * 0 + step
            busy = (x < n) & (x != k)
            pivots = busy & (k > m)
            own = walk + x * width
            source = chain + tl.where(k > m, (size - 1) * width, 0) + x * width
            pivot = walk + k * width
            u = tl.load(source + k, mask=busy, other=nothing(LOG))
            s = tl.load(pivot + size, mask=pivots, other=0.0 if LOG else 1.0)
            u, _ = over(u, u, s, s, LOG)
            total = tl.full((ROWS * LANES,), nothing(LOG), u.dtype)
            for i0 in range(0, 1 + n - step, LANES):
                i = i0 + lane
                # the root, m, and the words after k
                h = tl.where(i == 0, size - 1, tl.where(i == 1, m, k - 1 + i))
                live = busy & ((i < 2) | ((h < n) & (h != x)))
                w = tl.load(source + h, mask=live, other=nothing(LOG))
                p = tl.load(pivot + h, mask=live & pivots, other=nothing(LOG))
                p, _ = times(p, p, u, u, LOG)
                w, _ = plus(w, w, p, p, LOG)
                tl.store(own + h, w, mask=live)
                total, _ = plus(total, total, tl.where(live, w, nothing(LOG)), total, LOG)
            total, _ = total_of_lanes(total, total, LOG, LANES)
            comes_next = busy & (x == k + 1)
            if not LOG:
                bad |= (comes_next & ~in_range(total)).to(tl.int32)
            tl.store(own + size, total, mask=comes_next & (lane == 0))
        tl.debug_barrier()
    return bad


@triton.jit
def first_above(weights, place, uniform, BLOCK: tl.constexpr):
    """The first place whose cumulative weight exceeds that share of the whole; rounding goes to the
    last place with a weight."""
    summed = tl.cumsum(weights, 0)
    chosen = tl.min(tl.where(summed > uniform * tl.max(summed, 0), place, BLOCK), 0)
    last = tl.max(tl.where(weights > 0, place, 0), 0)
    return tl.minimum(chosen, last)


@triton.jit
def draw_head(
    scores, chain, walk, tops, m, child, uniform, n, size, bad, LOG: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The head of word ``m``, from its marginal: a drawn word leads where ``tops`` says."""
    width = size + 1
    h = tl.arange(0, BLOCK)
    x = h * 0 + m
    arc, score = arc_scores(scores, h, x, n, size)
    # with one root, its child has no other head, and nobody else has it as a head
    is_child = x + 1 == child
    arc = arc & tl.where(h == 0, is_child | (h >= child), ~is_child)
    top_score = tl.load(chain + m * width + size)
    w = arc_weight(bounded(score), top_score, LOG).to(chain.dtype.element_ty)
    word = h - 1
    to = tl.where(h == 0, size - 1, tl.load(tops + word, mask=(h > 0) & (word < m), other=-1))
    to = tl.where(to < 0, word, to)
    inside = arc & (to > m) & (to < size - 1)
    q = tl.load(walk + to * width + size - 1, mask=inside, other=nothing(LOG))
    s = tl.load(walk + to * width + size, mask=inside, other=0.0 if LOG else 1.0)
    q, _ = over(q, q, s, s, LOG)
    q = tl.where(to == size - 1, 0.0 if LOG else 1.0, q)
    w, _ = times(w, w, q, q, LOG)
    if LOG:
        w = tl.where(arc & (to != m), w, 2 * FORBIDDEN)
        weights = tl.exp(w - tl.max(w, 0))
    else:
        weights = tl.where(arc & (to != m), w, 0.0)
        bad |= (~in_range(tl.sum(weights, 0))).to(tl.int32)
    chosen = first_above(weights, h, uniform, BLOCK)
    return chosen, tl.sum(tl.where(h == chosen, to, 0), 0), bad


@triton.jit
def merge(chain, tops, m, to, n, size, LOG: tl.constexpr, BLOCK: tl.constexpr):
    """Whoever steps to word ``m`` steps to ``to``: drawn words and the rest of the walk."""
    x = tl.arange(0, BLOCK)
    drawn = x <= m
    top = tl.load(tops + x, mask=x < m, other=0)
    tl.store(tops + x, tl.where((x == m) | (top == m), to, top), mask=drawn)
    live = (x > m) & (x < n) & (x != to)
    entry = chain + x * (size + 1)
    w = tl.load(entry + to, mask=live, other=nothing(LOG))
    more = tl.load(entry + m, mask=live, other=nothing(LOG))
    w, _ = plus(w, w, more, more, LOG)
    tl.store(entry + to, w, mask=live)
    tl.debug_barrier()


@triton.jit(do_not_specialize=["batch", "size", "single_root"])
def sample_tree_kernel(
    saved, marginals, lengths, uniforms, chain, tops, again, trees, batch, size, single_root,
    LOG: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One exact sample: program ``sample·B + b`` draws one head after another for sentence b.

    ``again`` is 1 where the linear launch saw too small numbers and the one with ``LOG`` has to draw.
    """
    draw = tl.program_id(0).to(tl.int64)
    b = draw % batch
    plane = size * size
    scores = saved + b * plane
    uniforms += draw * size
    planes = draw * (2 * (size - 1) * (size + 1))
    walk = chain + planes + (size - 1) * (size + 1)
    chain += planes
    tops += draw * size
    trees += draw * plane
    n = sentence_length(lengths, b, size)
    if LOG:
        n = tl.where(tl.load(again + draw) != 0, n, 0)
    clear(trees, tl.where(n > 0, plane, 0) if LOG else plane, ROWS * LANES)
    place = tl.arange(0, BLOCK)
    asked = (place > 0) & (place <= tl.where(single_root != 0, n, 0))
    share = tl.load(marginals + b * plane + place, mask=asked, other=0.0)
    child = first_above(share, place, tl.load(uniforms), BLOCK)  # 0: none
    open_walk(scores, chain, child, n, size, LOG, ROWS, LANES)
    bad = tl.zeros((ROWS * LANES,), tl.int32)
    bad_draw = child * 0
    for m in range(0, n):
        bad = reach_root(chain, walk, m, n, size, bad, LOG, ROWS, LANES)
        head, to, bad_draw = draw_head(
            scores, chain, walk, tops, m, child, tl.load(uniforms + m + 1), n, size, bad_draw,
            LOG, BLOCK,
        )  # fmt: skip
        tl.store(trees + head * size + m + 1, 1.0)
        tl.debug_barrier()
        merge(chain, tops, m, to, n, size, LOG, BLOCK)
    if not LOG:
        tl.store(again + draw, tl.max(bad, 0) | bad_draw)
    mark = tl.load(scores)
    if mark != mark:
        tl.debug_barrier()
        spoil(trees, n, size, BLOCK)
