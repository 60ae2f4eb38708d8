// Exact samples of non-projective trees, one in every lane.
//
// Words take their heads one after the other, each from its marginal given those before. A word with a head
// is merged into it, since its walk goes there for sure, and the walk is one word shorter.
#pragma once

#include "marginals.h"

namespace {

template <class Num> class Sampler {
    using T = typename Num::Lane;

  public:
    IVec<T> in_range = ~IVec<T>{};

    static size_t room(int n) { return 2 * size_t(n + 1) * (n + 1) + 5 * (n + 1); }

    Sampler(int n, Num *memory, const int *stop)
        : n_(n), size_(n + 1), walk_(memory), work_(walk_ + size_ * size_),
          reach_(work_ + size_ * size_), arcs_(reach_ + size_), stands_for_(arcs_ + size_),
          uniforms_(stands_for_ + size_), heads_(uniforms_ + size_), stop_(stop) {}

    Vec<T> &uniform(int m) { return uniforms_[m].value; }
    const Vec<T> &head(int m) const { return heads_[m].value; }

    // Heads from the weights and uniforms; the weights are used up.
    [[gnu::noinline]] void draw(Marginals<Num> &marginals, bool single_root) {
        Num *weights = marginals.weights;
        for (int h = 0; h <= n_; ++h) stands_for_[h].value = splat<T>(T(h)), heads_[h].value = Vec<T>{};
        Vec<T> child = {};
        if (single_root) {
            marginals.eliminate(false);
            marginals.arcs([&](int h, int m, const Num &p) {
                if (h == 0) arcs_[m] = p;
            });
            in_range = marginals.in_range;
            child = first_above(uniform(0), 1, 0);
        }
        std::memcpy(static_cast<void *>(walk_), weights, sizeof(Num) * size_ * size_);
        if (single_root) root_child(weights, child);
        for (int m = 1; m <= n_ && !given_up(stop_); ++m) {
            const IVec<T> drawn = (splat<T>(T(m)) <= marginals.last) & (child != splat<T>(T(m)));
            Elimination<Num> elimination(false, marginals.exit, reach_ + m, 1, work_, stop_);
            elimination.solve_first({walk_ + m, walk_ + m * size_ + m, size_, n_ - m + 1}, m - 1);
            reach_[0] = Num::one();
            Num total = Num::zero();
            for (int h = 0; h <= n_; ++h) {
                if (h == m) continue;
                Num reach = Num::zero();  // of the word that h has been merged into
                for (int l = 0; l < Simd<T>::lanes; ++l)
                    reach.value[l] = reach_[int(stands_for_[h].value[l])].value[l];
                arcs_[h] = weights[h * size_ + m] * reach;
                total += arcs_[h];
            }
            in_range &= elimination.in_range & (total.in_range() | ~drawn);
            const Num scale = total.inverse();
            for (int h = 0; h <= n_; ++h) arcs_[h] = arcs_[h] * scale;
            const Vec<T> head = first_above(uniform(m), 0, m);
            heads_[m].value = drawn ? head : Vec<T>{};
            merge(m, drawn);
        }
    }

  private:
    const int n_, size_;
    Num *const walk_, *const work_, *const reach_, *const arcs_;
    Num *const stands_for_, *const uniforms_, *const heads_;  // values only
    const int *const stop_;

    // The first index whose cumulative probability exceeds u; rounding goes to the last one possible.
    Vec<T> first_above(Vec<T> u, int from, int skip) const {
        Vec<T> sum = {}, chosen = {};
        IVec<T> found = {};
        for (int i = from; i <= n_; ++i) {
            if (i == skip) continue;
            const Vec<T> p = arcs_[i].weight();
            sum += p;
            chosen = ~found & (p > T(0)) ? splat<T>(T(i)) : chosen;
            found |= sum > u;
        }
        return chosen;
    }

    // The only child of the root: what leads to it leads to the root, and nothing else does.
    void root_child(Num *weights, const Vec<T> &child) {
        for (int m = 1; m <= n_; ++m) {
            const IVec<T> here = child == splat<T>(T(m));
            for (int x = 1; x <= n_; ++x)
                walk_[x] = choose<Num>(here, walk_[m * size_ + x], walk_[x]);
        }
        for (int m = 1; m <= n_; ++m) {
            const IVec<T> here = child == splat<T>(T(m));
            for (int x = 1; x <= n_; ++x) {
                walk_[m * size_ + x] = choose<Num>(here, Num::zero(), walk_[m * size_ + x]);
                walk_[x * size_ + m] = choose<Num>(here, Num::zero(), walk_[x * size_ + m]);
            }
            walk_[m] = choose<Num>(here, Num::one(), walk_[m]);
            weights[m] = Num::zero();
            stands_for_[m].value = here ? Vec<T>{} : stands_for_[m].value;
        }
    }

    void merge(int m, const IVec<T> &drawn) {
        Vec<T> target = {};
        for (int l = 0; l < Simd<T>::lanes; ++l)
            target[l] = stands_for_[int(heads_[m].value[l])].value[l];
        for (int h = 0; h <= n_; ++h) {
            const IVec<T> here = drawn & (target == splat<T>(T(h)));
            if (any<T>(here))
                for (int x = m + 1; x <= n_; ++x)
                    walk_[h * size_ + x] += choose<Num>(here, walk_[m * size_ + x], Num::zero());
            Vec<T> &stands_for = stands_for_[h].value;
            stands_for = drawn & (stands_for == splat<T>(T(m))) ? target : stands_for;
        }
    }
};

}  // namespace
