// Marginals of non-projective trees by eliminating words from a random walk, without any subtraction.
// See src/treelax/ops/matrix_tree/README.md for the derivation: eliminating word k of the walk from words m to
// their heads h, S_k = Σ_h w_hk, p_hk = w_hk / S_k, w_hm += p_hk w_km; under a single root to first order in the
// weights of the root.
#pragma once

#include "numbers.h"

namespace {

// The largest power of two below `words`. Halves of this size begin at the same words in a longer
// sentence, so that what padding adds to a sum are zeros, which change no bit.
inline int first_half(int words) {
    int half = 1;
    while (2 * half < words) half *= 2;
    return half;
}

// Weights of a walk on some words: the root's row, and the words' rows.
template <class Num> struct Walk {
    const Num *root, *word;
    ptrdiff_t stride;
    int words;
};

template <class Num> class Elimination {
    using T = typename Num::Lane;

  public:
    IVec<T> in_range = ~IVec<T>{};  // of all normalisers
    Vec<T> log2_partition = {};

    // `exit[m]` stops the walk at words beyond a sentence. `reach[h][m]`, rows of `reach_row`, becomes
    // q_h(m); if null, only the partition function is computed. `memory` has `room(n)`.
    Elimination(bool single_root, const Num *exit, Num *reach, ptrdiff_t reach_row, Num *memory,
                const int *stop)
        : single_root_(single_root), exit_(exit), reach_(reach), reach_row_(reach_row), memory_(memory),
          stop_(stop) {}

    // One matrix for every level of the recursion: O(n^2) in all.
    static size_t room(int words) {
        size_t total = 0;
        for (int s = words; s > 1; s = first_half(s)) total += size_t(s) * (s + 1);
        return total;
    }

    // q_h(m) of all h and m among the words of a walk, the first of which is word `first`. One half is
    // eliminated; what remains is a walk on the other half; then the eliminated words follow from it.
    void solve(const Walk<Num> &walk, int first = 0) { solve(walk, first, memory_); }

    // q_h(m) of all words of the walk, where m is its first: `reach[h]`.
    void solve_first(const Walk<Num> &walk, int first) {
        Num *w = copy(walk, memory_);
        eliminate(w, walk.words, first, 1, false);
        reach_[0] = Num::zero();
        back(w, walk.words, 0, 1, 1, walk.words, reach_);
    }

  private:
    static constexpr int block = 4, few = 8;
    const bool single_root_;
    const Num *const exit_;
    Num *const reach_;
    const ptrdiff_t reach_row_;
    Num *const memory_;
    const int *const stop_;

    // The root's row, then those of the words; returns the latter.
    static Num *copy(const Walk<Num> &walk, Num *to) {
        const size_t words = walk.words;
        for (size_t m = 0; m < words; ++m) to[m] = walk.root[m];
        for (size_t h = 0; h < words; ++h)
            for (size_t m = 0; m < words; ++m) to[(h + 1) * words + m] = walk.word[h * walk.stride + m];
        return to + words;
    }

    void solve(const Walk<Num> &walk, int first, Num *memory) {
        const int words = walk.words;
        if (words == 1) {
            if (first == 0) {
                in_range &= walk.root[0].in_range();
                log2_partition += walk.root[0].log2();
            }
            if (reach_) reach_[first * reach_row_ + first] = Num::zero();
            return;
        }
        if (words == 2 && reach_) return solve_pair(walk, first);
        const int half = first_half(words);
        Num *next = memory + size_t(words) * (words + 1);
        Num *w = copy(walk, memory);
        eliminate(w, words, first, half, false);
        solve({w - words, w, words, half}, first, next);
        if (!reach_) return;
        Num *reach = reach_ + first * reach_row_ + first;
        back(w, words, 0, half, half, words, reach);
        copy(walk, memory);
        eliminate(w, words, first, half, true);
        solve({w - words + half, w + half * (words + 1), words, words - half}, first + half, next);
        back(w, words, half, words, half, 0, reach + half);
    }

    // The same for two words, of which there are many: each is eliminated once.
    void solve_pair(const Walk<Num> &walk, int first) {
        const Num *up = walk.word + 1, *down = walk.word + walk.stride;  // from word 1 to 0, and back
        Num sum[2] = {single_root_ ? exit_[first + 1] : walk.root[0],
                      single_root_ ? exit_[first + 1] : walk.root[1]};
        sum[0] += *down;
        sum[1] += *up;
        in_range &= sum[0].in_range() & sum[1].in_range();
        const Num scale = sum[1].inverse(), stay = walk.root[1] * scale;
        if (first == 0) {
            Num last = walk.root[0];
            last.add_product(stay, *down);
            in_range &= last.in_range();
            log2_partition += sum[1].log2();
            log2_partition += last.log2();
        }
        Num *reach = reach_ + first * reach_row_ + first;
        reach[0] = reach[reach_row_ + 1] = Num::zero();
        reach[reach_row_] = stay;
        reach[1] = walk.root[0] * sum[0].inverse();
    }

    // Leave `half … words` (upwards) or `0 … half` of the words in w. Words go one after the other from
    // the end, a few at a time: first what earlier ones add to their columns and rows, then each
    // itself; all the rest of the matrix waits for the end. Afterwards column k of an eliminated word
    // holds p_hk.
    void eliminate(Num *w, int words, int first, int half, bool upwards) {
        const ptrdiff_t row = words, step = upwards ? 1 : -1;
        const int count = upwards ? half : words - half, begin = upwards ? 0 : words - 1;
        if (words <= few) {  // one after the other: the same sums in the same order
            for (int number = 0; number < count; ++number) {
                const int k = begin + int(step) * number;
                const int from = upwards ? k + 1 : 0, to = upwards ? words : k;
                normalise(w + k, row, from, to, exit_[first + (upwards ? half : k)],
                          first == 0 && !upwards);
                for (int h = from - 1; h < to; ++h) {
                    Num *at = w + (h < from ? -1 : h) * row;
                    const Num factor = at[k];
                    for (int m = from; m < to; ++m) at[m].add_product(factor, w[k * row + m]);
                }
            }
            return;
        }
        // w[h][m] += Σ_k p_hk w_km of the words eliminated from number `from` to number `to`
        const auto update = [=](int h0, int h1, int m0, int m1, int from, int to) {
            const int k = begin + int(step) * from;
            add_product<Num>(h1 - h0, m1 - m0, w + h0 * row + m0, row, w + h0 * row + k, row, step,
                             w + k * row + m0, step * row, to - from);
        };
        for (int done = 0; done < count && !given_up(stop_);) {
            const int end = done + block < count ? done + block : count;
            const int k0 = upwards ? done : words - end, k1 = upwards ? end : words - done;
            const int low = upwards ? k1 : 0, high = upwards ? words : k0;  // what remains after them
            update(-1, upwards ? 0 : k1, k0, k1, 0, done);
            if (upwards) update(k0, words, k0, k1, 0, done);
            update(k0, k1, low, high, 0, done);
            for (int number = done; number < end; ++number) {
                const int k = begin + int(step) * number;
                const int from = upwards ? k + 1 : 0, to = upwards ? words : k;
                update(-1, 0, k, k + 1, done, number);
                update(from, to, k, k + 1, done, number);
                update(k, k + 1, from, to, done, number);
                // a sentence that ends before the words that remain needs an exit, too
                const Num &exit = exit_[first + (upwards ? half : k)];
                normalise(w + k, row, from, to, exit, first == 0 && !upwards);
            }
            done = end;
        }
        update(-1, upwards ? 0 : half, upwards ? half : 0, upwards ? words : half, 0, count);
        if (upwards) update(half, words, half, words, 0, count);
    }

    // Divide a column by its sum.
    void normalise(Num *column, ptrdiff_t row, int from, int to, const Num &exit, bool counts) {
        Num sum[4] = {single_root_ ? exit : column[-row], Num::zero(), Num::zero(), Num::zero()};
        int h = from;
        for (; h + 4 <= to; h += 4)
            for (int i = 0; i < 4; ++i) sum[i] += column[(h + i) * row];
        for (int i = 0; h < to; ++h, ++i) sum[i] += column[h * row];
        sum[0] += sum[1];
        sum[2] += sum[3];
        sum[0] += sum[2];
        in_range &= sum[0].in_range();
        if (counts) log2_partition += sum[0].log2();
        const Num scale = sum[0].inverse();
        column[-row] = column[-row] * scale;
        for (h = from; h < to; ++h) column[h * row] = column[h * row] * scale;
    }

    // q_d(m) = Σ_h p_hd q_h(m) + p_0d for m in the words m0 … m1 that remained, and d from `from` to `to`
    // (downwards: from - 1 … to) in the opposite order of their elimination.
    void back(const Num *w, int words, int m0, int m1, int from, int to, Num *reach) {
        const ptrdiff_t row = words, reach_row = reach_row_;
        const int columns = m1 - m0;
        const bool upwards = to > from;
        const int count = upwards ? to - from : from - to;
        const auto add = [=](int d0, int d1, int h0, int h1) {
            add_product<Num>(d1 - d0, columns, reach + d0 * reach_row, reach_row, w + h0 * row + d0, 1,
                             row, reach + h0 * reach_row, reach_row, h1 - h0);
        };
        for (int done = 0; done < count;) {
            const int end = done + block < count ? done + block : count;
            const int d0 = upwards ? from + done : from - end, d1 = upwards ? from + end : from - done;
            for (int d = d0; d < d1; ++d)
                for (int m = 0; m < columns; ++m) reach[d * reach_row + m] = w[d - row];
            add(d0, d1, m0, m1);
            if (upwards) add(d0, d1, from, d0);
            else add(d0, d1, d1, from);
            for (int i = 0; i < d1 - d0; ++i) {
                const int d = upwards ? d0 + i : d1 - 1 - i;
                if (upwards) add(d, d + 1, d0, d);
                else add(d, d + 1, d + 1, d1);
            }
            done = end;
        }
    }
};

}  // namespace
