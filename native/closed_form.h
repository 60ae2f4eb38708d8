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
// direction G first, here for good: it changes nothing, and numbers stay small. `memory` has two planes
// and a row.
template <class T>
[[gnu::noinline]] void closed_form(const Group<T> &g, const Real<T> *weights, const Real<T> *reach,
                                   Vec<T> *direction, const Vec<T> &factor, Real<T> *memory,
                                   Real<T> *grad) {
    const int n = g.n, size = g.size;
    Real<T> *pull = memory, *a = pull + size * size, *row = a + size * size, *mean = grad;
    for (int m = 1; m <= n; ++m) {
        row[m] = mean[m] = Real<T>::zero();
        direction[m * size + m] = Vec<T>{};
    }
    for (int h = 0; h <= n; ++h)
        for (int m = 1; m <= n; ++m) {
            const size_t at = h * size + m;
            mean[m].value += weights[at].value * reach[at].value * direction[at];
        }
    const IVec<T> usable = reach[0].value < T(__builtin_huge_val());
    for (int m = 1; m <= n; ++m) mean[m].value = usable ? mean[m].value : Vec<T>{};
    for (int h = 0; h <= n; ++h)
        for (int m = 1; m <= n; ++m) {
            const size_t at = h * size + m;
            direction[at] -= mean[m].value;
            pull[at].value = weights[at].value * direction[at];
            if (h > 0 || !g.single_root) row[m].value -= pull[at].value;
        }
    for (int m = 1; m <= n; ++m) pull[m * size + m] = row[m];
    add_product<Real<T>, true>(n, n, a + size + 1, size, pull + 1, 1, size, reach + 1, size, size);
    add_product<Real<T>, true>(size, n, grad + 1, size, reach + 1, size, 1, a + size + 1, size, n);
    for (int m = 1; m <= n; ++m) row[m] = grad[m * size + m];
    for (int h = 0; h <= n; ++h)
        for (int m = 1; m <= n; ++m) {
            const size_t at = h * size + m;
            const Vec<T> own = h == 0 && g.single_root ? Vec<T>{} : row[m].value;
            grad[at].value = weights[at].value * (reach[at].value * (direction[at] + factor) -
                                                  (grad[at].value - own));
        }
    for (int h = 0; h <= n; ++h) grad[h * size] = grad[h * size + h] = Real<T>::zero();
}

}  // namespace
