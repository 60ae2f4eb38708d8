// Sweeps over a chart in shared memory, width by width.
//
// There are at least twice as many threads as words, all powers of two, so that every cell of a width has a group
// of two to 32 of its own. The diagonals of the planes make the splits at both ends need no special case: C(i,i)
// is 0, I(i,i) nothing. With k = i + o, 0 ≤ o < j - i,
//   U(i,j)   from C→(i,k) + C←(k+1,j)
//   C→(i,j)  from I→(i,k) + C→(k,j), and I→(i,j) alone
//   C←(i,j)  from C←(i,k+1) + I←(k+1,j), and I←(i,j) alone
// The even threads of a group end C→, the odd ones C←: what they store has one place, [i][j] or [j][i], in all
// planes.
#define CHUNK 2  // splits that a thread has under way
#define STRIDE(size) ((size) | 7)  // neighbours on a diagonal, eight apart, are in different banks
#define PLANE(size) ((STRIDE(size) * (size) + 1) & ~1)  // even, for pairs

struct Chart {
  real *c, *i;
};

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
  v.u = x.c[p.a + o] + x.c[p.b + o];
  v.r = x.i[p.a + o] + x.c[p.up + o * s];
  v.l = x.c[p.a + s + o * s] + x.i[p.b + o];
  return v;
}
DEVICE void put(const Chart &x, const Part &p, real value, real arc) {
  x.c[p.mine] = value, x.i[p.mine] = arc;
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
    BLOCK_SYNC();
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
    BLOCK_SYNC();
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
    BLOCK_SYNC();
    p = next_part, cell = next_cell;
  }
}

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
        Slope r(cell.r.x, cell.r.y, cell.r.y * cell.more_r.y, cell.more_r.x, d.c[p.up], gv_r);
        Slope l(cell.l.x, cell.l.y, cell.l.y * cell.more_l.y, cell.more_l.x, d.c[p.low], gv_l);
        to_right = push.i[p.up] + r(x.i[p.up], d.i[p.up]), to_left = push.i[p.low] + l(x.i[p.low], d.i[p.low]);
        Slope u(cell.u.x, cell.u.y, cell.u.y * cell.more_u.y, cell.more_u.x, cell.mean, to_right + to_left);
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
    BLOCK_SYNC();
    p = next_part, cell = next_cell;
  }
}
