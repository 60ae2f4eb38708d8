// Chains, segments and alignments: the calls of programs over positions, as those in calls.h. Scores are
// (batch, n, longest, tails, states), or (batch, n, m, 3) for a grid, whose lengths are pairs.

#include "paths.h"

#include "entry.h"
#include "threads.h"

namespace {

constexpr double path_steps_per_thread = 200000;  // edges

template <class T> struct Call {
    const T *scores;
    const int64_t *lengths;
    int64_t batch;
    Sizes sizes;
    int64_t threads;
    const int *stop;

    // work(sentence, its scores, nodes, scratch behind those, whether a part is NaN); results in all but the padding
    template <class G, class Work> int each(T *saved, int64_t more_planes, const Work &work) const {
        using N = Nodes<T, G>;
        for (int64_t b = 0; b < batch; ++b)
            if (!G::in_range(sizes, lengths + b * G::dims)) return bad_length;
        const int64_t size = G::scores(sizes), kept = N::saved_vectors(sizes);
        const double worth = double(batch) * double(size) / path_steps_per_thread;
        return for_each(batch, worth, threads, stop, [&](int64_t b) {
            constexpr int64_t lanes = Wide<T>::lanes;
            const G g(sizes, lengths + b * G::dims);
            const int64_t plane = N::plane_vectors(sizes) + 1;
            const int64_t offsets = (G::positions(sizes) * 2 + lanes - 1) / lanes + 1;  // of doubles
            bool nan = false, bad = false;
            const T *used_scores = scores + b * size;
            const bool odd = !clean(used_scores, g.scores_used());
            const Scratch<T> scratch((saved ? 0 : kept) + more_planes * plane + offsets +
                                     (odd ? (size + lanes - 1) / lanes : 0));
            if (!scratch.get()) return out_of_memory;
            T *memory = reinterpret_cast<T *>(scratch.get()), *base = saved ? saved + b * kept * lanes : memory;
            if (!saved) memory += kept * lanes;
            T *more = memory + lanes;
            memory += more_planes * plane * lanes;
            double *const offset = reinterpret_cast<double *>(memory);
            memory += offsets * lanes;
            if (odd) {
                bound(used_scores, memory, g.scores_used());
                for (int64_t k = 0; k < g.scores_used(); ++k) {
                    if (used_scores[k] < T(__builtin_huge_val()) || !g.is_part(k)) continue;
                    nan |= used_scores[k] != used_scores[k];
                    bad = true;
                }
                used_scores = memory;
            }
            const N nodes(g, used_scores, base, offset, stop);
            const int status = work(b, nodes, more, nan);
            return status | (bad ? bad_score : 0);
        });
    }

    // Are all numbers scores that need no change?
    static bool clean(const T *x, int64_t count) {
        WideVec<T> wrong = {};
        typename Wide<T>::I odd = {};
        for (int64_t k = 0; k < count; k += Wide<T>::lanes) {
            const WideVec<T> v = load_some(x + k, count - k);
            odd |= ~((v >= wrong - T(limit)) & (v <= wrong + T(limit)));
        }
        for (int l = 0; l < Wide<T>::lanes; ++l)
            if (odd[l]) return false;
        return true;
    }

    // Scores as they are used: finite, a forbidden one `forbidden`.
    static void bound(const T *x, T *to, int64_t count) {
        for (int64_t k = 0; k < count; k += Wide<T>::lanes) {
            const WideVec<T> v = load_some(x + k, count - k), zero = {}, most = zero + T(limit);
            WideVec<T> w = v > most ? most : v < -most ? -most : v;
            w = v == zero - T(__builtin_huge_val()) ? zero + T(forbidden) : w;
            store_some(to + k, v == v ? w : zero, count - k);
        }
    }

    // NaN in all parts of a sentence in which one is NaN
    template <class G> void spoil(const G &g, T *target) const {
        for (int64_t k = 0; k < g.scores_used(); ++k)
            if (g.is_part(k)) target[k] = T(__builtin_nan(""));
    }
    static int write_value(T *to, double value, bool nan) {
        *to = nan ? T(__builtin_nan("")) : T(value);
        return value > forbidden / 2 ? 0 : no_tree;
    }

    template <class G, Choice choice> int soft(T *trees, T *values, T *saved) const {
        const int64_t size = G::scores(sizes);
        return each<G>(saved, 0, [&](int64_t b, const Nodes<T, G> &nodes, T *, bool nan) {
            const int status = write_value(values + b, nodes.template inside<choice>() * log_of_2, nan);
            if (trees) {
                nodes.outside(trees + b * size);
                if (nan) spoil(nodes.g, trees + b * size);
                nodes.taken[0] = nan ? T(__builtin_nan("")) : T(0);  // tells the backward pass
            }
            return status;
        });
    }
    template <class G, bool Entropy>
    int backward(const T *grad_tree, const T *grad_value, T *saved, T *grad) const {
        const int64_t size = G::scores(sizes);
        return each<G>(saved, 2, [&](int64_t b, const Nodes<T, G> &nodes, T *more, bool) {
            T *up = more + (Nodes<T, G>::plane_vectors(sizes) + 1) * Wide<T>::lanes;
            nodes.template backward<Entropy>(grad_tree + b * size, grad_value ? grad_value[b] : T(0), more, up,
                                             grad + b * size);
            if (nodes.taken[0] != nodes.taken[0]) spoil(nodes.g, grad + b * size);
            return 0;
        });
    }
    template <class G> int best(T *trees, T *values) const {
        const int64_t size = G::scores(sizes);
        return each<G>(nullptr, 0, [&](int64_t b, const Nodes<T, G> &nodes, T *, bool nan) {
            const int status = write_value(values + b, nodes.template inside<Choice::best>(), nan);
            T *tree = trees + b * size;
            std::memset(tree, 0, sizeof(T) * size_t(size));
            nodes.trace(T(1), FirstBest<T>(), [&](int64_t score) { tree[score] = 1; });
            if (nan) spoil(nodes.g, tree);
            return status;
        });
    }
    template <class G>
    int sample(const T *uniforms, int64_t samples, int64_t decisions, T *trees, T *values) const {
        const int64_t size = G::scores(sizes);
        return each<G>(nullptr, 0, [&](int64_t b, const Nodes<T, G> &nodes, T *, bool nan) {
            const double value = nodes.template inside<Choice::entropy>() * log_of_2;
            for (int64_t s = 0; s < samples && !given_up(stop); ++s) {
                T *tree = trees + (s * batch + b) * size;
                std::memset(tree, 0, sizeof(T) * size_t(size));
                const Sampled<T> pick{uniforms + (s * batch + b) * decisions};
                nodes.trace(T(log2_of_e), pick, [&](int64_t score) { tree[score] = 1; });
                if (nan) spoil(nodes.g, tree);
            }
            return write_value(values + b, value, nan);
        });
    }
};

// What a call does for a geometry: 0 steps, 1 joined steps, 2 a grid.
template <class Do> int of_kind(int64_t kind, Do todo) {
    if (kind == 0) return todo(static_cast<Steps<false> *>(nullptr));
    if (kind == 1) return todo(static_cast<Steps<true> *>(nullptr));
    return todo(static_cast<Grid *>(nullptr));
}
template <class Pointer> using Pointee = std::remove_pointer_t<Pointer>;

}  // namespace

#define TREELAX_CALL(T)                                                                                 \
    const Call<T> call{scores, lengths, batch, {sizes[0], sizes[1], sizes[2], sizes[3]}, threads, stop}
#define TREELAX_PATHS(T, type)                                                                          \
    TREELAX_EXPORT int64_t TREELAX_NAME(path_soft_tree, type)(                                          \
        const T *scores, const int64_t *lengths, int64_t batch, const int64_t *sizes, int64_t kind,     \
        int64_t entropy, T *trees, T *values, T *saved, int64_t threads, const int *stop) {             \
        TREELAX_CALL(T);                                                                                \
        return of_kind(kind, [&](auto *g) {                                                             \
            using G = Pointee<decltype(g)>;                                                             \
            return entropy ? call.template soft<G, Choice::entropy>(trees, values, saved)               \
                           : call.template soft<G, Choice::softmax>(trees, values, saved);              \
        });                                                                                             \
    }                                                                                                   \
    TREELAX_EXPORT int64_t TREELAX_NAME(path_soft_tree_backward, type)(                                 \
        const T *scores, const int64_t *lengths, int64_t batch, const int64_t *sizes, int64_t kind,     \
        int64_t entropy, const T *grad_tree, const T *grad_value, T *saved, T *grad, int64_t threads,   \
        const int *stop) {                                                                              \
        TREELAX_CALL(T);                                                                                \
        return of_kind(kind, [&](auto *g) {                                                             \
            using G = Pointee<decltype(g)>;                                                             \
            return entropy ? call.template backward<G, true>(grad_tree, grad_value, saved, grad)        \
                           : call.template backward<G, false>(grad_tree, grad_value, saved, grad);      \
        });                                                                                             \
    }                                                                                                   \
    TREELAX_EXPORT int64_t TREELAX_NAME(path_best_tree, type)(                                          \
        const T *scores, const int64_t *lengths, int64_t batch, const int64_t *sizes, int64_t kind,     \
        T *trees, T *values, int64_t threads, const int *stop) {                                        \
        TREELAX_CALL(T);                                                                                \
        return of_kind(kind,                                                                            \
                       [&](auto *g) { return call.template best<Pointee<decltype(g)>>(trees, values); }); \
    }                                                                                                   \
    TREELAX_EXPORT int64_t TREELAX_NAME(path_sample_tree, type)(                                        \
        const T *scores, const int64_t *lengths, int64_t batch, const int64_t *sizes, int64_t kind,     \
        const T *uniforms, int64_t samples, int64_t decisions, T *trees, T *values, int64_t threads,    \
        const int *stop) {                                                                              \
        TREELAX_CALL(T);                                                                                \
        return of_kind(kind, [&](auto *g) {                                                             \
            using G = Pointee<decltype(g)>;                                                             \
            return call.template sample<G>(uniforms, samples, decisions, trees, values);                \
        });                                                                                             \
    }
TREELAX_PATHS(float, f32)
TREELAX_PATHS(double, f64)
