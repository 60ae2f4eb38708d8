// Marginals of a group of sentences: weights from scores, elimination, and the way back.
#pragma once

#include <memory>
#include <type_traits>

#include "chain.h"
#include "group.h"

namespace {

// `visit(m, count)` of a few columns at a time, so that what belongs to a column stays in registers.
template <class Visit> inline void by_columns(int n, Visit visit) {
    int m = 1;
    for (; m + 4 <= n + 1; m += 4) visit(m, std::integral_constant<int, 4>());
    for (; m <= n; ++m) visit(m, std::integral_constant<int, 1>());
}

// A group at work with numbers of one kind. Planes are (n + 1, n + 1), as those of scores. (Not inlined
// into one function, on which GCC 12 crashes.)
template <class Num> class Marginals {
    using T = typename Num::Lane;
    static constexpr bool logs = std::is_same<Num, Log>::value;

  public:
    IVec<T> in_range = ~IVec<T>{};
    Vec<T> value = {};    // log-partition
    Vec<T> largest = {};  // entry of `reach`, after `arcs`
    const Vec<T> last;  // word of each lane
    Num *const weights;  // w_hm
    Num *const reach;    // q_h(m); q_0 = 1 is not written down
    Num *const exit;     // see Elimination

    static size_t room(int n) {
        return 2 * size_t(n + 1) * (n + 1) + n + Elimination<Num>::room(n) + 2 * (n + 1);
    }

    // `memory` has `room(n)`; the planes `weights` and `reach` may lie elsewhere, one after the other.
    Marginals(int n, const Vec<T> &last_words, bool single_root, Num *memory, const int *stop,
              Num *planes = nullptr)
        : last(last_words), weights(planes ? planes : memory),
          reach(weights + size_t(n + 1) * (n + 1)), exit(memory + 2 * size_t(n + 1) * (n + 1)), n_(n),
          single_root_(single_root), work_(exit + n), stop_(stop) {
        for (int l = 0; l < Simd<T>::lanes; ++l)
            if (last[l] < T(shortest_)) shortest_ = int(last[l]);
    }

    // Weights of clean scores, whose slopes are `direction` (which may be null).
    //
    // The maximum of each column is taken off, since every word has one head, and with one root also
    // the maximum of the root's arcs, so that they need not be of the size of others. Logarithms know
    // one root as several that cost more than all else together.
    [[gnu::noinline]] void weigh(const Vec<T> *scores, const Vec<T> *direction) {
        const int size = n_ + 1;
        Vec<T> root_top = splat<T>(T(forbidden)), spread = {};
        Num *top = work_;  // of each column; the place is free
        by_columns(n_, [&](int m, auto count) { weigh_words<count>(m, scores, direction, top); });
        for (int m = 1; m <= n_; ++m) {
            const Vec<T> highest = top[m].value;
            if (single_root_) root_top = inside(m) ? vmax<T>(root_top, scores[m] - highest) : root_top;
            value += inside(m) ? highest : Vec<T>{};
        }
        if (!single_root_) root_top = Vec<T>{};
        value += inside(1) ? root_top : Vec<T>{};
        cost_ = Vec<T>{};
        if (logs && single_root_) {
            for (int h = 0; h <= n_; ++h)
                for (int m = 1; m <= n_; ++m) {
                    const Vec<T> x = scores[h * size + m];
                    const IVec<T> arc = inside(h) & inside(m) & (x > T(forbidden / 2));
                    const Vec<T> below = top[m].value - x + (h == 0 ? root_top : Vec<T>{});
                    if (h != m) spread = arc ? vmax<T>(spread, below) : spread;
                }
            for (int l = 0; l < Simd<T>::lanes; ++l)
                cost_[l] = 2 * last[l] * (spread[l] + std::log(last[l] + 1)) + 64;
        }
        for (int m = 1; m <= n_; ++m) {
            const Vec<T> x = scores[m] - top[m].value - (root_top + cost_);
            const Num w = Num::exp(x, direction ? direction[m] : Vec<T>{});
            weights[m] = choose<Num>(inside(m), w, Num::one());
        }
        set_exits();
    }

    // The weights of an earlier call, with slopes.
    [[gnu::noinline]] void take_weights(const Real<T> *from, const Vec<T> *direction) {
        for (size_t at = 0; at < size_t(n_ + 1) * (n_ + 1); ++at)
            weights[at] = {from[at].value, from[at].value * direction[at]};
        set_exits();
    }

    // The partition function and, unless `only_value`, q_h(m) of all words.
    [[gnu::noinline]] void eliminate(bool only_value) {
        if (n_ == 0) return;
        const int size = n_ + 1;
        Elimination<Num> elimination(!several_roots(), exit, only_value ? nullptr : reach + size + 1,
                                     size, work_, stop_);
        elimination.solve({weights + 1, weights + size + 1, size, n_});
        in_range &= elimination.in_range;
        Vec<T> log_partition = elimination.log2_partition * T(log_of_2);
        if (logs && single_root_) {
            // two arcs from the root, because one is not enough, or a forbidden one
            const IVec<T> none = log_partition < T(-1.5) * cost_;
            log_partition = none ? splat<T>(T(2 * forbidden)) : log_partition + cost_;
        }
        value += inside(1) ? log_partition : Vec<T>{};
    }

    // `take(h, m, p)` receives the probability p of every arc. Then `reach` holds q_h(m) / c_m with
    // c_m = Σ_h w_hm q_h(m), in row 0 as well.
    template <class Take> [[gnu::noinline]] void arcs(Take take) {
        const int size = n_ + 1;
        for (int h = 0; h <= n_; ++h) reach[h * size] = Num::zero();
        by_columns(n_, [&](int m, auto count) { arcs_of<count>(m, take); });
    }

    bool several_roots() const { return logs || !single_root_; }

  private:
    const int n_;
    const bool single_root_;
    int shortest_ = n_;  // sentence
    Num *const work_;
    const int *const stop_;
    Vec<T> cost_ = {};

    // The maximum of a few columns from m on, and the weights of the arcs from words.
    template <int Count>
    inline void weigh_words(int m, const Vec<T> *scores, const Vec<T> *direction, Num *top) {
        const int size = n_ + 1;
        const Vec<T> lowest = splat<T>(T(forbidden));
        Vec<T> highest[Count];
        for (int j = 0; j < Count; ++j) highest[j] = lowest;
        for (int h = single_root_; h <= n_; ++h)
            for (int j = 0; j < Count; ++j) {
                const Vec<T> x = scores[h * size + m + j];
                if (h != m + j)
                    highest[j] = vmax<T>(highest[j], h <= shortest_ ? x : (inside(h) ? x : lowest));
            }
        for (int j = 0; j < Count; ++j) {
            if (single_root_)  // it may be that only the root can head this word
                highest[j] = highest[j] < T(forbidden / 2) ? Vec<T>{} : highest[j];
            top[m + j].value = highest[j];
        }
        for (int h = 1; h <= n_; ++h)
            for (int j = 0; j < Count; ++j) {
                const size_t at = size_t(h) * size + m + j;
                const Num w = Num::exp(scores[at] - highest[j], direction ? direction[at] : Vec<T>{});
                const bool within = h <= shortest_ && m + j <= shortest_;
                weights[at] = h == m + j ? Num::zero()
                              : within   ? w
                                         : choose<Num>(inside(h) & inside(m + j), w, Num::zero());
            }
    }

    // Into a few words from m on.
    template <int Count, class Take> inline void arcs_of(int m, Take take) {
        const int size = n_ + 1;
        Num scale[Count];
        for (int j = 0; j < Count; ++j) scale[j] = weights[m + j];
        for (int h = 1; h <= n_; ++h)
            for (int j = 0; j < Count; ++j)  // the diagonal holds zeros
                scale[j].add_product(weights[h * size + m + j], reach[h * size + m + j]);
        for (int j = 0; j < Count; ++j) {
            in_range &= scale[j].in_range();
            scale[j] = choose<Num>(inside(m + j), scale[j].inverse(), Num::zero());
            reach[m + j] = Num::one();
        }
        Vec<T> total[Count] = {};
        if (logs)  // the logarithm of a sum of huge weights does not know how many they were
            for (int j = 0; j < Count; ++j) {
                Vec<T> sum = {};
                for (int h = 0; h <= n_; ++h)
                    if (h != m + j)
                        sum += (weights[h * size + m + j] * reach[h * size + m + j] * scale[j]).weight();
                total[j] = inside(m + j) ? vlog2<T>(sum) : Vec<T>{};
            }
        Vec<T> most = {};
        for (int h = 0; h <= n_; ++h)
            for (int j = 0; j < Count; ++j) {
                if (h == m + j) continue;
                const size_t at = size_t(h) * size + m + j;
                const Num own = reach[at], share = own * scale[j];
                Num p = weights[at] * own * scale[j];
                if (logs) p.value -= total[j];
                reach[at] = share;
                most = vmax<T>(most, share.value);
                take(h, m + j, p);
            }
        largest = vmax<T>(largest, most);
    }

    void set_exits() {
        for (int m = 1; m <= n_; ++m) exit[m - 1] = choose<Num>(inside(m), Num::zero(), Num::one());
    }
    IVec<T> inside(int position) const { return splat<T>(T(position)) <= last; }
};

// One lane of an entry of a plane.
template <class T> inline T &lane_of(Vec<T> *entry, int lane) {
    return reinterpret_cast<T *>(entry)[lane];
}
template <class T> inline T lane_of(const Vec<T> *entry, int lane) {
    return reinterpret_cast<const T *>(entry)[lane];
}

template <class T> inline Vec<T> last_words(const Group<T> &g) {
    Vec<T> last;
    for (int l = 0; l < g.lanes; ++l) last[l] = T(g.last(l));
    return last;
}

// The lanes of a group whose weights underflow, with logarithms: `visit(marginals, lanes, count, memory)`
// for a few of them at a time, after `weigh`. Lane j of `marginals` is lane lanes[j] of the group;
// `memory` has the `extra` numbers asked for.
template <class T, class Visit>
int with_logarithms(const Group<T> &g, const IVec<T> &lanes, const Vec<T> *scores,
                    const Vec<T> *direction, size_t extra, Visit visit) {
    constexpr int most = Simd<double>::lanes;
    const size_t plane = g.plane_vectors();
    for (int next = 0; next < g.lanes;) {
        int chosen[most], count = 0;
        for (; next < g.lanes && count < most; ++next)
            if (lanes[next]) chosen[count++] = next;
        if (count == 0) break;
        const size_t room = Marginals<Log>::room(g.n);
        const std::unique_ptr<Log, decltype(&std::free)> memory(
            static_cast<Log *>(std::aligned_alloc(64, (room + plane + extra) * 2 * 64)), std::free);
        static_assert(sizeof(Log) <= 2 * 64);
        if (!memory) return out_of_memory;
        Vec<double> *wide_scores = reinterpret_cast<Vec<double> *>(memory.get() + room);
        Vec<double> *wide_direction = wide_scores + plane, last = {};
        for (int j = 0; j < count; ++j) last[j] = g.last(chosen[j]);
        for (size_t at = 0; at < plane; ++at)
            for (int j = 0; j < most; ++j) {
                const int lane = chosen[j < count ? j : 0];
                lane_of<double>(wide_scores + at, j) = lane_of<T>(scores + at, lane);
                if (direction)
                    lane_of<double>(wide_direction + at, j) = lane_of<T>(direction + at, lane);
            }
        Marginals<Log> marginals(g.n, last, g.single_root, memory.get(), g.stop);
        marginals.weigh(wide_scores, direction ? wide_direction : nullptr);
        visit(marginals, chosen, count, memory.get() + room + plane);
    }
    return 0;
}

}  // namespace
