// The gradient of marginals in closed form, for sentences in which it keeps its digits.
#pragma once

#include "marginals.h"

namespace {

// Above this, the closed form of the gradient loses too many digits in differences: float32 keeps 1e-5.
template <class T> constexpr T largest_reach = 32;

// The gradient of <G, marginals> + f log-partition in closed form, with q_hm = q_h(m) / c_m:
//   A[k][m] = Σ_h w_hk G_hk (q_hm - q_km),   X[h][m] = Σ_k q_hk A[k][m]
//   grad[h][m] = w_hm (q_hm (G_hm + f) - (X[h][m] - X[m][m]))
// With one root, the root has no q_km and no X[m][m] taken off. The mean of each column is taken off the
// direction G first, here for good: it changes nothing, and numbers stay small. `memory` has a plane.
template <class T>
[[gnu::noinline]] void closed_form(const Group<T> &g, const Real<T> *weights, const Real<T> *reach,
                                   Vec<T> *direction, const Vec<T> &factor, Real<T> *memory,
                                   Real<T> *grad) {
    const int n = g.n, size = g.size;
    Real<T> *pull = grad, *a = memory;
    const IVec<T> usable = reach[0].value < T(__builtin_huge_val());
    const int roots = g.single_root;  // the first row that counts
    by_columns(n, [&](int m, auto count) {
        Vec<T> mean[count] = {}, sum[count] = {};
        for (int j = 0; j < count; ++j) direction[(m + j) * size + m + j] = Vec<T>{};
        for (int h = 0; h <= n; ++h)
            for (int j = 0; j < count; ++j) {
                const size_t at = h * size + m + j;
                mean[j] += weights[at].value * reach[at].value * direction[at];
            }
        for (int j = 0; j < count; ++j) mean[j] = usable ? mean[j] : Vec<T>{};
        for (int h = 0; h <= n; ++h)
            for (int j = 0; j < count; ++j) {
                const size_t at = h * size + m + j;
                direction[at] -= mean[j];
                const Vec<T> x = weights[at].value * direction[at];
                pull[at].value = x;
                if (h >= roots) sum[j] -= x;
            }
        for (int j = 0; j < count; ++j) pull[(m + j) * size + m + j].value = sum[j];
    });
    add_product<Real<T>, true>(n, n, a + size + 1, size, pull + 1, 1, size, reach + 1, size, size);
    add_product<Real<T>, true>(size, n, grad + 1, size, reach + 1, size, 1, a + size + 1, size, n);
    by_columns(n, [&](int m, auto count) {
        Vec<T> own[count];
        for (int j = 0; j < count; ++j) own[j] = grad[(m + j) * size + m + j].value;
        for (int h = 0; h <= n; ++h)
            for (int j = 0; j < count; ++j) {
                const size_t at = h * size + m + j;
                const Vec<T> x = grad[at].value - (h < roots ? Vec<T>{} : own[j]);
                grad[at].value =
                    weights[at].value * (reach[at].value * (direction[at] + factor) - x);
            }
    });
    for (int h = 0; h <= n; ++h) grad[h * size] = grad[h * size + h] = Real<T>::zero();
}

}  // namespace
