"""The loop of SparseMAP as a GPU kernel, one program per sentence, and its gradient.

The best trees come from the kernels of the three algorithms, called as functions on ``θ − z``. All else
works on the support in global memory (in practice in L1 or L2): its trees, ``K`` and ``K⁻¹`` of the
README, in slots without holes: the last tree takes the place of one that goes. Everything is float64.

A barrier stands wherever a thread reads what another one wrote. Sums are taken in a fixed order, those
of parts tree by tree, since the parts of one tree are all different: no atomics.
"""

from __future__ import annotations

import triton
import triton.language as tl

from treelax.ops.chart.triton_parts import clear, sentence_length
from treelax.ops.cky.triton_kernels import best_tree_kernel as best_binary
from treelax.ops.eisner.triton_kernels import best_tree_kernel as best_projective
from treelax.ops.matrix_tree.triton_discrete import best_tree_kernel as best_non_projective
from treelax.ops.sparsemap import limits

ROUNDING = tl.constexpr(limits.ROUNDING)
TINY = tl.constexpr(limits.TINY)
# Which trees.
PROJECTIVE = tl.constexpr(0)
BINARY = tl.constexpr(1)
NON_PROJECTIVE = tl.constexpr(2)
# Vectors of a system's size.
SHARED = tl.constexpr(0)  # parts that a new tree shares with those of the support, behind a 1
PRODUCT = tl.constexpr(1)  # u, and a column of the inverse
GUESS = tl.constexpr(2)  # at the solution: it follows every change of the system
REST = tl.constexpr(3)  # what the guess leaves of the right-hand side
SOLUTION = tl.constexpr(4)
VECTORS = tl.constexpr(5)
# Tiles of a matrix: a row lies inside a warp.
DOWN = tl.constexpr(16)
ACROSS = tl.constexpr(32)


# ---------------------------------------------------------------------------------- linear algebra
@triton.jit
def product(matrix, x, first, out, n, width, SIGN: tl.constexpr):
    """``out = first + SIGN · matrix x``, or without ``first`` if that is None."""
    for i0 in range(0, n, DOWN):
        i = i0 + tl.arange(0, DOWN)
        total = tl.zeros((DOWN, ACROSS), tl.float64)
        for j0 in range(0, n, ACROSS):
            j = j0 + tl.arange(0, ACROSS)
            live = (i[:, None] < n) & (j[None, :] < n)
            m = tl.load(matrix + i[:, None] * width + j[None, :], mask=live, other=0.0)
            total += m * tl.load(x + j, mask=j < n, other=0.0)[None, :]
        result = SIGN * tl.sum(total, 1)
        if first is not None:
            result += tl.load(first + i, mask=i < n, other=0.0)
        tl.store(out + i, result, mask=i < n)
    tl.debug_barrier()


@triton.jit
def inner(x, y, n, BLOCK: tl.constexpr):
    """``⟨x, y⟩``."""
    total = tl.zeros((BLOCK,), tl.float64)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        total += tl.load(x + i, mask=i < n, other=0.0) * tl.load(y + i, mask=i < n, other=0.0)
    return tl.sum(total, 0)


@triton.jit
def center(x, n, BLOCK: tl.constexpr):
    """``x -= mean(x)``."""
    total = tl.zeros((BLOCK,), tl.float64)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        total += tl.load(x + i, mask=i < n, other=0.0)
    mean = tl.sum(total, 0) / n
    tl.debug_barrier()
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i, mask=i < n) - mean, mask=i < n)
    tl.debug_barrier()


@triton.jit
def update(matrix, v, scale, n, width, new):
    """``matrix += scale · v vᵀ``, where row and column ``new`` hold nothing yet, and v has -1."""
    for i0 in range(0, n, DOWN):
        i = i0 + tl.arange(0, DOWN)
        a = tl.where(i == new, -1.0, tl.load(v + i, mask=(i < n) & (i != new), other=0.0))
        for j0 in range(0, n, ACROSS):
            j = j0 + tl.arange(0, ACROSS)
            b = tl.where(j == new, -1.0, tl.load(v + j, mask=(j < n) & (j != new), other=0.0))
            live = (i[:, None] < n) & (j[None, :] < n)
            old = live & (i[:, None] != new) & (j[None, :] != new)
            at = matrix + i[:, None] * width + j[None, :]
            m = tl.load(at, mask=old, other=0.0)
            tl.store(at, m + (scale * a)[:, None] * b[None, :], mask=live)
    tl.debug_barrier()


@triton.jit
def move_last(matrix, to, last, width, BLOCK: tl.constexpr):
    """The last row and column to another place, and zeros where they were."""
    corner = tl.load(matrix + last * width + last)
    for first in range(0, last + 1, BLOCK):
        j = first + tl.arange(0, BLOCK)
        row = tl.load(matrix + last * width + j, mask=j <= last, other=0.0)
        row = tl.where(j == to, corner, row)
        tl.debug_barrier()
        moves = j < tl.where(to < last, last, 0)
        tl.store(matrix + to * width + j, row, mask=moves)
        tl.store(matrix + j * width + to, row, mask=moves)
        tl.store(matrix + last * width + j, 0.0, mask=j <= last)
        tl.store(matrix + j * width + last, 0.0, mask=j <= last)
        tl.debug_barrier()


# ------------------------------------------------------------------------------------------- trees
@triton.jit
def read_tree(tree, scores, rest, found, count, BLOCK: tl.constexpr):
    """The parts of a tree, in rising order, into ``found``; their number, the sum of their ``rest``, and
    the largest of their scores."""
    number = tl.sum(tl.zeros((BLOCK,), tl.int32), 0)
    total = tl.zeros((BLOCK,), tl.float64)
    largest = tl.zeros((BLOCK,), tl.float64)
    for first in range(0, count, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(tree + at, mask=at < count, other=0.0) > 0
        total += tl.load(rest + at, mask=part, other=0.0)
        w = tl.load(scores + at, mask=part, other=0.0)
        largest = tl.maximum(largest, tl.abs(w))
        one = part.to(tl.int32)
        tl.store(found + number + tl.cumsum(one, 0) - 1, at.to(tl.int64), mask=part)
        number += tl.sum(one, 0)
    tl.debug_barrier()
    return number, tl.sum(total, 0), tl.max(largest, 0)


@triton.jit
def picked(trees, plane, out, slots, parts, row):
    """``⟨tree_s, plane⟩`` of every tree. Returns how many of them are ``parts``."""
    same = tl.zeros((DOWN,), tl.int32)
    for s0 in range(0, slots, DOWN):
        s = s0 + tl.arange(0, DOWN)
        total = tl.zeros((DOWN, ACROSS), tl.float64)
        for p0 in range(0, parts, ACROSS):
            p = p0 + tl.arange(0, ACROSS)
            live = (s[:, None] < slots) & (p[None, :] < parts)
            at = tl.load(trees + s[:, None] * row + p[None, :], mask=live, other=0)
            total += tl.load(plane + at, mask=live, other=0.0)
        result = tl.sum(total, 1)
        same += ((s < slots) & (result == parts)).to(tl.int32)
        tl.store(out + s, result, mask=s < slots)
    tl.debug_barrier()
    return tl.sum(same, 0)


@triton.jit
def spread(trees, weights, plane, slots, parts, row, count, none, BLOCK: tl.constexpr):
    """``Σ_s weights[s] tree_s`` into a plane."""
    clear(plane, count, BLOCK)
    tl.debug_barrier()
    for s in range(0, slots):
        w = tl.load(weights + s)
        for first in range(0, parts, BLOCK):
            p = first + tl.arange(0, BLOCK)
            at = tl.load(trees + s * row + p, mask=p < parts, other=0)
            live = (p < parts) & (at < none)
            z = tl.load(plane + at, mask=live, other=0.0)
            tl.store(plane + at, z + w, mask=live)
        tl.debug_barrier()


@triton.jit
def put_tree(trees, found, scores, right, slot, parts, row, BLOCK: tl.constexpr):
    """A tree into a slot, and its score."""
    total = tl.zeros((BLOCK,), tl.float64)
    for first in range(0, parts, BLOCK):
        p = first + tl.arange(0, BLOCK)
        at = tl.load(found + p, mask=p < parts, other=0)
        total += tl.load(scores + at, mask=p < parts, other=0.0)
        tl.store(trees + slot * row + p, at, mask=p < parts)
    tl.store(right + slot + 1, tl.sum(total, 0))


@triton.jit
def add_tree(
    trees, found, scores, weights, right, system, inverse, vectors, slots, gap, distance, parts,
    row, width, BLOCK: tl.constexpr,
):  # fmt: skip
    """A new tree into the slot behind the last, with weight 0; its goal is ``gap / distance``."""
    put_tree(trees, found, scores, right, slots, parts, row, BLOCK)
    tl.store(weights + slots, 0.0)
    new = slots + 1
    for first in range(0, new + 1, BLOCK):
        j = first + tl.arange(0, BLOCK)
        g = tl.load(vectors + SHARED * width + j, mask=j < new, other=0.0)
        g = tl.where(j == new, parts.to(tl.float64), g)
        tl.store(system + new * width + j, g, mask=j <= new)
        tl.store(system + j * width + new, g, mask=j <= new)
        x = tl.load(vectors + SOLUTION * width + j, mask=j < new, other=0.0)
        u = tl.load(vectors + PRODUCT * width + j, mask=j < new, other=-1.0)
        tl.store(vectors + GUESS * width + j, x - gap / distance * u, mask=j <= new)
    update(inverse, vectors + PRODUCT * width, 1.0 / distance, new + 1, width, new)


@triton.jit
def drop_tree(
    trees, weights, right, system, inverse, vectors, slots, slot, parts, row, none, width,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Empty a slot; the last tree takes its place."""
    column = vectors + PRODUCT * width
    for first in range(0, slots + 1, BLOCK):
        j = first + tl.arange(0, BLOCK)
        m = tl.load(inverse + (slot + 1) * width + j, mask=j <= slots, other=0.0)
        tl.store(column + j, m, mask=j <= slots)
    last_weight = tl.load(weights + slots - 1)
    last_right = tl.load(right + slots)
    solution = vectors + SOLUTION * width
    gone = tl.load(solution + slot + 1)
    last_solution = tl.load(solution + slots)
    tl.debug_barrier()
    pivot = tl.load(column + slot + 1)
    last_solution -= gone / pivot * tl.load(column + slots)
    for first in range(0, slots, BLOCK):
        j = first + tl.arange(0, BLOCK)
        x = tl.load(solution + j, mask=j < slots, other=0.0)
        x -= gone / pivot * tl.load(column + j, mask=j < slots, other=0.0)
        x = tl.where(j == slot + 1, last_solution, x)
        tl.store(vectors + GUESS * width + j, x, mask=j < slots)
    update(inverse, column, -1.0 / pivot, slots + 1, width, -1)
    move_last(inverse, slot + 1, slots, width, BLOCK)
    move_last(system, slot + 1, slots, width, BLOCK)
    tl.store(weights + slot, last_weight)
    tl.store(right + slot + 1, last_right)
    tl.debug_barrier()
    tl.store(weights + slots - 1, 0.0)
    for first in range(0, parts, BLOCK):
        p = first + tl.arange(0, BLOCK)
        at = tl.load(trees + (slots - 1) * row + p, mask=p < parts, other=0)
        tl.store(trees + slot * row + p, at, mask=p < parts)
        nothing = tl.full((BLOCK,), 0, tl.int64) + none
        tl.store(trees + (slots - 1) * row + p, nothing, mask=p < parts)
    tl.debug_barrier()


# ------------------------------------------------------------------------------------------- steps
@triton.jit
def refine(right, system, inverse, vectors, n, width):
    """From the guess to the weights of the nearest point of the affine hull: the system is exact, so
    this gives back the digits that the updates lost."""
    guess = vectors + GUESS * width
    rest = vectors + REST * width
    product(system, guess, right, rest, n, width, -1.0)
    product(inverse, rest, guess, vectors + SOLUTION * width, n, width, 1.0)


@triton.jit
def first_to_fall(weights, goals, slots, BLOCK: tl.constexpr):
    """How far one can go before a weight turns negative, and whose; infinity if none does."""
    far = tl.full((BLOCK,), float("inf"), tl.float64)
    who = tl.zeros((BLOCK,), tl.int32)
    for first in range(0, slots, BLOCK):
        s = first + tl.arange(0, BLOCK)
        w = tl.load(weights + s, mask=s < slots, other=0.0)
        goal = tl.load(goals + s, mask=s < slots, other=1.0)
        falls = (s < slots) & ~(goal > 0)
        ratio = tl.where(falls & (w > 0), w / tl.where(falls, w - goal, 1.0), 0.0)
        ratio = tl.where(falls, ratio, float("inf"))
        who = tl.where(ratio < far, s, who)
        far = tl.minimum(far, ratio)
    length = tl.min(far, 0)
    return length, tl.min(tl.where(far == length, who, 0x7FFFFFFF), 0)


@triton.jit
def walk(weights, goals, length, slots, BLOCK: tl.constexpr):
    """Weights on the way to their goals, or there."""
    tl.debug_barrier()
    for first in range(0, slots, BLOCK):
        s = first + tl.arange(0, BLOCK)
        w = tl.load(weights + s, mask=s < slots, other=0.0)
        goal = tl.load(goals + s, mask=s < slots, other=0.0)
        part = tl.maximum(w + tl.minimum(length, 1.0) * (goal - w), 0.0)
        tl.store(weights + s, tl.where(length < float("inf"), part, goal), mask=s < slots)
    tl.debug_barrier()


@triton.jit(do_not_specialize=["size", "levels", "single_root", "room", "row", "most"])
def sparsemap_kernel(
    scores, lengths, start, rest, tree, value, chart, whole, gains, points, gaps, full,
    trees, found, weights, right, system, inverse, vectors, size, levels, single_root, room, row,
    most, KIND: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The nearest point, its gap, and the support; ``full`` where that had no room for another tree.

    ``row`` is the most parts of a tree. Memory of trees, weights and inverse holds what stands for
    nothing.
    """
    b = tl.program_id(0).to(tl.int64)
    plane = size * size
    width = room + 1
    BLOCK: tl.constexpr = 4 * ROWS * LANES
    length = sentence_length(lengths, b, size + 1 if KIND == BINARY else size)
    count = (length if KIND == BINARY else length + 1) * size
    own_scores = scores + b * plane
    own_rest = rest + b * plane
    own_tree = tree + b * plane
    point = points + b * plane
    trees += b * room * row
    found += b * row
    weights += b * room
    right += b * width
    system += b * width * width
    inverse += b * width * width
    vectors += b * VECTORS * width
    solution = vectors + SOLUTION * width
    goals = solution + 1

    clear(point, plane, BLOCK)
    tl.debug_barrier()
    parts, score, largest = read_tree(
        start + b * plane, own_scores, own_scores, found, count, BLOCK
    )
    put_tree(trees, found, own_scores, right, 0, parts, row, BLOCK)
    number = parts.to(tl.float64)
    tl.store(weights, 1.0)
    tl.store(right, 1.0)
    tl.store(vectors + SHARED * width, 1.0)
    tl.store(system, 0.0)
    tl.store(system + 1, 1.0)
    tl.store(system + width, 1.0)
    tl.store(system + width + 1, number)
    tl.store(inverse, -number)
    tl.store(inverse + 1, 1.0)
    tl.store(inverse + width, 1.0)
    tl.store(inverse + width + 1, 0.0)
    tl.store(solution, score - number)
    tl.store(goals, 1.0)
    tl.debug_barrier()
    spread(trees, weights, point, 1, parts, row, count, plane, BLOCK)
    # a forbidden part: there is no tree without
    gap = tl.where(largest == float("inf"), largest, 0.0)
    largest = tl.maximum(largest, 1.0)
    running = ((parts > 0) & (largest < float("inf"))).to(tl.int32)
    slots = 1
    added = 0
    no_room = 0
    while running > 0:
        for first in range(0, count, BLOCK):
            at = first + tl.arange(0, BLOCK)
            w = tl.load(own_scores + at, mask=at < count, other=0.0)
            z = tl.load(point + at, mask=at < count, other=0.0)
            tl.store(own_rest + at, w - z, mask=at < count)
        tl.debug_barrier()
        if KIND == PROJECTIVE:
            best_projective(rest, lengths, chart, tree, value, size, single_root, ROWS, LANES)
        elif KIND == BINARY:
            best_binary(rest, lengths, chart, tree, value, size, ROWS, LANES)
        else:
            best_non_projective(
                rest, lengths, chart, whole, gains, tree, value, size, levels, single_root,
                ROWS, LANES,
            )  # fmt: skip
        tl.debug_barrier()
        _, better, size_of_new = read_tree(own_tree, own_scores, own_rest, found, count, BLOCK)
        # all trees of the support have the multiplier as their sum
        gap = tl.maximum(better - tl.load(solution), 0.0)
        largest = tl.maximum(largest, size_of_new)
        shared = vectors + SHARED * width
        known = picked(trees, own_tree, shared + 1, slots, parts, row)
        product(inverse, shared, None, vectors + PRODUCT * width, slots + 1, width, 1.0)
        distance = number - inner(shared, vectors + PRODUCT * width, slots + 1, BLOCK)
        goes_on = (gap > ROUNDING * number * largest) & (known == 0) & (distance > TINY)
        goes_on = goes_on & (added < most)
        no_room = (goes_on & (slots == room)).to(tl.int32)
        running = (goes_on & (slots < room)).to(tl.int32)
        if running > 0:
            add_tree(
                trees, found, own_scores, weights, right, system, inverse, vectors, slots, gap,
                distance, parts, row, width, BLOCK,
            )  # fmt: skip
            newest = slots
            slots += 1
            added += 1
            pending = running
            while pending > 0:
                refine(right, system, inverse, vectors, slots + 1, width)
                far, slot = first_to_fall(weights, goals, slots, BLOCK)
                walk(weights, goals, far, slots, BLOCK)
                pending = (far < float("inf")).to(tl.int32)
                if pending > 0:
                    drop_tree(
                        trees, weights, right, system, inverse, vectors, slots, slot, parts, row,
                        plane, width, BLOCK,
                    )  # fmt: skip
                    slots -= 1
                    # the last tree that came goes before it had a weight: rounding
                    stuck = (slot == newest) & ~(far > 0)
                    pending = tl.where(stuck, 0, pending)
                    running = tl.where(stuck, 0, running)
                    newest = tl.where(slot == newest, -1, tl.where(newest == slots, slot, newest))
            spread(trees, weights, point, slots, parts, row, count, plane, BLOCK)
    tl.store(gaps + b, gap)
    tl.store(full + b, no_room)


@triton.jit(do_not_specialize=["room", "row", "count"])
def backward_kernel(grad, trees, inverse, vectors, out, room, row, count, BLOCK: tl.constexpr):
    """``Z S Zᵀ g``. The trees of a sentence come first, and ``count`` stands for no part."""
    b = tl.program_id(0).to(tl.int64)
    grad += b * count
    out += b * count
    trees += b * room * row
    inverse += b * room * room
    vectors += b * 2 * room
    slots = tl.sum(tl.zeros((BLOCK,), tl.int32), 0)
    for first in range(0, room, BLOCK):
        s = first + tl.arange(0, BLOCK)
        at = tl.load(trees + s * row, mask=s < room, other=0)
        slots += tl.sum(((s < room) & (at < count)).to(tl.int32), 0)
    parts = tl.sum(tl.zeros((BLOCK,), tl.int32), 0)
    for first in range(0, row, BLOCK):
        p = first + tl.arange(0, BLOCK)
        at = tl.load(trees + p, mask=p < row, other=0)
        parts += tl.sum(((p < row) & (at < count)).to(tl.int32), 0)
    picked(trees, grad, vectors, slots, parts, row)
    center(vectors, slots, BLOCK)  # the inverse times 1 is 0, but for rounding
    product(inverse, vectors, None, vectors + room, slots, room, 1.0)
    center(vectors + room, slots, BLOCK)
    spread(trees, vectors + room, out, slots, parts, row, count, count, BLOCK)
