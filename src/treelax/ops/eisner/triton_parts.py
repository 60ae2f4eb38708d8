"""Layout and building blocks of the GPU kernels: one Triton program per sentence.

**Charts.** Every table is an ``N×N`` plane in global scratch memory (in practice in L1 or L2), laid
out so that both antecedents of every split are contiguous in ``k``:

- ``right[i][j] = right[j][i] = C→(i,j)`` and ``left[i][j] = left[j][i] = C←(i,j)``;
- ``inc[i][k] = I→(i,k)`` above the diagonal, ``inc[j][k] = I←(k,j)`` below it.

With ``k = i + t`` a cell ``(i, j = i + w)`` of width ``w`` reads six rows for its three items::

    U(i,j):   s = right[i][k] + left[j][k+1]   0 ≤ t < w   (single root: only t = 0 for i = 0)
    C→(i,j):  s = inc[i][k]   + right[j][k]    1 ≤ t ≤ w   (t = w is I→(i,j) of this very cell)
    C←(i,j):  s = left[i][k]  + inc[j][k]      0 ≤ t < w   (t = 0 is I←(i,j) of this very cell)

All other antecedents have a smaller width: ``(i,k)`` has width ``t < w``, ``(k,j)`` width
``w - t < w`` and ``(k+1,j)`` width ``w - t - 1 < w``. The terms of the cell's own ``I`` come from
registers, so one barrier per width is enough in every sweep. Diagonals are never read: the masks
put 0 for ``C(i,i)``. ``C←(0,j)`` is computed like the rest and never used.

**Pushing down without atomics.** In the top-down sweeps a plane of accumulators has two entries per
complete item: ``U(i,·)`` adds to row ``i`` above the diagonal and ``C→(·,j)`` to row ``j`` below it
(for ``C←`` the other way round). A row belongs to one cell of a width, so no two threads meet; an
item's total is the sum of both entries. The accumulators of ``I`` are the soft tree itself.

**Units.** Scores are multiplied by log2(e) on load and the kernels work with ``exp2``. Per item the
chart keeps the maximum ``m`` of its split scores and ``1/z``, ``z = Σ 2^(s-m)``; the weights
``b = 2^(s-m)/z`` are recomputed where they are needed. ``d`` is ``s - m``, ``mean_d`` is ``Σ b·d``.

**Tiles.** ``ROWS`` cells of one width times ``LANES`` splits, ``LANES ≤ 32`` so that a row lies
inside one warp. A tile is a flat vector, lanes innermost, and a matrix only inside a reduction over
lanes; values per cell are full tiles too (every lane of a row loads the same address, lane 0
stores). So Triton has one layout to choose from. Of a matrix or of a ``(ROWS,)`` vector it would
lay out the loads of cells unlike those of splits and change layouts through shared memory, with
barriers of its own, at every load and store; a pass of Triton 3.6 even fails on that. For the same
reason ``size`` must not be specialised: an alignment known to Triton gives some loads a layout of
their own.
"""

from __future__ import annotations

import triton
import triton.language as tl

from treelax.ops import backend

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)
FORBIDDEN = tl.constexpr(backend.FORBIDDEN)
LIMIT = tl.constexpr(backend.LIMIT)
NO_TREE = tl.constexpr(backend.NO_TREE)
#: A lane without a split: far below the sum of two forbidden items, far above float32's lowest.
NOTHING = tl.constexpr(-1e37)

# Planes of the chart, `CHART_PLANES` per sentence. The last three are kept for the backward pass.
RIGHT = tl.constexpr(0)  # C→, both triangles
LEFT = tl.constexpr(1)  # C←, both triangles
INC = tl.constexpr(2)  # I→ above, I← below the diagonal; the arc scores until a cell is made
SPLIT_U = tl.constexpr(3)  # m above, 1/z below
SPLIT_RIGHT = tl.constexpr(4)
SPLIT_LEFT = tl.constexpr(5)
MEANS = tl.constexpr(6)  # mean_d of U above, of C→ below
MEAN_GIVEN = tl.constexpr(7)  # mean_d of C← above, contribution of U below
GIVEN = tl.constexpr(8)  # contribution of C→ above, of C← below
CHART_PLANES = tl.constexpr(9)
VALUE_PLANES = tl.constexpr(3)  # enough for the log-partition alone
# Scratch planes of the forward pass: contributions of C→ and of C←.
FORWARD_PLANES = tl.constexpr(2)
# Scratch planes of the backward pass: adjoints of contributions (up), adjoints of values (down).
UP_U = tl.constexpr(3)
DOWN_RIGHT = tl.constexpr(4)
DOWN_LEFT = tl.constexpr(5)
BACKWARD_PLANES = tl.constexpr(6)
# Scratch of the best tree, after RIGHT, LEFT and INC. Splits are whole numbers, exact in float32.
MARK_RIGHT = tl.constexpr(3)  # marks of C→
MARK_LEFT = tl.constexpr(4)  # marks of C←
TAKEN = tl.constexpr(5)  # split of U above, of C→ below
TAKEN_LEFT = tl.constexpr(6)  # split of C← above
BEST_PLANES = tl.constexpr(7)
BEST_ARCS = tl.constexpr(7)  # the tree itself, where it is not the result but the way to the shift
CENTRE_PLANES = tl.constexpr(8)  # no more than a chart has: centring runs in the chart's memory


# -------------------------------------------------------------------------------- cells and splits
@triton.jit
def sentence(base, planes, size):
    """Start of this program's planes; 64 bits, since ``B·planes·N²`` passes 2³¹.

    The alignment that an even number of planes implies is withheld: see *Tiles* above.
    """
    return base + tl.multiple_of(tl.program_id(0).to(tl.int64) * (planes * size * size), 1)


@triton.jit
def sentence_length(lengths, b, size):
    """Words of sentence ``b``; a length out of range, which the caller reports, stays in memory."""
    length = tl.load(lengths + b)
    return tl.minimum(tl.maximum(length, 0), size - 1).to(tl.int32)


@triton.jit
def clear(plane, count, BLOCK: tl.constexpr):
    """Zeros in the first ``count`` entries of a plane."""
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(plane + at, tl.zeros((BLOCK,), plane.dtype.element_ty), mask=at < count)


@triton.jit
def bounded(w):
    """A score as a chart takes it: finite. NaN becomes a number too, so no chart holds one."""
    finite = tl.minimum(tl.maximum(w, -LIMIT), LIMIT)
    return tl.where(w == float("-inf"), FORBIDDEN, finite)


@triton.jit
def load_arcs(scores, shift, inc, length, size, scale: tl.constexpr, BLOCK: tl.constexpr):
    """Bounded scores, times ``scale``, into the plane of incomplete items; no arcs in column 0.

    ``shift`` is what `triton_discrete.centre_kernel` takes off every column, or None. Returns a
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
def is_arc(at, length, size):
    """Whether an entry of a plane is an arc of a sentence."""
    head = at // size
    word = at % size
    return (word > 0) & (word <= length) & (head <= length) & (head != word)


@triton.jit
def spoil(plane, length, size, BLOCK: tl.constexpr):
    """NaN in every arc."""
    count = (length + 1) * size
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        nothing = tl.full((BLOCK,), float("nan"), plane.dtype.element_ty)
        tl.store(plane + at, nothing, mask=(at < count) & is_arc(at, length, size))


@triton.jit
def load_gradients(grad_tree, inc, length, size, BLOCK: tl.constexpr):
    """The adjoint of the soft tree into the plane of adjoints of incomplete items."""
    count = (length + 1) * size
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        g = tl.load(grad_tree + at, mask=at < count, other=0.0)
        tl.store(inc + at, tl.where(at % size == 0, 0.0, g), mask=at < count)


@triton.jit
def cells(first, w, count, size, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Cells of width ``w`` from ``first`` on: ``i``, live rows, offsets of [i][j] and [j][i]."""
    i = first + tl.arange(0, ROWS * LANES) // LANES
    return i, i < count, i * size + i + w, (i + w) * size + i


@triton.jit
def lane_splits(t0, lane, i, w, live, size, single_root):
    """Splits ``k = i + t`` of a chunk: offsets of [i][k] and [j][k], and which splits exist.

    Returns the mask of ``U``'s splits, of both complete items' (``1 ≤ t < w``, the cell's own arc
    left out), and of the splits at which ``C←(k+1,j)`` is not empty.
    """
    t = t0 + lane
    at_i = i * size + i + t
    splits_u = live & (t < tl.where((i == 0) & (single_root != 0), 1, w))
    between = live & (t >= 1) & (t < w)
    before_last = live & (t < w - 1)
    return at_i, at_i + w * size, splits_u, between, before_last


@triton.jit
def load_six(right, left, inc, at_i, at_j, between, before_last):
    """Both antecedents of each split of U, C→ and C←, in any three planes laid out as a chart."""
    u_1 = tl.load(right + at_i, mask=between, other=0.0)  # C→(i,k)
    u_2 = tl.load(left + at_j + 1, mask=before_last, other=0.0)  # C←(k+1,j)
    right_1 = tl.load(inc + at_i, mask=between, other=0.0)  # I→(i,k)
    right_2 = tl.load(right + at_j, mask=between, other=0.0)  # C→(k,j)
    left_1 = tl.load(left + at_i, mask=between, other=0.0)  # C←(i,k)
    left_2 = tl.load(inc + at_j, mask=between, other=0.0)  # I←(k,j)
    return u_1, u_2, right_1, right_2, left_1, left_2


@triton.jit
def store_six(right, left, inc, at_i, at_j, between, before_last, old, u, to_right, to_left):
    """Add a share per split of U, C→ and C← to the six entries `load_six` gave as ``old``."""
    tl.store(right + at_i, old[0] + u, mask=between)
    tl.store(left + at_j + 1, old[1] + u, mask=before_last)
    tl.store(inc + at_i, old[2] + to_right, mask=between)
    tl.store(right + at_j, old[3] + to_right, mask=between)
    tl.store(left + at_i, old[4] + to_left, mask=between)
    tl.store(inc + at_j, old[5] + to_left, mask=between)


@triton.jit
def pair_sums(right, left, inc, at_i, at_j, between, before_last):
    """Sum over the two antecedents of each split of U, C→ and C←, in any three planes."""
    both = load_six(right, left, inc, at_i, at_j, between, before_last)
    return both[0] + both[1], both[2] + both[3], both[4] + both[5]


@triton.jit
def split_scores(right, left, inc, at_i, at_j, splits_u, between, before_last):
    """Scores ``s`` of the splits of U, C→ and C←; `NOTHING` where there is no split."""
    s_u, s_right, s_left = pair_sums(right, left, inc, at_i, at_j, between, before_last)
    return (
        tl.where(splits_u, s_u, NOTHING),
        tl.where(between, s_right, NOTHING),
        tl.where(between, s_left, NOTHING),
    )


@triton.jit
def load_both(plane, upper, lower, live):
    """The entries [i][j] and [j][i] of a plane."""
    above = tl.load(plane + upper, mask=live, other=0.0)
    below = tl.load(plane + lower, mask=live, other=0.0)
    return above, below


@triton.jit
def store_both(plane, upper, lower, above, below, mask):
    """Write the entries [i][j] and [j][i] of a plane."""
    tl.store(plane + upper, above, mask=mask)
    tl.store(plane + lower, below, mask=mask)


# ------------------------------------------------------------------------------- softmax of splits
@triton.jit
def absorb(m, z, e, s, MEAN: tl.constexpr):
    """One more score into a running softmax: maximum ``m``, ``z = Σ 2^d`` and ``e = Σ 2^d·d``."""
    d = s - m
    x = tl.exp2(-tl.abs(d))
    rises = d > 0
    if MEAN:
        xd = x * d  # 0 where no split was absorbed yet; d·z alone can overflow there
        e = tl.where(rises, x * e - xd * z, e + xd)
    z = tl.where(rises, x * z + 1.0, z + x)
    return tl.maximum(m, s), z, e


@triton.jit
def by_row(x, LANES: tl.constexpr):
    """A tile as a matrix of rows and lanes, to reduce along axis 1."""
    return tl.reshape(x, (x.shape[0] // LANES, LANES))


@triton.jit
def in_every_lane(x, LANES: tl.constexpr):
    """One value a row as a tile."""
    tile = tl.broadcast_to(x[:, None], (x.shape[0], LANES))
    return tl.reshape(tile, (x.shape[0] * LANES,))


@triton.jit
def sum_lanes(x, LANES: tl.constexpr):
    """The sum over the lanes of every row, in every lane."""
    return in_every_lane(tl.sum(by_row(x, LANES), 1), LANES)


@triton.jit
def max_lanes(x, LANES: tl.constexpr):
    """The maximum over the lanes of every row, in every lane."""
    return in_every_lane(tl.max(by_row(x, LANES), 1), LANES)


@triton.jit
def join_lanes(m, z, e, MEAN: tl.constexpr, LANES: tl.constexpr):
    """The running softmaxes of all lanes of a row into one, in every lane."""
    top = max_lanes(m, LANES)
    d = m - top
    x = tl.exp2(d)
    if MEAN:
        e = sum_lanes(x * e + (x * d) * z, LANES)
    return top, sum_lanes(x * z, LANES), e


@triton.jit
def cell_value(m, z, e, MEAN: tl.constexpr):
    """Value, ``1/z``, ``mean_d`` of an item: ``b·s = m + mean_d``, or ``logsumexp = m + log z``."""
    rz = 1.0 / z
    if MEAN:
        mean_d = e * rz
        v = m + mean_d
    else:
        mean_d = e
        v = m + tl.log2(z)
    return tl.maximum(v, FORBIDDEN * LOG2E), rz, mean_d
