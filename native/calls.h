// The calls of a dynamic program, compiled once per instruction set, as a plain C interface: pointers and
// sizes, no torch headers.
//
// All arrays are contiguous; scores, trees and gradients are (batch, size, size), lengths are int64. The
// return value is a mask of `bad_length`, `bad_score`, `no_tree` and `out_of_memory`; with `bad_length` or
// `out_of_memory` nothing was computed. Setting `*stop` from another thread ends a call early, with
// results that mean nothing. A gradient of values may be null, for 0. Sentences that are not for this build
// (`longest_in_lanes`) are left alone.
//
// The file that includes this has a `Program`, whose planes are in this order:
//   tree             a matrix of the parts: the scores, later the tree
//   saved_planes     those before are kept for the backward pass
//   refilled_planes  how many of the next it fills once more
//   chart_planes     all
// and besides:
//   spare            entry 0 has no meaning
//   best_planes      all of a chart of the best tree
//   grad_planes      all of the backward pass; the adjoints of values come last and are to be 0 at first
#pragma once

#include "chart.h"
#include "entry.h"
#include "threads.h"

namespace {

using P = Program;
static_assert(P::chart_planes <= Chart<float>::most && P::grad_planes <= Chart<float>::most);

// Items waiting in a derivation.
class Stack {
  public:
    explicit Stack(int size)
        : memory_(static_cast<Item *>(std::malloc(sizeof(Item) * (2 * size + 2)))) {}
    ~Stack() { std::free(memory_); }
    Stack(const Stack &) = delete;
    Stack &operator=(const Stack &) = delete;
    Item *get() const { return memory_; }

  private:
    Item *memory_;
};

// The size for which groups have room in what is kept for the backward pass.
inline int64_t room_of_groups(int64_t size) {
    constexpr int64_t most = longest_in_lanes + P::root;
    return !lone && size > most ? most : size;
}

template <class T, bool Entropy>
int soft_tree(const T *scores, const int64_t *lengths, int64_t batch, int64_t size, bool single_root,
              T *trees, T *values, T *saved, int64_t threads, const int *stop) {
    const Groups<T> groups(lengths, batch, size, P::root, true);
    const size_t room = room_of_groups(size);
    return for_each_group(groups, threads, stop, [&](int64_t index) {
        const Group<T, P> g(groups, index, single_root, stop);
        const size_t plane = g.plane_vectors();
        // the scores are read by the first sweep only, in the plane that the second one fills
        const int kept = saved ? P::saved_planes : 0;
        const Scratch<T> scratch((P::chart_planes - kept) * plane);
        if (!scratch.get()) return out_of_memory;
        Vec<T> *base = saved ? reinterpret_cast<Vec<T> *>(saved) +
                                   size_t(index) * P::saved_planes * room * room
                             : nullptr;
        const Chart<T> chart(base, plane, kept, scratch.get());
        if (saved)  // a shorter group leaves the rest of its place
            std::memset(static_cast<void *>(base + P::saved_planes * plane), 0,
                        P::saved_planes * (room * room - plane) * sizeof(Vec<T>));
        g.gather(scores, chart[P::tree]);
        const Faults<T> faults = g.clean(chart[P::tree]);
        const Stack stack(g.size);
        if (!stack.get()) return out_of_memory;
        const Vec<T> offset = P::centre(g, chart, chart[P::tree], stack.get());
        inside<Entropy>(g, chart, chart[P::tree]);
        const int status = g.write_values(chart[goal<P>.value], T(log_of_2), offset, faults, values);
        if (trees) {
            outside(g, chart);
            g.scatter(chart[P::tree], trees);
            g.spoil(faults.nan, trees);
            // a place without a meaning tells the backward pass
            if (g.n > 0) chart[P::spare][0] = faults.nan ? splat<T>(g.not_a_number) : Vec<T>{};
        }
        return status;
    });
}

template <class T, bool Entropy>
int soft_tree_backward(const T *grad_tree, const T *grad_value, const T *saved,
                       const int64_t *lengths, int64_t batch, int64_t size, bool single_root,
                       T *grad_scores, int64_t threads, const int *stop) {
    const Groups<T> groups(lengths, batch, size, P::root, true);
    const size_t room = room_of_groups(size);
    return for_each_group(groups, threads, stop, [&](int64_t index) {
        const Group<T, P> g(groups, index, single_root, stop);
        const size_t plane = g.plane_vectors();
        const Scratch<T> scratch((P::refilled_planes + P::grad_planes) * plane);
        if (!scratch.get()) return out_of_memory;
        // what is kept is only read
        Vec<T> *base = const_cast<Vec<T> *>(reinterpret_cast<const Vec<T> *>(saved)) +
                       size_t(index) * P::saved_planes * room * room;
        const Chart<T> chart(base, plane, P::saved_planes, scratch.get());
        const Chart<T> grad(scratch.get() + P::refilled_planes * plane, plane);
        g.gather(grad_tree, grad[parts<P>.grad]);
        std::memset(static_cast<void *>(grad[goal<P>.grad_value]), 0,
                    (P::grad_planes - goal<P>.grad_value) * plane * sizeof(Vec<T>));
        for (int l = 0; l < g.lanes; ++l) {
            const int64_t b = groups.sentence(index, l);
            if (grad_value && b >= 0 && g.last(l) >= 0)
                grad[goal<P>.grad_value][g.last(l)][l] = grad_value[b];
        }
        up<Entropy>(g, chart, grad);
        down<Entropy>(g, chart, grad);
        g.scatter(grad[parts<P>.grad_value], grad_scores);
        if (g.n > 0) g.spoil(chart[P::spare][0] != chart[P::spare][0], grad_scores);
        return 0;
    });
}

template <class T>
int best_tree(const T *scores, const int64_t *lengths, int64_t batch, int64_t size, bool single_root,
              T *trees, T *values, int64_t threads, const int *stop) {
    const Groups<T> groups(lengths, batch, size, P::root, true);
    return for_each_group(groups, threads, stop, [&](int64_t index) {
        const Group<T, P> g(groups, index, single_root, stop);
        const size_t plane = g.plane_vectors();
        const Scratch<T> scratch((P::best_planes + 1) * plane);
        const Stack stack(g.size);
        if (!scratch.get() || !stack.get()) return out_of_memory;
        const Chart<T> chart(scratch.get(), plane);
        Vec<T> *weights = chart[P::best_planes];
        g.gather(scores, weights);
        const Faults<T> faults = g.clean(weights);
        best_inside(g, chart, weights);
        for (int l = 0; l < g.lanes; ++l) {
            const int64_t b = groups.sentence(index, l);
            if (b < 0) break;
            T *out = trees + b * size * size;
            std::memset(out, 0, sizeof(T) * size * size);
            best_of_lane(g, chart, l, stack.get(), [=](int h, int m, int) { out[h * size + m] = 1; });
        }
        g.spoil(faults.nan, trees);
        return g.write_values(chart[goal<P>.value], T(1), Vec<T>{}, faults, values);
    });
}

template <class T>
int sample_tree(const T *scores, const int64_t *lengths, const T *uniforms, int64_t samples,
                int64_t batch, int64_t size, bool single_root, T *trees, T *values,
                int64_t threads, const int *stop) {
    const Groups<T> groups(lengths, batch, size, P::root, true);
    return for_each_group(groups, threads, stop, [&](int64_t index) {
        const Group<T, P> g(groups, index, single_root, stop);
        const size_t plane = g.plane_vectors();
        const Scratch<T> scratch(P::chart_planes * plane);
        const Stack stack(g.size);
        if (!scratch.get() || !stack.get()) return out_of_memory;
        const Chart<T> chart(scratch.get(), plane);
        g.gather(scores, chart[P::tree]);
        const Faults<T> faults = g.clean(chart[P::tree]);
        const Vec<T> offset = P::centre(g, chart, chart[P::tree], stack.get());
        inside<true>(g, chart, chart[P::tree]);
        for (int64_t s = 0; s < samples && !g.stopped(); ++s) {
            for (int l = 0; l < g.lanes; ++l) {
                const int64_t b = groups.sentence(index, l);
                if (b < 0) break;
                T *out = trees + (s * batch + b) * size * size;
                std::memset(out, 0, sizeof(T) * size * size);
                sample_of_lane(g, chart, l, uniforms + (s * batch + b) * P::decisions(size),
                                  stack.get(), out);
            }
            g.spoil(faults.nan, trees + s * batch * size * size);
        }
        return g.write_values(chart[goal<P>.value], T(log_of_2), offset, faults, values);
    });
}

}  // namespace

#if defined(TREELAX_LONE)
#define TREELAX_SPARSEMAP(prefix, Parts)
#else
#include "sparsemap.h"
#endif

#define TREELAX_CALLS(prefix)               \
    TREELAX_ENTRY_POINTS(prefix, float, f32)  \
    TREELAX_ENTRY_POINTS(prefix, double, f64) \
    TREELAX_SPARSEMAP(prefix, P)
