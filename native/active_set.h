// The active set of SparseMAP: a few trees of one sentence, their weights, and the linear system of both.
// See src/treelax/ops/sparsemap/README.md for the derivation.
//
// Everything is float64. Matrices are symmetric and have a row for the multiplier, 0, before those of the
// trees; a product with one adds up its rows, which the compiler turns into vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

class ActiveSet {
  public:
    // `parts` are those of the first tree; scores (at least `count` of them) outlive this.
    ActiveSet(const double *scores, std::vector<int64_t> parts)
        : scores_(scores), parts_(int64_t(parts.size())), trees_(std::move(parts)), weights_{1} {
        grow(8);
        system_[1] = system_[width_] = 1;
        system_[width_ + 1] = double(parts_);
        inverse_[1] = inverse_[width_] = 1;
        inverse_[0] = -double(parts_);
        right_ = {1, score(trees_.data(), scores_)};
        solution_ = {right_[1] - double(parts_), 1};
    }

    int64_t size() const { return int64_t(weights_.size()); }
    int64_t parts() const { return parts_; }
    double weight(int64_t s) const { return weights_[s]; }
    const int64_t *tree(int64_t s) const { return trees_.data() + s * parts_; }
    // ⟨t, θ - z⟩, which all trees of the support share once they are settled
    double level() const { return solution_[0]; }
    double inverse(int64_t r, int64_t s) const { return inverse_[(r + 1) * width_ + s + 1]; }

    double score(const int64_t *tree, const double *scores) const {
        double sum = 0;
        for (int64_t p = 0; p < parts_; ++p) sum += scores[tree[p]];
        return sum;
    }

    // Σ_s weights[s] tree_s over zeros
    void spread(double *z) const {
        for (int64_t s = 0; s < size(); ++s)
            for (int64_t p = 0; p < parts_; ++p) z[tree(s)[p]] += weights_[s];
    }

    // 0 at all parts of the support
    void clear(double *z) const {
        for (const int64_t part : trees_) z[part] = 0;
    }

    // A new tree with weight 0; false if it is in the affine hull of the others already. `mark` holds
    // zeros, and does so again afterwards.
    bool add(const int64_t *tree, double tiny, double *mark) {
        const int64_t k = size();
        shared_.assign(k + 1, 1);
        for (int64_t p = 0; p < parts_; ++p) mark[tree[p]] = 1;
        for (int64_t s = 0; s < k; ++s) shared_[s + 1] = score(this->tree(s), mark);
        for (int64_t p = 0; p < parts_; ++p) mark[tree[p]] = 0;
        for (int64_t s = 0; s < k; ++s)
            if (shared_[s + 1] == double(parts_)) return false;
        product(inverse_, shared_, bordered_);
        double distance = double(parts_);
        for (int64_t i = 0; i <= k; ++i) distance -= shared_[i] * bordered_[i];
        if (!(distance > tiny)) return false;
        if (k + 2 > width_) grow(2 * width_);
        right_.push_back(score(tree, scores_));
        double weight = right_.back();
        for (int64_t i = 0; i <= k; ++i) weight -= shared_[i] * solution_[i];
        weight /= distance;
        for (int64_t i = 0; i <= k; ++i) solution_[i] -= weight * bordered_[i];
        solution_.push_back(weight);
        bordered_.push_back(-1);
        update(bordered_, 1 / distance);
        for (int64_t i = 0; i <= k; ++i)
            system_[i * width_ + k + 1] = system_[(k + 1) * width_ + i] = shared_[i];
        system_[(k + 1) * width_ + k + 1] = double(parts_);
        trees_.insert(trees_.end(), tree, tree + parts_);
        weights_.push_back(0);
        return true;
    }

    // To the nearest point of the hull, dropping trees on the way; false if the last tree that came goes
    // before it had a weight, which only rounding can bring about.
    bool settle() {
        for (int64_t newest = size() - 1;;) {
            refine();
            double length = 1;
            int64_t first = -1;
            for (int64_t s = 0; s < size(); ++s) {
                const double goal = solution_[s + 1];
                if (goal > 0) continue;
                const double ratio = weights_[s] > 0 ? weights_[s] / (weights_[s] - goal) : 0;
                if (first < 0 || ratio < length) length = ratio, first = s;
            }
            if (first < 0) {
                std::copy(solution_.begin() + 1, solution_.end(), weights_.begin());
                return true;
            }
            for (int64_t s = 0; s < size(); ++s) {
                const double moved = weights_[s] + length * (solution_[s + 1] - weights_[s]);
                weights_[s] = moved > 0 ? moved : 0;
            }
            if (first == newest && !(length > 0)) {
                drop(first);
                return false;
            }
            newest = first == newest ? -1 : newest == size() - 1 ? first : newest;
            drop(first);
        }
    }

  private:
    const double *scores_;
    int64_t parts_;
    std::vector<int64_t> trees_;
    std::vector<double> weights_;
    int64_t width_ = 0;  // of the rows of both matrices
    std::vector<double> system_, inverse_, right_;
    std::vector<double> shared_, bordered_, solution_, rest_;

    void grow(int64_t width) {
        const auto wider = [&](std::vector<double> &matrix) {
            std::vector<double> made(size_t(width) * width);
            for (int64_t i = 0; i < width_; ++i)
                std::copy_n(matrix.begin() + i * width_, width_, made.begin() + i * width);
            matrix = std::move(made);
        };
        wider(system_);
        wider(inverse_);
        width_ = width;
    }

    // out = matrix * x
    void product(const std::vector<double> &matrix, const std::vector<double> &x,
                 std::vector<double> &out) const {
        const int64_t n = int64_t(x.size());
        out.assign(n, 0);
        double *__restrict sum = out.data();
        for (int64_t i = 0; i < n; ++i) {
            const double *__restrict row = matrix.data() + i * width_;
            const double factor = x[i];
            for (int64_t j = 0; j < n; ++j) sum[j] += row[j] * factor;
        }
    }

    // inverse += scale * v vᵀ
    void update(const std::vector<double> &v, double scale) {
        const int64_t n = int64_t(v.size());
        const double *__restrict other = v.data();
        for (int64_t i = 0; i < n; ++i) {
            double *__restrict row = inverse_.data() + i * width_;
            const double factor = v[i] * scale;
            for (int64_t j = 0; j < n; ++j) row[j] += other[j] * factor;
        }
    }

    // The solution follows every change of the system. That is exact, so a step of refinement gives back
    // what the updates of its inverse and of the solution lost.
    void refine() {
        product(system_, solution_, rest_);
        for (size_t i = 0; i < rest_.size(); ++i) rest_[i] = right_[i] - rest_[i];
        product(inverse_, rest_, bordered_);
        for (size_t i = 0; i < rest_.size(); ++i) solution_[i] += bordered_[i];
    }

    // The last tree takes the place of the one that goes.
    void drop(int64_t s) {
        const int64_t last = size() - 1, n = last + 2;
        const double *row = inverse_.data() + (s + 1) * width_;
        bordered_.assign(row, row + n);
        update(bordered_, -1 / bordered_[s + 1]);
        const double factor = solution_[s + 1] / bordered_[s + 1];
        for (int64_t i = 0; i < n; ++i) solution_[i] -= factor * bordered_[i];
        solution_[s + 1] = solution_[last + 1];
        solution_.pop_back();
        for (auto *matrix : {&system_, &inverse_}) {
            double *at = matrix->data();
            std::copy_n(at + (last + 1) * width_, n, at + (s + 1) * width_);
            for (int64_t i = 0; i < n; ++i) at[i * width_ + s + 1] = at[i * width_ + last + 1];
            for (int64_t i = 0; i < n; ++i)
                at[i * width_ + last + 1] = at[(last + 1) * width_ + i] = 0;
        }
        std::copy_n(tree(last), parts_, trees_.begin() + s * parts_);
        trees_.resize(last * parts_);
        weights_[s] = weights_[last];
        weights_.pop_back();
        right_[s + 1] = right_[last + 1];
        right_.pop_back();
    }
};

}  // namespace
