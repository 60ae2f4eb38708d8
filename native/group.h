// A group of sentences, one per lane, and its charts as planes of N x N vectors.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "cells.h"

namespace {

constexpr int bad_length = 1, bad_score = 2, no_tree = 4, out_of_memory = 8;

// Lanes of scores that a result must speak of: `nan` spoils the sentence, `bad` (NaN or +inf) is reported.
template <class T> struct Faults {
    IVec<T> nan, bad;
};

// Which entries of a sentence's matrix are parts of its trees. Arcs have a row and a column for the root.
struct Arcs {
    static constexpr int root = 1;
    static constexpr int first(int) { return 0; }  // where the parts of row h begin
    static constexpr bool part(int h, int m) { return m > 0 && h != m; }
};
struct Spans {  // (i, j) of the words i … j
    static constexpr int root = 0;
    static constexpr int first(int i) { return i; }
    static constexpr bool part(int i, int j) { return i <= j; }
};

// Sentences of dynamic programs that are longer than this go alone (lone.h), whatever their neighbours: a
// rule that asked for these would make bits depend on them. Below, full vectors of sentences are faster by
// more than half; at 320 words by a quarter, and one sentence alone would be slower by a factor of five.
constexpr int64_t longest_in_lanes = 255;
#if defined(TREELAX_LONE)
constexpr bool lone = true;
#else
constexpr bool lone = false;
#endif

// Which sentences make a group: sentences sorted by length, longest first, `lanes` at a time. Sorting
// keeps the lanes of a group equally busy.
template <class T> class Groups {
  public:
    // `divided`: only the sentences that are for this build.
    Groups(const int64_t *lengths, int64_t batch, int64_t size, int root = Arcs::root,
           bool divided = false)
        : lengths_(lengths), size_(size),
          order_(static_cast<int64_t *>(std::malloc(sizeof(int64_t) * (batch + size + 2)))) {
        if (!order_) {
            status_ = out_of_memory;
            return;
        }
        int64_t *start = order_ + batch;  // a counting sort
        std::memset(start, 0, sizeof(int64_t) * (size + 2));
        for (int64_t b = 0; b < batch; ++b) {
            if (lengths[b] < 0 || lengths[b] > size - root) {
                status_ = bad_length;
                return;
            }
            if (divided && lone != (lengths[b] > longest_in_lanes)) continue;
            ++start[size - lengths[b] + 1];
            ++batch_;
        }
        for (int64_t s = 1; s <= size + 1; ++s) start[s] += start[s - 1];
        for (int64_t b = 0; b < batch; ++b)
            if (!divided || lone == (lengths[b] > longest_in_lanes)) order_[start[size - lengths[b]]++] = b;
    }
    ~Groups() { std::free(order_); }
    Groups(const Groups &) = delete;
    Groups &operator=(const Groups &) = delete;

    int status() const { return status_; }
    int64_t count() const { return (batch_ + lanes - 1) / lanes; }
    int64_t size() const { return size_; }
    // sentence in a lane, or -1 for an empty lane of the last group
    int64_t sentence(int64_t group, int lane) const {
        const int64_t at = group * lanes + lane;
        return at < batch_ ? order_[at] : -1;
    }
    int64_t length(int64_t group, int lane) const {
        const int64_t b = sentence(group, lane);
        return b < 0 ? 0 : lengths_[b];
    }

    static constexpr int lanes = Simd<T>::lanes;

  private:
    const int64_t *lengths_;
    int64_t batch_ = 0, size_;  // sentences at work
    int64_t *order_;
    int status_ = 0;
};

// One group at work, with a size of its own.
template <class T, class Parts = Arcs> struct Group {
    static constexpr int lanes = Simd<T>::lanes;
    using V = Vec<T>;

    const Groups<T> &groups;
    const int64_t index;
    const int n;     // longest sentence
    const int size;  // n, and 1 for the root
    bool single_root;
    const int *stop;  // not 0 when the caller gives up; may be null

    Group(const Groups<T> &all, int64_t group, bool single, const int *stop_flag)
        : groups(all), index(group), n(int(all.length(group, 0))), size(n + Parts::root),
          single_root(single), stop(stop_flag) {}

    bool stopped() const { return given_up(stop); }

    size_t plane_vectors() const { return size_t(size) * size; }
    int inner_splits(int i, int j) const { return single_root && i == 0 ? 1 : j - i; }

    // Index of a lane's last word; -1 where there is neither word nor root.
    int last(int lane) const { return int(groups.length(index, lane)) + Parts::root - 1; }

    // Do all sentences have the length of the longest? Groups are sorted.
    bool even() const { return groups.sentence(index, lanes - 1) >= 0 && last(lanes - 1) + 1 == size; }

    // Lanes of `source` (B, N, N) into a plane. Cells outside a sentence become 0.
    void gather(const T *source, V *plane) const {
        const int64_t full = groups.size();
        int64_t base[lanes], end[lanes];
        for (int l = 0; l < lanes; ++l) {
            const int64_t b = groups.sentence(index, l);
            base[l] = b < 0 ? 0 : b * full;
            end[l] = b < 0 ? 0 : last(l) + 1;
        }
        if (Parts::root && size == full && even()) {  // matrices without a gap
            const int64_t cells = full * full;
            for (int64_t at = 0; at < cells; at += lanes) {
                V block[lanes];
                for (int l = 0; l < lanes; ++l)
                    block[l] = load_lanes<T>(source + base[l] * full + at, cells - at);
                transpose<T>(block);
                store_block(block, plane + at, cells - at);
            }
            return;
        }
        for (int h = 0; h < size; ++h)
            for (int m = Parts::first(h); m < size; m += lanes) {
                V block[lanes];  // of each sentence, `lanes` columns of row h; then the transpose
                for (int l = 0; l < lanes; ++l)
                    block[l] = load_lanes<T>(source + (base[l] + h) * full + m,
                                         h < end[l] ? end[l] - m : 0);
                transpose<T>(block);
                store_block(block, plane + h * size + m, size - m);
            }
    }

    // The other way round. A plane holds 0 outside a sentence already; what lies outside the group, or
    // before the parts of a row, becomes 0.
    void scatter(const V *plane, T *target) const {
        const int64_t full = groups.size();
        T *base[lanes];
        int count = 0;
        for (; count < lanes && groups.sentence(index, count) >= 0; ++count)
            base[count] = target + groups.sentence(index, count) * full * full;
        const auto write = [&](const V *from, int64_t inside, int64_t at, int64_t most) {
            V block[lanes];
            for (int k = 0; k < lanes; ++k) block[k] = k < inside ? from[k] : V{};
            transpose<T>(block);
            if (count == lanes)
                for (int l = 0; l < lanes; ++l) store_lanes<T>(base[l] + at, block[l], most);
            else
                for (int l = 0; l < count; ++l) store_lanes<T>(base[l] + at, block[l], most);
        };
        if (Parts::root && size == full) {
            const int64_t cells = full * full;
            for (int64_t at = 0; at < cells; at += lanes) write(plane + at, cells - at, at, cells - at);
            return;
        }
        for (int h = 0; h < size; ++h)
            for (int64_t m = Parts::first(h); m < full; m += lanes)
                write(plane + h * size + m, size - m, h * full + m, full - m);
        for (int l = 0; l < count; ++l) {
            for (int h = 0; h < size; ++h) std::memset(base[l] + h * full, 0, sizeof(T) * Parts::first(h));
            std::memset(base[l] + size * full, 0, sizeof(T) * full * (full - size));
        }
    }

    // -inf to `forbidden`, the rest clamped; NaN becomes a number too, so that no chart holds one.
    Faults<T> clean(V *plane) const {
        Faults<T> found = {};
        const V low = splat<T>(T(-limit)), high = splat<T>(T(limit));
        IVec<T> odd = {};  // most often there is nothing to do
        for (int h = 0; h < size; ++h)
            for (int m = Parts::first(h); m < size; ++m) {
                V &at = plane[size_t(h) * size + m];
                if (!Parts::part(h, m)) at = V{};
                odd |= ~((at >= low) & (at <= high));
            }
        if (!any<T>(odd)) return found;
        const V banned = splat<T>(T(forbidden));
        for (int h = 0; h < size; ++h) {
            for (int m = Parts::first(h); m < size; ++m) {
                V &at = plane[size_t(h) * size + m];
                V x = at;
                found.nan |= x != x;
                found.bad |= ~(x < splat<T>(T(__builtin_huge_val())));
                const IVec<T> is_banned = x == splat<T>(T(-__builtin_huge_val()));
                x = vmax<T>(x, low);
                x = x < high ? x : high;
                at = is_banned ? banned : x;
            }
        }
        return found;
    }

    // out[b] = goals[last] * unit + offset, or NaN, from row 0 of a plane
    int write_values(const V *goals, T unit, V offset, const Faults<T> &faults, T *out) const {
        int status = 0;
        for (int l = 0; l < lanes; ++l) {
            const int64_t b = groups.sentence(index, l);
            if (b < 0) break;
            const T value = last(l) < 0 ? T(0) : goals[last(l)][l] * unit + offset[l];
            out[b] = faults.nan[l] ? not_a_number : value;
            if (faults.bad[l]) status |= bad_score;
            if (!(value > T(forbidden / 2))) status |= no_tree;
        }
        return status;
    }

    // NaN in every part of the sentences in which a score is NaN, so that a diverged network shows.
    void spoil(const IVec<T> &nan, T *target) const {
        const int64_t full = groups.size();
        for (int l = 0; l < lanes; ++l) {
            const int64_t b = groups.sentence(index, l);
            if (b < 0 || !nan[l]) continue;
            for (int h = 0; h <= last(l); ++h)
                for (int m = Parts::first(h); m <= last(l); ++m)
                    if (Parts::part(h, m)) target[(b * full + h) * full + m] = not_a_number;
        }
    }

    static void store_block(const V (&block)[lanes], V *to, int64_t count) {
        if (count >= lanes)
            for (int k = 0; k < lanes; ++k) to[k] = block[k];
        else
            for (int k = 0; k < count; ++k) to[k] = block[k];
    }

    static constexpr T not_a_number = T(__builtin_nan(""));

    // 1 in the lanes whose last word is j.
    V goal(int j) const {
        V one = {};
        for (int l = 0; l < lanes; ++l)
            if (last(l) == j) one[l] = 1;
        return one;
    }
};

// Any order in which a span comes after its parts is right for a bottom-up sweep, and its reverse for a
// top-down one. We take a few columns j at a time and walk over the rows i: the stretches of rows that
// cells of neighbouring columns share are fetched once for all of them, which matters as soon as the
// planes outgrow the second-level cache (n = 80). Staggered, each column is a row ahead of the next, so
// that of the cells (i, j), (i+1, j+1), … none waits for another; a cell with a softmax mostly waits.
constexpr int columns = 4;

template <bool Staggered = true, class G, class Visit> inline void bottom_up(const G &g, Visit visit) {
    const int n = g.size - 1;
    constexpr int lead = Staggered ? 1 : 0, late = columns - 1;
    for (int first = 1; first <= n && !g.stopped(); first += columns)
        for (int i = first - 1 + (1 - lead) * late; i >= -lead * late; --i)
            for (int c = 0; c < columns && first + c <= n; ++c) {
                const int row = i + lead * c, j = first + c;
                if (row >= 0 && row < j) visit(row, j);
            }
}

template <class G, class Visit> inline void top_down(const G &g, Visit visit) {
    const int n = g.size - 1;
    for (int first = (n - 1) / columns * columns + 1; first >= 1 && !g.stopped(); first -= columns)
        for (int i = 1 - columns; i < first; ++i)
            for (int c = i < 0 ? -i : 0; c < columns && first + c <= n; ++c) visit(i + c, first + c);
}

// The planes of one group's chart: the first `kept` one after the other, the others in a place of their own.
template <class T> struct Chart {
    static constexpr int most = 11;
    Vec<T> *planes[most];
    Chart(Vec<T> *all, size_t plane) : Chart(nullptr, plane, 0, all) {}
    Chart(Vec<T> *first, size_t plane, int kept, Vec<T> *others) {
        for (int p = 0; p < most; ++p) planes[p] = p < kept ? first + p * plane : others + (p - kept) * plane;
    }
    Vec<T> *operator[](int plane) const { return planes[plane]; }
};

// A block that a thread keeps between calls: memory fresh from the system costs a page fault for every
// 4 KiB. Large blocks are not kept.
class Arena {
  public:
    ~Arena() { std::free(memory_); }
    void *at_least(size_t bytes) {
        if (bytes >= size_) {
            std::free(memory_);
            size_ = bytes / 64 * 64 + 64;  // never nothing
            memory_ = std::aligned_alloc(64, size_);
            if (!memory_) size_ = 0;
        }
        return memory_;
    }
    void trim() {
        if (size_ <= most_kept) return;
        std::free(memory_);
        memory_ = nullptr;
        size_ = 0;
    }

  private:
    static constexpr size_t most_kept = size_t(16) << 20;
    void *memory_ = nullptr;
    size_t size_ = 0;
};

thread_local Arena arena;

// Memory of a thread, aligned for whole vectors. One at a time.
template <class T> class Scratch {
  public:
    explicit Scratch(size_t vectors)
        : memory_(static_cast<Vec<T> *>(arena.at_least(vectors * sizeof(Vec<T>)))) {}
    ~Scratch() { arena.trim(); }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    Vec<T> *get() const { return memory_; }

  private:
    Vec<T> *memory_;
};

}  // namespace
