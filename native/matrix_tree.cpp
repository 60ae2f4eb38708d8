// Entry points of non-projective trees; the interface is that of calls.h.

#include <new>

#include "arborescence.h"
#include "closed_form.h"
#include "entry.h"
#include "sampling.h"
#include "threads.h"

namespace {

// What is kept for the backward pass: `weights` and `reach` of Marginals. Sentences whose weights underflow
// have their scores instead of weights. Entry 0 of the first tells of NaN; that of the other has its
// largest entry, or infinity where weights underflow.
constexpr int saved_planes = 2;

template <class T>
int write_values(const Group<T> &g, const Vec<T> &value, const Faults<T> &faults, T *out) {
    int status = 0;
    for (int l = 0; l < g.lanes; ++l) {
        const int64_t b = g.groups.sentence(g.index, l);
        if (b < 0) break;
        out[b] = faults.nan[l] ? g.not_a_number : value[l];
        if (faults.bad[l]) status |= bad_score;
        if (!(value[l] > T(forbidden / 2))) status |= no_tree;
    }
    return status;
}

template <class T>
int marginal_tree(const T *scores, const int64_t *lengths, int64_t batch, int64_t size,
                  bool single_root, T *trees, T *values, T *saved, int64_t threads, const int *stop) {
    const Groups<T> groups(lengths, batch, size);
    return for_each_group(groups, threads, stop, [&](int64_t index) {
        const Group<T> g(groups, index, single_root, stop);
        const size_t plane = g.plane_vectors(), room = Marginals<Real<T>>::room(g.n);
        const Scratch<T> scratch(room + plane);
        if (!scratch.get()) return out_of_memory;
        // the tree takes the place of the scores
        Vec<T> *clean = scratch.get() + room, *tree = clean, *planes = scratch.get();
        if (saved) {
            planes = reinterpret_cast<Vec<T> *>(saved) + size_t(index) * saved_planes * size * size;
            std::memset(static_cast<void *>(planes + 2 * plane), 0,
                        saved_planes * (size_t(size) * size - plane) * sizeof(Vec<T>));
            for (int h = 0; h < g.size; ++h)  // what is no arc is not written below
                for (Vec<T> *p : {planes, planes + plane})
                    p[h * g.size] = p[h * g.size + h] = Vec<T>{};
        }
        g.gather(scores, clean);
        const Faults<T> faults = g.clean(clean);
        Marginals<Real<T>> marginals(g.n, last_words(g), single_root,
                                     reinterpret_cast<Real<T> *>(scratch.get()), stop,
                                     reinterpret_cast<Real<T> *>(planes));
        marginals.weigh(clean, nullptr);
        marginals.eliminate(!trees);
        if (trees) {
            for (int h = 0; h < g.size; ++h) tree[h * g.size] = tree[h * g.size + h] = Vec<T>{};
            marginals.arcs(
                [=, row = g.size](int h, int m, const Real<T> &p) { tree[h * row + m] = p.value; });
        }
        const auto redo = [&](Marginals<Log> &logs, const int *lanes, int count, Log *) {
            logs.eliminate(!trees);
            for (int j = 0; j < count; ++j) marginals.value[lanes[j]] = T(logs.value[j]);
            if (!trees) return;
            logs.arcs([&](int h, int m, const Log &p) {
                const Vec<double> x = p.weight();
                for (int j = 0; j < count; ++j)
                    trees[(groups.sentence(index, lanes[j]) * size + h) * size + m] = T(x[j]);
            });
        };
        const IVec<T> wide = ~marginals.in_range;
        if (any<T>(wide)) {
            if (trees) {  // write what is right and take the scores once more
                g.scatter(tree, trees);
                g.gather(scores, clean);
                g.clean(clean);
            }
            if (with_logarithms<T>(g, wide, clean, nullptr, 0, redo)) return out_of_memory;
        } else if (trees) {
            g.scatter(tree, trees);
        }
        if (trees) g.spoil(faults.nan, trees);
        if (saved) {
            if (any<T>(wide))
                for (size_t at = 0; at < plane; ++at) planes[at] = wide ? clean[at] : planes[at];
            planes[0] = faults.nan ? splat<T>(g.not_a_number) : Vec<T>{};
            planes[plane] = wide ? splat<T>(T(__builtin_huge_val())) : marginals.largest;
        }
        return write_values<T>(g, marginals.value, faults, values);
    });
}

// Where the closed form loses digits: the derivative of the marginals is the second derivative of the
// log-partition, hence symmetric. So the gradient of <G, marginals> is the derivative of the marginals in
// the direction G.
template <class T>
int marginal_tree_backward(const T *grad_tree, const T *grad_value, const T *saved,
                           const int64_t *lengths, int64_t batch, int64_t size, bool single_root,
                           T *grad_scores, int64_t threads, const int *stop) {
    const Groups<T> groups(lengths, batch, size);
    return for_each_group(groups, threads, stop, [&](int64_t index) {
        const Group<T> g(groups, index, single_root, stop);
        const size_t plane = g.plane_vectors(), room = Marginals<Dual<T>>::room(g.n);
        const Scratch<T> scratch(2 * plane + 2 * room);
        if (!scratch.get()) return out_of_memory;
        const Vec<T> *planes = reinterpret_cast<const Vec<T> *>(saved) +
                               size_t(index) * saved_planes * size * size;
        const auto *weights = reinterpret_cast<const Real<T> *>(planes), *reach = weights + plane;
        Vec<T> *direction = scratch.get(), *grad = direction + plane, *memory = grad + plane;
        Vec<T> factor = {};
        for (int l = 0; l < g.lanes; ++l) {
            const int64_t b = groups.sentence(index, l);
            if (grad_value && b >= 0) factor[l] = grad_value[b];
        }
        g.gather(grad_tree, direction);
        closed_form<T>(g, weights, reach, direction, factor, reinterpret_cast<Real<T> *>(memory),
                       reinterpret_cast<Real<T> *>(grad));
        const IVec<T> lost = ~(reach[0].value <= largest_reach<T>);
        if (any<T>(lost)) {
            Marginals<Dual<T>> marginals(g.n, last_words(g), single_root,
                                         reinterpret_cast<Dual<T> *>(memory), stop);
            marginals.take_weights(weights, direction);
            marginals.eliminate(false);
            marginals.arcs([&](int h, int m, const Dual<T> &p) {
                Vec<T> &at = grad[h * g.size + m];
                at = lost ? p.slope + factor * p.value : at;
            });
            const auto redo = [&](Marginals<Log> &logs, const int *lanes, int count, Log *) {
                logs.eliminate(false);
                logs.arcs([&](int h, int m, const Log &p) {
                    const Vec<double> value = p.weight(), slope = p.weight_slope();
                    for (int j = 0; j < count; ++j)
                        lane_of<T>(grad + h * g.size + m, lanes[j]) =
                            T(slope[j]) + factor[lanes[j]] * T(value[j]);
                });
            };
            const IVec<T> wide = ~(reach[0].value < T(__builtin_huge_val()));
            if (with_logarithms<T>(g, wide, planes, direction, 0, redo)) return out_of_memory;
        }
        g.scatter(grad, grad_scores);
        g.spoil(planes[0] != planes[0], grad_scores);
        return 0;
    });
}

template <class T>
int best_tree(const T *scores, const int64_t *lengths, int64_t batch, int64_t size, bool single_root,
              T *trees, T *values, int64_t threads, const int *stop) {
    const Groups<T> groups(lengths, batch, size);
    return for_each_group(groups, threads, stop, [&](int64_t index) {
        const Group<T> g(groups, index, single_root, stop);
        const Scratch<double> scratch(Arborescence<T>::room(g.n));
        if (!scratch.get()) return out_of_memory;
        Arborescence<T> best_heads(g.n, scratch.get());
        Faults<T> faults = {};
        Vec<T> value = {};
        for (int l = 0; l < g.lanes && !g.stopped(); ++l) {
            const int64_t b = groups.sentence(index, l);
            if (b < 0) break;
            const T *from = scores + b * size * size;
            T *tree = trees + b * size * size;
            const int length = g.last(l);
            const int *heads = best_heads(from, size, length, single_root);
            std::memset(tree, 0, sizeof(T) * size * size);
            double sum = 0;
            for (int m = 1; m <= length; ++m) {
                tree[heads[m] * size + m] = 1;
                sum += clean_score(from[heads[m] * size + m]);
            }
            value[l] = T(sum);
            faults.nan[l] = best_heads.nan ? -1 : 0;
            faults.bad[l] = best_heads.bad ? -1 : 0;
        }
        g.spoil(faults.nan, trees);
        return write_values<T>(g, value, faults, values);
    });
}

// Samples are lanes of their own: the scores are copied to where the trees go.
template <class T>
int sample_tree(const T *scores, const int64_t *lengths, const T *uniforms, int64_t samples,
                int64_t batch, int64_t size, bool single_root, T *trees, T *values,
                int64_t threads, const int *stop) {
    const int status = marginal_tree<T>(scores, lengths, batch, size, single_root, nullptr, values,
                                        nullptr, threads, stop);
    if (batch == 0 || status & (bad_length | out_of_memory)) return status;
    const std::unique_ptr<int64_t[]> repeated(new (std::nothrow) int64_t[samples * batch]);
    if (!repeated) return out_of_memory;
    for (int64_t s = 0; s < samples; ++s) {
        std::memcpy(trees + s * batch * size * size, scores, sizeof(T) * batch * size * size);
        std::memcpy(repeated.get() + s * batch, lengths, sizeof(int64_t) * batch);
    }
    const Groups<T> groups(repeated.get(), samples * batch, size);
    return status | for_each_group(groups, threads, stop, [&](int64_t index) {
        const Group<T> g(groups, index, single_root, stop);
        const size_t plane = g.plane_vectors(), room = Marginals<Real<T>>::room(g.n);
        const Scratch<T> scratch(plane + room + Sampler<Real<T>>::room(g.n));
        if (!scratch.get()) return out_of_memory;
        Vec<T> *clean = scratch.get();
        auto *memory = reinterpret_cast<Real<T> *>(clean + plane);
        g.gather(trees, clean);
        const Faults<T> faults = g.clean(clean);
        const auto sentence_uniforms = [&](int lane) {
            return uniforms + groups.sentence(index, lane) * size;
        };
        const auto write = [&](int lane, auto head) {
            T *tree = trees + groups.sentence(index, lane) * size * size;
            std::memset(tree, 0, sizeof(T) * size * size);
            for (int m = 1; m <= g.last(lane); ++m) tree[head(m) * size + m] = 1;
        };
        Marginals<Real<T>> marginals(g.n, last_words(g), single_root, memory, stop);
        Sampler<Real<T>> sampler(g.n, memory + room, stop);
        int lanes = 0;
        for (; lanes < g.lanes && groups.sentence(index, lanes) >= 0; ++lanes)
            for (int m = 0; m <= g.n; ++m) sampler.uniform(m)[lanes] = sentence_uniforms(lanes)[m];
        marginals.weigh(clean, nullptr);
        sampler.draw(marginals, single_root);
        for (int l = 0; l < lanes; ++l) write(l, [&](int m) { return int(sampler.head(m)[l]); });
        const auto redo = [&](Marginals<Log> &logs, const int *wide, int count, Log *extra) {
            Sampler<Log> draws(g.n, extra, stop);
            for (int j = 0; j < count; ++j)
                for (int m = 0; m <= g.n; ++m) draws.uniform(m)[j] = sentence_uniforms(wide[j])[m];
            draws.draw(logs, single_root);
            for (int j = 0; j < count; ++j)
                write(wide[j], [&](int m) { return int(draws.head(m)[j]); });
        };
        const int status = with_logarithms<T>(g, ~sampler.in_range, clean, nullptr,
                                              Sampler<Log>::room(g.n), redo);
        g.spoil(faults.nan, trees);
        return status;
    });
}

// entropy is the only relaxation
template <class T, bool> constexpr auto soft_tree = marginal_tree<T>;
template <class T, bool> constexpr auto soft_tree_backward = marginal_tree_backward<T>;

}  // namespace

#include "sparsemap.h"  // by the best_tree above

TREELAX_ENTRY_POINTS(matrix_tree_, float, f32)
TREELAX_ENTRY_POINTS(matrix_tree_, double, f64)
TREELAX_SPARSEMAP(matrix_tree_, Arcs)
