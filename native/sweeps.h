// The sweeps over a group's chart. See src/treelax/ops/eisner/README.md for the derivation.
#pragma once

#include "group.h"

namespace {

using Parts = Arcs;

// Uniform variables of a sample.
inline int64_t decisions(int64_t size) { return 2 * (size - 1); }

// Planes of a chart; the first ones are kept for the backward pass. "Symmetric" planes hold
// an item of span (i, j) at [i][j] and at [j][i], so that both operands of every split sum are
// contiguous in k. Planes split in two hold one quantity above and another below the diagonal.
enum Plane {
    complete_right,    // C→, symmetric
    complete_left,     // C←, symmetric
    incomplete,        // above: I→(i, j); below, at [j][i]: I←(i, j)
    tree,              // contributions of I→ and I←, that is, the tree
    given,             // above: contributions of C→; below: of C← (while summing: of C→, from U and C→)
    saved_planes,
    value_inner = saved_planes,  // above: value of U
    top_inner,         // above: max of U; below: max of C→
    scale_inner,       // above: 1/z of U; below: 1/z of C→
    top_scale_left,    // above: max of C←; below: 1/z of C←
    given_left,        // contributions of C← while summing: from U above, C← below
    chart_planes,
    refilled_planes = given_left - saved_planes,  // of those, by the backward pass: cheaper than to keep
    goals = complete_right,
    spare = given,
    best_planes = value_inner + 1,  // the planes of the best tree
};

// Sweep 1, bottom-up: values of all items, with the maximum and normaliser of each cell. The scores come
// in natural units: scaling them beforehand would cost digits and ties in all that is done with them.
template <class T, bool Entropy>
void inside(const Group<T> &g, const Chart<T> &chart, const Vec<T> *scores) {
    const size_t N = g.size;
    auto *right = chart[complete_right], *left = chart[complete_left], *inc = chart[incomplete];
    auto *top = chart[top_inner], *scale = chart[scale_inner], *top_scale = chart[top_scale_left];
    auto *inner_value = chart[value_inner];
    // the diagonal has no meaning: what is kept is the same in every run
    for (size_t i = 0; i < N; ++i)
        for (int plane = 0; plane < tree; ++plane) chart[plane][i * N + i] = Vec<T>{};
    bottom_up(g, [&](const int i, const int j) {
        const size_t ij = i * N + j, ji = j * N + i, ii = i * N + i;
        // U(i,j) = <C→(i,k), C←(k+1,j)>, i ≤ k < j
        const Cell<T> u =
            soft_split<T, Entropy>(right + ii, left + ji + 1, g.inner_splits(i, j));
        top[ij] = u.top, scale[ij] = u.scale;
        inner_value[ij] = u.value;
        // I→(i,j) = U(i,j) + W[i,j];  I←(i,j) = U(i,j) + W[j,i]
        inc[ij] = u.value + scores[ij] * T(log2_of_e);
        inc[ji] = u.value + scores[ji] * T(log2_of_e);
        // C→(i,j) = <I→(i,k), C→(k,j)>, i < k ≤ j
        const Cell<T> r = soft_split<T, Entropy>(inc + ii + 1, right + ji + 1, j - i);
        top[ji] = r.top, scale[ji] = r.scale;
        right[ij] = right[ji] = r.value;
        if (i == 0) {  // nothing stands left of the root
            left[ij] = left[ji] = top_scale[ij] = top_scale[ji] = Vec<T>{};
            return;
        }
        // C←(i,j) = <C←(i,k), I←(k,j)>, i ≤ k < j
        const Cell<T> l = soft_split<T, Entropy>(left + ii, inc + ji, j - i);
        top_scale[ij] = l.top, top_scale[ji] = l.scale;
        left[ij] = left[ji] = l.value;
    });
}

// Sweep 2, top-down: contributions. Leaves the tree in its plane, and the total contributions of
// complete items in theirs.
template <class T> void outside(const Group<T> &g, const Chart<T> &chart) {
    const size_t N = g.size;
    auto *right = chart[complete_right], *left = chart[complete_left], *inc = chart[incomplete];
    auto *top = chart[top_inner], *scale = chart[scale_inner], *top_scale = chart[top_scale_left];
    auto *arcs = chart[tree], *to_right = chart[given], *to_left = chart[given_left];
    for (int plane : {tree, given, given_left})
        std::memset(static_cast<void *>(chart[plane]), 0, g.plane_vectors() * sizeof(Vec<T>));
    for (int j = 1; j <= g.n; ++j) to_right[j] = g.goal(j);
    top_down(g, [&](const int i, const int j) {
        const size_t ij = i * N + j, ji = j * N + i, ii = i * N + i;
        const Vec<T> r = to_right[ij] + to_right[ji], l = to_left[ij] + to_left[ji];
        to_right[ij] = r, to_right[ji] = l;
        if (any_nonzero<T>(r))
            hand_down<T>(inc + ii + 1, right + ji + 1, j - i, top[ji], scale[ji], r,
                         arcs + ii + 1, to_right + ji + 1);
        if (i > 0 && any_nonzero<T>(l))
            hand_down<T>(left + ii, inc + ji, j - i, top_scale[ij], top_scale[ji], l,
                         to_left + ii, arcs + ji);
        const Vec<T> u = arcs[ij] + arcs[ji];
        if (any_nonzero<T>(u))
            hand_down<T>(right + ii, left + ji + 1, g.inner_splits(i, j), top[ij], scale[ij], u,
                         to_right + ii, to_left + ji + 1);
    });
}

// Planes of the backward pass.
enum GradPlane {
    grad_right,       // ḡ of C→, symmetric; that is the adjoint of its contribution
    grad_left,        // ḡ of C←, symmetric
    grad_incomplete,  // in: gradient of the tree; then the adjoints of the contributions of I→ and I←
    grad_inner,       // above: ḡ of U
    value_right,      // adjoint of the value of C→: from U above, from C→ below
    value_left,       // the same for C←
    value_incomplete, // adjoints of the values of I→ and I←: the gradient of the scores
    grad_planes,
    grad_parts = grad_incomplete,
    value_goals = value_right,
    value_parts = value_incomplete,
};

// Sweep 3, bottom-up: adjoints of all contributions, with the choices of `inside` made once more.
template <class T, bool Entropy>
void up(const Group<T> &g, const Chart<T> &chart, const Chart<T> &grad) {
    const size_t N = g.size;
    auto *right = chart[complete_right], *left = chart[complete_left], *inc = chart[incomplete];
    auto *top = chart[top_inner], *scale = chart[scale_inner], *top_scale = chart[top_scale_left];
    auto *g_right = grad[grad_right], *g_left = grad[grad_left], *g_inc = grad[grad_incomplete];
    for (size_t i = 0; i < N; ++i) g_right[i * N + i] = g_left[i * N + i] = Vec<T>{};
    bottom_up(g, [&](const int i, const int j) {
        const size_t ij = i * N + j, ji = j * N + i, ii = i * N + i;
        Vec<T> mean;
        const Cell<T> u = soft_split<T, Entropy>(right + ii, left + ji + 1, g.inner_splits(i, j),
                                                 g_right + ii, g_left + ji + 1, &mean);
        top[ij] = u.top, scale[ij] = u.scale, chart[value_inner][ij] = u.value;
        grad[grad_inner][ij] = mean;
        g_inc[ij] += mean;
        g_inc[ji] += mean;
        const Cell<T> r = soft_split<T, Entropy>(inc + ii + 1, right + ji + 1, j - i, g_inc + ii + 1,
                                                 g_right + ji + 1, &mean);
        top[ji] = r.top, scale[ji] = r.scale;
        g_right[ij] = g_right[ji] = mean;
        if (i == 0) return;
        const Cell<T> l =
            soft_split<T, Entropy>(left + ii, inc + ji, j - i, g_left + ii, g_inc + ji, &mean);
        top_scale[ij] = l.top, top_scale[ji] = l.scale;
        g_left[ij] = g_left[ji] = mean;
    });
}

// Sweep 4, top-down: adjoints of all values. `grad[value_right]` already holds the gradient of the
// value of the whole sentence at its goal item.
template <class T, bool Entropy>
void down(const Group<T> &g, const Chart<T> &chart, const Chart<T> &grad) {
    const size_t N = g.size;
    auto *right = chart[complete_right], *left = chart[complete_left], *inc = chart[incomplete];
    auto *top = chart[top_inner], *scale = chart[scale_inner], *top_scale = chart[top_scale_left];
    auto *g_right = grad[grad_right], *g_left = grad[grad_left], *g_inc = grad[grad_incomplete];
    auto *v_right = grad[value_right], *v_left = grad[value_left], *v_inc = grad[value_incomplete];
    auto idle = [](Vec<T> contribution, Vec<T> grad_value) {
        return !any_nonzero<T>(contribution) && !any_nonzero<T>(grad_value);
    };
    top_down(g, [&](const int i, const int j) {
        const size_t ij = i * N + j, ji = j * N + i, ii = i * N + i;
        Vec<T> a = chart[given][ij], gv = v_right[ij] + v_right[ji];
        if (!idle(a, gv))
            hand_down_grad<T, Entropy>(
                inc + ii + 1, right + ji + 1, g_inc + ii + 1, g_right + ji + 1, j - i,
                {top[ji], scale[ji], right[ij]}, a, g_right[ij], gv, v_inc + ii + 1,
                v_right + ji + 1);
        if (i > 0) {
            a = chart[given][ji], gv = v_left[ij] + v_left[ji];
            if (!idle(a, gv))
                hand_down_grad<T, Entropy>(left + ii, inc + ji, g_left + ii, g_inc + ji, j - i,
                                           {top_scale[ij], top_scale[ji], left[ij]}, a,
                                           g_left[ij], gv, v_left + ii, v_inc + ji);
        }
        a = chart[tree][ij] + chart[tree][ji], gv = v_inc[ij] + v_inc[ji];
        if (!idle(a, gv))
            hand_down_grad<T, Entropy>(right + ii, left + ji + 1, g_right + ii, g_left + ji + 1,
                                       g.inner_splits(i, j),
                                       {top[ij], scale[ij], chart[value_inner][ij]}, a,
                                       grad[grad_inner][ij], gv, v_right + ii, v_left + ji + 1);
    });
}

// The (max, +) chart of the best tree, in natural units: values only, no back-pointers.
template <class T> void best_inside(const Group<T> &g, const Chart<T> &chart, const Vec<T> *scores) {
    const size_t N = g.size;
    auto *right = chart[complete_right], *left = chart[complete_left], *inc = chart[incomplete];
    const Vec<T> lowest = splat<T>(T(forbidden));
    for (size_t i = 0; i < N; ++i) right[i * N + i] = left[i * N + i] = Vec<T>{};
    bottom_up<false>(g, [&](const int i, const int j) {
        const size_t ij = i * N + j, ji = j * N + i, ii = i * N + i;
        const Vec<T> u = vmax<T>(
            best_split<T>(right + ii, left + ji + 1, g.inner_splits(i, j)), lowest);
        chart[value_inner][ij] = u;
        inc[ij] = u + scores[ij];
        inc[ji] = u + scores[ji];
        right[ij] = right[ji] =
            vmax<T>(best_split<T>(inc + ii + 1, right + ji + 1, j - i), lowest);
        if (i > 0)
            left[ij] = left[ji] = vmax<T>(best_split<T>(left + ii, inc + ji, j - i), lowest);
    });
}

}  // namespace
