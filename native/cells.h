// The work of one cell of the chart, for all lanes at once.
//
// A cell chooses among `splits` pairs of antecedents with scores s_k = left[k] + right[k]. Charts hold
// log2 units, so the softmax weights are b_k = 2^(s_k - m) / z with m = max_k s_k.
#pragma once

#include <cmath>

#include "simd.h"

namespace {

constexpr double log2_of_e = 1.44269504088896340736;
constexpr double log_of_2 = 0.69314718055994530942;
// See src/treelax/ops/backend.py for why these are finite.
constexpr double forbidden = -1e36;
constexpr double limit = 1e30;
// The size of chart values from which a type loses too much in their differences.
template <class T> constexpr double centre_above = sizeof(T) == sizeof(float) ? 256 : 256.0 * (1 << 29);

// Whether the caller has given up; `stop` may be null.
inline bool given_up(const int *stop) { return stop && __atomic_load_n(stop, __ATOMIC_RELAXED); }

// A cell's maximum, the reciprocal of its normaliser, and the value it passes up.
template <class T> struct Cell {
    Vec<T> top, scale, value;
};

#if !defined(TREELAX_LONE)  // see lone.h

template <class T> inline Vec<T> best_split(const Vec<T> *left, const Vec<T> *right, int splits) {
    // two chains, because one maximum waits four cycles for the one before
    Vec<T> even = left[0] + right[0], odd = even;
    int k = 1;
    for (; k + 1 < splits; k += 2) {
        even = vmax<T>(even, left[k] + right[k]);
        odd = vmax<T>(odd, left[k + 1] + right[k + 1]);
    }
    if (k < splits) even = vmax<T>(even, left[k] + right[k]);
    return vmax<T>(even, odd);
}

// b = softmax(s); v = b·s (softmax) or logsumexp(s) (entropy). With gradients, also the mean that
// `expected_grad` returns.
template <class T, bool Entropy>
inline Cell<T> soft_split(const Vec<T> *left, const Vec<T> *right, int splits,
                          const Vec<T> *grad_left = nullptr, const Vec<T> *grad_right = nullptr,
                          Vec<T> *mean = nullptr) {
    const Vec<T> top = best_split<T>(left, right, splits);
    Vec<T> total = {}, expected = {}, sum = {};
    for (int k = 0; k < splits; ++k) {
        const Vec<T> d = left[k] + right[k] - top;
        const Vec<T> e = vexp2<T>(d);
        total += e;
        if constexpr (!Entropy) expected += e * d;
        if (mean) sum += e * (grad_left[k] + grad_right[k]);
    }
    const Vec<T> scale = T(1) / total;
    if (mean) *mean = sum * scale;
    const Vec<T> value = top + (Entropy ? vlog2<T>(total) : expected * scale);
    return {top, scale, vmax<T>(value, splat<T>(T(forbidden * log2_of_e)))};
}

// Hand b_k * contribution to both antecedents.
template <class T>
inline void hand_down(const Vec<T> *left, const Vec<T> *right, int splits, Vec<T> top, Vec<T> scale,
                      Vec<T> contribution, Vec<T> *__restrict to_left, Vec<T> *__restrict to_right) {
    const Vec<T> weight = scale * contribution;
    for (int k = 0; k < splits; ++k) {
        const Vec<T> share = vexp2<T>(left[k] + right[k] - top) * weight;
        to_left[k] += share;
        to_right[k] += share;
    }
}

// ḡ = Σ_k b_k g_k with g_k = grad_left[k] + grad_right[k]
template <class T>
inline Vec<T> expected_grad(const Vec<T> *left, const Vec<T> *right, const Vec<T> *grad_left,
                            const Vec<T> *grad_right, int splits, Vec<T> top, Vec<T> scale) {
    Vec<T> sum = {};
    for (int k = 0; k < splits; ++k)
        sum += vexp2<T>(left[k] + right[k] - top) * (grad_left[k] + grad_right[k]);
    return sum * scale;
}

// The adjoint of the splits' scores, given to the values of both antecedents:
//   ds_k = b_k [ gv (1 + (s_k - v)) + a (g_k - ḡ) ]   (softmax)
//   ds_k = b_k [ gv                 + a (g_k - ḡ) ]   (entropy)
// with gv the adjoint of the cell's value v and a its contribution.
template <class T, bool Entropy>
inline void hand_down_grad(const Vec<T> *left, const Vec<T> *right, const Vec<T> *grad_left,
                           const Vec<T> *grad_right, int splits, const Cell<T> &cell,
                           Vec<T> contribution, Vec<T> expected, Vec<T> grad_value,
                           Vec<T> *__restrict to_left, Vec<T> *__restrict to_right) {
    // natural units: s_k - v = ln 2 * (d - (value - top)), d = s_k - top in log2 units
    const Vec<T> slope = grad_value * T(Entropy ? 0 : log_of_2);
    const Vec<T> offset =
        grad_value - slope * (cell.value - cell.top) - contribution * expected;
    // b_k is 0 far above this; without it slope * d could be infinite for a forbidden split
    const Vec<T> floor = splat<T>(T(2) * Simd<T>::exp2_lowest);
    for (int k = 0; k < splits; ++k) {
        Vec<T> d = left[k] + right[k] - cell.top;
        if constexpr (!Entropy) d = vmax<T>(d, floor);
        const Vec<T> g = grad_left[k] + grad_right[k];
        Vec<T> bracket = offset + contribution * g;
        if constexpr (!Entropy) bracket += slope * d;
        const Vec<T> ds = vexp2<T>(d) * cell.scale * bracket;
        to_left[k] += ds;
        to_right[k] += ds;
    }
}

#endif

// The first split of a lane that reaches the maximum, which was computed from these very sums.
template <class T>
inline int first_split(const Vec<T> *left, const Vec<T> *right, int splits, T top, int lane) {
    for (int k = 0; k < splits; ++k)
        if (left[k][lane] + right[k][lane] >= top) return k;
    return 0;  // all splits forbidden: the value was clamped
}

// The first split of a lane whose cumulative probability exceeds u.
template <class T>
inline int sampled_split(const Vec<T> *left, const Vec<T> *right, int splits, const Vec<T> &top,
                         const Vec<T> &scale, int lane, T u) {
    T sum = 0;
    int last = 0;
    for (int k = 0; k < splits; ++k) {
        const T b = std::exp2(left[k][lane] + right[k][lane] - top[lane]) * scale[lane];
        sum += b;
        if (sum > u) return k;
        if (b > 0) last = k;  // rounding may leave u above the total
    }
    return last;
}

}  // namespace

#if defined(TREELAX_LONE)
#include "lone.h"
#endif
