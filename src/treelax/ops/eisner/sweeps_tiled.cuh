// Sweeps over a chart in global memory that the blocks of a cluster share, tile by tile.
//
// Width by width, each of n steps would wait for the whole cluster and read every operand from L2. A tile has
// TILE × TILE cells (i,j), with i in the positions of tile `left`, j in those of tile `right`, and a thread for
// each. The blocks share out the tiles of a diagonal and meet once after it: a barrier for 16 widths. Splits in
// the tiles between are far: their operands are finished tiles, which go to shared memory once for all cells of
// the tile. Splits in `left` and `right` are near: they need cells of the tile itself. For them the block goes
// through the tile by antidiagonals, and the 16 threads of a row work on one cell of it, each with one position of
// `left` and one of `right`. The thread of the cell adds up what is far and what is near.
//
// From below, for i < k < j, in U also k = i, and in C the arc alone,
//   U(i,j) from C→(i,k) + C←(k+1,j)    C→(i,j) from I→(i,k) + C→(k,j)    C←(i,j) from C←(i,k) + I←(k,j)
// From above an item collects from the cells that it is part of, so that every place has one writer. By head and
// end, C→(i,j) = C[i][j] and C←(i,j) = C[j][i], the item between p and another position o is part of
//   U of o and k:  C[o][p] + C[k][p ± 1]       C[o][k]:  I[o][p] + C[p][k]       C[k][o]:  I[k][p] + C[p][o]
// for all k on the far side of p: side 0 has p = j and k > j, side 1 p = i and k < i.
#define TILE 16
#define STRIDE(size) (((size) + TILE - 1) / TILE * TILE)
#define PLANE(size) (STRIDE(size) * STRIDE(size))
#define EDGE (TILE + 1)                // of rows in shared memory that are read by column too
#define FLAT (TILE * EDGE)             // numbers of such a tile
#define DEEP ((2 * TILE + 1) * EDGE)   // of two tiles, one below the other, and a row to read past
#define PITCH (TILE + 4)               // of rows that are read in fours: eight of them are in different banks
#define OPERAND (TILE * PITCH)
#define FORWARD_NUMBERS (9 * OPERAND + 14 * FLAT)  // in shared memory; `Shape.shared` has them too

enum { U, R, L };  // kinds of cells: U, C→ and C←
struct alignas(16) Four {
  real x[4];
};
DEVICE Four four(const real *at) { return *reinterpret_cast<const Four *>(at); }

struct Chart {
  real *c, *i;
};

// A thread's cell of a tile.
struct Place {
  int left, right, row, col, i, j, s, up, low, is_cell, live;
  DEVICE Place(int left, int right, int n, int s) : left(left), right(right), s(s) {
    row = THREAD / TILE, col = THREAD % TILE, i = left * TILE + row, j = right * TILE + col;
    up = i * s + j, low = j * s + i, is_cell = i < j, live = i < j && j <= n;
  }
  // Of a plane's tile (head, end), at [row][col].
  DEVICE real entry(const real *plane, int head, int end, int shift = 0) const {
    return plane[(head * TILE + row) * s + end * TILE + col + shift];
  }
  DEVICE int straight(int pitch) const { return row * pitch + col; }
  DEVICE int flipped(int pitch) const { return col * pitch + row; }
  DEVICE int asleep(int w) const { return (row | 1) + w < 0 || (row & ~1) + w >= TILE; }  // the same in a warp
};

struct Saved {
  Chart x;
  real *m, *rz, *mean, *share;  // of C by [head][end]; a share is the contribution times 1/z
  real *m_u, *share_u;          // of U at [i][j]; its 1/z and its mean are at [j][i]
  DEVICE Saved(real *base, int plane) {
    x = {base, base + plane}, m = base + 2 * plane, rz = base + 3 * plane, mean = base + 4 * plane;
    share = base + 5 * plane, m_u = base + 6 * plane, share_u = base + 7 * plane;
  }
  DEVICE void softmax(const Place &p, real (&to_m)[3], real (&to_rz)[3]) const {
    to_m[U] = m_u[p.up], to_m[R] = m[p.up], to_m[L] = m[p.low];
    to_rz[U] = m_u[p.low], to_rz[R] = rz[p.up], to_rz[L] = rz[p.low];
  }
};

// -------------------------------------------------------------------------------------------- from below
// A `Cell` sums over splits. All its charts are known but the last, which the sweep makes.
template <class Cell>
DEVICE void bottom_up(const Chart *charts, const typename Cell::Data &data, int n, int s, int single_root) {
  enum { CHARTS = Cell::CHARTS, LAST = CHARTS - 1 };
  real *operands = SHARED, *columns = operands + 6 * CHARTS * OPERAND, *more = columns + 3 * CHARTS * DEEP;
  int tiles = n / TILE + 1;
  for (int apart = 0; apart < tiles; apart++) {
    for (int left = CLUSTER_RANK; left + apart < tiles; left += CLUSTER_BLOCKS) {
      const int right = left + apart;
      const Place p(left, right, n, s);
      real next[6 * CHARTS];
      auto fetch = [&](int k) {
        UNROLL for (int x = 0; x < CHARTS; x++) {
          const real *c = charts[x].c, *i = charts[x].i;
          real *to = next + 6 * x;
          to[0] = p.entry(c, left, k, -1), to[1] = p.entry(c, right, k);  // of U, with k + 1 in the tile
          to[2] = p.entry(i, left, k), to[3] = p.entry(c, k, right);
          to[4] = p.entry(c, k, left), to[5] = p.entry(i, right, k);
        }
      };
      if (apart > 1) fetch(left + 1);
      BLOCK_SYNC();  // the tile before has been read
      Cell cell(p, data, more);
      // Near operands. The first ones, C→(i,k), I→(i,k) and C←(i,k), are the thread's own, for k in `left` and in
      // `right`. The second ones, C←(k,j), C→(k,j) and I←(k,j), are in columns, where k goes through both tiles.
      // k + 1 does too, so that the last C→(i,k) of the one half is that at the end of the tile before `right`.
      real first[CHARTS][2][3], arc_left = 0;
      UNROLL for (int x = 0; x < CHARTS; x++) {
        const real *c = charts[x].c, *i = charts[x].i;
        real *second = columns + 3 * x * DEEP;
        int known = x < LAST, before = p.col + 1 < TILE ? left * TILE + p.col : right * TILE - 1;
        real diagonal = apart || known ? p.entry(c, right, right) : real(0);
        second[FLAT + p.flipped(EDGE)] = second[DEEP + FLAT + p.straight(EDGE)] = diagonal;
        second[2 * DEEP + FLAT + p.flipped(EDGE)] = p.entry(i, right, right);
        first[x][1][U] = known ? c[p.up] : real(0), first[x][1][R] = i[p.up], first[x][1][L] = c[p.low];
        if (!apart) continue;
        first[x][0][U] = c[p.i * s + before], first[x][0][R] = p.entry(i, left, left);
        first[x][0][L] = c[(left * TILE + p.col) * s + p.i];
        if (!known) continue;
        second[p.flipped(EDGE)] = p.entry(c, right, left), second[DEEP + p.straight(EDGE)] = c[p.up];
        second[2 * DEEP + p.flipped(EDGE)] = p.entry(i, right, left);
      }
      for (int k = left + 1; k < right; k++) {
        BLOCK_SYNC();
        UNROLL for (int o = 0; o < 6 * CHARTS; o++) {
          int flip = o % 6 == 3 || o % 6 == 4;
          operands[o * OPERAND + (flip ? p.flipped(PITCH) : p.straight(PITCH))] = next[o];
        }
        BLOCK_SYNC();
        if (k + 1 < right) fetch(k + 1);  // under way during the sums
        UNROLL for (int kind = 0; kind < 3; kind++) {
          real sums[CHARTS][TILE];
          UNROLL for (int x = 0; x < CHARTS; x++) {
            const real *a = operands + (6 * x + 2 * kind) * OPERAND + p.row * PITCH;
            const real *b = operands + (6 * x + 2 * kind + 1) * OPERAND + p.col * PITCH;
            UNROLL for (int q = 0; q < TILE; q += 4) {
              Four v = four(a + q), w = four(b + q);
              UNROLL for (int c = 0; c < 4; c++) sums[x][q + c] = v.x[c] + w.x[c];
            }
          }
          cell.far(kind, sums);
        }
      }
      int rooted = single_root && p.i == 0, lowest = apart ? p.row : TILE + p.row;
      if (rooted) cell.forget_u();
      for (int w = apart ? 1 - TILE : 1; w < TILE; w++) {
        BLOCK_SYNC();
        if (p.asleep(w)) continue;
        int end = p.row + w, at = larger(0, smaller(TILE - 1, end)), own = p.col == end;
        real sums[3][CHARTS][2], value[2], arc[2];
        int on[3][2];
        UNROLL for (int half = 0; half < 2; half++) {
          int k = half * TILE + p.col;
          on[R][half] = on[L][half] = k > lowest && k < TILE + end;
          on[U][half] = k == lowest || (on[R][half] && !rooted);
          UNROLL for (int x = 0; x < CHARTS; x++) {
            const real *second = columns + 3 * x * DEEP + k * EDGE + at;
            sums[U][x][half] = first[x][half][U] + second[EDGE];
            sums[R][x][half] = first[x][half][R] + second[DEEP];
            sums[L][x][half] = first[x][half][L] + second[2 * DEEP];
          }
        }
        cell.near(sums, on, own, more + p.row * EDGE + at, value, arc);
        if (!own) continue;
        first[LAST][1][U] = value[0], first[LAST][1][R] = arc[0], first[LAST][1][L] = value[1], arc_left = arc[1];
        real *second = columns + 3 * LAST * DEEP + lowest * EDGE + at;
        second[0] = value[1], second[DEEP] = value[0], second[2 * DEEP] = arc[1];
      }
      const Chart &made = charts[LAST];
      if (p.i == p.j) made.c[p.up] = 0;
      if (!p.is_cell) continue;
      const real none = Cell::NONE;
      made.c[p.up] = p.live ? first[LAST][1][U] : none, made.c[p.low] = p.live ? first[LAST][1][L] : none;
      made.i[p.up] = p.live ? first[LAST][1][R] : none, made.i[p.low] = p.live ? arc_left : none;
      cell.store(p, data);
    }
    CLUSTER_SYNC();
  }
}

struct Inside {
  enum { CHARTS = 1 };
  static constexpr real NONE = NOTHING;  // of cells past the end, which full tiles have
  struct Data {
    Saved saved;
    const real *scores, *shift;
    int n, size;
  };
  Running sum[3];
  real w[2], rz[3], mean[3];
  DEVICE Inside(const Place &p, const Data &d, real *) {
    w[0] = p.live ? weight(d.scores, d.shift, p.i, p.j, d.n, d.size) : real(0);
    w[1] = p.live ? weight(d.scores, d.shift, p.j, p.i, d.n, d.size) : real(0);
  }
  DEVICE void far(int kind, const real (&sums)[1][TILE]) { sum[kind].absorb(sums[0]); }
  DEVICE void forget_u() { sum[U] = Running(); }
  DEVICE void near(const real (&sums)[3][1][2], const int (&on)[3][2], int own, const real *, real *value,
                   real *arc) {
    real s[3][2], top[3], total[MEAN ? 6 : 3];
    UNROLL for (int kind = 0; kind < 3; kind++) {
      UNROLL for (int half = 0; half < 2; half++) s[kind][half] = on[kind][half] ? sums[kind][0][half] : NOTHING;
      top[kind] = larger(own ? sum[kind].m : NOTHING, larger(s[kind][0], s[kind][1]));
    }
    max_of_lanes<TILE>(top);
    UNROLL for (int kind = 0; kind < 3; kind++) {
      Running x(top[kind]);
      if (own) x = sum[kind], x.scale(top[kind]);
      x.add(s[kind][0]), x.add(s[kind][1]);
      total[kind] = x.z;
      if (MEAN) total[kind + 3 * MEAN] = x.e;
    }
    sum_of_lanes<TILE>(total);
    if (!own) return;
    UNROLL for (int kind = 0; kind < 3; kind++)
      sum[kind].m = top[kind], sum[kind].z = total[kind], sum[kind].e = total[kind + 3 * MEAN];
    real u = sum[U].value(rz[U], mean[U]);
    UNROLL for (int side = 0; side < 2; side++) {
      Running &x = sum[R + side];
      arc[side] = w[side] + u, x.scale(larger(x.m, arc[side])), x.add(arc[side]);
      value[side] = x.value(rz[R + side], mean[R + side]);
    }
  }
  DEVICE void store(const Place &p, const Data &d) const {
    const Saved &to = d.saved;
    to.m_u[p.up] = p.live ? sum[U].m : real(0), to.m_u[p.low] = rz[U], to.share_u[p.low] = mean[U];
    to.m[p.up] = p.live ? sum[R].m : real(0), to.rz[p.up] = rz[R], to.mean[p.up] = mean[R];
    to.m[p.low] = p.live ? sum[L].m : real(0), to.rz[p.low] = rz[L], to.mean[p.low] = mean[L];
  }
};

// Adjoints of contributions: means of those of the antecedents.
struct Up {
  enum { CHARTS = 2 };
  static constexpr real NONE = 0;
  struct Data {
    Saved saved;
    const real *grad_tree;
    real *mean_u;
    int n, size;
  };
  real sum[3], m[3], rz[3], x[2], g[2], mean_u;
  DEVICE Up(const Place &p, const Data &d, real *maxima) {
    d.saved.softmax(p, m, rz), x[0] = d.saved.x.i[p.up], x[1] = d.saved.x.i[p.low];
    g[0] = is_arc(p.i, p.j, d.n) ? d.grad_tree[p.i * d.size + p.j] : real(0);
    g[1] = is_arc(p.j, p.i, d.n) ? d.grad_tree[p.j * d.size + p.i] : real(0);
    UNROLL for (int kind = 0; kind < 3; kind++) sum[kind] = 0, maxima[kind * FLAT + p.straight(EDGE)] = m[kind];
  }
  DEVICE void far(int kind, const real (&sums)[2][TILE]) {
    UNROLL for (int k = 0; k < TILE; k++) sum[kind] += power(sums[0][k] - m[kind]) * sums[1][k];
  }
  DEVICE void forget_u() { sum[U] = 0; }
  DEVICE void near(const real (&sums)[3][2][2], const int (&on)[3][2], int own, const real *maxima, real *value,
                   real *arc) {
    real total[3];
    UNROLL for (int kind = 0; kind < 3; kind++) {
      total[kind] = own ? sum[kind] : real(0);
      UNROLL for (int half = 0; half < 2; half++)
        if (on[kind][half]) total[kind] += power(sums[kind][0][half] - maxima[kind * FLAT]) * sums[kind][1][half];
    }
    sum_of_lanes<TILE>(total);
    if (!own) return;
    mean_u = rz[U] * total[U];
    UNROLL for (int side = 0; side < 2; side++) {
      arc[side] = g[side] + mean_u;
      value[side] = rz[R + side] * (total[R + side] + power(x[side] - m[R + side]) * arc[side]);
    }
  }
  DEVICE void store(const Place &p, const Data &d) const { d.mean_u[p.up] = mean_u; }
};

// -------------------------------------------------------------------------------------------- from above
struct Values {  // of consequents: maximum, share, and in `Down` the rest of a slope and its factor of d
  real *of[4], *of_u[4];
};

// A `Cell` collects for four items: C→, C←, I→, I←. Of a consequent it needs VALUES numbers.
template <class Cell>
DEVICE void top_down(const Chart *charts, const Values &values, const typename Cell::Data &data, int n, int s,
                     int single_root) {
  enum { CHARTS = Cell::CHARTS, VALUES = Cell::VALUES, OPERANDS = 3 * (CHARTS + VALUES) };
  real *operands = SHARED, *blocks = operands + OPERANDS * OPERAND, *items = blocks + 4 * CHARTS * FLAT;
  real *consequents = items + 4 * CHARTS * FLAT;
  int tiles = n / TILE + 1;
  for (int apart = tiles - 1; apart >= 0; apart--) {
    for (int left = CLUSTER_RANK; left + apart < tiles; left += CLUSTER_BLOCKS) {
      const int right = left + apart;
      const Place p(left, right, n, s);
      real x[CHARTS][4], sum[4] = {0, 0, 0, 0}, next[OPERANDS];
      BLOCK_SYNC();
      UNROLL for (int chart = 0; chart < CHARTS; chart++) {
        const real *c = charts[chart].c, *i = charts[chart].i;
        x[chart][0] = c[p.up], x[chart][1] = c[p.low], x[chart][2] = i[p.up], x[chart][3] = i[p.low];
        UNROLL for (int item = 0; item < 4; item++)
          items[(4 * chart + item) * FLAT + p.straight(EDGE)] = x[chart][item];
        UNROLL for (int side = 0; side < 2; side++) {
          real *block = blocks + (4 * chart + 2 * side) * FLAT + p.straight(EDGE);
          int here = side ? left : right;
          block[0] = p.entry(c, here, here), block[FLAT] = p.entry(i, here, here);
        }
      }
      Cell cell(p, data, consequents + p.straight(EDGE));
      UNROLL for (int side = 0; side < 2; side++) {
        const int here = side ? left : right, other = side ? right : left, stop = side ? left : tiles;
        const int item[3] = {side, 2 + side, 1 - side};  // that is part of U, of C[o][k], of C[k][o]
        auto fetch = [&](int k) {
          UNROLL for (int chart = 0; chart < CHARTS; chart++) {
            const real *c = charts[chart].c, *i = charts[chart].i;
            real *to = next + 3 * chart;
            to[0] = p.entry(c, k, here, side ? -1 : 1), to[1] = p.entry(c, here, k), to[2] = p.entry(i, k, here);
          }
          UNROLL for (int v = 0; v < VALUES; v++) {
            real *to = next + 3 * (CHARTS + v);
            int head = side ? k : other, end = side ? other : k;
            to[0] = p.entry(values.of_u[v], head, end);
            if (v == 0 && single_root && head == 0 && p.row == 0) to[0] = -NOTHING;  // its only split is near
            to[1] = p.entry(values.of[v], other, k), to[2] = p.entry(values.of[v], k, other);
          }
        };
        int k = side ? 0 : right + 1;
        if (k < stop) fetch(k);
        for (; k < stop; k++) {
          BLOCK_SYNC();
          UNROLL for (int o = 0; o < OPERANDS; o++) {
            int flip = o % 3 == 2 || (o % 3 == 0 && (side || o < 3 * CHARTS));
            operands[o * OPERAND + (flip ? p.flipped(PITCH) : p.straight(PITCH))] = next[o];
          }
          BLOCK_SYNC();
          if (k + 1 < stop) fetch(k + 1);
          const real *with = operands + (side ? p.row : p.col) * PITCH;
          const real *in = operands + 3 * CHARTS * OPERAND + (side ? p.col : p.row) * PITCH;
          UNROLL for (int kind = 0; kind < 3; kind++) {
            UNROLL for (int q = 0; q < TILE; q += 4) {
              Four y[CHARTS], v[VALUES];
              UNROLL for (int c = 0; c < CHARTS; c++) y[c] = four(with + (3 * c + kind) * OPERAND + q);
              UNROLL for (int c = 0; c < VALUES; c++) v[c] = four(in + (3 * c + kind) * OPERAND + q);
              UNROLL for (int o = 0; o < 4; o++) {
                real sums[CHARTS], of[VALUES];
                UNROLL for (int c = 0; c < CHARTS; c++) sums[c] = x[c][item[kind]] + y[c].x[o];
                UNROLL for (int c = 0; c < VALUES; c++) of[c] = v[c].x[o];
                sum[item[kind]] += Cell::part(sums, of);
              }
            }
          }
        }
      }
      for (int w = TILE - 1; w >= (apart ? 1 - TILE : 1); w--) {
        BLOCK_SYNC();
        if (p.asleep(w)) continue;
        int end = p.row + w, at = larger(0, smaller(TILE - 1, end)), own = p.col == end && p.live, k = p.col;
        real got[4];
        UNROLL for (int item = 0; item < 4; item++) got[item] = own ? sum[item] : real(0);
        UNROLL for (int side = 0; side < 2; side++) {
          const int item[3] = {side, 2 + side, 1 - side}, of_kind[3] = {U, R + side, L - side};
          int here = side ? p.row : at, on = side ? k < p.row : k > at && p.j <= n;
          int rooted = single_root && left == 0 && (side ? k == 0 && p.row != 1 : p.row == 0);
          int with[3] = {k * EDGE + here + (side ? -1 : 1), here * EDGE + k, FLAT + k * EDGE + here};
          const real *in = consequents + (side ? k * EDGE + at : p.row * EDGE + k);
          UNROLL for (int kind = 0; kind < 3; kind++) {
            if (!on || (kind == 0 && rooted)) continue;
            real sums[CHARTS], of[VALUES];
            UNROLL for (int c = 0; c < CHARTS; c++)
              sums[c] = items[(4 * c + item[kind]) * FLAT + p.row * EDGE + at] +
                        blocks[(4 * c + 2 * side) * FLAT + with[kind]];
            UNROLL for (int c = 0; c < VALUES; c++) of[c] = in[(3 * c + of_kind[kind]) * FLAT];
            got[item[kind]] += Cell::part(sums, of);
          }
        }
        sum_of_lanes<TILE>(got);
        if (own) cell.finish(x, got, p.i == 0 && p.j == n, consequents + p.row * EDGE + at);
      }
      if (p.is_cell) cell.store(p, data, values);
    }
    CLUSTER_SYNC();
  }
}

// Contributions.
struct Outside {
  enum { CHARTS = 1, VALUES = 2 };
  struct Data {
    Saved saved;
    real *tree;
    int size;
  };
  real m[3], rz[3], share[3], arc[2];
  DEVICE Outside(const Place &p, const Data &d, real *own) {
    d.saved.softmax(p, m, rz);
    UNROLL for (int kind = 0; kind < 3; kind++) own[kind * FLAT] = m[kind], share[kind] = 0;
  }
  DEVICE static real part(const real (&s)[1], const real (&of)[2]) { return power(s[0] - of[0]) * of[1]; }
  DEVICE void finish(const real (&x)[1][4], real (&got)[4], int whole, real *own) {
    if (whole) got[0] += 1;
    UNROLL for (int side = 0; side < 2; side++) {
      share[R + side] = rz[R + side] * got[side];
      arc[side] = got[2 + side] + power(x[0][2 + side] - m[R + side]) * share[R + side];
    }
    share[U] = rz[U] * (arc[0] + arc[1]);
    UNROLL for (int kind = 0; kind < 3; kind++) own[(3 + kind) * FLAT] = share[kind];
  }
  DEVICE void store(const Place &p, const Data &d, const Values &to) const {
    to.of_u[1][p.up] = share[U], to.of[1][p.up] = share[R], to.of[1][p.low] = share[L];
    if (p.live) d.tree[p.i * d.size + p.j] = arc[0], d.tree[p.j * d.size + p.i] = arc[1];
  }
};

// Adjoints of values.
struct Down {
  enum { CHARTS = 2, VALUES = MEAN ? 4 : 3 };
  struct Data {
    Saved saved;
    real *grad, *mean_u, gv;
    int size;
  };
  real m[3], rz[3], share[3], mean[3], rest[3], with_d[3], mean_u, gv, arc[2];
  DEVICE Down(const Place &p, const Data &d, real *own) : mean_u(d.mean_u[p.up]), gv(d.gv) {
    const Saved &of = d.saved;
    of.softmax(p, m, rz);
    share[U] = of.share_u[p.up], share[R] = of.share[p.up], share[L] = of.share[p.low];
    mean[U] = of.share_u[p.low], mean[R] = of.mean[p.up], mean[L] = of.mean[p.low];
    UNROLL for (int kind = 0; kind < 3; kind++)
      own[kind * FLAT] = m[kind], own[(3 + kind) * FLAT] = share[kind], rest[kind] = with_d[kind] = 0;
  }
  DEVICE static real part(const real (&s)[2], const real (&of)[VALUES]) {
    Slope slope;
    slope.m = of[0], slope.with_g = of[1], slope.rest = of[2], slope.with_d = of[VALUES - 1];
    return slope(s[0], s[1]);
  }
  DEVICE Slope slope(int kind, real mean_g, real gv, real *own) {
    Slope x(m[kind], rz[kind], share[kind], mean[kind], mean_g, gv);
    own[(6 + kind) * FLAT] = rest[kind] = x.rest, with_d[kind] = x.with_d;
    if (MEAN) own[(9 + kind) * FLAT] = x.with_d;
    return x;
  }
  DEVICE void finish(const real (&x)[2][4], real (&got)[4], int whole, real *own) {
    if (whole) got[0] += gv;
    UNROLL for (int side = 0; side < 2; side++)
      arc[side] = got[2 + side] + slope(R + side, x[1][side], got[side], own)(x[0][2 + side], x[1][2 + side]);
    slope(U, mean_u, arc[0] + arc[1], own);
  }
  DEVICE void store(const Place &p, const Data &d, const Values &to) const {
    to.of_u[2][p.up] = rest[U], to.of[2][p.up] = rest[R], to.of[2][p.low] = rest[L];
    if (MEAN) to.of_u[3][p.up] = with_d[U], to.of[3][p.up] = with_d[R], to.of[3][p.low] = with_d[L];
    if (p.live) d.grad[p.i * d.size + p.j] = arc[0], d.grad[p.j * d.size + p.i] = arc[1];
  }
};

// ------------------------------------------------------------------------------------------ the four sweeps
DEVICE void inside(const Saved &x, const real *scores, const real *shift, int n, int size, int s, int single_root) {
  Inside::Data data = {x, scores, shift, n, size};
  bottom_up<Inside>(&x.x, data, n, s, single_root);
}

DEVICE void outside(const Saved &x, real *tree, int n, int size, int s, int single_root) {
  Outside::Data data = {x, tree, size};
  Values values = {{x.m, x.share}, {x.m_u, x.share_u}};
  top_down<Outside>(&x.x, values, data, n, s, single_root);
}

DEVICE void backward(const Saved &x, real *scratch, const real *grad_tree, real gv, real *grad, int n, int size,
                     int s, int single_root) {
  int plane = s * s;
  real *of_u = scratch + 2 * plane;  // the mean of g, then the rest
  Chart charts[2] = {x.x, {scratch, scratch + plane}};
  Values values = {{x.m, x.share, scratch + 3 * plane, scratch + 4 * plane},
                   {x.m_u, x.share_u, of_u, scratch + 5 * plane}};
  Up::Data up = {x, grad_tree, of_u, n, size};
  bottom_up<Up>(charts, up, n, s, single_root);
  Down::Data down = {x, grad, of_u, gv, size};
  top_down<Down>(charts, values, down, n, s, single_root);
}
