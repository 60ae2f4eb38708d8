// Projective trees by Eisner's algorithm. See src/treelax/ops/eisner/README.md for the derivation.

#include "chart.h"

namespace {

struct Program : Arcs {
    // The first planes are kept for the backward pass. Those split in two hold one quantity above and
    // another below the diagonal.
    enum Plane {
        complete_right,    // C→
        complete_left,     // C←
        incomplete,        // above: I→(i, j); below, at [j][i]: I←(i, j)
        tree,              // contributions of I→ and I←, that is, the tree
        given,             // above: contributions of C→; below: of C← (while summing: of C→)
        saved_planes,
        value_inner = saved_planes,  // value of U
        top_inner,         // above: max of U; below: max of C→
        scale_inner,       // above: 1/z of U; below: 1/z of C→
        top_scale_left,    // above: max of C←; below: 1/z of C←
        given_left,        // contributions of C← while summing
        chart_planes,
        refilled_planes = given_left - saved_planes,  // of those, by the backward pass: cheaper than to keep
        spare = given,
        best_planes = value_inner + 1,  // the planes of the best tree
    };
    // Planes of the backward pass.
    enum GradPlane {
        grad_right,       // ḡ of C→; that is the adjoint of its contribution
        grad_left,        // ḡ of C←
        grad_incomplete,  // in: gradient of the tree; then the adjoints of the contributions of I→ and I←
        grad_inner,       // above: ḡ of U
        value_right,      // adjoint of the value of C→
        value_left,       // the same for C←
        value_incomplete, // adjoints of the values of I→ and I←: the gradient of the scores
        grad_planes,
    };
    enum { I, C_left, C_right };
    // on the way down C→ comes before C←: its contributions arrive where those of C← are kept
    static constexpr Rule rules[] = {
        // U(i,j) = <C→(i,k), C←(k+1,j)>, i ≤ k < j;  I→ = U + W[i,j], I← = U + W[j,i]
        {{C_right, 0}, {C_left, 1}, Scored::arcs, true, true,
         incomplete, tree, grad_incomplete, value_incomplete, value_inner, grad_inner,
         {top_inner, false}, {scale_inner, false}, {}},
        // C←(i,j) = <C←(i,k), I←(k,j)>, i ≤ k < j; nothing stands left of the root
        {{C_left, 0}, {I, 0}, Scored::no, false, false,
         complete_left, given_left, grad_left, value_left, complete_left, grad_left,
         {top_scale_left, false}, {top_scale_left, true}, {given, true}},
        // C→(i,j) = <I→(i,k), C→(k,j)>, i < k ≤ j
        {{I, 1}, {C_right, 1}, Scored::no, true, false,
         complete_right, given, grad_right, value_right, complete_right, grad_right,
         {top_inner, true}, {scale_inner, true}, {given, false}},
    };

    static int64_t decisions(int64_t size) { return 2 * (size - 1); }

    // Shift the columns of `scores` so that the best tree scores 0, as the README derives. Whether a lane needs
    // it depends on that lane alone, so neighbours still do not matter.
    template <class T>
    static Vec<T> centre(const Group<T, Program> &g, Chart<T> chart, Vec<T> *scores, Item *stack) {
        const size_t N = g.size;
        Vec<T> last, size = {}, total = {};  // rows and columns beyond the last word hold no scores
        for (int l = 0; l < g.lanes; ++l) last[l] = T(g.last(l));
        for (size_t m = 1; m < N; ++m) {
            Vec<T> top = splat<T>(T(forbidden));
            for (size_t h = 0; h < N; ++h)
                if (h != m) top = vmax<T>(top, splat<T>(T(h)) <= last ? scores[h * N + m] : top);
            size += splat<T>(T(m)) <= last ? vmax<T>(top, -top) : Vec<T>{};
        }
        const IVec<T> needed = size > splat<T>(T(centre_above<T>));
        if (!any<T>(needed)) return total;
        best_inside(g, chart, scores);
        for (int l = 0; l < g.lanes; ++l) {
            const int length = g.last(l);
            const T best = chart[complete_right][length][l];
            if (!needed[l] || length == 0 || !(best > T(forbidden / 2))) continue;
            best_of_lane(g, chart, l, stack, [&](int head, int m, int) {
                const T shift = scores[head * N + m][l];
                total[l] += shift;
                for (int h = 0; h <= length; ++h) scores[h * N + m][l] -= shift;
            });
        }
        return total;
    }
};

}  // namespace

#include "calls.h"  // the calls need the program

TREELAX_EXPORT int64_t TREELAX_NAME(lanes, f32)() { return Simd<float>::lanes; }
TREELAX_EXPORT int64_t TREELAX_NAME(lanes, f64)() { return Simd<double>::lanes; }
TREELAX_CALLS()
