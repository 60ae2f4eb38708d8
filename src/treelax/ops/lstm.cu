// A layer of a BiLSTM over sentences of different lengths, and its gradient: one launch each.
//
// Compiled at run time with HIDDEN (size of a state, a multiple of 4), ROWS (sentences of a block, at most 4) and
// KEPT (weights of a thread in registers; the others lie in shared memory). A block goes through its sentences in
// one direction, word by word, without anything in between that a launch of its own would cost:
//   z = gates(x) + U h;  i, f, o = σ(z);  g = tanh(z);  c = f c + i g;  h = o tanh(c)
// Every thread has one row of U, or a quarter of a column in the backward pass, and every state is in shared
// memory, where all threads of a warp read the same numbers at a time.

typedef float real;
#define GATES (4 * HIDDEN)

struct Args {
  const real *left, *right;  // U of both directions, (4 HIDDEN, HIDDEN): rows of i, f, g, o
  const real *gates;         // (batch, n, 2, 4 HIDDEN); of the backward pass: (batch, n, 2, HIDDEN), dL/dh
  const long long *lengths;
  real *saved;   // (batch, n, 2, 5, HIDDEN): i, f, g, o, c
  real *output;  // (batch, n, 2, HIDDEN); of the backward pass: (batch, n, 2, 4 HIDDEN), dL/dz
  real *before;  // (batch, n, 2, HIDDEN): the h that each word begins with
  int batch, n, keep, unused;
};

struct alignas(4 * sizeof(real)) Four {
  real a, b, c, d;
};
DEVICE real sigmoid(real x) { return 1 / (1 + expf(-x)); }

// Sentences of a block in one direction. A thread below ROWS * HIDDEN has one unit of one of them.
struct Part {
  int side, first, row, unit, length, longest, n;
  DEVICE Part(const Args &a) : side(BLOCK_ID & 1), first((BLOCK_ID >> 1) * ROWS), longest(0), n(a.n) {
    row = THREAD / HIDDEN, unit = THREAD % HIDDEN;
    UNROLL for (int r = 0; r < ROWS; r++) {
      int l = length_of(a, r);
      longest = l > longest ? l : longest;
    }
    length = row < ROWS ? length_of(a, row) : 0;
  }
  DEVICE int length_of(const Args &a, int r) const {
    long long l = first + r < a.batch ? a.lengths[first + r] : 0;
    return l < 0 ? 0 : l > a.n ? a.n : int(l);
  }
  // Index of (sentence, word, direction), for the word that is met in a step.
  DEVICE long long at(int r, int length, int step) const {
    return ((first + r) * (long long)n + (side ? length - 1 - step : step)) * 2 + side;
  }
  // What padding holds, for so many numbers a word.
  DEVICE void clear(const Args &a, real *to, int numbers) const {
    for (int r = 0; r < ROWS && first + r < a.batch; r++)
      for (int j = length_of(a, r); j < n; j++)
        for (int u = THREAD; u < numbers; u += BLOCK_THREADS)
          to[(((first + r) * (long long)n + j) * 2 + side) * numbers + u] = 0;
  }
};

// The weights of a thread: number k at from[k * stride].
struct Weights {
  real own[KEPT], *others;
  DEVICE Weights(const real *from, int stride, real *shared) : others(shared + THREAD) {
    UNROLL for (int k = 0; k < HIDDEN; k++) {
      real w = THREAD < GATES ? from[k * stride] : 0;
      if (k < KEPT)
        own[k] = w;
      else
        others[(k - KEPT) * BLOCK_THREADS] = w;
    }
  }
  DEVICE real operator[](int k) const { return k < KEPT ? own[k] : others[(k - KEPT) * BLOCK_THREADS]; }
  // Added to sums: the product with HIDDEN numbers of every row, in two chains of additions.
  DEVICE void times(const real *rows, int stride, real (&sums)[ROWS]) const {
    real more[ROWS] = {};
    UNROLL for (int k = 0; k < HIDDEN; k += 4) {
      real w[4] = {(*this)[k], (*this)[k + 1], (*this)[k + 2], (*this)[k + 3]};
      UNROLL for (int r = 0; r < ROWS; r++) {
        Four x = *reinterpret_cast<const Four *>(rows + r * stride + k);
        sums[r] += w[0] * x.a, more[r] += w[1] * x.b;
        sums[r] += w[2] * x.c, more[r] += w[3] * x.d;
      }
    }
    UNROLL for (int r = 0; r < ROWS; r++) sums[r] += more[r];
  }
};

KERNEL void lstm(PARAMS) {
  real *h = SHARED, *z = h + ROWS * HIDDEN;
  const Part p(a);
  const Weights u((p.side ? a.right : a.left) + THREAD * HIDDEN, 1, z + ROWS * GATES);
  int lengths[ROWS];
  real now[ROWS], next[ROWS], c = 0;
  UNROLL for (int r = 0; r < ROWS; r++) lengths[r] = p.length_of(a, r), next[r] = 0;
  const bool mine = p.row < ROWS, gate = THREAD < GATES;
  if (mine) h[p.row * HIDDEN + p.unit] = 0;
  for (int step = -1; step < p.longest; step++) {
    UNROLL for (int r = 0; r < ROWS; r++) {
      now[r] = next[r];  // of the next word, which is long under way
      if (gate && step + 1 < lengths[r]) next[r] = a.gates[p.at(r, lengths[r], step + 1) * GATES + THREAD];
    }
    if (step < 0) {
      BLOCK_SYNC();
      continue;
    }
    if (gate) {
      u.times(h, HIDDEN, now);
      UNROLL for (int r = 0; r < ROWS; r++) z[r * GATES + THREAD] = now[r];
    }
    BLOCK_SYNC();
    if (step < p.length) {
      const long long at = p.at(p.row, p.length, step);
      const real *own = z + p.row * GATES + p.unit;
      real &state = h[p.row * HIDDEN + p.unit];
      real i = sigmoid(own[0]), f = sigmoid(own[HIDDEN]);
      real g = tanhf(own[2 * HIDDEN]), o = sigmoid(own[3 * HIDDEN]);
      c = f * c + i * g;
      if (a.keep) {
        real kept[5] = {i, f, g, o, c};
        UNROLL for (int k = 0; k < 5; k++) a.saved[(at * 5 + k) * HIDDEN + p.unit] = kept[k];
        a.before[at * HIDDEN + p.unit] = state;
      }
      a.output[at * HIDDEN + p.unit] = state = o * tanhf(c);
    }
    BLOCK_SYNC();
  }
  p.clear(a, a.output, HIDDEN);
  if (a.keep) p.clear(a, a.before, HIDDEN);
}

// i, f, g, o, the c before, and dL/dh from above, of a word.
struct Word {
  real i, f, g, o, before, dh;
  DEVICE Word() {}
  DEVICE Word(const Args &a, const Part &p, int step) {
    const long long at = p.at(p.row, p.length, step);
    const real *own = a.saved + at * 5 * HIDDEN + p.unit;
    i = own[0], f = own[HIDDEN], g = own[2 * HIDDEN], o = own[3 * HIDDEN];
    dh = a.gates[at * HIDDEN + p.unit];
    before = step ? a.saved[(p.at(p.row, p.length, step - 1) * 5 + 4) * HIDDEN + p.unit] : 0;
  }
};

KERNEL void lstm_backward(PARAMS) {
  real *dz = SHARED, *parts = dz + ROWS * GATES;  // dL/dz; from each quarter of the gates, U' dz
  const Part p(a);
  const int quarter = THREAD / HIDDEN, unit = THREAD % HIDDEN;
  const Weights u((p.side ? a.right : a.left) + quarter * HIDDEN * HIDDEN + unit, HIDDEN, parts + ROWS * GATES);
  real c = 0, dc = 0;
  Word next;
  if (p.length) {
    next = Word(a, p, p.length - 1);
    c = a.saved[(p.at(p.row, p.length, p.length - 1) * 5 + 4) * HIDDEN + p.unit];
  }
  for (int step = p.longest - 1; step >= 0; step--) {
    const Word x = next;
    if (step < p.length) {
      if (step) next = Word(a, p, step - 1);
      real dh = x.dh, t = tanhf(c);
      if (step < p.length - 1) {
        UNROLL for (int q = 0; q < 4; q++) dh += parts[(q * ROWS + p.row) * HIDDEN + p.unit];
      }
      dc += dh * x.o * (1 - t * t);
      real d[4] = {dc * x.g * x.i * (1 - x.i), dc * x.before * x.f * (1 - x.f), dc * x.i * (1 - x.g * x.g),
                   dh * t * x.o * (1 - x.o)};
      const long long at = p.at(p.row, p.length, step);
      UNROLL for (int q = 0; q < 4; q++) {
        dz[p.row * GATES + q * HIDDEN + p.unit] = d[q];
        a.output[at * GATES + q * HIDDEN + p.unit] = d[q];
      }
      dc *= x.f, c = x.before;
    } else if (p.row < ROWS) {
      UNROLL for (int q = 0; q < 4; q++) dz[p.row * GATES + q * HIDDEN + p.unit] = 0;
    }
    BLOCK_SYNC();
    if (THREAD < GATES) {
      real sums[ROWS] = {};
      u.times(dz + quarter * HIDDEN, GATES, sums);
      UNROLL for (int r = 0; r < ROWS; r++) parts[(quarter * ROWS + r) * HIDDEN + unit] = sums[r];
    }
    BLOCK_SYNC();
  }
  p.clear(a, a.output, GATES);
}
