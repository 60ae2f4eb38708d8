// The work of one cell as in cells.h, for one sentence: a vector holds splits of the cell, which lie side
// by side in a plane, and not sentences.
#pragma once

namespace {

// `visit(k, count)` for every vector of splits; the last may have fewer than its lanes. Inlined twice: masked
// stores are slow to be read again.
template <class T, class Visit> inline void by_splits(int splits, Visit visit) {
    constexpr int lanes = Wide<T>::lanes;
    int k = 0;
    for (; k + lanes <= splits; k += lanes) visit(k, lanes);
    if (k < splits) visit(k, splits - k);
}

template <class T> inline const T *numbers(const Vec<T> *at) { return reinterpret_cast<const T *>(at); }

// left[k] + right[k] of a vector of splits, 0 beyond the last.
template <class T> inline WideVec<T> sums(const Vec<T> *left, const Vec<T> *right, int k, int count) {
    return load_some(numbers<T>(left) + k, count) + load_some(numbers<T>(right) + k, count);
}

template <class T> inline WideVec<T> or_else(WideVec<T> x, int count, T other) {
    return count >= Wide<T>::lanes ? x : keep_some<T>(x, count, other);
}

// s_k - m, where a split beyond the last is far below any that counts: 2^x is 0 there.
template <class T>
inline WideVec<T> below(const Vec<T> *left, const Vec<T> *right, int k, int count, Vec<T> top) {
    return or_else<T>(sums<T>(left, right, k, count) - top[0], count, T(2) * Wide<T>::exp2_lowest);
}

template <class T> inline void add_some(Vec<T> *to, WideVec<T> x, int k, int count) {
    T *at = reinterpret_cast<T *>(to) + k;
    store_some(at, load_some(at, count) + x, count);
}

template <class T> inline Vec<T> best_split(const Vec<T> *left, const Vec<T> *right, int splits) {
    const T lowest = T(-__builtin_huge_val());
    WideVec<T> top = WideVec<T>{} + lowest;
    by_splits<T>(splits, [&](int k, int count) {
        top = vmax<T>(top, or_else<T>(sums<T>(left, right, k, count), count, lowest));
    });
    return splat<T>(across<T>(top, [](WideVec<T> a, WideVec<T> b) { return vmax<T>(a, b); }));
}

template <class T, bool Entropy>
inline Cell<T> soft_split(const Vec<T> *left, const Vec<T> *right, int splits,
                          const Vec<T> *grad_left = nullptr, const Vec<T> *grad_right = nullptr,
                          Vec<T> *mean = nullptr) {
    const Vec<T> top = best_split<T>(left, right, splits);
    WideVec<T> total = {}, expected = {}, grads = {};
    by_splits<T>(splits, [&](int k, int count) {
        const WideVec<T> d = below<T>(left, right, k, count, top);
        const WideVec<T> e = vexp2<T>(d);
        total += e;
        if constexpr (!Entropy) expected += e * d;
        if (mean) grads += e * sums<T>(grad_left, grad_right, k, count);
    });
    const auto add = [](WideVec<T> a, WideVec<T> b) { return a + b; };
    const Vec<T> sum = splat<T>(across<T>(total, add)), scale = T(1) / sum;
    if (mean) *mean = splat<T>(across<T>(grads, add)) * scale;
    const Vec<T> value = top + (Entropy ? vlog2<T>(sum) : splat<T>(across<T>(expected, add)) * scale);
    return {top, scale, vmax<T>(value, splat<T>(T(forbidden * log2_of_e)))};
}

template <class T>
inline void hand_down(const Vec<T> *left, const Vec<T> *right, int splits, Vec<T> top, Vec<T> scale,
                      Vec<T> contribution, Vec<T> *to_left, Vec<T> *to_right) {
    const T weight = scale[0] * contribution[0];
    by_splits<T>(splits, [&](int k, int count) {
        const WideVec<T> share = vexp2<T>(below<T>(left, right, k, count, top)) * weight;
        add_some<T>(to_left, share, k, count);
        add_some<T>(to_right, share, k, count);
    });
}

template <class T>
inline Vec<T> expected_grad(const Vec<T> *left, const Vec<T> *right, const Vec<T> *grad_left,
                            const Vec<T> *grad_right, int splits, Vec<T> top, Vec<T> scale) {
    WideVec<T> sum = {};
    by_splits<T>(splits, [&](int k, int count) {
        sum += vexp2<T>(below<T>(left, right, k, count, top)) *
               sums<T>(grad_left, grad_right, k, count);
    });
    return splat<T>(across<T>(sum, [](WideVec<T> a, WideVec<T> b) { return a + b; })) * scale;
}

template <class T, bool Entropy>
inline void hand_down_grad(const Vec<T> *left, const Vec<T> *right, const Vec<T> *grad_left,
                           const Vec<T> *grad_right, int splits, const Cell<T> &cell,
                           Vec<T> contribution, Vec<T> expected, Vec<T> grad_value, Vec<T> *to_left,
                           Vec<T> *to_right) {
    const T slope = grad_value[0] * T(Entropy ? 0 : log_of_2);
    const T offset =
        grad_value[0] - slope * (cell.value[0] - cell.top[0]) - contribution[0] * expected[0];
    const WideVec<T> floor = WideVec<T>{} + T(2) * Wide<T>::exp2_lowest;
    by_splits<T>(splits, [&](int k, int count) {
        WideVec<T> d = below<T>(left, right, k, count, cell.top);
        if constexpr (!Entropy) d = vmax<T>(d, floor);
        WideVec<T> bracket = offset + contribution[0] * sums<T>(grad_left, grad_right, k, count);
        if constexpr (!Entropy) bracket += slope * d;
        const WideVec<T> ds = vexp2<T>(d) * cell.scale[0] * bracket;
        add_some<T>(to_left, ds, k, count);
        add_some<T>(to_right, ds, k, count);
    });
}

}  // namespace
