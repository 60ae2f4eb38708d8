// The calls of a dynamic program, compiled once per instruction set, as a plain C interface: pointers and
// sizes, no torch headers.
//
// All arrays are contiguous; scores, trees and gradients are (batch, size, size), lengths are int64. The
// return value is a mask of `bad_length`, `bad_score`, `no_tree` and `out_of_memory`; with `bad_length` or
// `out_of_memory` nothing was computed. Setting `*stop` from another thread ends a call early, with
// results that mean nothing. A gradient of values may be null, for 0. Sentences that are not for this build
// (`longest_in_lanes`) are left alone.
//
// The program's own header comes first. It has `Parts`, `Item`, its sweeps and its planes, among them:
//   tree, grad_parts          a matrix of the parts: the scores, later the tree; the gradient of the tree
//   goals, value_goals        row 0 holds the whole sentence: its value, the adjoint of its value
//   value_parts               the gradient of the scores
//   spare                     entry 0 has no meaning
// The planes of a backward pass from `value_goals` on are to be 0 at first.
#pragma once

#include "entry.h"
#include "threads.h"

namespace {

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
    constexpr int64_t most = longest_in_lanes + Parts::root;
    return !lone && size > most ? most : size;
}

template <class T, bool Entropy>
int soft_tree(const T *scores, const int64_t *lengths, int64_t batch, int64_t size, bool single_root,
              T *trees, T *values, T *saved, int64_t threads, const int *stop) {
    const Groups<T> groups(lengths, batch, size, Parts::root, true);
    const size_t room = room_of_groups(size);
    return for_each_group(groups, threads, stop, [&](int64_t index) {
        const Group<T, Parts> g(groups, index, single_root, stop);
        const size_t plane = g.plane_vectors();
        // the scores are read by the first sweep only, in the plane that the second one fills
        const int kept = saved ? saved_planes : 0;
        const Scratch<T> scratch((chart_planes - kept) * plane);
        if (!scratch.get()) return out_of_memory;
        Vec<T> *base = saved ? reinterpret_cast<Vec<T> *>(saved) +
                                   size_t(index) * saved_planes * room * room
                             : nullptr;
        const Chart<T> chart(base, plane, kept, scratch.get());
        if (saved)  // a shorter group leaves the rest of its place
            std::memset(static_cast<void *>(base + saved_planes * plane), 0,
                        saved_planes * (room * room - plane) * sizeof(Vec<T>));
        g.gather(scores, chart[tree]);
        const Faults<T> faults = g.clean(chart[tree]);
        const Stack stack(g.size);
        if (!stack.get()) return out_of_memory;
        const Vec<T> offset = centre<T>(g, chart, chart[tree], stack.get());
        inside<T, Entropy>(g, chart, chart[tree]);
        const int status = g.write_values(chart[goals], T(log_of_2), offset, faults, values);
        if (trees) {
            outside<T>(g, chart);
            g.scatter(chart[tree], trees);
            g.spoil(faults.nan, trees);
            // a place without a meaning tells the backward pass
            if (g.n > 0) chart[spare][0] = faults.nan ? splat<T>(g.not_a_number) : Vec<T>{};
        }
        return status;
    });
}

template <class T, bool Entropy>
int soft_tree_backward(const T *grad_tree, const T *grad_value, const T *saved,
                       const int64_t *lengths, int64_t batch, int64_t size, bool single_root,
                       T *grad_scores, int64_t threads, const int *stop) {
    const Groups<T> groups(lengths, batch, size, Parts::root, true);
    const size_t room = room_of_groups(size);
    return for_each_group(groups, threads, stop, [&](int64_t index) {
        const Group<T, Parts> g(groups, index, single_root, stop);
        const size_t plane = g.plane_vectors();
        const Scratch<T> scratch((refilled_planes + grad_planes) * plane);
        if (!scratch.get()) return out_of_memory;
        // what is kept is only read
        Vec<T> *base = const_cast<Vec<T> *>(reinterpret_cast<const Vec<T> *>(saved)) +
                       size_t(index) * saved_planes * room * room;
        const Chart<T> chart(base, plane, saved_planes, scratch.get());
        const Chart<T> grad(scratch.get() + refilled_planes * plane, plane);
        g.gather(grad_tree, grad[grad_parts]);
        std::memset(static_cast<void *>(grad[value_goals]), 0,
                    (grad_planes - value_goals) * plane * sizeof(Vec<T>));
        for (int l = 0; l < g.lanes; ++l) {
            const int64_t b = groups.sentence(index, l);
            if (grad_value && b >= 0 && g.last(l) >= 0)
                grad[value_goals][g.last(l)][l] = grad_value[b];
        }
        up<T, Entropy>(g, chart, grad);
        down<T, Entropy>(g, chart, grad);
        g.scatter(grad[value_parts], grad_scores);
        if (g.n > 0) g.spoil(chart[spare][0] != chart[spare][0], grad_scores);
        return 0;
    });
}

template <class T>
int best_tree(const T *scores, const int64_t *lengths, int64_t batch, int64_t size, bool single_root,
              T *trees, T *values, int64_t threads, const int *stop) {
    const Groups<T> groups(lengths, batch, size, Parts::root, true);
    return for_each_group(groups, threads, stop, [&](int64_t index) {
        const Group<T, Parts> g(groups, index, single_root, stop);
        const size_t plane = g.plane_vectors();
        const Scratch<T> scratch((best_planes + 1) * plane);
        const Stack stack(g.size);
        if (!scratch.get() || !stack.get()) return out_of_memory;
        const Chart<T> chart(scratch.get(), plane);
        Vec<T> *weights = chart[best_planes];
        g.gather(scores, weights);
        const Faults<T> faults = g.clean(weights);
        best_inside<T>(g, chart, weights);
        for (int l = 0; l < g.lanes; ++l) {
            const int64_t b = groups.sentence(index, l);
            if (b < 0) break;
            T *out = trees + b * size * size;
            std::memset(out, 0, sizeof(T) * size * size);
            best_of_lane<T>(g, chart, l, stack.get(), [=](int h, int m) { out[h * size + m] = 1; });
        }
        g.spoil(faults.nan, trees);
        return g.write_values(chart[goals], T(1), Vec<T>{}, faults, values);
    });
}

template <class T>
int sample_tree(const T *scores, const int64_t *lengths, const T *uniforms, int64_t samples,
                int64_t batch, int64_t size, bool single_root, T *trees, T *values,
                int64_t threads, const int *stop) {
    const Groups<T> groups(lengths, batch, size, Parts::root, true);
    return for_each_group(groups, threads, stop, [&](int64_t index) {
        const Group<T, Parts> g(groups, index, single_root, stop);
        const size_t plane = g.plane_vectors();
        const Scratch<T> scratch(chart_planes * plane);
        const Stack stack(g.size);
        if (!scratch.get() || !stack.get()) return out_of_memory;
        const Chart<T> chart(scratch.get(), plane);
        g.gather(scores, chart[tree]);
        const Faults<T> faults = g.clean(chart[tree]);
        const Vec<T> offset = centre<T>(g, chart, chart[tree], stack.get());
        inside<T, true>(g, chart, chart[tree]);
        for (int64_t s = 0; s < samples && !g.stopped(); ++s) {
            for (int l = 0; l < g.lanes; ++l) {
                const int64_t b = groups.sentence(index, l);
                if (b < 0) break;
                T *out = trees + (s * batch + b) * size * size;
                std::memset(out, 0, sizeof(T) * size * size);
                sample_of_lane<T>(g, chart, l, uniforms + (s * batch + b) * decisions(size),
                                  stack.get(), out);
            }
            g.spoil(faults.nan, trees + s * batch * size * size);
        }
        return g.write_values(chart[goals], T(log_of_2), offset, faults, values);
    });
}

}  // namespace
