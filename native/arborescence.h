// The best non-projective tree of one sentence in O(n^2) (Tarjan 1977, with Camerini's correction).
//
// With one root, the root is not asked until everything is one word. Differences of scores are float64: those
// of float32 scores of similar size are exact.
#pragma once

#include "group.h"

namespace {

template <class T> inline double clean_score(T x) {
    if (x == T(-__builtin_huge_val())) return forbidden;
    const double bounded = x > T(-limit) ? double(x) : -limit;  // NaN is spoiled later
    return bounded < limit ? bounded : limit;
}

template <class T> class Arborescence {
    using V = Vec<double>;
    using I = IVec<double>;
    static constexpr int lanes = Simd<double>::lanes;
    static constexpr double lowest = -1e300;  // of what is no arc any more
    enum State : int { fresh, on_path, settled, merged };

  public:
    bool nan = false, bad = false;  // among the arcs of the last sentence: NaN; NaN or +inf

    // Vectors of memory for sentences of at most `most` words.
    static size_t room(int most) {
        const size_t numbers = 2 * (most + 1) * row_vectors(most) * lanes + 8 * (most + 1);
        return numbers / lanes + 1;
    }

    Arborescence(int most, void *memory)
        : gain_(static_cast<double *>(memory)),
          arc_(reinterpret_cast<int64_t *>(gain_ + (most + 1) * row_vectors(most) * lanes)),
          best_(reinterpret_cast<double *>(arc_ + (most + 1) * row_vectors(most) * lanes)),
          enter_(reinterpret_cast<int64_t *>(best_ + most + 1)),
          heads_(reinterpret_cast<int *>(enter_ + 2 * (most + 1))), up_(heads_ + most + 1),
          node_(up_ + 2 * (most + 1)), state_(node_ + most + 1), path_(state_ + most + 1) {}

    // Heads of the words 1 … n of the best tree. `row` numbers lie from one row of `scores` to the next.
    const int *operator()(const T *scores, int64_t row, int n, bool single_root) {
        n_ = n;
        width_ = row_vectors(n) * lanes;
        if (greedy(scores, row, single_root)) return heads_;
        for (int m = 1; m <= n; ++m) {
            double *gain = gain_ + m * width_;
            int64_t *arc = arc_ + m * width_;
            for (int h = 0; h <= n; ++h) {
                gain[h] = clean_score(scores[h * row + m]);
                arc[h] = int64_t(h) * (n + 1) + m;
            }
            for (int h = n + 1; h < width_; ++h) gain[h] = lowest, arc[h] = 0;
            gain[m] = lowest;
            node_[m] = m;
            state_[m] = fresh;
        }
        state_[0] = settled;
        nodes_ = n + 1;
        alive_ = n;
        for (int m = 1; m <= n; ++m)
            if (state_[m] == fresh) grow(m, single_root);
        // from the outermost cycle inwards: the arc into a cycle takes the place of one of its own
        for (int cycle = nodes_ - 1; cycle > n; --cycle) {
            int inner = int(enter_[cycle] % (n + 1));
            while (up_[inner] != cycle) inner = up_[inner];
            enter_[inner] = enter_[cycle];
        }
        for (int m = 1; m <= n; ++m) heads_[m] = int(enter_[m] / (n + 1));
        return heads_;
    }

  private:
    double *const gain_;  // [m][h]: of arc h -> m between what words have become
    int64_t *const arc_;  // the arc between words that it stands for, h * (n + 1) + m
    double *const best_;  // of each row of gains
    int64_t *const enter_;  // by node: the arc to its head
    int *const heads_;
    int *const up_;    // by node: the cycle that it went into
    int *const node_;  // by row: a word, or the cycle that took its place
    int *const state_, *const path_;
    int n_ = 0, nodes_ = 0, alive_ = 0;
    ptrdiff_t width_ = 0;

    static size_t row_vectors(int n) { return (n + lanes) / lanes; }

    // The best head of every word; true if that is a tree.
    bool greedy(const T *scores, int64_t row, bool single_root) {
        constexpr int step = Simd<T>::lanes;
        IVec<T> any_nan = {}, any_bad = {};
        for (int first = 1; first <= n_; first += step) {
            Vec<T> top = splat<T>(T(-__builtin_huge_val())), head = {}, column;
            for (int i = 0; i < step; ++i) column[i] = T(first + i);
            for (int h = 0; h <= n_; ++h) {
                const Vec<T> x = load_some(scores + h * row + first, n_ + 1 - first);
                const IVec<T> arc = column != splat<T>(T(h)), better = (x > top) & arc;
                any_nan |= (x != x) & arc;
                any_bad |= ~(x < T(__builtin_huge_val())) & arc;
                top = better ? x : top;
                head = better ? splat<T>(T(h)) : head;
            }
            for (int i = 0; i < step && first + i <= n_; ++i) heads_[first + i] = int(head[i]);
        }
        nan = bad = false;
        for (int i = 0; i < step; ++i) nan |= any_nan[i] != 0, bad |= any_bad[i] != 0;
        int roots = 0;
        for (int m = 0; m <= n_; ++m) state_[m] = m == 0 ? settled : fresh;
        for (int m = 1; m <= n_; ++m) {
            roots += heads_[m] == 0;
            int v = m;
            for (; state_[v] == fresh; v = heads_[v]) state_[v] = on_path;
            if (state_[v] == on_path) return false;
            for (v = m; state_[v] == on_path; v = heads_[v]) state_[v] = settled;
        }
        return !single_root || roots <= 1;
    }

    // Follow best heads from a word until they lead to the root.
    void grow(int v, bool single_root) {
        for (int length = 0;;) {
            path_[length++] = v;
            state_[v] = on_path;
            const int h = best_head(v, single_root && alive_ > 1);
            enter_[node_[v]] = arc_[v * width_ + h];
            if (state_[h] == settled) {
                while (length > 0) state_[path_[--length]] = settled;
                return;
            }
            if (state_[h] == on_path) {
                int begin = length;
                while (path_[--begin] != h) {}
                contract(path_ + begin, length - begin);
                length = begin;
            }
            v = h;
        }
    }

    int best_head(int m, bool without_root) {
        double *gain = gain_ + m * width_;
        const double root = gain[0];
        if (without_root) gain[0] = lowest;
        V top = load(gain);
        for (ptrdiff_t h = lanes; h < width_; h += lanes) top = vmax<double>(top, load(gain + h));
        double best = top[0];
        for (int i = 1; i < lanes; ++i) best = top[i] > best ? top[i] : best;
        int head = 0;
        while (gain[head] != best) ++head;
        gain[0] = root;
        best_[m] = best;
        return head;
    }

    // Make one word, in the row of its first member, of a cycle.
    void contract(const int *cycle, int length) {
        const int first = cycle[0];
        for (ptrdiff_t h = 0; h < width_; h += lanes) {
            V top = load(gain_ + first * width_ + h) - best_[first];
            I arc = (I)load(reinterpret_cast<double *>(arc_) + first * width_ + h);
            for (int i = 1; i < length; ++i) {
                const ptrdiff_t at = cycle[i] * width_ + h;
                const V x = load(gain_ + at) - best_[cycle[i]];
                const I better = x > top;
                top = better ? x : top;
                arc = better ? (I)load(reinterpret_cast<double *>(arc_) + at) : arc;
            }
            std::memcpy(gain_ + first * width_ + h, &top, sizeof(top));
            std::memcpy(arc_ + first * width_ + h, &arc, sizeof(arc));
        }
        for (int i = 0; i < length; ++i) {
            gain_[first * width_ + cycle[i]] = lowest;
            up_[node_[cycle[i]]] = nodes_;
            state_[cycle[i]] = merged;
        }
        for (int m = 1; m <= n_; ++m) {
            if (state_[m] == settled || state_[m] == merged) continue;
            double *gain = gain_ + m * width_;
            int64_t *arc = arc_ + m * width_;
            for (int i = 1; i < length; ++i) {
                const int h = cycle[i];
                if (gain[h] > gain[first]) gain[first] = gain[h], arc[first] = arc[h];
                gain[h] = lowest;
            }
        }
        state_[first] = fresh;
        node_[first] = nodes_++;
        alive_ -= length - 1;
    }

    static V load(const double *from) {
        V x;
        std::memcpy(&x, from, sizeof(x));
        return x;
    }
};

}  // namespace
