// From a filled chart to discrete trees, one lane at a time: O(n^2) a tree.
#pragma once

#include "sweeps.h"

namespace {

struct Item {
    enum Kind { complete_right_item, complete_left_item, incomplete_right_item, incomplete_left_item };
    Kind kind;
    int i, j;
};

// The cell of an item: its splits, and where its plane entries lie.
template <class T> struct CellView {
    const Vec<T> *left, *right;
    int splits;
    const Vec<T> &value, &top, &scale;
};

// Follow a derivation down from C→(0, length), depth first, the left antecedent before the right one.
// `pick(cell)` chooses a split; `emit(head, modifier)` receives every arc. `stack` has room for
// 2 * length + 2 items.
template <class T, class Pick, class Emit>
void derive(const Group<T> &g, const Chart<T> &chart, int length, Item *stack, Pick pick, Emit emit) {
    const size_t N = g.size;
    const auto *right = chart[complete_right], *left = chart[complete_left];
    const auto *inc = chart[incomplete], *top = chart[top_inner], *scale = chart[scale_inner];
    const auto *top_scale = chart[top_scale_left];
    int depth = 0;
    stack[depth++] = {Item::complete_right_item, 0, length};
    while (depth > 0) {
        const Item item = stack[--depth];
        const int i = item.i, j = item.j;
        const size_t ij = i * N + j, ji = j * N + i, ii = i * N + i;
        Item first, second;
        if (item.kind == Item::complete_right_item) {
            if (i == j) continue;
            const int k = i + 1 + pick(CellView<T>{inc + ii + 1, right + ji + 1, j - i, right[ij],
                                                   top[ji], scale[ji]});
            first = {Item::incomplete_right_item, i, k};
            second = {Item::complete_right_item, k, j};
        } else if (item.kind == Item::complete_left_item) {
            if (i == j) continue;
            const int k = i + pick(CellView<T>{left + ii, inc + ji, j - i, left[ij], top_scale[ij],
                                               top_scale[ji]});
            first = {Item::complete_left_item, i, k};
            second = {Item::incomplete_left_item, k, j};
        } else {
            if (item.kind == Item::incomplete_right_item) emit(i, j);
            else emit(j, i);
            const int k = i + pick(CellView<T>{right + ii, left + ji + 1, g.inner_splits(i, j),
                                               chart[value_inner][ij], top[ij], scale[ij]});
            first = {Item::complete_right_item, i, k};
            second = {Item::complete_left_item, k + 1, j};
        }
        stack[depth++] = second;
        stack[depth++] = first;
    }
}

// The tree of the best score in a lane; ties go to the smallest split.
template <class T, class Emit>
void best_of_lane(const Group<T> &g, const Chart<T> &chart, int lane, Item *stack, Emit emit) {
    const auto pick = [lane](const CellView<T> &cell) {
        return first_split<T>(cell.left, cell.right, cell.splits, cell.value[lane], lane);
    };
    derive<T>(g, chart, int(g.groups.length(g.index, lane)), stack, pick, emit);
}

// One exact sample of a lane; decision t uses uniforms[t].
template <class T>
void sample_of_lane(const Group<T> &g, const Chart<T> &chart, int lane, const T *uniforms,
                    Item *stack, T *out) {
    const int64_t full = g.groups.size();
    int decision = 0;
    const auto pick = [&](const CellView<T> &cell) {
        return sampled_split<T>(cell.left, cell.right, cell.splits, cell.top, cell.scale, lane,
                                uniforms[decision++]);
    };
    derive<T>(g, chart, int(g.groups.length(g.index, lane)), stack, pick,
              [=](int h, int m) { out[h * full + m] = 1; });
}

// Shift the columns of `scores` so that the best tree scores 0, in the lanes that need it; returns the
// score of that tree.
//
// A constant added to a column changes no tree, soft or discrete. Chart values grow with the length and
// with the scores, and with them the rounding of the differences that a softmax sees: 80 words with arcs
// of about 20 add up to 1600, where float32 has steps of 1e-4. After the shift the items on the
// best derivation are 0 and those that compete with it are small, wherever it matters. Whether a lane
// needs it depends on that lane alone, so neighbours still do not matter.
template <class T>
Vec<T> centre(const Group<T> &g, const Chart<T> &chart, Vec<T> *scores, Item *stack) {
    const size_t N = g.size;
    Vec<T> last;  // the last word of each lane; rows and columns beyond it hold no scores
    for (int l = 0; l < g.lanes; ++l) last[l] = T(g.groups.length(g.index, l));
    Vec<T> size = {};
    for (size_t m = 1; m < N; ++m) {
        Vec<T> top = splat<T>(T(forbidden));
        for (size_t h = 0; h < N; ++h)
            if (h != m) top = vmax<T>(top, splat<T>(T(h)) <= last ? scores[h * N + m] : top);
        size += splat<T>(T(m)) <= last ? vmax<T>(top, -top) : Vec<T>{};
    }
    Vec<T> total = {};
    const IVec<T> needed = size > splat<T>(T(centre_above<T>));
    if (!any_nonzero<T>(bits_as_real<T>(needed & bits_as_int<T>(splat<T>(1))))) return total;
    best_inside<T>(g, chart, scores);
    for (int l = 0; l < g.lanes; ++l) {
        const int length = int(g.groups.length(g.index, l));
        const T best = chart[complete_right][length][l];
        if (!needed[l] || length == 0 || !(best > T(forbidden / 2))) continue;
        best_of_lane<T>(g, chart, l, stack, [&](int head, int m) {
            const T shift = scores[head * N + m][l];
            total[l] += shift;
            for (int h = 0; h <= length; ++h) scores[h * N + m][l] -= shift;
        });
    }
    return total;
}

}  // namespace
