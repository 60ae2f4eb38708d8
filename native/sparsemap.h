// SparseMAP of a batch by the best_tree of the file that includes this.
//
// A worker has as many sentences in hand as a vector has lanes: their scores less their points go through
// one call of best_tree, then every sentence takes its step. One that is done makes room for the next, so
// the lanes stay full. No sentence's bits depend on which others are in hand.
#pragma once

#include <atomic>
#include <memory>
#include <new>

#include "active_set.h"
#include "threads.h"

namespace {

// A gap below the first, times the parts of a tree and the size of their scores, is rounding; a squared
// distance below the other is 0. As in src/treelax/ops/sparsemap/limits.py.
constexpr double gap_rounding = 1e-13, tiny_distance = 1e-12;

// The supports of a batch, until the caller has made room for them.
struct Supports {
    std::vector<std::unique_ptr<ActiveSet>> sets;
    int64_t parts, none;  // most parts of a tree; what stands for a part that there is not
};

// One sentence at work.
template <class Parts> class Projection {
  public:
    Projection(const double *scores, int64_t length, int64_t size, const double *start, double *z)
        : scores_(scores), size_(size), last_(length + Parts::root - 1), z_(z) {
        std::memset(z, 0, sizeof(double) * size * size);
        std::vector<int64_t> first = parts_of(start);
        for (const int64_t part : first) {
            z[part] = 1;
            largest_ = std::max(largest_, std::abs(scores[part]));
            if (std::isinf(scores[part])) gap = __builtin_huge_val();
        }
        done = first.empty() || gap > 0;
        set.reset(new ActiveSet(scores, std::move(first)));
    }

    std::unique_ptr<ActiveSet> set;
    double gap = 0;
    bool done = false;

    int64_t length() const { return last_ + 1 - Parts::root; }

    // Scores less the point; -inf stays.
    void write_rest(double *rest) {
        rest_ = rest;
        for (int64_t h = 0; h <= last_; ++h)
            for (int64_t m = Parts::first(int(h)); m <= last_; ++m)
                rest[h * size_ + m] = scores_[h * size_ + m] - z_[h * size_ + m];
    }

    // From the best tree of the rest to the next point, unless that is as good as it gets.
    void step(const double *tree, int64_t most, double *mark) {
        const std::vector<int64_t> found = parts_of(tree);
        for (const int64_t part : found) largest_ = std::max(largest_, std::abs(scores_[part]));
        gap = std::max(set->score(found.data(), rest_) - set->level(), 0.0);
        done = gap <= gap_rounding * double(set->parts()) * largest_ || added_ >= most ||
               !set->add(found.data(), tiny_distance, mark);
        if (done) return;
        ++added_;
        set->clear(z_);
        done = !set->settle();
        set->spread(z_);
    }

  private:
    const double *scores_;
    int64_t size_, last_, added_ = 0;
    double *z_, *rest_ = nullptr;
    double largest_ = 1;

    std::vector<int64_t> parts_of(const double *tree) const {
        std::vector<int64_t> found;
        for (int64_t h = 0; h <= last_; ++h)
            for (int64_t m = Parts::first(int(h)); m <= last_; ++m)
                if (tree[h * size_ + m] != 0) found.push_back(h * size_ + m);
        return found;
    }
};

template <class Parts>
int sparsemap(const double *scores, const int64_t *lengths, const double *start, int64_t batch,
              int64_t size, bool single_root, int64_t most, double *points, double *gaps,
              Supports *supports, int64_t threads, const int *stop) {
    const Groups<double> groups(lengths, batch, size, Parts::root);
    if (groups.status()) return groups.status();
    const int64_t plane = size * size;
    std::atomic<int64_t> next{0};
    const auto work = [&](int64_t) -> int {
        constexpr int lanes = Groups<double>::lanes;
        std::unique_ptr<Projection<Parts>> own[lanes];
        int64_t sentence[lanes], own_lengths[lanes];
        std::vector<double> rest(lanes * plane), trees(lanes * plane), mark(plane);
        double values[lanes];
        for (int count = 0;;) {
            for (; count < lanes; ) {
                const int64_t at = next++;
                if (at >= batch) break;
                const int64_t b = sentence[count] = groups.sentence(at / lanes, int(at % lanes));
                own[count].reset(new Projection<Parts>(scores + b * plane, lengths[b], size,
                                                       start + b * plane, points + b * plane));
                if (!own[count]->done) {
                    ++count;
                    continue;
                }
                gaps[b] = own[count]->gap;
                supports->sets[b] = std::move(own[count]->set);
            }
            if (count == 0 || given_up(stop)) return 0;
            for (int i = 0; i < count; ++i) {
                own[i]->write_rest(rest.data() + i * plane);
                own_lengths[i] = own[i]->length();
            }
            const int status = best_tree<double>(rest.data(), own_lengths, count, size, single_root,
                                                 trees.data(), values, 1, stop);
            if (status & out_of_memory) return out_of_memory;
            int left = 0;
            for (int i = 0; i < count; ++i) {
                own[i]->step(trees.data() + i * plane, most, mark.data());
                if (own[i]->done) {
                    gaps[sentence[i]] = own[i]->gap;
                    supports->sets[sentence[i]] = std::move(own[i]->set);
                } else {
                    sentence[left] = sentence[i];
                    if (left != i) own[left] = std::move(own[i]);
                    ++left;
                }
            }
            count = left;
        }
    };
    return for_each_group(groups, threads, stop, [&](int64_t index) -> int {
        try {
            return work(index);
        } catch (const std::bad_alloc &) {
            return out_of_memory;
        }
    });
}

// `found` receives the supports, for `take` to write down and free, and `slots` the size of the largest.
template <class Parts>
int sparsemap_start(const double *scores, const int64_t *lengths, const double *start, int64_t batch,
                    int64_t size, bool single_root, int64_t most, double *points, double *gaps,
                    Supports **found, int64_t *slots, int64_t threads, const int *stop) {
    *found = nullptr;
    *slots = 0;
    try {
        std::unique_ptr<Supports> supports(new Supports);
        supports->sets.resize(batch);
        supports->parts = Parts::root ? size - 1 : 2 * size - 1;
        supports->none = size * size;
        const int status = sparsemap<Parts>(scores, lengths, start, batch, size, single_root, most,
                                            points, gaps, supports.get(), threads, stop);
        for (const auto &set : supports->sets)
            if (set) *slots = std::max(*slots, set->size());
        *found = supports.release();
        return status;
    } catch (const std::bad_alloc &) {
        return out_of_memory;
    }
}

// indices (batch, slots, parts), weights (batch, slots), inverse (batch, slots, slots); null pointers to
// free only
inline void take(Supports *supports, int64_t slots, int64_t *indices, double *weights, double *inverse) {
    const std::unique_ptr<Supports> own(supports);
    if (!own || !indices) return;
    for (const auto &set : own->sets) {
        const int64_t size = set ? set->size() : 0;
        for (int64_t r = 0; r < slots; ++r) {
            for (int64_t p = 0; p < own->parts; ++p)
                *indices++ = r < size && p < set->parts() ? set->tree(r)[p] : own->none;
            *weights++ = r < size ? set->weight(r) : 0;
            for (int64_t s = 0; s < slots; ++s)
                *inverse++ = r < size && s < size ? set->inverse(r, s) : 0;
        }
    }
}

}  // namespace

#define TREELAX_SPARSEMAP(prefix, Parts)                                                            \
    TREELAX_EXPORT int64_t TREELAX_NAME(prefix##sparsemap, f64)(                                    \
        const double *scores, const int64_t *lengths, const double *start, int64_t batch,           \
        int64_t size, int64_t single_root, int64_t most, double *points, double *gaps,              \
        void **found, int64_t *slots, int64_t threads, const int *stop) {                           \
        return sparsemap_start<Parts>(scores, lengths, start, batch, size, single_root != 0, most,  \
                                      points, gaps, reinterpret_cast<Supports **>(found), slots,    \
                                      threads, stop);                                               \
    }                                                                                               \
    TREELAX_EXPORT int64_t TREELAX_NAME(prefix##sparsemap_take, f64)(                               \
        void *found, int64_t slots, int64_t *indices, double *weights, double *inverse, int64_t,    \
        const int *) {                                                                              \
        take(static_cast<Supports *>(found), slots, indices, weights, inverse);                     \
        return 0;                                                                                   \
    }
