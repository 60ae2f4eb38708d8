// Binary trees over spans by CKY. See src/treelax/ops/cky/README.md for the derivation.

#include "chart.h"

namespace {

struct Program : Spans {
    // The first planes are kept for the backward pass.
    enum Plane {
        values,     // v
        inner,      // value of the choice among the splits, before the span's own score
        top_scale,  // above: maximum of the splits; below: 1/z
        tree,       // above: contributions, that is, the tree (while summing: those of right operands below)
        saved_planes,
        chart_planes = saved_planes,
        refilled_planes = 0,
        spare = inner,
        best_planes = inner + 1,  // the planes of the best tree
    };
    // Planes of the backward pass.
    enum GradPlane {
        grad_spans,   // in, above: gradient of the tree; then, above and below, adjoints of contributions
        grad_mean,    // above: ḡ, the adjoint of a contribution without the gradient of the tree
        value_spans,  // adjoints of values: the gradient of the scores above (while summing, as in `tree`)
        grad_planes,
    };
    // v(i,i) = w(i,i);  v(i,j) = w(i,j) + <v(i,k), v(k+1,j)>, i ≤ k < j
    static constexpr Rule rules[] = {
        {{0, 0}, {0, 1}, Scored::span, true, false,
         values, tree, grad_spans, value_spans, inner, grad_mean,
         {top_scale, false}, {top_scale, true}, {tree, false}},
    };

    static int64_t decisions(int64_t size) { return size - 1; }

    // Why this shift of `scores` changes no tree is in the README.
    template <class T>
    static Vec<T> centre(const Group<T, Program> &g, Chart<T> chart, Vec<T> *scores, Item *stack) {
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
        if (!any<T>(needed)) return total;
        best_inside(g, chart, scores);
        Vec<T> *split = chart[top_scale];  // score of the best tree's span that splits after a word
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
            best_of_lane(g, chart, l, stack, [&](int i, int j, int k) {
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
};

}  // namespace

#include "calls.h"  // the calls need the program

TREELAX_CALLS(cky_)
