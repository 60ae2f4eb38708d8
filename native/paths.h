// The engine of programs over positions: four sweeps, best paths and samples, for any geometry. See
// src/treelax/ops/chain/rules.py for what a path is, plain.py for the same sweeps in PyTorch.
//
// A lane is a state of a position: a sentence fills vectors by itself and depends on no other one. A position has
// its states side by side, then, in a vector of its own, the node that joins them: the goal at the last
// position, and a node of every position where paths forget their state.
//
// Only differences count. The largest value of every position is taken off it, so that values do not grow with
// the sentence, and so is the largest score of every kind of edges into it, the level of those, before scores
// are multiplied by anything. What is taken adds up in double.
#pragma once

#include "group.h"

namespace {

enum class Choice { best, softmax, entropy };

// The sizes of the scores of a sentence: (n, longest, tails, states), or (n, m, 3) of a grid.
struct Sizes {
    int64_t n, longest, tails, states;
};

// Steps of 1 … `longest` positions between states. An edge has the same tail in all lanes, and a row of scores.
template <bool Joined> struct Steps {
    static constexpr bool joined = Joined, one_tail = true;
    static constexpr int dims = 1;
    const Sizes sizes;
    const int64_t length;

    Steps(const Sizes &all, const int64_t *lengths) : sizes(all), length(lengths[0]) {}
    static int64_t states(const Sizes &s) { return s.states; }
    static int64_t positions(const Sizes &s) { return s.n + 1; }
    static int64_t scores(const Sizes &s) { return s.n * s.longest * s.tails * s.states; }
    static bool in_range(const Sizes &s, const int64_t *lengths) { return lengths[0] >= 0 && lengths[0] <= s.n; }
    int64_t last() const { return length; }
    int64_t scores_used() const { return length * sizes.longest * sizes.tails * sizes.states; }
    // the states of a position
    int64_t first(int64_t) const { return 0; }
    int64_t end(int64_t) const { return sizes.states; }
    // edges of a kind have the same length, and a level
    static int64_t kinds(const Sizes &s) { return s.longest; }
    static int64_t kind(int64_t steps, int64_t) { return steps - 1; }
    template <class Visit> void each_kind(int64_t p, Visit visit) const {
        for (int64_t k = 0; k < sizes.longest && k < p; ++k) visit(k, k + 1);
    }
    template <class T> T largest(const T *scores, int64_t kind, int64_t p) const {
        const int64_t i = p - kind - 1, count = (i == 0 ? 1 : sizes.tails) * sizes.states;
        const T *from = scores + (i * sizes.longest + kind) * sizes.tails * sizes.states;
        WideVec<T> most = WideVec<T>{} + from[0];
        int64_t k = 0;
        for (; k + Wide<T>::lanes <= count; k += Wide<T>::lanes)
            most = vmax<T>(most, load_some(from + k, Wide<T>::lanes));
        T result = across<T>(most, [](WideVec<T> a, WideVec<T> b) { return vmax<T>(a, b); });
        for (; k < count; ++k) result = from[k] > result ? from[k] : result;
        return result;
    }
    bool is_part(int64_t score) const {
        const int64_t row = score / sizes.states, step = row / sizes.tails;
        const int64_t i = step / sizes.longest, k = step % sizes.longest;
        return i + k < length && (i > 0 || row % sizes.tails == 0);
    }
    // visit(length of the step, state of the tail, where the scores of the row begin)
    template <class Visit> void each_edge(int64_t p, Visit visit) const {
        for (int64_t k = 0; k < sizes.longest && k < p; ++k) {
            const int64_t i = p - k - 1, tails = i == 0 ? 1 : sizes.tails;
            for (int64_t b = 0; b < tails; ++b)
                visit(k + 1, b, ((i * sizes.longest + k) * sizes.tails + b) * sizes.states);
        }
    }
    int64_t score(int64_t row, int64_t, int64_t state) const { return row + state; }
    template <class T> WideVec<T> load(const T *from, int64_t row, int64_t, int64_t state) const {
        return load_some(from + row + state, sizes.states - state);
    }
    template <class T> void store(T *to, int64_t row, int64_t, int64_t state, WideVec<T> x) const {
        store_some(to + row + state, x, sizes.states - state);
    }
};

// Moves through a grid. Position p has the cells (i, j) of the anti-diagonal i + j + 2 = p, in state i + 1. The
// start is state 0 of position 0. The tail of an edge is in its own lane or in the one before.
struct Grid {
    static constexpr bool joined = false, one_tail = false;
    static constexpr int dims = 2;
    const Sizes sizes;
    const int64_t rows, columns;

    Grid(const Sizes &all, const int64_t *lengths) : sizes(all), rows(lengths[0]), columns(lengths[1]) {}
    static int64_t states(const Sizes &s) { return s.n + 1; }
    static int64_t positions(const Sizes &s) { return s.n + s.longest + 1; }
    static int64_t scores(const Sizes &s) { return s.n * s.longest * 3; }
    static bool in_range(const Sizes &s, const int64_t *lengths) {
        return lengths[0] >= 1 && lengths[0] <= s.n && lengths[1] >= 1 && lengths[1] <= s.longest;
    }
    int64_t last() const { return rows + columns; }
    int64_t scores_used() const { return rows * sizes.longest * 3; }
    int64_t first(int64_t p) const { return p > columns + 1 ? p - columns : 1; }
    int64_t end(int64_t p) const { return p <= rows ? p : rows + 1; }
    bool is_part(int64_t score) const {
        const int64_t move = score % 3, cell = score / 3, i = cell / sizes.longest, j = cell % sizes.longest;
        return i < rows && j < columns && (score == 0 || ((i > 0 || move == 2) && (j > 0 || move == 1)));
    }
    static int64_t kinds(const Sizes &) { return 3; }
    static int64_t kind(int64_t, int64_t move) { return move; }
    template <class Visit> void each_kind(int64_t p, Visit visit) const {
        each_edge(p, [&](int64_t steps, int64_t, int64_t move) { visit(move, steps); });
    }
    template <class T> T largest(const T *scores, int64_t move, int64_t p) const {
        T most = T(forbidden);
        for (int64_t state = 0; state < end(p); state += Wide<T>::lanes)
            each_part<T>(move, p, state, [&](int64_t, int64_t score) { most = std::fmax(most, scores[score]); });
        return most;
    }
    template <class Visit> void each_edge(int64_t p, Visit visit) const {
        for (int64_t move = 0; move < 3 && p > 1; ++move) visit(move == 0 ? 2 : 1, move == 2 ? 0 : -1, move);
    }
    int64_t score(int64_t move, int64_t p, int64_t state) const {
        return ((state - 1) * sizes.longest + p - 1 - state) * 3 + move;
    }
    // visit(lane, score) for the parts in the lanes from `state` on
    template <class T, class Visit>
    void each_part(int64_t move, int64_t p, int64_t state, Visit visit) const {
        // no match and no step down into the first row, no match and no step right into the first column
        const int64_t low = first(p) + (move != 2 && first(p) == 1 && p > 2);
        const int64_t high = end(p) - (move != 1 && end(p) == p && p > 2);
        if (p == 2 && move != 0) return;
        const int64_t from = low > state ? low - state : 0;
        int64_t to = high - state, at = score(move, p, state + from);
        to = to < Wide<T>::lanes ? to : Wide<T>::lanes;
        for (int64_t l = from; l < to; ++l, at += (sizes.longest - 1) * 3) visit(l, at);
    }
    template <class T> WideVec<T> load(const T *from, int64_t move, int64_t p, int64_t state) const {
        WideVec<T> x = {};
        each_part<T>(move, p, state, [&](int64_t l, int64_t score) { x[l] = from[score]; });
        return x;
    }
    template <class T> void store(T *to, int64_t move, int64_t p, int64_t state, WideVec<T> x) const {
        each_part<T>(move, p, state, [&](int64_t l, int64_t score) { to[score] = x[l]; });
    }
};

// All nodes of one sentence. Planes have a row for every position.
template <class T, class G> struct Nodes {
    using V = WideVec<T>;
    static constexpr int lanes = Wide<T>::lanes;
    static constexpr T lowest = T(forbidden * log2_of_e);
    static constexpr double unreachable = -1e300;  // the offset of positions without a path

    const G g;
    const T *scores;
    const int *const stop;
    const int64_t join, width;           // the joining node; all of a row
    T *value, *top, *scale, *given;      // kept for the backward pass
    T *taken, *levels;                   // of every position, likewise
    double *offset;                      // the sum of what was taken from values and scores

    // Vectors that a sentence keeps, the first one to look back into.
    static int64_t row_vectors(const Sizes &s) { return (G::states(s) + lanes - 1) / lanes + 1; }
    static int64_t plane_vectors(const Sizes &s) { return G::positions(s) * row_vectors(s); }
    static int64_t saved_vectors(const Sizes &s) {
        return 1 + 4 * plane_vectors(s) + (G::positions(s) * (1 + 2 * G::kinds(s)) + lanes - 1) / lanes;
    }

    Nodes(const G &geometry, const T *used, T *memory, double *offsets, const int *stop_flag)
        : g(geometry), scores(used), stop(stop_flag), join((row_vectors(g.sizes) - 1) * lanes),
          width(join + lanes), value(memory + lanes), top(value + plane_vectors(g.sizes) * lanes),
          scale(top + plane_vectors(g.sizes) * lanes), given(scale + plane_vectors(g.sizes) * lanes),
          taken(given + plane_vectors(g.sizes) * lanes), levels(taken + G::positions(g.sizes)),
          offset(offsets) {}

    T *at(T *plane, int64_t p) const { return plane + p * width; }
    V &vec(T *plane, int64_t p, int64_t state) const { return *reinterpret_cast<V *>(at(plane, p) + state); }
    bool joins(int64_t p) const { return G::joined || p == g.last(); }
    static V splat(T x) { return V{} + x; }
    static V lane_numbers() {
        V x;
        for (int l = 0; l < lanes; ++l) x[l] = T(l);
        return x;
    }

    // Where the tail of an edge is: one number, or a vector before the lane's own.
    const T *tail(const T *plane, int64_t p, int64_t b) const {
        return plane + p * width + (G::joined ? join : b);
    }
    V tails(const T *plane, int64_t p, int64_t b, int64_t state) const {
        if constexpr (G::one_tail) return splat(*tail(plane, p, b));
        V x;
        std::memcpy(&x, tail(plane, p, b) + state, sizeof(x));
        return x;
    }
    // of the edges of a kind: their level, and what moves tails into the frame of the position
    T *level(int64_t p, int64_t kind) const { return levels + 2 * (p * G::kinds(g.sizes) + kind); }
    const T *level(int64_t p, int64_t steps, int64_t row) const { return level(p, G::kind(steps, row)); }
    // Returns where the frame of a position begins: with its best kind of edges.
    double set_levels(int64_t p, double unit) const {
        double start = unreachable;
        g.each_kind(p, [&](int64_t kind, int64_t steps) {
            const T most = g.largest(scores, kind, p), used = most > T(forbidden / 2) ? most : T(0);
            level(p, kind)[0] = used;
            start = std::fmax(start, offset[p - steps] + double(used) * unit);
        });
        g.each_kind(p, [&](int64_t kind, int64_t steps) {
            T *const to = level(p, kind);
            to[1] = T(std::fmax(offset[p - steps] + double(to[0]) * unit - start, double(lowest)));
        });
        return start;
    }
    // visit(scores of the edge s, its tail's position, state, where its scores begin) for one vector of states
    template <class Visit> void each_split(int64_t p, int64_t state, T unit, Visit visit) const {
        g.each_edge(p, [&](int64_t steps, int64_t b, int64_t row) {
            const T *const shared = level(p, steps, row);
            const V t = tails(value, p - steps, b, state) + shared[1];
            visit(t + (g.template load<T>(scores, row, p, state) - shared[0]) * unit, p - steps, b, row);
        });
    }
    static T joined_over(V x) {
        return across<T>(x, [](V a, V b) { return a + b; });
    }
    static T largest_of(V x) {
        return across<T>(x, [](V a, V b) { return vmax<T>(a, b); });
    }

    // Sweep 1: values; returns that of the sentence in units of 1 / unit.
    template <Choice choice> double inside() const {
        const T unit = choice == Choice::best ? T(1) : T(log2_of_e);
        for (int64_t state = -lanes; state < width; ++state) value[state] = lowest;
        value[0] = value[join] = 0;
        offset[0] = taken[0] = 0;
        for (int64_t p = 1; p <= g.last() && !given_up(stop); ++p) {
            const double start = set_levels(p, unit);
            V largest = splat(lowest);
            for (int64_t state = 0; state < join; state += lanes) {
                V m = splat(2 * lowest);
                each_split(p, state, unit, [&](V s, int64_t, int64_t, int64_t) { m = vmax<T>(m, s); });
                V v = m;
                if constexpr (choice != Choice::best) {
                    V total = {}, expected = {};
                    each_split(p, state, unit, [&](V s, int64_t, int64_t, int64_t) {
                        const V e = vexp2<T>(s - m);
                        total += e;
                        if constexpr (choice == Choice::softmax) expected += e * (s - m);
                    });
                    total = total > T(0) ? total : splat(1);  // there may be no edge
                    vec(scale, p, state) = T(1) / total;
                    v = m + (choice == Choice::entropy ? vlog2<T>(total) : expected / total);
                }
                const V lane = lane_numbers() + T(state);
                const auto exists = (lane >= splat(T(g.first(p)))) & (lane < splat(T(g.end(p))));
                v = exists ? v : splat(lowest);  // and the others add nothing: their scale is 0
                vec(scale, p, state) = exists ? vec(scale, p, state) : V{};
                vec(top, p, state) = m;
                vec(value, p, state) = v = vmax<T>(v, splat(lowest));
                largest = vmax<T>(largest, v);
            }
            const T most = largest_of(largest);
            taken[p] = most > lowest / 2 ? most : T(0);
            offset[p] = most > lowest / 2 ? start + double(most) : unreachable;
            for (int64_t state = 0; state < join; state += lanes) {
                V &v = vec(value, p, state);
                v = v > lowest / 2 ? v - taken[p] : splat(lowest);
            }
            vec(value, p, join) = splat(lowest);
            if (joins(p)) make_join<choice>(p);
        }
        return std::fmax(double(value[g.last() * width + join]) + offset[g.last()], double(lowest));
    }

    // The choice among the states of a position; those of the largest value have 0, or none is possible.
    template <Choice choice> void make_join(int64_t p) const {
        T *row = at(value, p), most = lowest;
        for (int64_t state = 0; state < g.end(p); ++state) most = row[state] > most ? row[state] : most;
        V total = {}, expected = {};
        for (int64_t state = 0; state < join; state += lanes) {
            const V d = vec(value, p, state) - most, e = vexp2<T>(d);
            total += e;
            if (choice == Choice::softmax) expected += e * d;
        }
        const V z = splat(joined_over(total));
        const V sum = choice == Choice::entropy ? vlog2<T>(z) : splat(joined_over(expected)) / z;
        at(top, p)[join] = most;
        at(scale, p)[join] = 1 / z[0];
        row[join] = choice == Choice::best ? most : most + sum[0];
        if (row[join] < lowest) row[join] = lowest;
    }
    // b of the states of a position
    V join_weights(int64_t p, int64_t state) const {
        return vexp2<T>(vec(value, p, state) - at(top, p)[join]) * at(scale, p)[join];
    }

    void add(T *plane, int64_t p, int64_t b, int64_t state, V x, V &sum) const {
        if constexpr (G::one_tail) sum += x;
        else {
            T *to = const_cast<T *>(tail(plane, p, b)) + state;
            V old;
            std::memcpy(&old, to, sizeof(old));
            old += x;
            std::memcpy(to, &old, sizeof(old));
        }
    }

    // For every edge into a position: `change(s, b, row, state)` goes into `out` and to the tail in `plane`.
    template <class Change> void hand_down(int64_t p, T *plane, T *out, Change change) const {
        g.each_edge(p, [&](int64_t steps, int64_t b, int64_t row) {
            const T *const shared = level(p, steps, row);
            V sum = {};
            for (int64_t state = 0; state < join; state += lanes) {
                const V t = tails(value, p - steps, b, state) + shared[1];
                const V s = t + (g.template load<T>(scores, row, p, state) - shared[0]) * T(log2_of_e);
                const V x = change(s, steps, b, row, state);
                g.template store<T>(out, row, p, state, x);
                add(plane, p - steps, b, state, x, sum);
            }
            if constexpr (G::one_tail) *const_cast<T *>(tail(plane, p - steps, b)) += joined_over(sum);
        });
    }

    // Sweep 2: contributions, and with them the tree.
    void outside(T *tree) const {
        std::memset(given, 0, size_t(plane_vectors(g.sizes)) * sizeof(V));
        std::memset(tree, 0, sizeof(T) * size_t(G::scores(g.sizes)));
        at(given, g.last())[join] = 1;
        for (int64_t p = g.last(); p > 0 && !given_up(stop); --p) {
            for (int64_t state = 0; state < join && joins(p); state += lanes)
                vec(given, p, state) += join_weights(p, state) * at(given, p)[join];
            hand_down(p, given, tree, [&](V s, int64_t, int64_t, int64_t, int64_t state) {
                return vexp2<T>(s - vec(top, p, state)) * (vec(scale, p, state) * vec(given, p, state));
            });
        }
    }

    // Sweeps 3 and 4: adjoints ḡ of contributions in `mean`, then of values in `up`:
    //   ds_k = b_k [ gv (1 + (s_k - v)) + a (g_k - ḡ) ], without s_k - v for entropy
    template <bool Entropy> void backward(const T *grad_tree, T grad_value, T *mean, T *up, T *grad) const {
        for (T *plane : {mean, up})
            std::memset(plane - lanes, 0, (size_t(plane_vectors(g.sizes)) + 1) * sizeof(V));
        std::memset(grad, 0, sizeof(T) * size_t(G::scores(g.sizes)));
        for (int64_t p = 1; p <= g.last() && !given_up(stop); ++p) {
            V all = {};
            for (int64_t state = 0; state < join; state += lanes) {
                V sum = {};
                each_split(p, state, T(log2_of_e), [&](V s, int64_t from, int64_t b, int64_t row) {
                    const V gs = g.template load<T>(grad_tree, row, p, state) + tails(mean, from, b, state);
                    sum += vexp2<T>(s - vec(top, p, state)) * gs;
                });
                vec(mean, p, state) = sum * vec(scale, p, state);
                if (joins(p)) all += join_weights(p, state) * vec(mean, p, state);
            }
            if (joins(p)) at(mean, p)[join] = joined_over(all);
        }
        at(up, g.last())[join] = grad_value;
        for (int64_t p = g.last(); p > 0 && !given_up(stop); --p) {
            for (int64_t state = 0; state < join && joins(p); state += lanes) {
                const Adjoint<Entropy> change(at(up, p)[join], at(given, p)[join], at(mean, p)[join],
                                              at(value, p)[join] - at(top, p)[join]);
                const V d = vec(value, p, state) - at(top, p)[join];
                vec(up, p, state) += join_weights(p, state) * change(d, vec(mean, p, state));
            }
            hand_down(p, up, grad, [&](V s, int64_t steps, int64_t b, int64_t row, int64_t state) {
                const V highest = vec(top, p, state), d = s - highest;
                const Adjoint<Entropy> change(vec(up, p, state), vec(given, p, state), vec(mean, p, state),
                                              vec(value, p, state) + taken[p] - highest);
                const V gs = g.template load<T>(grad_tree, row, p, state) + tails(mean, p - steps, b, state);
                return vexp2<T>(d) * vec(scale, p, state) * change(d, gs);
            });
        }
    }

    // The bracket, of d = s - top in log2 units; `rise` is v - top.
    template <bool Entropy> struct Adjoint {
        V offset, slope, contribution;
        template <class X>
        Adjoint(X gv, X a, X mean, X rise)
            : offset(V{} + (gv - (Entropy ? T(0) : T(log_of_2)) * gv * rise - a * mean)),
              slope(V{} + gv * (Entropy ? T(0) : T(log_of_2))), contribution(V{} + a) {}
        V operator()(V d, V g) const {
            // b_k is 0 far above this; without it slope * d could be infinite for a forbidden edge
            const V low = splat(T(2) * Wide<T>::exp2_lowest);
            return offset + contribution * g + (Entropy ? V{} : slope * vmax<T>(d, low));
        }
    };

    // Follow a path back from the goal. `pick(s, top, scale)` says of one edge after the other: take it (2),
    // take it if no later one is taken (1), leave it (0).
    template <class Pick, class Emit> void trace(T unit, Pick pick, Emit emit) const {
        int64_t state = join;
        for (int64_t p = g.last(); p > 0;) {
            if (state == join) {
                if constexpr (G::one_tail) {
                    pick.begin();
                    state = 0;
                    for (int64_t c = 0, take = 0; c < g.end(p) && take < 2; ++c) {
                        take = pick(at(value, p)[c], at(top, p)[join], at(scale, p)[join]);
                        if (take) state = c;
                    }
                } else {
                    state = g.rows;
                }
            }
            pick.begin();
            int64_t take = 0, steps = p, before = 0, part = -1;
            g.each_edge(p, [&](int64_t length, int64_t b, int64_t row) {
                const int64_t score = g.score(row, p, state);
                if (take == 2 || (!G::one_tail && !g.is_part(score))) return;
                const T *const shared = level(p, length, row);
                const T t = tail(value, p - length, b)[G::one_tail ? 0 : state] + shared[1];
                const T s = t + (scores[score] - shared[0]) * unit;
                const int now = pick(s, at(top, p)[state], at(scale, p)[state]);
                if (now == 0 && part >= 0) return;
                take = now, steps = length, before = b, part = score;
            });
            if (part < 0) return;
            emit(part);
            p -= steps;
            state = G::joined ? join : G::one_tail ? before : state + before;
        }
    }
};

template <class T> struct FirstBest {
    void begin() {}
    int operator()(T s, T top, T) const { return s >= top ? 2 : 0; }
};

// The first edge whose cumulative probability exceeds a uniform variable.
template <class T> struct Sampled {
    const T *uniforms;
    T sum = 0, bound = 0;
    void begin() { sum = 0, bound = *uniforms++; }
    int operator()(T s, T top, T scale) {
        const T b = std::exp2(s - top) * scale;
        sum += b;
        return sum > bound ? 2 : b > 0;
    }
};

}  // namespace
