// Soft trees by Eisner's algorithm and their gradient: a block of threads a sentence, or a cluster of blocks.
//
// Compiled at run time with REAL (float or double), MEAN (1: softmax, 0: entropy) and CLUSTER_BLOCKS: 0 for a
// chart in shared memory, else one in global memory that so many blocks share. There are at least twice as
// many threads as words, all powers of two, so that every cell of a width has a group of two to 32 of its own.
//
// Values are in bits. A plane holds C→(i,j) at [i][j] and C←(i,j) at [j][i], another one I; their diagonals
// make the splits at both ends need no special case: C(i,i) is 0, I(i,i) nothing. With k = i + o, 0 ≤ o < j - i,
//   U(i,j)   from C→(i,k) + C←(k+1,j)
//   C→(i,j)  from I→(i,k) + C→(k,j), and I→(i,j) alone
//   C←(i,j)  from C←(i,k+1) + I←(k+1,j), and I←(i,j) alone
// The even threads of a group end C→, the odd ones C←: what they store has one place, [i][j] or [j][i], in all
// planes. Columns are as quick as rows in shared memory; in global memory a transposed plane has them.

typedef REAL real;
#define LOG2E real(1.4426950408889634)
#define LN2 real(0.6931471805599453)
#define FORBIDDEN real(-1e36)
#define LIMIT real(1e30)
#define NO_TREE real(-5e35)
#define NOTHING real(-1e37)
#define CHUNK (CLUSTER_BLOCKS ? 4 : 2)  // splits that a thread has under way

struct alignas(2 * sizeof(real)) Pair {
  real x, y;
};

struct Args {
  const real *scores, *grad_tree, *grad_value;
  const long long *lengths;
  real *saved, *scratch, *tree, *value;  // of the backward pass: tree is the gradient
  int batch, size, single_root, keep;
};

DEVICE real absolute(real x) { return x < 0 ? -x : x; }
DEVICE real larger(real a, real b) { return a > b ? a : b; }
DEVICE int smaller(int a, int b) { return a < b ? a : b; }
DEVICE int larger(int a, int b) { return a > b ? a : b; }
DEVICE int bits(int x) { return 32 - LEADING_ZEROS(x - 1); }  // of the next power of two
DEVICE real bounded(real w) {
  if (w == -INFINITY) return FORBIDDEN;
  return !(w < LIMIT) ? LIMIT : (w > -LIMIT ? w : -LIMIT);  // NaN becomes a number too
}

// -------------------------------------------------------------------------------------- threads and places
#if CLUSTER_BLOCKS
#define SYNC() CLUSTER_SYNC()
#define THREADS (CLUSTER_BLOCKS * BLOCK_THREADS)
#define RANK (CLUSTER_RANK * BLOCK_THREADS + THREAD)
#define SENTENCE (BLOCK_ID / CLUSTER_BLOCKS)
#define STRIDE(size) (size)
#define CHARTS 3  // planes of a chart
#else
#define SYNC() BLOCK_SYNC()
#define THREADS BLOCK_THREADS
#define RANK THREAD
#define SENTENCE BLOCK_ID
#define STRIDE(size) ((size) | 7)  // neighbours on a diagonal, eight apart, are in different banks
#define CHARTS 2
#endif
#define FOR_ENTRIES(h, m, size)                                   \
  for (int h = RANK >> 5; h < (size); h += THREADS >> 5)          \
    for (int m = THREAD & 31; m < (size); m += 32)

struct Chart {
  real *c, *t, *i;  // t: C transposed, or C itself
};
DEVICE Chart chart_at(real *base, int plane) {
  Chart x = {base, base + (CHARTS - 2) * plane, base + (CHARTS - 1) * plane};
  return x;
}

// The part of a thread in the cells of a width.
struct Part {
  int q, lane, side, i, j, live, end, a, b, up, low, mine;
  DEVICE Part(int w, int n, int s) {
    int count = n + 1 - w;
    q = larger(1, smaller(smaller(5, bits(w)), bits(THREADS) - bits(count)));
    i = RANK >> q, lane = RANK & ((1 << q) - 1), side = lane & 1;
    live = i < count, end = live ? w : 0;
    i = live ? i : 0, j = i + w;  // what an idle thread reads is there
    up = i * s + j, low = j * s + i, mine = side ? low : up;
    a = i * s + i, b = low + 1;  // of split 0: [i][k] and [j][k+1]
  }
  // A split that there is, to be read without asking: loads without branches are under way together.
  DEVICE int within(int o) const { return smaller(o, j - i - 1); }
  DEVICE bool awake(int n) const { return ((RANK & ~31) >> q) + (j - i) <= n; }  // the same in a warp
};

struct Three {
  real u, r, l;
};
// Sums of the antecedents of U, C→ and C← at split o.
DEVICE Three sums(const Chart &x, const Part &p, int o, int s) {
  Three v;
#if CLUSTER_BLOCKS
  int r = p.b - 1 + o, l = p.a + 1 + o;
#else
  int r = p.up + o * s, l = p.a + s + o * s;
#endif
  v.u = x.c[p.a + o] + x.c[p.b + o];
  v.r = x.i[p.a + o] + x.t[r];
  v.l = x.t[l] + x.i[p.b + o];
  return v;
}
DEVICE void put(const Chart &x, const Part &p, real value, real arc) {
  x.c[p.mine] = value, x.i[p.mine] = arc;
#if CLUSTER_BLOCKS
  x.t[p.side ? p.up : p.low] = value;
#endif
}

// What belongs to a cell: maxima and 1/z of the softmax over its splits, means, contributions.
struct Cells {
  Pair *own, *u, *more;  // at [i][j]: (m, 1/z) of C→; (m, 1/z) of U; (mean, contribution) of C→
};                       // at [j][i]: the same of C←; (mean, contribution) of U; the same of C←
DEVICE Cells cells_at(real *base, int plane) {
  Pair *p = reinterpret_cast<Pair *>(base);
  Cells x = {p, p + plane, p + 2 * plane};
  return x;
}
struct Cell {
  Pair r, l, u;
  DEVICE Cell(const Cells &x, const Part &p) {
    if (p.live) r = x.own[p.up], l = x.own[p.low], u = x.u[p.up];
  }
};

// ---------------------------------------------------------------------------------------- softmax of splits
struct Running {
  real m, z, e;
  DEVICE void add(real s) {
    real d = s - m, x = power(d);
    z += x;
#if MEAN
    e += d * x;
#endif
  }
  DEVICE Running(const real *s) : m(s[0]), z(0), e(0) {
    UNROLL for (int c = 1; c < CHUNK; c++) m = larger(m, s[c]);
    UNROLL for (int c = 0; c < CHUNK; c++) add(s[c]);
  }
  DEVICE void absorb(const real *s) {
    real top = m;
    UNROLL for (int c = 0; c < CHUNK; c++) top = larger(top, s[c]);
    scale(top);
    UNROLL for (int c = 0; c < CHUNK; c++) add(s[c]);
  }
  DEVICE void scale(real top) {
    real d = m - top, x = power(d);
#if MEAN
    e = x * (e + d * z);
#endif
    z *= x, m = top;
  }
  // value, 1/z and the mean of s - m
  DEVICE real value(real &rz, real &mean) const {
    rz = reciprocal(z), mean = 0;
#if MEAN
    mean = e * rz;
    return larger(m + mean, FORBIDDEN * LOG2E);
#else
    return larger(m + logarithm(z), FORBIDDEN * LOG2E);
#endif
  }
};

// Some splits of a thread; where it has none left, nothing. A thread without any has z = CHUNK of nothing,
// which is 0 in the scale of any number.
DEVICE void gather(const Chart &x, const Part &p, int o, int last, int s, real *u, real *r, real *l) {
  UNROLL for (int c = 0; c < CHUNK; c++) {
    int at = o + (c << p.q), on = at < p.end;
    Three v = sums(x, p, p.within(at), s);
    u[c] = on && at < last ? v.u : NOTHING, r[c] = on ? v.r : NOTHING, l[c] = on ? v.l : NOTHING;
  }
}

DEVICE void inside(const Chart &x, const Cells &cells, int n, int s, int single_root) {
  for (int w = 1; w <= n; w++) {
    Part p(w, n, s);
    if (p.awake(n)) {
      int last = p.i == 0 && single_root ? 1 : w;
      real su[CHUNK], sr[CHUNK], sl[CHUNK];
      gather(x, p, p.lane, last, s, su, sr, sl);
      Running u(su), r(sr), l(sl);
      for (int o = p.lane + (CHUNK << p.q); o < p.end; o += CHUNK << p.q) {
        gather(x, p, o, last, s, su, sr, sl);
        u.absorb(su), r.absorb(sr), l.absorb(sl);
      }
      real top_u = u.m, top_r = r.m, top_l = l.m;
      for (int o = 1; o < 1 << p.q; o <<= 1) {
        top_u = larger(top_u, SHUFFLE(top_u, o));
        top_r = larger(top_r, SHUFFLE(top_r, o));
        top_l = larger(top_l, SHUFFLE(top_l, o));
      }
      u.scale(top_u), r.scale(top_r), l.scale(top_l);
      Running own = r, other = l;
      if (p.side) own = l, other = r;
      own.z += SHUFFLE(other.z, 1), u.z += SHUFFLE(u.z, 1);
#if MEAN
      own.e += SHUFFLE(other.e, 1), u.e += SHUFFLE(u.e, 1);
#endif
      for (int o = 2; o < 1 << p.q; o <<= 1) {
        own.z += SHUFFLE(own.z, o), u.z += SHUFFLE(u.z, o);
#if MEAN
        own.e += SHUFFLE(own.e, o), u.e += SHUFFLE(u.e, o);
#endif
      }
      if (p.live && p.lane < 2) {
        Pair of_u, of_own;
        real mean_u, mean, arc = x.i[p.mine] + u.value(of_u.y, mean_u);
        own.scale(larger(own.m, arc)), own.add(arc);
        put(x, p, own.value(of_own.y, mean), arc);
        of_u.x = u.m, of_own.x = own.m;
        cells.own[p.mine] = of_own, cells.more[p.mine].x = mean;
        if (p.side) cells.u[p.low].x = mean_u;
        else cells.u[p.up] = of_u;
      }
    }
    SYNC();
  }
}

// What a split gives is added to both its antecedents. Complete items have two places, one for each kind of
// consequent, so that no two threads meet: U(i,·) adds to row i, C→(·,j) and C←(·,j) to row j.
struct Pushed {
  real *r, *l, *i;
  struct Six {
    real x[6];
  };
  DEVICE Six read(const Part &p, int o) const {
    int a = p.a + o, b = p.b + o;
    Six v = {{r[a], i[a], l[a + 1], r[b - 1], l[b], i[b]}};
    return v;
  }
  DEVICE void add(const Part &p, int o, const Six &to, const Three &v) const {
    int a = p.a + o, b = p.b + o;
    r[a] = to.x[0] + v.u, i[a] = to.x[1] + v.r, l[a + 1] = to.x[2] + v.l;
    r[b - 1] = to.x[3] + v.r, l[b] = to.x[4] + v.u, i[b] = to.x[5] + v.l;
  }
};

DEVICE void outside(const Chart &x, const Cells &cells, const Pushed &push, int n, int s, int single_root,
                    int keep) {
  Part p(n, n, s);
  Cell cell(cells, p);
  for (int w = n; w >= 1; w--) {
    Part next_part(w - 1, n, s);
    Cell next_cell(cells, next_part);  // asked for early
    if (p.awake(n)) {
      real t_r = 0, t_l = 0, a_r = 0, a_l = 0, a_u = 0;
      if (p.live) {
        a_r = push.r[p.up] + push.r[p.low], a_l = push.l[p.up] + push.l[p.low];
        real share_r = cell.r.y * a_r, share_l = cell.l.y * a_l;
        t_r = push.i[p.up] + power(x.i[p.up] - cell.r.x) * share_r;
        t_l = push.i[p.low] + power(x.i[p.low] - cell.l.x) * share_l;
        a_u = t_r + t_l;
        real share_u = cell.u.y * a_u;
        int last = p.i == 0 && single_root ? 1 : w;
        for (int o = p.lane; o < p.end; o += CHUNK << p.q) {
          Three v[CHUNK];
          Pushed::Six to[CHUNK];
          UNROLL for (int c = 0; c < CHUNK; c++) {
            int at = p.within(o + (c << p.q));
            v[c] = sums(x, p, at, s), to[c] = push.read(p, at);
          }
          UNROLL for (int c = 0; c < CHUNK; c++) {
            int at = o + (c << p.q);
            v[c].u = at < last ? power(v[c].u - cell.u.x) * share_u : real(0);
            v[c].r = power(v[c].r - cell.r.x) * share_r, v[c].l = power(v[c].l - cell.l.x) * share_l;
            if (at < p.end) push.add(p, at, to[c], v[c]);
          }
        }
      }
      WARP_SYNC();  // all lanes have read what two of them write
      if (p.live && p.lane < 2) {
        push.i[p.mine] = p.side ? t_l : t_r;
        if (keep) {
          cells.more[p.mine].y = p.side ? a_l : a_r;
          if (p.side) cells.u[p.low].y = a_u;
        }
      }
    }
    SYNC();
    p = next_part, cell = next_cell;
  }
}

// Adjoints of contributions, bottom-up: means of those of the antecedents.
DEVICE void up(const Chart &x, const Cells &cells, const Chart &d, real *mean_u, int n, int s, int single_root) {
  Part p(1, n, s);
  Cell cell(cells, p);
  for (int w = 1; w <= n; w++) {
    Part next_part(w + 1, n, s);
    Cell next_cell(cells, next_part);
    if (p.awake(n)) {
      real u = 0, r = 0, l = 0;
      int last = p.i == 0 && single_root ? 1 : w;
      for (int o = p.lane; o < p.end; o += CHUNK << p.q) {
        Three v[CHUNK], g[CHUNK];
        UNROLL for (int c = 0; c < CHUNK; c++) {
          int at = p.within(o + (c << p.q));
          v[c] = sums(x, p, at, s), g[c] = sums(d, p, at, s);
        }
        UNROLL for (int c = 0; c < CHUNK; c++) {
          int at = o + (c << p.q);
          if (at < last) u += power(v[c].u - cell.u.x) * g[c].u;
          if (at < p.end) r += power(v[c].r - cell.r.x) * g[c].r, l += power(v[c].l - cell.l.x) * g[c].l;
        }
      }
      real own = p.side ? l : r, other = p.side ? r : l;
      own += SHUFFLE(other, 1), u += SHUFFLE(u, 1);
      for (int o = 2; o < 1 << p.q; o <<= 1) own += SHUFFLE(own, o), u += SHUFFLE(u, o);
      if (p.live && p.lane < 2) {
        u *= cell.u.y;
        Pair mine = p.side ? cell.l : cell.r;
        real arc = d.i[p.mine] + u;
        put(d, p, mine.y * (own + power(x.i[p.mine] - mine.x) * arc), arc);
        if (!p.side) mean_u[p.up] = u;
      }
    }
    SYNC();
    p = next_part, cell = next_cell;
  }
}

// ds = 2^d (with_d d + with_g g + rest), the adjoint of a split's score; see triton_kernels.slope.
struct Slope {
  real m, with_d, with_g, rest;
  DEVICE Slope(Pair own, Pair more, real mean_g, real gv) {
    m = own.x, with_g = own.y * more.y, with_d = own.y * gv, rest = with_d - with_g * mean_g;
#if MEAN
    with_d *= LN2, rest -= with_d * more.x;
#endif
  }
  DEVICE real operator()(real s, real g) const {
    real d = larger(s - m, sizeof(real) == 8 ? real(-1100) : real(-200)), line = rest;
#if MEAN
    line += with_d * d;
#endif
    return power(d) * (with_g * g + line);
  }
};

struct Whole {
  Pair r, l, u, more_r, more_l, more_u;
  real mean;
  DEVICE Whole(const Cells &x, const real *mean_u, const Part &p) {
    if (p.live)
      r = x.own[p.up], l = x.own[p.low], u = x.u[p.up], more_r = x.more[p.up], more_l = x.more[p.low],
      more_u = x.u[p.low], mean = mean_u[p.up];
  }
};

DEVICE void down(const Chart &x, const Cells &cells, const Chart &d, const real *mean_u, const Pushed &push, int n,
                 int s, int single_root) {
  Part p(n, n, s);
  Whole cell(cells, mean_u, p);
  for (int w = n; w >= 1; w--) {
    Part next_part(w - 1, n, s);
    Whole next_cell(cells, mean_u, next_part);
    if (p.awake(n)) {
      real to_right = 0, to_left = 0;
      if (p.live) {
        real gv_r = push.r[p.up] + push.r[p.low], gv_l = push.l[p.up] + push.l[p.low];
        Slope r(cell.r, cell.more_r, d.c[p.up], gv_r);
        Slope l(cell.l, cell.more_l, d.c[p.low], gv_l);
        to_right = push.i[p.up] + r(x.i[p.up], d.i[p.up]), to_left = push.i[p.low] + l(x.i[p.low], d.i[p.low]);
        Slope u(cell.u, cell.more_u, cell.mean, to_right + to_left);
        int last = p.i == 0 && single_root ? 1 : w;
        for (int o = p.lane; o < p.end; o += CHUNK << p.q) {
          Three v[CHUNK], g[CHUNK];
          Pushed::Six to[CHUNK];
          UNROLL for (int c = 0; c < CHUNK; c++) {
            int at = p.within(o + (c << p.q));
            v[c] = sums(x, p, at, s), g[c] = sums(d, p, at, s), to[c] = push.read(p, at);
          }
          UNROLL for (int c = 0; c < CHUNK; c++) {
            int at = o + (c << p.q);
            v[c].u = at < last ? u(v[c].u, g[c].u) : real(0);
            v[c].r = r(v[c].r, g[c].r), v[c].l = l(v[c].l, g[c].l);
            if (at < p.end) push.add(p, at, to[c], v[c]);
          }
        }
      }
      WARP_SYNC();
      if (p.live && p.lane < 2) push.i[p.mine] = p.side ? to_left : to_right;
    }
    SYNC();
    p = next_part, cell = next_cell;
  }
}

// --------------------------------------------------------------------------------------------------- kernels
DEVICE int is_arc(int h, int m, int n) { return m > 0 && m <= n && h <= n && h != m; }

KERNEL void soft_tree(PARAMS) {
  int size = a.size, s = STRIDE(size), plane = (s * size + 1) & ~1;  // even, for pairs
  long long b = SENTENCE, square = size * size, length = a.lengths[b];
  int n = int(length < 0 ? 0 : length > size - 1 ? size - 1 : length);
  const real *scores = a.scores + b * square;
  real *saved = a.saved + b * plane * (CHARTS + 6), *tree = a.tree + b * square;
#if CLUSTER_BLOCKS
  real *work = a.scratch + b * plane * 2, *shift = SHARED;
  Chart x = chart_at(saved, plane);
  Pushed push = {work, work + plane, tree};
#else
  real *work = SHARED, *shift = work + 5 * plane;
  Chart x = chart_at(work, plane);
  Pushed push = {work + 2 * plane, work + 3 * plane, work + 4 * plane};
#endif
  Cells cells = cells_at(saved + CHARTS * plane, plane);
  int wrong = 0, rank = THREAD, q = smaller(5, larger(0, bits(BLOCK_THREADS) - bits(n + 1)));
  for (int m = rank; m < size; m += BLOCK_THREADS) shift[m] = 0;
  BLOCK_SYNC();
  // Taken off a column, a number changes no tree, and small values have precise differences: at first the
  // largest score; if a tree is still far from 0, as much for every word; with scores so wide that this would
  // not do, the means under the tree so far, each time some digits better.
  enum { LARGEST, MEANS, EVEN } taken = LARGEST;
  real total = 0;
  for (int round = 0;; round++) {
    for (int first = 0; first <= n; first += BLOCK_THREADS >> q) {
      int m = first + (rank >> q), lane = rank & ((1 << q) - 1), is_word = m && m <= n;
      real off = taken == LARGEST ? FORBIDDEN : taken == EVEN ? total / n : real(0);
      if (is_word && taken != EVEN)
        for (int h = lane; h <= n; h += 1 << q) {
          if (h == m) continue;
          real w = scores[h * size + m];
          wrong |= w != w, w = bounded(w);
          if (taken == LARGEST) off = larger(off, w);
          else off += w == FORBIDDEN ? real(0) : (w - shift[m]) * push.i[h * s + m];
        }
      for (int o = 1; o < 1 << q && taken != EVEN; o <<= 1) {
        real got = SHUFFLE(off, o);
        off = taken == LARGEST ? larger(off, got) : off + got;
      }
      if (is_word && !lane && off != FORBIDDEN) shift[m] += off;
    }
    SYNC();
    FOR_ENTRIES(h, m, size) {
      int at = h * s + m;
      real w = NOTHING;
      if (h != m) {
        w = m && m <= n && h <= n ? bounded(scores[h * size + m]) : real(0);
        w = (m && w != FORBIDDEN ? w - shift[m] : w) * LOG2E;
      }
      x.i[at] = w, x.c[at] = 0, x.t[at] = 0;
      push.r[at] = h == 0 && m == n ? real(1) : real(0), push.l[at] = 0, push.i[at] = 0;
    }
    SYNC();
    inside(x, cells, n, s, a.single_root);
    total = x.c[n] * LN2;
    if (sizeof(real) == 8 || !(absolute(total) > 256) || total < NO_TREE || round == 6) break;
    taken = absolute(total) > 64 * n ? MEANS : EVEN;
    if (taken == MEANS) outside(x, cells, push, n, s, a.single_root, 0);
  }
  if (RANK == 0)
    for (int m = 1; m <= n; m++) total += shift[m];
  outside(x, cells, push, n, s, a.single_root, a.keep);
  wrong = BLOCK_ANY(wrong);
  if (RANK == 0) a.value[b] = wrong ? real(NAN) : total;
  FOR_ENTRIES(h, m, size) {
    int at = h * s + m;
#if !CLUSTER_BLOCKS
    tree[h * size + m] = m && m <= n && h <= n ? push.i[at] : real(0);
    if (a.keep) saved[at] = x.c[at], saved[plane + at] = x.i[at];
#endif
    if (wrong && is_arc(h, m, n)) tree[h * size + m] = real(NAN);
  }
  SYNC();
  if (RANK == 0) saved[0] = wrong ? real(NAN) : real(0);  // C(0,0); it tells the backward pass
}

KERNEL void soft_tree_backward(PARAMS) {
  int size = a.size, s = STRIDE(size), plane = (s * size + 1) & ~1;  // even, for pairs
  long long b = SENTENCE, square = size * size, length = a.lengths[b];
  int n = int(length < 0 ? 0 : length > size - 1 ? size - 1 : length);
  const real *grad_tree = a.grad_tree + b * square;
  real *saved = a.saved + b * plane * (CHARTS + 6), *grad = a.tree + b * square;
  Cells cells = cells_at(saved + CHARTS * plane, plane);
  real *mean_u = a.scratch + b * plane * (CLUSTER_BLOCKS ? 6 : 1), mark = saved[0];
#if CLUSTER_BLOCKS
  real *work = mean_u + plane;
  Chart x = chart_at(saved, plane), d = chart_at(work, plane);
  Pushed push = {work + 3 * plane, work + 4 * plane, grad};
#else
  real *work = SHARED;
  Chart x = chart_at(work, plane), d = chart_at(work + 2 * plane, plane);
  Pushed push = {work + 4 * plane, work + 5 * plane, work + 6 * plane};
#endif
  real gv = a.grad_value ? a.grad_value[b] : real(0);
  SYNC();  // the mark has been read
  FOR_ENTRIES(h, m, size) {
    int at = h * s + m;
#if CLUSTER_BLOCKS
    if (at == 0) x.c[0] = 0;
#else
    x.c[at] = at ? saved[at] : real(0), x.i[at] = saved[plane + at];
#endif
    d.i[at] = is_arc(h, m, n) ? grad_tree[h * size + m] : real(0);
    d.c[at] = 0, d.t[at] = 0, push.r[at] = h == 0 && m == n ? gv : real(0), push.l[at] = 0, push.i[at] = 0;
  }
  SYNC();
  up(x, cells, d, mean_u, n, s, a.single_root);
  down(x, cells, d, mean_u, push, n, s, a.single_root);
  FOR_ENTRIES(h, m, size) {
#if !CLUSTER_BLOCKS
    grad[h * size + m] = m && m <= n && h <= n ? push.i[h * s + m] : real(0);
#endif
    if (mark != mark && is_arc(h, m, n)) grad[h * size + m] = real(NAN);
  }
#if CLUSTER_BLOCKS
  SYNC();
  if (RANK == 0) saved[0] = mark;  // for another backward pass
#endif
}
