"""Building blocks of the GPU kernels, one Triton program per sentence; the README here explains them."""

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


# -------------------------------------------------------------------------------- cells and splits
@triton.jit
def sentence(base, planes, size):
    """Start of this program's planes; 64 bits, since ``B·planes·N²`` passes 2³¹.

    The alignment that an even number of planes implies is withheld: see *Tiles* in the README.
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
def cells(first, w, count, size, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Cells of width ``w`` from ``first`` on: ``i``, live rows, offsets of [i][j] and [j][i]."""
    i = first + tl.arange(0, ROWS * LANES) // LANES
    return i, i < count, i * size + i + w, (i + w) * size + i


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


# ------------------------------------------------------------------------------ maximum of splits
@triton.jit
def take_larger(m, at, s, t):
    """The first maximum of a lane: a later split must be larger, not equal."""
    return tl.maximum(m, s), tl.where(s > m, t, at)


@triton.jit
def first_maximum(m, at, LANES: tl.constexpr):
    """The maximum of a row and its smallest split, in every lane."""
    top = max_lanes(m, LANES)
    first = tl.min(by_row(tl.where(m == top, at, 0x7FFFFFFF), LANES), 1)
    return top, in_every_lane(first, LANES)
