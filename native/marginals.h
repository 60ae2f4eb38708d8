// Marginals of a group of sentences: weights from scores, elimination, and the way back.
#pragma once

#include <memory>
#include <type_traits>

#include "chain.h"
#include "group.h"

namespace {

template <class T> inline bool any(const IVec<T> &mask) {
    return any_nonzero<T>(bits_as_real<T>(mask & bits_as_int<T>(splat<T>(1))));
}

// A group at work with numbers of one kind. Planes are (n + 1, n + 1), as those of scores. (Not inlined
// into one function, on which GCC 12 crashes.)
template <class Num> class Marginals {
    using T = typename Num::Lane;
    static constexpr bool logs = std::is_same<Num, Log>::value;

  public:
    IVec<T> in_range = ~IVec<T>{};
    Vec<T> value = {};  // log-partition
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
          single_root_(single_root), work_(exit + n), stop_(stop) {}

    // Weights of clean scores, whose slopes are `direction` (which may be null).
    //
    // The maximum of each column is taken off, since every word has one head, and with one root also
    // the maximum of the root's arcs, so that they need not be of the size of others. Logarithms know
    // one root as several that cost more than all else together.
    [[gnu::noinline]] void weigh(const Vec<T> *scores, const Vec<T> *direction) {
        const int size = n_ + 1;
        Vec<T> root_top = splat<T>(T(forbidden)), spread = {};
        Num *top = reach;  // of each column; the place is free
        for (int m = 1; m <= n_; ++m) top[m - 1].value = splat<T>(T(forbidden));
        for (int h = single_root_; h <= n_; ++h) {
            const IVec<T> row = inside(h);
            for (int m = 1; m <= n_; ++m)
                if (h != m)
                    top[m - 1].value =
                        vmax<T>(top[m - 1].value, row ? scores[h * size + m] : splat<T>(T(forbidden)));
        }
        for (int m = 1; m <= n_; ++m) {
            Vec<T> &highest = top[m - 1].value;
            if (single_root_) {  // it may be that only the root can head this word
                highest = highest < T(forbidden / 2) ? Vec<T>{} : highest;
                root_top = inside(m) ? vmax<T>(root_top, scores[m] - highest) : root_top;
            }
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
                    const Vec<T> below = top[m - 1].value - x + (h == 0 ? root_top : Vec<T>{});
                    if (h != m) spread = arc ? vmax<T>(spread, below) : spread;
                }
            for (int l = 0; l < Simd<T>::lanes; ++l)
                cost_[l] = 2 * last[l] * (spread[l] + std::log(last[l] + 1)) + 64;
        }
        for (int h = 0; h <= n_; ++h)
            for (int m = 1; m <= n_; ++m) {
                const size_t at = size_t(h) * size + m;
                Vec<T> x = scores[at] - top[m - 1].value;
                if (h == 0) x -= root_top + cost_;
                const Num weight = Num::exp(x, direction ? direction[at] : Vec<T>{});
                const Num beyond = h == 0 ? Num::one() : Num::zero();
                weights[at] = h == m ? Num::zero() : choose<Num>(inside(h) & inside(m), weight, beyond);
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
        Num *scale = work_, *total = scale + size;  // the place is free
        for (int m = 1; m <= n_; ++m) scale[m] = weights[m];
        for (int h = 1; h <= n_; ++h)
            for (int m = 1; m <= n_; ++m)
                if (h != m) scale[m].add_product(weights[h * size + m], reach[h * size + m]);
        for (int m = 1; m <= n_; ++m) {
            in_range &= scale[m].in_range();
            scale[m] = choose<Num>(inside(m), scale[m].inverse(), Num::zero());
            reach[m] = Num::one();
        }
        const auto arc = [&](int h, int m) {
            return weights[h * size + m] * reach[h * size + m] * scale[m];
        };
        if (logs)  // the logarithm of a sum of huge weights does not know how many they were
            for (int m = 1; m <= n_; ++m) {
                Vec<T> sum = {};
                for (int h = 0; h <= n_; ++h)
                    if (h != m) sum += arc(h, m).weight();
                total[m].value = inside(m) ? vlog2<T>(sum) : Vec<T>{};
            }
        for (int h = 0; h <= n_; ++h) {
            reach[h * size] = Num::zero();
            for (int m = 1; m <= n_; ++m) {
                if (h == m) continue;
                Num p = arc(h, m);
                if (logs) p.value -= total[m].value;
                reach[h * size + m] = reach[h * size + m] * scale[m];
                take(h, m, p);
            }
        }
    }

    bool several_roots() const { return logs || !single_root_; }

  private:
    const int n_;
    const bool single_root_;
    Num *const work_;
    const int *const stop_;
    Vec<T> cost_ = {};

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
