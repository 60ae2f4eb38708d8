// A layer of a BiLSTM over sentences of different lengths, and its gradient: one launch each.
//
// Compiled at run time with HIDDEN (size of a state, a multiple of 4), ROWS (sentences of a block, 2 or 4) and KEPT
// (numbers of a row of weights that registers hold, a multiple of 4; the others lie in shared memory). A block goes
// through its sentences in one direction, word by word:
//   z = gates(x) + U h;  i, f, o = σ(z);  g = tanh(z);  c = f c + i g;  h = o tanh(c)
// States are in shared memory, where all threads of a warp read the same numbers at a time. Every thread has two
// rows of U, or two quarters of a column in the backward pass, which share what they are multiplied with. More
// rows would save reads and leave no registers for reads under way.

typedef float real;
#define GATES (4 * HIDDEN)
#define ACTIVE (2 * HIDDEN)  // threads with work; each has one unit, of every second sentence
#define LOG2E 1.44269504f

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
  real x[4];
};
DEVICE real sigmoid(real x) { return reciprocal(1 + power(-LOG2E * x)); }

// The sentences of a block in one direction.
struct Part {
  int side, first, row, unit, longest, n, length[ROWS];
  DEVICE Part(const Args &a) : side(BLOCK_ID & 1), first((BLOCK_ID >> 1) * ROWS), longest(0), n(a.n) {
    row = THREAD / HIDDEN, unit = THREAD % HIDDEN;
    UNROLL for (int r = 0; r < ROWS; r++) {
      long long l = first + r < a.batch ? a.lengths[first + r] : 0;
      length[r] = l < 0 ? 0 : l > n ? n : int(l);
      longest = length[r] > longest ? length[r] : longest;
    }
  }
  DEVICE int own_length(int m) const { return row ? length[2 * m + 1] : length[2 * m]; }
  DEVICE int own_row(int m) const { return 2 * m + row; }
  // Index of (sentence, word, direction), for the word that is met in a step.
  DEVICE long long at(int r, int length, int step) const {
    return ((first + r) * (long long)n + (side ? length - 1 - step : step)) * 2 + side;
  }
  // What padding holds, for so many numbers a word.
  DEVICE void clear(const Args &a, real *to, int numbers) const {
    for (int r = 0; r < ROWS && first + r < a.batch; r++)
      for (int j = length[r]; j < n; j++)
        for (int u = THREAD; u < numbers; u += BLOCK_THREADS)
          to[(((first + r) * (long long)n + j) * 2 + side) * numbers + u] = 0;
  }
};

// Two rows of weights; number k of a row is at from[k * stride].
struct Weights {
  real own[2][KEPT];
  const real *others;
  DEVICE Weights(const real *first, const real *second, int stride, real *shared) : others(shared + 4 * THREAD) {
    UNROLL for (int p = 0; p < 2; p++) {
      UNROLL for (int k = 0; k < HIDDEN; k++) {
        real w = THREAD < ACTIVE ? (p ? second : first)[k * stride] : 0;
        if (k < KEPT)
          own[p][k] = w;
        else
          shared[(((k - KEPT) / 4 * 2 + p) * BLOCK_THREADS + THREAD) * 4 + k % 4] = w;
      }
    }
  }
  // Added to sums: the products of both rows with HIDDEN numbers of every sentence.
  DEVICE void times(const real *numbers, int stride, real (&sums)[2][ROWS]) const {
    UNROLL for (int k = 0; k < HIDDEN; k += 4) {
      Four x[ROWS];
      UNROLL for (int r = 0; r < ROWS; r++) x[r] = *reinterpret_cast<const Four *>(numbers + r * stride + k);
      UNROLL for (int p = 0; p < 2; p++) {
        Four w;
        if (k < KEPT) {
          UNROLL for (int c = 0; c < 4; c++) w.x[c] = own[p][k + c];
        } else {
          w = *reinterpret_cast<const Four *>(others + ((k - KEPT) / 4 * 2 + p) * BLOCK_THREADS * 4);
        }
        UNROLL for (int c = 0; c < 4; c++) {
          UNROLL for (int r = 0; r < ROWS; r++) sums[p][r] += w.x[c] * x[r].x[c];
        }
      }
    }
  }
};

KERNEL void lstm(PARAMS) {
  real *h = SHARED, *z = h + ROWS * HIDDEN;
  const Part p(a);
  const real *weights = (p.side ? a.right : a.left) + THREAD * HIDDEN;
  const Weights u(weights, weights + ACTIVE * HIDDEN, 1, z + ROWS * GATES);
  const bool active = THREAD < ACTIVE;
  real next[2][ROWS] = {}, c[ROWS / 2] = {};
  for (int i = THREAD; i < ROWS * HIDDEN; i += BLOCK_THREADS) h[i] = 0;
  BLOCK_SYNC();
  for (int step = -1; step < p.longest; step++) {
    real sums[2][ROWS];
    UNROLL for (int r = 0; r < ROWS; r++) {  // of the next word, to be under way meanwhile
      const real *from = a.gates + p.at(r, p.length[r], step + 1) * GATES + THREAD;
      const bool there = active && step + 1 < p.length[r];
      UNROLL for (int half = 0; half < 2; half++) {
        sums[half][r] = next[half][r];
        if (there) next[half][r] = from[half * ACTIVE];
      }
    }
    if (step < 0) continue;
    if (active) {
      u.times(h, HIDDEN, sums);
      UNROLL for (int r = 0; r < ROWS; r++) {
        z[r * GATES + THREAD] = sums[0][r], z[r * GATES + ACTIVE + THREAD] = sums[1][r];
      }
    }
    BLOCK_SYNC();
    UNROLL for (int m = 0; m < ROWS / 2; m++) {
      if (active && step < p.own_length(m)) {
        const long long at = p.at(p.own_row(m), p.own_length(m), step);
        const real *own = z + p.own_row(m) * GATES + p.unit;
        real &state = h[p.own_row(m) * HIDDEN + p.unit];
        real i = sigmoid(own[0]), f = sigmoid(own[HIDDEN]);
        real g = tanhf(own[2 * HIDDEN]), o = sigmoid(own[3 * HIDDEN]);
        c[m] = f * c[m] + i * g;
        if (a.keep) {
          real kept[5] = {i, f, g, o, c[m]};
          UNROLL for (int k = 0; k < 5; k++) a.saved[(at * 5 + k) * HIDDEN + p.unit] = kept[k];
          a.before[at * HIDDEN + p.unit] = state;
        }
        a.output[at * HIDDEN + p.unit] = state = o * tanhf(c[m]);
      }
    }
    BLOCK_SYNC();
  }
  p.clear(a, a.output, HIDDEN);
  if (a.keep) p.clear(a, a.before, HIDDEN);
}

// i, f, g, o, the c before, and dL/dh from above, of a unit at a word.
struct Word {
  real i, f, g, o, before, dh;
  DEVICE void load(const Args &a, const Part &p, int m, int step) {
    const long long at = p.at(p.own_row(m), p.own_length(m), step);
    const real *own = a.saved + at * 5 * HIDDEN + p.unit;
    i = own[0], f = own[HIDDEN], g = own[2 * HIDDEN], o = own[3 * HIDDEN];
    dh = a.gates[at * HIDDEN + p.unit];
    before = step ? a.saved[(p.at(p.own_row(m), p.own_length(m), step - 1) * 5 + 4) * HIDDEN + p.unit] : 0;
  }
};

KERNEL void lstm_backward(PARAMS) {
  real *dz = SHARED, *parts = dz + ROWS * GATES;  // dL/dz; U' dz, of each quarter of the gates
  const Part p(a);
  const bool active = THREAD < ACTIVE;
  const int quarter = THREAD / (HIDDEN / 2), unit = THREAD % (HIDDEN / 2);
  const real *weights = (p.side ? a.right : a.left) + quarter * HIDDEN * HIDDEN + unit;
  const Weights u(weights, weights + HIDDEN / 2, HIDDEN, parts + ROWS * GATES);
  real c[ROWS / 2] = {}, dc[ROWS / 2] = {};
  Word next[ROWS / 2];
  UNROLL for (int m = 0; m < ROWS / 2; m++) {
    const int last = p.own_length(m) - 1;
    if (active && last >= 0) {
      next[m].load(a, p, m, last);
      c[m] = a.saved[(p.at(p.own_row(m), last + 1, last) * 5 + 4) * HIDDEN + p.unit];
    }
  }
  for (int step = p.longest - 1; step >= 0; step--) {
    UNROLL for (int m = 0; m < ROWS / 2; m++) {
      const int row = p.own_row(m), length = p.own_length(m);
      real d[4] = {};
      if (active && step < length) {
        const Word x = next[m];
        if (step) next[m].load(a, p, m, step - 1);
        real dh = x.dh, t = tanhf(c[m]);
        if (step < length - 1) {
          UNROLL for (int q = 0; q < 4; q++) dh += parts[(q * ROWS + row) * HIDDEN + p.unit];
        }
        dc[m] += dh * x.o * (1 - t * t);
        d[0] = dc[m] * x.g * x.i * (1 - x.i), d[1] = dc[m] * x.before * x.f * (1 - x.f);
        d[2] = dc[m] * x.i * (1 - x.g * x.g), d[3] = dh * t * x.o * (1 - x.o);
        real *to = a.output + p.at(row, length, step) * GATES + p.unit;
        UNROLL for (int q = 0; q < 4; q++) to[q * HIDDEN] = d[q];
        dc[m] *= x.f, c[m] = x.before;
      }
      if (active) {
        UNROLL for (int q = 0; q < 4; q++) dz[row * GATES + q * HIDDEN + p.unit] = d[q];
      }
    }
    BLOCK_SYNC();
    if (active) {
      real sums[2][ROWS] = {};
      u.times(dz + quarter * HIDDEN, GATES, sums);
      UNROLL for (int r = 0; r < ROWS; r++) {
        real *to = parts + (quarter * ROWS + r) * HIDDEN + unit;
        to[0] = sums[0][r], to[HIDDEN / 2] = sums[1][r];
      }
    }
    BLOCK_SYNC();
  }
  p.clear(a, a.output, GATES);
}
