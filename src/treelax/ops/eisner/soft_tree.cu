// Soft trees by Eisner's algorithm and their gradient: a block of threads a sentence, or a cluster of blocks.
//
// Compiled at run time with REAL (float or double), MEAN (1: softmax, 0: entropy), THREADS_AT_MOST (512 where a
// chart in shared memory has more than 64 words) and CLUSTER_BLOCKS: 0 for a chart in shared memory
// (sweeps_shared.cuh), else one in global memory that so many blocks share (sweeps_tiled.cuh).
//
// Values are in bits. A plane holds C→(i,j) at [i][j] and C←(i,j) at [j][i], another one I.

typedef REAL real;
#define LOG2E real(1.4426950408889634)
#define LN2 real(0.6931471805599453)
#define FORBIDDEN real(-1e36)
#define LIMIT real(1e30)
#define NO_TREE real(-5e35)
#define NOTHING real(-1e37)

struct alignas(2 * sizeof(real)) Pair {
  real x, y;
};

struct Args {
  const real *scores, *grad_tree, *grad_value;
  const long long *lengths;
  real *saved, *scratch, *tree, *value;  // of the backward pass: tree is the gradient
  unsigned long long *problem;           // on the host, or null
  int batch, size, single_root, keep;
};

DEVICE real absolute(real x) { return x < 0 ? -x : x; }
DEVICE real larger(real a, real b) { return maximum(a, b); }
DEVICE int smaller(int a, int b) { return a < b ? a : b; }
DEVICE int larger(int a, int b) { return a > b ? a : b; }
DEVICE int bits(int x) { return 32 - LEADING_ZEROS(x - 1); }  // of the next power of two
DEVICE real bounded(real w) {
  if (w == -INFINITY) return FORBIDDEN;
  return !(w < LIMIT) ? LIMIT : (w > -LIMIT ? w : -LIMIT);  // NaN becomes a number too
}

#if CLUSTER_BLOCKS
#define SYNC() CLUSTER_SYNC()
#define THREADS (CLUSTER_BLOCKS * BLOCK_THREADS)
#define RANK (CLUSTER_RANK * BLOCK_THREADS + THREAD)
#define SENTENCE (BLOCK_ID / CLUSTER_BLOCKS)
#else
#define SYNC() BLOCK_SYNC()
#define THREADS BLOCK_THREADS
#define RANK THREAD
#define SENTENCE BLOCK_ID
#endif
#define FOR_ENTRIES(h, m, size)                                   \
  for (int h = RANK >> 5; h < (size); h += THREADS >> 5)          \
    for (int m = THREAD & 31; m < (size); m += 32)

DEVICE int is_arc(int h, int m, int n) { return m > 0 && m <= n && h <= n && h != m; }
// A score in bits, less what is taken off its column.
DEVICE real weight(const real *scores, const real *shift, int h, int m, int n, int size) {
  real w = m && m <= n && h <= n ? bounded(scores[h * size + m]) : real(0);
  return (m && w != FORBIDDEN ? w - shift[m] : w) * LOG2E;
}

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
  DEVICE Running(real m = NOTHING) : m(m), z(0), e(0) {}
  template <int N>
  DEVICE Running(const real (&s)[N]) : m(s[0]), z(0), e(0) {
    UNROLL for (int c = 1; c < N; c++) m = larger(m, s[c]);
    UNROLL for (int c = 0; c < N; c++) add(s[c]);
  }
  template <int N>
  DEVICE void absorb(const real (&s)[N]) {
    real top = m;
    UNROLL for (int c = 0; c < N; c++) top = larger(top, s[c]);
    scale(top);
    UNROLL for (int c = 0; c < N; c++) add(s[c]);
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

// ds = 2^d (with_d d + with_g g + rest), the adjoint of a split's score; see triton_parts.slope.
struct Slope {
  real m, with_d, with_g, rest;
  DEVICE Slope() {}
  DEVICE Slope(real m, real rz, real share, real mean, real mean_g, real gv) : m(m), with_g(share) {
    with_d = rz * gv, rest = with_d - with_g * mean_g;
#if MEAN
    with_d *= LN2, rest -= with_d * mean;
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

// What is wrong with a sentence, in one number; problems.py has its fields.
DEVICE void tell(const Args &a, const real *scores, long long b, int n) {
  long long length = a.lengths[b], kind = 4, x = 0, y = n, size = a.size;
  for (int at = 0; at < size * size && kind == 4 && length == n; at++) {
    int h = at / a.size, m = at % a.size;
    if (!is_arc(h, m, n)) continue;
    real w = scores[at];
    if (!(w < INFINITY)) kind = w == w ? 3 : 2, x = h, y = m;
    x += w == -INFINITY;
  }
  if (length != n) {
    length = length < -(1 << 27) ? -(1 << 27) : length < 1 << 27 ? length : (1 << 27) - 1;
    kind = 1, x = length & 0x3fff, y = length >> 14 & 0x3fff;
  }
  if (kind == 4 && x > 0x3fff) x = 0x3fff;
  b = b < 0x3ffff ? b : 0x3ffff;
  *a.problem = (unsigned long long)(kind | size << 3 | b << 18 | x << 36 | y << 50);
}

#if CLUSTER_BLOCKS
#include "eisner/sweeps_tiled.cuh"
#else
#include "eisner/sweeps_shared.cuh"
#endif

// --------------------------------------------------------------------------------------------------- kernels
KERNEL void soft_tree(PARAMS) {
  int size = a.size, s = STRIDE(size), plane = PLANE(size);
  long long b = SENTENCE, square = size * size, length = a.lengths[b];
  int n = int(length < 0 ? 0 : length > size - 1 ? size - 1 : length);
  const real *scores = a.scores + b * square;
  real *saved = a.saved + b * plane * 8, *tree = a.tree + b * square;
#if CLUSTER_BLOCKS
  Saved cells(saved, plane);
  Chart x = cells.x;
  real *shift = SHARED + FORWARD_NUMBERS, *mark = x.i;  // I(0,0) is not needed
#define OUTSIDE(keep) outside(cells, tree, n, size, s, a.single_root)
#define ARC(h, m) tree[(h) * size + (m)]
#else
  real *work = SHARED, *shift = work + 5 * plane, *mark = saved;  // nor C(0,0)
  Chart x = {work, work + plane};
  Pushed push = {work + 2 * plane, work + 3 * plane, work + 4 * plane};
  Cells cells = cells_at(saved + 2 * plane, plane);
#define OUTSIDE(keep) outside(x, cells, push, n, s, a.single_root, keep)
#define ARC(h, m) push.i[(h) * s + (m)]
#endif
  int wrong = 0, infinite = 0, rank = THREAD, q = smaller(5, larger(0, bits(BLOCK_THREADS) - bits(n + 1)));
  for (int m = rank; m < size; m += BLOCK_THREADS) shift[m] = 0;
  BLOCK_SYNC();
  // Taken off a column, a number changes no tree, and small values have precise differences: at first the largest
  // score, for the softmax of long sentences the mean if the word chose its head by itself, which is nearer. If a
  // value is still far from 0, the means under the tree so far, each time some digits better; these leave the
  // entropy of the trees, which is taken off evenly.
  enum { LONG = MEAN && (CLUSTER_BLOCKS || THREADS_AT_MOST > 256) };  // short sentences would pay in registers
  int alone = LONG && n > 64, even = 0;
  real total = 0;
  for (int round = 0;; round++) {
    for (int first = 0; first <= n; first += BLOCK_THREADS >> q) {
      int m = first + (rank >> q), lane = rank & ((1 << q) - 1), is_word = m && m <= n;
      real off = even ? total / n : round ? real(0) : FORBIDDEN;
      if (is_word && !even)
        for (int h = lane; h <= n; h += 1 << q) {
          if (h == m) continue;
          real w = scores[h * size + m];
          wrong |= w != w, infinite |= w == INFINITY, w = bounded(w);
          if (!round) off = larger(off, w);
          else off += w == FORBIDDEN ? real(0) : (w - shift[m]) * ARC(h, m);
        }
      for (int o = 1; o < 1 << q && !even; o <<= 1) {
        real got = SHUFFLE(off, o);
        off = round ? off + got : larger(off, got);
      }
      if (!round && alone) {
        real z = 0, e = 0;
        for (int h = is_word ? lane : n + 1; h <= n; h += 1 << q) {
          real d = h == m ? NOTHING : (bounded(scores[h * size + m]) - off) * LOG2E, x = power(d);
          z += x, e += d * x;
        }
        for (int o = 1; o < 1 << q; o <<= 1) z += SHUFFLE(z, o), e += SHUFFLE(e, o);
        if (is_word) off += e / z * LN2;
      }
      if (is_word && !lane && off != FORBIDDEN) shift[m] += off;
    }
    SYNC();
#if CLUSTER_BLOCKS
    inside(cells, scores, shift, n, size, s, a.single_root);
#else
    FOR_ENTRIES(h, m, size) {
      int at = h * s + m;
      x.i[at] = h == m ? NOTHING : weight(scores, shift, h, m, n, size), x.c[at] = 0;
      push.r[at] = h == 0 && m == n ? real(1) : real(0), push.l[at] = 0, push.i[at] = 0;
    }
    SYNC();
    inside(x, cells, n, s, a.single_root);
#endif
    total = x.c[n] * LN2;
    if (sizeof(real) == 8 || !(absolute(total) > (alone ? 64 : 128)) || total < NO_TREE || round == 6) break;
    even = !MEAN && absolute(total) <= 64 * n;
    if (!even) OUTSIDE(0);
  }
  if (RANK == 0)
    for (int m = 1; m <= n; m++) total += shift[m];
  OUTSIDE(a.keep);
  wrong = BLOCK_ANY(wrong), infinite = BLOCK_ANY(infinite);
  if (RANK == 0) {
    a.value[b] = wrong ? real(NAN) : total;
    if (a.problem && (wrong || infinite || length != n || !(total > NO_TREE))) tell(a, scores, b, n);
  }
  FOR_ENTRIES(h, m, size) {
#if CLUSTER_BLOCKS
    if (!is_arc(h, m, n)) tree[h * size + m] = 0;
#else
    int at = h * s + m;
    tree[h * size + m] = m && m <= n && h <= n ? push.i[at] : real(0);
    if (a.keep) saved[at] = x.c[at], saved[plane + at] = x.i[at];
#endif
    if (wrong && is_arc(h, m, n)) tree[h * size + m] = real(NAN);
  }
  SYNC();
  if (RANK == 0) *mark = wrong ? real(NAN) : real(0);  // it tells the backward pass
}

KERNEL void soft_tree_backward(PARAMS) {
  int size = a.size, s = STRIDE(size), plane = PLANE(size);
  long long b = SENTENCE, square = size * size, length = a.lengths[b];
  int n = int(length < 0 ? 0 : length > size - 1 ? size - 1 : length);
  const real *grad_tree = a.grad_tree + b * square;
  real *saved = a.saved + b * plane * 8, *grad = a.tree + b * square;
  real gv = a.grad_value ? a.grad_value[b] : real(0);
#if CLUSTER_BLOCKS
  real *scratch = a.scratch + b * plane * 6, mark = saved[plane];
  FOR_ENTRIES(h, m, size)
    if (!is_arc(h, m, n)) grad[h * size + m] = 0;
  backward(Saved(saved, plane), scratch, grad_tree, gv, grad, n, size, s, a.single_root);
#else
  real *mean_u = a.scratch + b * plane, mark = saved[0], *work = SHARED;
  Chart x = {work, work + plane}, d = {work + 2 * plane, work + 3 * plane};
  Pushed push = {work + 4 * plane, work + 5 * plane, work + 6 * plane};
  Cells cells = cells_at(saved + 2 * plane, plane);
  FOR_ENTRIES(h, m, size) {
    int at = h * s + m;
    x.c[at] = at ? saved[at] : real(0), x.i[at] = saved[plane + at];
    d.i[at] = is_arc(h, m, n) ? grad_tree[h * size + m] : real(0);
    d.c[at] = 0, push.r[at] = h == 0 && m == n ? gv : real(0), push.l[at] = 0, push.i[at] = 0;
  }
  SYNC();
  up(x, cells, d, mean_u, n, s, a.single_root);
  down(x, cells, d, mean_u, push, n, s, a.single_root);
  FOR_ENTRIES(h, m, size) grad[h * size + m] = m && m <= n && h <= n ? push.i[h * s + m] : real(0);
#endif
  if (mark != mark)
    FOR_ENTRIES(h, m, size)
      if (is_arc(h, m, n)) grad[h * size + m] = real(NAN);
}
