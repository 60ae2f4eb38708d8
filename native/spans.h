// Binary trees over spans (CKY): sweeps over a group's chart, and discrete trees from it. See
// src/treelax/ops/cky/README.md for the derivation.
#pragma once

#include "group.h"

namespace {

using Parts = Spans;

template <class T> using SpanGroup = Group<T, Spans>;

// Uniform variables of a sample.
inline int64_t decisions(int64_t size) { return size - 1; }

// Planes of a chart, in the order in which they are kept for the backward pass. "Above" and "below" are
// sides of the diagonal, [i][j] and [j][i] of a span (i, j).
enum Plane {
    values,     // v above and below, so that both operands of every split sum are contiguous in k
    top_scale,  // above: maximum of the splits; below: 1/z
    inner,      // above: value of the choice among the splits, before the span's own score
    tree,       // above: contributions, that is, the tree (while summing: those of right antecedents below)
    saved_planes,
    chart_planes = saved_planes,
    refilled_planes = 0,
    goals = values,
    spare = inner,
    best_planes = inner,  // the planes of the best tree
};

// v(i,i) = w(i,i);  v(i,j) = w(i,j) + <v(i,k), v(k+1,j)>, i ≤ k < j, in units of 1 / unit.
// `choose(ij, ji, left, right, splits)` is what <…> stands for; a maximum alone need not be staggered.
template <class T, bool Staggered, class Choose>
inline void fill(const SpanGroup<T> &g, Vec<T> *v, const Vec<T> *scores, T unit, Choose choose) {
    const size_t N = g.size;
    for (size_t i = 0; i < N; ++i) v[i * N + i] = scores[i * N + i] * unit;
    bottom_up<Staggered>(g, [&](const int i, const int j) {
        const size_t ij = i * N + j, ji = j * N + i, ii = i * N + i;
        v[ij] = v[ji] = choose(ij, ji, v + ii, v + ji + 1, j - i) + scores[ij] * unit;
    });
}

// Sweep 1, bottom-up: values of all spans, with the maximum and normaliser of each choice. The scores come
// in natural units, the chart has log2 units.
template <class T, bool Entropy>
void inside(const SpanGroup<T> &g, const Chart<T> &chart, const Vec<T> *scores) {
    const size_t N = g.size;
    auto *kept = chart[top_scale], *chosen = chart[inner];
    // whatever has no meaning: what is kept is the same in every run
    for (size_t i = 0; i < N; ++i) kept[i * N + i] = chosen[i * N + i] = Vec<T>{};
    fill<T, true>(g, chart[values], scores, T(log2_of_e),
            [&](size_t ij, size_t ji, const Vec<T> *left, const Vec<T> *right, int splits) {
                const Cell<T> cell = soft_split<T, Entropy>(left, right, splits);
                kept[ij] = cell.top, kept[ji] = cell.scale;
                chosen[ij] = cell.value, chosen[ji] = Vec<T>{};
                return cell.value;
            });
}

// Sweep 2, top-down: contributions.
template <class T> void outside(const SpanGroup<T> &g, const Chart<T> &chart) {
    const size_t N = g.size;
    auto *v = chart[values], *kept = chart[top_scale], *given = chart[tree];
    std::memset(static_cast<void *>(given), 0, g.plane_vectors() * sizeof(Vec<T>));
    for (int j = 0; j < g.n; ++j) given[j] = g.goal(j);
    top_down(g, [&](const int i, const int j) {
        const size_t ij = i * N + j, ji = j * N + i, ii = i * N + i;
        const Vec<T> a = given[ij] += given[ji];
        if (any_nonzero<T>(a))
            hand_down<T>(v + ii, v + ji + 1, j - i, kept[ij], kept[ji], a, given + ii, given + ji + 1);
    });
}

// Planes of the backward pass.
enum GradPlane {
    grad_spans,   // in, above: gradient of the tree; then, above and below, adjoints of contributions
    grad_mean,    // above: ḡ, the adjoint of a contribution without the gradient of the tree
    value_spans,  // adjoints of values: the gradient of the scores above (while summing, as in `tree`)
    grad_planes,
    grad_parts = grad_spans,
    value_goals = value_spans,
    value_parts = value_spans,
};

// Sweep 3, bottom-up: adjoints of all contributions.
template <class T, bool Entropy>
void up(const SpanGroup<T> &g, const Chart<T> &chart, const Chart<T> &grad) {
    const size_t N = g.size;
    auto *v = chart[values], *kept = chart[top_scale], *spans = grad[grad_spans];
    bottom_up(g, [&](const int i, const int j) {
        const size_t ij = i * N + j, ji = j * N + i, ii = i * N + i;
        const Vec<T> mean = expected_grad<T>(v + ii, v + ji + 1, spans + ii, spans + ji + 1, j - i,
                                             kept[ij], kept[ji]);
        grad[grad_mean][ij] = mean;
        spans[ij] = spans[ji] = spans[ij] + mean;
    });
}

// Sweep 4, top-down: adjoints of all values. `grad[value_spans]` already holds the gradient of the value
// of the whole sentence.
template <class T, bool Entropy>
void down(const SpanGroup<T> &g, const Chart<T> &chart, const Chart<T> &grad) {
    const size_t N = g.size;
    auto *v = chart[values], *kept = chart[top_scale];
    auto *spans = grad[grad_spans], *given = grad[value_spans];
    top_down(g, [&](const int i, const int j) {
        const size_t ij = i * N + j, ji = j * N + i, ii = i * N + i;
        const Vec<T> a = chart[tree][ij], gv = given[ij] += given[ji];
        if (!any_nonzero<T>(a) && !any_nonzero<T>(gv)) return;
        hand_down_grad<T, Entropy>(v + ii, v + ji + 1, spans + ii, spans + ji + 1, j - i,
                                   {kept[ij], kept[ji], chart[inner][ij]}, a,
                                   grad[grad_mean][ij], gv, given + ii, given + ji + 1);
    });
}

// The (max, +) chart of the best tree, in natural units, with the maximum of each choice.
template <class T>
void best_inside(const SpanGroup<T> &g, const Chart<T> &chart, const Vec<T> *scores) {
    fill<T, false>(g, chart[values], scores, T(1),
            [&](size_t ij, size_t, const Vec<T> *left, const Vec<T> *right, int splits) {
                const Vec<T> top = best_split<T>(left, right, splits);
                return chart[top_scale][ij] = vmax<T>(top, splat<T>(T(forbidden)));
            });
}

struct Item {
    int i, j;
};

// Follow a derivation down from the whole sentence of a lane, depth first, the left antecedent before the
// right one. `pick(left, right, splits, ij, ji)` chooses a split, and `emit(i, j, k)` receives every span
// with its last word on the left, k = j for a word. `stack` has room for size + 1 items.
template <class T, class Pick, class Emit>
void derive(const SpanGroup<T> &g, const Chart<T> &chart, int lane, Item *stack, Pick pick, Emit emit) {
    const size_t N = g.size;
    const auto *v = chart[values];
    int depth = 0;
    if (g.last(lane) >= 0) stack[depth++] = {0, g.last(lane)};
    while (depth > 0) {
        const auto [i, j] = stack[--depth];
        const size_t ij = i * N + j, ji = j * N + i, ii = i * N + i;
        const int k = i == j ? j : i + pick(v + ii, v + ji + 1, j - i, ij, ji);
        emit(i, j, k);
        if (i == j) continue;
        stack[depth++] = {k + 1, j};
        stack[depth++] = {i, k};
    }
}

// The tree of the best score in a lane; ties go to the smallest split.
template <class T, class Emit>
void derive_best(const SpanGroup<T> &g, const Chart<T> &chart, int lane, Item *stack, Emit emit) {
    const auto pick = [&](const Vec<T> *left, const Vec<T> *right, int splits, size_t ij, size_t) {
        return first_split<T>(left, right, splits, chart[top_scale][ij][lane], lane);
    };
    derive<T>(g, chart, lane, stack, pick, emit);
}

template <class T, class Emit>
void best_of_lane(const SpanGroup<T> &g, const Chart<T> &chart, int lane, Item *stack, Emit emit) {
    derive_best<T>(g, chart, lane, stack, [&](int i, int j, int) { emit(i, j); });
}

// One exact sample of a lane; decision t uses uniforms[t].
template <class T>
void sample_of_lane(const SpanGroup<T> &g, const Chart<T> &chart, int lane, const T *uniforms,
                    Item *stack, T *out) {
    const int64_t full = g.groups.size();
    const auto *kept = chart[top_scale];
    const auto pick = [&](const Vec<T> *left, const Vec<T> *right, int splits, size_t ij, size_t ji) {
        return sampled_split<T>(left, right, splits, kept[ij], kept[ji], lane, *uniforms++);
    };
    derive<T>(g, chart, lane, stack, pick, [=](int i, int j, int) { out[i * full + j] = 1; });
}

// Shift `scores` so that chart values stay small where it matters, in the lanes that need it; returns what
// was taken off every tree. Why this changes no tree is in the README.
template <class T>
Vec<T> centre(const SpanGroup<T> &g, const Chart<T> &chart, Vec<T> *scores, Item *stack) {
    const size_t N = g.size;
    Vec<T> size = {}, total = {}, least = {};
    for (size_t j = 0; j < N; ++j) {
        const Vec<T> word = scores[j * N + j];
        Vec<T> top = splat<T>(T(forbidden));
        for (size_t i = 0; i < j; ++i) top = vmax<T>(top, scores[i * N + j]);
        size += vmax<T>(word, -word);
        size += top > splat<T>(T(forbidden / 2)) ? vmax<T>(top, -top) : Vec<T>{};
    }
    IVec<T> needed = size > splat<T>(T(centre_above<T>));
    if (!any_nonzero<T>(bits_as_real<T>(needed & bits_as_int<T>(splat<T>(1))))) return total;
    best_inside<T>(g, chart, scores);
    Vec<T> *split = chart[inner];  // score of the best tree's span that splits after a word
    std::memset(static_cast<void *>(split), 0, N * sizeof(Vec<T>));
    for (int l = 0; l < g.lanes; ++l) {
        const int last = g.last(l);
        if (!needed[l]) continue;
        total[l] = chart[values][last][l];
        if (!(total[l] > T(forbidden / 2))) {
            needed[l] = 0, total[l] = 0;
            continue;
        }
        least[l] = last > 0 ? T(limit) : T(0);
        derive_best<T>(g, chart, l, stack, [&](int i, int j, int k) {
            if (i == j) return;
            split[k][l] = scores[i * N + j][l];
            if (std::abs(split[k][l]) < std::abs(least[l])) least[l] = split[k][l];
        });
        split[last][l] = least[l];
    }
    for (size_t i = 0; i < N; ++i) {
        scores[i * N + i] = needed ? least - split[i] : scores[i * N + i];
        for (size_t j = i + 1; j < N; ++j) scores[i * N + j] -= least;
    }
    return total;
}

}  // namespace
