// From a filled chart to discrete trees, one lane at a time: O(n^2) a tree.
#pragma once

#include <cmath>

#include "sweeps.h"

namespace {

struct Item {
    enum Kind { complete_right_item, complete_left_item, incomplete_right_item, incomplete_left_item };
    Kind kind;
    int i, j;
};

// Follow a derivation down from C→(0, length), depth first, the left antecedent before the right one.
// `pick(left, right, splits, top, scale)` chooses a split; `emit(head, modifier)` receives every arc.
// `stack` has room for 2 * length + 2 items.
template <class T, class Pick, class Emit>
void derive(const Group<T> &g, const Chart<T> &chart, int length, Item *stack, Pick pick, Emit emit) {
    const size_t N = g.size;
    const auto *right = chart[complete_right], *left = chart[complete_left];
    const auto *inc = chart[incomplete];
    int depth = 0;
    stack[depth++] = {Item::complete_right_item, 0, length};
    while (depth > 0) {
        const Item item = stack[--depth];
        const int i = item.i, j = item.j;
        const size_t ij = i * N + j, ji = j * N + i, ii = i * N + i;
        Item first, second;
        if (item.kind == Item::complete_right_item) {
            if (i == j) continue;
            const int k = i + 1 + pick(inc + ii + 1, right + ji + 1, j - i, top_inner, scale_inner, ji);
            first = {Item::incomplete_right_item, i, k};
            second = {Item::complete_right_item, k, j};
        } else if (item.kind == Item::complete_left_item) {
            if (i == j) continue;
            const int k = i + pick(left + ii, inc + ji, j - i, top_scale_left, -1, ij);
            first = {Item::complete_left_item, i, k};
            second = {Item::incomplete_left_item, k, j};
        } else {
            if (item.kind == Item::incomplete_right_item) emit(i, j);
            else emit(j, i);
            const int k =
                i + pick(right + ii, left + ji + 1, g.inner_splits(i, j), top_inner, scale_inner, ij);
            first = {Item::complete_right_item, i, k};
            second = {Item::complete_left_item, k + 1, j};
        }
        stack[depth++] = second;
        stack[depth++] = first;
    }
}

// The tree of the best score in a lane; ties go to the smallest split.
template <class T>
void best_of_lane(const Group<T> &g, const Chart<T> &chart, int lane, Item *stack, T *out) {
    const int64_t full = g.groups.size();
    const auto pick = [lane](const Vec<T> *left, const Vec<T> *right, int splits, int, int, size_t) {
        int best = 0;
        T top = left[0][lane] + right[0][lane];
        for (int k = 1; k < splits; ++k) {
            const T s = left[k][lane] + right[k][lane];
            if (s > top) top = s, best = k;
        }
        return best;
    };
    derive<T>(g, chart, int(g.groups.length(g.index, lane)), stack, pick,
              [=](int h, int m) { out[h * full + m] = 1; });
}

// One exact sample of a lane; decision t uses uniforms[t].
template <class T>
void sample_of_lane(const Group<T> &g, const Chart<T> &chart, int lane, const T *uniforms,
                    Item *stack, T *out) {
    const int64_t full = g.groups.size();
    const size_t N = g.size;
    int decision = 0;
    const auto pick = [&](const Vec<T> *left, const Vec<T> *right, int splits, int top_plane,
                          int scale_plane, size_t at) {
        // C← keeps its normaliser in the plane of its maximum, below the diagonal
        const T top = chart[top_plane][at][lane];
        const T scale = scale_plane >= 0 ? chart[scale_plane][at][lane]
                                         : chart[top_plane][(at % N) * N + at / N][lane];
        const T u = uniforms[decision++];
        T sum = 0;
        int last = 0;
        for (int k = 0; k < splits; ++k) {
            const T b = std::exp2(left[k][lane] + right[k][lane] - top) * scale;
            sum += b;
            if (sum > u) return k;
            if (b > 0) last = k;  // rounding may leave u above the total
        }
        return last;
    };
    derive<T>(g, chart, int(g.groups.length(g.index, lane)), stack, pick,
              [=](int h, int m) { out[h * full + m] = 1; });
}

}  // namespace
