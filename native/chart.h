// The engine of chart programs: the four sweeps, best trees and samples, from a table of rules. See
// src/treelax/ops/eisner/README.md for the derivation, eisner.cpp and cky.cpp for tables.
//
// A rule makes an item of the span (i, j) from two smaller ones. In a plane, what belongs to a span lies above
// the diagonal, at [i][j], or below, at [j][i]. Values are in both places, so that both operands of every split
// sum are contiguous in k: the left one in row i, the right one in row j. Hence contributions and adjoints
// arrive above where the item is a left operand, and below where it is a right one.
//
// The rules of a program come in the order in which a cell is filled. The first one makes the parts of a tree,
// the last one the whole sentence. The compiler knows them and unrolls a cell to what one would write by hand.
#pragma once

#include <iterator>

#include "group.h"

namespace {

// The item that rule `rule` makes; its splits begin at column i + shift.
struct Operand {
    int rule, shift;
};

struct Place {
    int plane;
    bool below;
};

// Whether an item is a part of the tree, with a score: a span, or one of two arcs, above from i to j and below
// from j to i. Both are made by the same rule; the left operand is the arc above, the right one that below.
enum class Scored { no, span, arcs };

struct Rule {
    Operand left, right;
    Scored scored;
    bool rooted;       // spans of the root have this item
    bool single_root;  // and there, it has one split if there is a single root
    int value, contribution, grad, grad_value;  // planes of the item; adjoints of the contribution, of the value
    int choice, mean;  // of the choice, above: its value before the score, and ḡ; without a score the item's
    Place top, scale;  // of the choice: maximum of the splits and 1/z
    Place given;       // the contribution for the backward pass; arcs leave theirs where they arrive
};

// A program P is a kind of parts (`Arcs` or `Spans`) with `rules` and
//   planes            see calls.h
//   decisions(size)   how many uniform variables a sample takes
//   centre(...)       shifts scores so that chart values stay small where it matters, in the lanes that need
//                     it, and returns what was taken off every tree
template <class P> constexpr Rule parts = P::rules[0];
template <class P> constexpr int last_rule = int(std::size(P::rules)) - 1;
template <class P> constexpr Rule goal = P::rules[last_rule<P>];

// Rule R of a program at a span.
template <class P, int R> struct Step {
    static constexpr int index = R;
    static constexpr Rule rule = P::rules[R];
    const size_t ij, ji, ii;
    const int splits;

    template <class G>
    Step(const G &g, int i, int j)
        : ij(size_t(i) * g.size + j), ji(size_t(j) * g.size + i), ii(size_t(i) * g.size + i),
          splits(rule.single_root ? g.inner_splits(i, j) : j - i) {}

    // the operands of all splits, in one of their planes
    template <class T> Vec<T> *left(const Chart<T> &chart, int Rule::*plane) const {
        return chart[P::rules[rule.left.rule].*plane] + ii + rule.left.shift;
    }
    template <class T> Vec<T> *right(const Chart<T> &chart, int Rule::*plane) const {
        return chart[P::rules[rule.right.rule].*plane] + ji + rule.right.shift;
    }
    template <class T> Vec<T> &at(const Chart<T> &chart, Place place) const {
        return chart[place.plane][place.below ? ji : ij];
    }
};

template <class P, class G, class Visit, size_t... R>
inline void each_rule(const G &g, int i, int j, std::index_sequence<R...>, Visit visit) {
    ((P::rules[R].rooted || i > 0 ? visit(Step<P, R>(g, i, j)) : void()), ...);
}
template <class P, class G, class Visit, size_t... R>
inline void each_rule_reversed(const G &g, int i, int j, std::index_sequence<R...>, Visit visit) {
    each_rule<P>(g, i, j, std::index_sequence<(last_rule<P> - R)...>(), visit);
}
template <class P> constexpr auto all_rules = std::make_index_sequence<std::size(P::rules)>();

// Values of all items, bottom-up, in units of 1 / unit. `choose(step, left, right)` is the choice among splits; a
// maximum alone need not be staggered.
template <bool Staggered, class T, class P, class Choose>
inline void fill(const Group<T, P> &g, Chart<T> chart, const Vec<T> *scores, T unit, Choose choose) {
    for (const Rule &rule : P::rules)
        for (size_t ii = 0; ii < g.plane_vectors(); ii += g.size + 1)
            chart[rule.value][ii] = rule.scored == Scored::span ? scores[ii] * unit : Vec<T>{};
    bottom_up<Staggered>(g, [&](const int i, const int j) {
        each_rule<P>(g, i, j, all_rules<P>, [&](auto step) {
            constexpr Rule rule = step.rule;
            const size_t ij = step.ij, ji = step.ji;
            // GCC fuses the product and the sum at the end of `soft_split` where it knows that there is a
            // split. Bits depend on that, so we decide where it knows: for this rule here, but not in `up`.
            if (!lone && rule.single_root && step.splits < 1) __builtin_unreachable();
            const Vec<T> value =
                choose(step, step.left(chart, &Rule::value), step.right(chart, &Rule::value));
            Vec<T> *item = chart[rule.value];
            chart[rule.choice][ij] = value;
            if constexpr (rule.scored == Scored::arcs) {
                item[ij] = value + scores[ij] * unit;
                item[ji] = value + scores[ji] * unit;
            } else if constexpr (rule.scored == Scored::span) {
                item[ij] = item[ji] = value + scores[ij] * unit;
            } else {
                item[ji] = value;  // the item is the choice
            }
        });
    });
}

// Sweep 1, bottom-up: values of all items, with the maximum and normaliser of each cell. The scores come
// in natural units: scaling them beforehand would cost digits and ties in all that is done with them.
template <bool Entropy, class T, class P>
void inside(const Group<T, P> &g, Chart<T> chart, const Vec<T> *scores) {
    const size_t N = g.size;
    // whatever has no meaning: what is kept is the same in every run
    for (size_t i = 0; i < N; ++i)
        for (int plane = 0; plane < P::tree; ++plane)
            chart[plane][i] = chart[plane][i * N] = chart[plane][i * N + i] = Vec<T>{};
    fill<true>(g, chart, scores, T(log2_of_e), [&](auto step, const Vec<T> *left, const Vec<T> *right) {
        const Cell<T> cell = soft_split<T, Entropy>(left, right, step.splits);
        step.at(chart, step.rule.top) = cell.top, step.at(chart, step.rule.scale) = cell.scale;
        if (step.rule.choice < P::saved_planes) chart[step.rule.choice][step.ji] = cell.value;
        return cell.value;
    });
}

// The (max, +) chart of the best tree, in natural units: values only, no back-pointers.
template <class T, class P>
void best_inside(const Group<T, P> &g, Chart<T> chart, const Vec<T> *scores) {
    fill<false>(g, chart, scores, T(1), [&](auto step, const Vec<T> *left, const Vec<T> *right) {
        return vmax<T>(best_split<T>(left, right, step.splits), splat<T>(T(forbidden)));
    });
}

// Sweep 2, top-down: contributions. Leaves the tree in its plane, and the total contributions of
// other items where they are kept.
template <class T, class P> void outside(const Group<T, P> &g, Chart<T> chart) {
    for (const Rule &rule : P::rules)
        std::memset(static_cast<void *>(chart[rule.contribution]), 0, g.plane_vectors() * sizeof(Vec<T>));
    for (int j = 0; j < g.size; ++j) chart[goal<P>.contribution][j] = g.goal(j);
    top_down(g, [&](const int i, const int j) {
        each_rule_reversed<P>(g, i, j, all_rules<P>, [&](auto step) {
            constexpr Rule rule = step.rule;
            const Vec<T> a = chart[rule.contribution][step.ij] + chart[rule.contribution][step.ji];
            if constexpr (rule.scored != Scored::arcs) step.at(chart, rule.given) = a;
            if (any_nonzero<T>(a))
                hand_down<T>(step.left(chart, &Rule::value), step.right(chart, &Rule::value), step.splits,
                             step.at(chart, rule.top), step.at(chart, rule.scale), a,
                             step.left(chart, &Rule::contribution),
                             step.right(chart, &Rule::contribution));
        });
    });
}

// Sweep 3, bottom-up: adjoints of all contributions. Choices that are not kept are made once more.
template <bool Entropy, class T, class P> void up(const Group<T, P> &g, Chart<T> chart, Chart<T> grad) {
    for (const Rule &rule : P::rules)
        for (size_t ii = 0; rule.scored == Scored::no && ii < g.plane_vectors(); ii += g.size + 1)
            grad[rule.grad][ii] = Vec<T>{};
    bottom_up(g, [&](const int i, const int j) {
        each_rule<P>(g, i, j, all_rules<P>, [&](auto step) {
            constexpr Rule rule = step.rule;
            const size_t ij = step.ij, ji = step.ji;
            const Vec<T> *left = step.left(chart, &Rule::value), *right = step.right(chart, &Rule::value);
            const Vec<T> *grad_left = step.left(grad, &Rule::grad);
            const Vec<T> *grad_right = step.right(grad, &Rule::grad);
            Vec<T> mean;
            if constexpr (rule.top.plane < P::saved_planes) {
                mean = expected_grad<T>(left, right, grad_left, grad_right, step.splits,
                                        step.at(chart, rule.top), step.at(chart, rule.scale));
            } else {
                int splits = step.splits;
                asm("" : "+r"(splits));  // unknown to GCC, see `fill`
                const Cell<T> cell =
                    soft_split<T, Entropy>(left, right, splits, grad_left, grad_right, &mean);
                step.at(chart, rule.top) = cell.top, step.at(chart, rule.scale) = cell.scale;
                if constexpr (rule.choice >= P::saved_planes) chart[rule.choice][ij] = cell.value;
            }
            Vec<T> *item = grad[rule.grad];
            grad[rule.mean][ij] = mean;
            if constexpr (rule.scored == Scored::arcs) item[ij] += mean, item[ji] += mean;
            else item[ij] = item[ji] = rule.scored == Scored::span ? item[ij] + mean : mean;
        });
    });
}

// Sweep 4, top-down: adjoints of all values. The goal already holds the gradient of the value of the
// whole sentence.
template <bool Entropy, class T, class P> void down(const Group<T, P> &g, Chart<T> chart, Chart<T> grad) {
    top_down(g, [&](const int i, const int j) {
        each_rule_reversed<P>(g, i, j, all_rules<P>, [&](auto step) {
            constexpr Rule rule = step.rule;
            const size_t ij = step.ij, ji = step.ji;
            constexpr bool arcs = rule.scored == Scored::arcs;
            const Vec<T> *tree = chart[rule.contribution];
            Vec<T> *value = grad[rule.grad_value];
            const Vec<T> a = arcs ? tree[ij] + tree[ji] : step.at(chart, rule.given);
            const Vec<T> gv = value[ij] + value[ji];
            if constexpr (rule.scored == Scored::span) value[ij] = gv;
            if (!any_nonzero<T>(a) && !any_nonzero<T>(gv)) return;
            hand_down_grad<T, Entropy>(
                step.left(chart, &Rule::value), step.right(chart, &Rule::value),
                step.left(grad, &Rule::grad), step.right(grad, &Rule::grad), step.splits,
                {step.at(chart, rule.top), step.at(chart, rule.scale), chart[rule.choice][ij]}, a,
                grad[rule.mean][ij], gv, step.left(grad, &Rule::grad_value),
                step.right(grad, &Rule::grad_value));
        });
    });
}

// An item of a derivation; `below` says which of two arcs it is.
struct Item {
    int rule, i, j;
    bool below;
};

// Follow a derivation down from the whole sentence of a lane, depth first, the left operand before the
// right one: O(n^2) a tree. `pick(step, left, right)` chooses a split; `emit(row, column, k)` receives every part,
// with the last word k of its left operand, or of the word that it is. `stack` has room for 2 * size + 2 items.
template <class T, class P, class Pick, class Emit>
void derive(const Group<T, P> &g, const Chart<T> &chart, int lane, Item *stack, Pick pick, Emit emit) {
    int depth = 0;
    if (g.last(lane) >= 0) stack[depth++] = {last_rule<P>, 0, g.last(lane), false};
    while (depth > 0) {
        const Item &item = stack[--depth];
        const int made_by = item.rule, i = item.i, j = item.j;
        const bool below = item.below;
        each_rule<P>(g, i, j, all_rules<P>, [&](auto step) {
            constexpr Rule rule = step.rule;
            if (last_rule<P> > 0 && step.index != made_by) return;
            if (i == j) {
                if constexpr (rule.scored == Scored::span) emit(i, j, j);
                return;
            }
            const int split =
                pick(step, step.left(chart, &Rule::value), step.right(chart, &Rule::value));
            const int k = i + rule.left.shift + split;
            if constexpr (rule.scored == Scored::arcs) emit(below ? j : i, below ? i : j, k);
            if constexpr (rule.scored == Scored::span) emit(i, j, k);
            stack[depth++] = {rule.right.rule, i + rule.right.shift + split, j, true};
            stack[depth++] = {rule.left.rule, i, k, false};
        });
    }
}

// The tree of the best score in a lane; ties go to the smallest split.
template <class T, class P, class Emit>
void best_of_lane(const Group<T, P> &g, const Chart<T> &chart, int lane, Item *stack, Emit emit) {
    const auto pick = [&](auto step, const Vec<T> *left, const Vec<T> *right) {
        return first_split<T>(left, right, step.splits, chart[step.rule.choice][step.ij][lane], lane);
    };
    derive(g, chart, lane, stack, pick, emit);
}

// One exact sample of a lane; decision t uses uniforms[t].
template <class T, class P>
void sample_of_lane(const Group<T, P> &g, const Chart<T> &chart, int lane, const T *uniforms, Item *stack,
                    T *out) {
    const auto pick = [&](auto step, const Vec<T> *left, const Vec<T> *right) {
        return sampled_split<T>(left, right, step.splits, step.at(chart, step.rule.top),
                                step.at(chart, step.rule.scale), lane, *uniforms++);
    };
    const auto emit = [out, full = g.groups.size()](int h, int m, int) { out[h * full + m] = 1; };
    derive(g, chart, lane, stack, pick, emit);
}

}  // namespace
