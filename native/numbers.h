// Numbers that an elimination runs on, all lanes at once. None of them ever subtracts two weights.
//
// - Real: a weight.
// - Dual: a weight and its derivative in one direction (its slope).
// - Log: the base-2 logarithm of a weight and the slope of its natural logarithm, for weights that would
//   underflow. Slopes of sums are averages, so they stay of the size of the direction.
#pragma once

#include "cells.h"

namespace {

// Normalisers within these bounds make everything that underflows negligible: 2^±80, 2^±900.
template <class T> constexpr T smallest_normaliser = T(sizeof(T) == 4 ? 0x1p-80 : 0x1p-900);

template <class T> struct Real {
    using Lane = T;
    static constexpr int tile_rows = 4, tile_columns = TREELAX_VECTOR_BYTES == 64 ? 4 : 2;
    Vec<T> value;

    static Real zero() { return {Vec<T>{}}; }
    static Real one() { return {splat<T>(1)}; }
    // exp(x) for x <= 0
    static Real exp(Vec<T> x, Vec<T>) { return {vexp2<T>(x * T(log2_of_e))}; }
    void operator+=(const Real &other) { value += other.value; }
    void add_product(const Real &a, const Real &b) { value += a.value * b.value; }
    Real operator*(const Real &other) const { return {value * other.value}; }
    Real inverse() const { return {T(1) / value}; }
    Vec<T> weight() const { return value; }
    Vec<T> log2() const { return vlog2<T>(value); }
    IVec<T> in_range() const {
        const T low = smallest_normaliser<T>;
        return (value >= splat<T>(low)) & (value <= splat<T>(1 / low));
    }
};

template <class T> struct Dual {
    using Lane = T;
    static constexpr int tile_rows = TREELAX_VECTOR_BYTES == 64 ? 4 : 2, tile_columns = 2;
    Vec<T> value, slope;

    static Dual zero() { return {Vec<T>{}, Vec<T>{}}; }
    static Dual one() { return {splat<T>(1), Vec<T>{}}; }
    static Dual exp(Vec<T> x, Vec<T> direction) {
        const Vec<T> e = vexp2<T>(x * T(log2_of_e));
        return {e, e * direction};
    }
    void operator+=(const Dual &other) {
        value += other.value;
        slope += other.slope;
    }
    void add_product(const Dual &a, const Dual &b) {
        value += a.value * b.value;
        slope += a.slope * b.value;
        slope += a.value * b.slope;
    }
    Dual operator*(const Dual &other) const {
        return {value * other.value, slope * other.value + value * other.slope};
    }
    Dual inverse() const {
        const Vec<T> inverse = T(1) / value;
        return {inverse, -slope * inverse * inverse};
    }
    Vec<T> weight() const { return value; }
    Vec<T> weight_slope() const { return slope; }
    Vec<T> log2() const { return vlog2<T>(value); }
    IVec<T> in_range() const { return Real<T>{value}.in_range(); }
};

struct Log {
    using Lane = double;
    static constexpr int tile_rows = 1, tile_columns = 2;
    Vec<double> value, slope;

    static Log zero() { return {splat<double>(forbidden * log2_of_e), Vec<double>{}}; }
    static Log one() { return {Vec<double>{}, Vec<double>{}}; }
    static Log exp(Vec<double> x, Vec<double> direction) { return {x * log2_of_e, direction}; }
    void operator+=(const Log &other) {
        const IVec<double> larger = value > other.value;
        const Vec<double> top = larger ? value : other.value, low = larger ? other.value : value;
        const Vec<double> share = vexp2<double>(low - top), total = 1.0 + share;
        const Vec<double> top_slope = larger ? slope : other.slope;
        const Vec<double> low_slope = larger ? other.slope : slope;
        value = top + vlog2<double>(total);
        slope = (top_slope + share * low_slope) / total;
    }
    void add_product(const Log &a, const Log &b) { *this += a * b; }
    Log operator*(const Log &other) const { return {value + other.value, slope + other.slope}; }
    Log inverse() const { return {-value, -slope}; }
    // where it is at most 1
    Vec<double> weight() const { return vexp2<double>(value < 0.0 ? value : Vec<double>{}); }
    Vec<double> weight_slope() const { return weight() * slope; }
    Vec<double> log2() const { return value; }
    IVec<double> in_range() const { return ~IVec<double>{}; }
};

template <class Num>
inline Num choose(const IVec<typename Num::Lane> &mask, const Num &yes, const Num &no) {
    if constexpr (sizeof(Num) == sizeof(no.value)) return {mask ? yes.value : no.value};
    else return {mask ? yes.value : no.value, mask ? yes.slope : no.slope};
}

// c[i][j] += Σ_k a[i][k] b[k][j], k in the order of the steps, a tile of c in registers; `Fresh` takes c
// for 0.
template <class Num, bool Fresh, int Rows, int Columns>
inline void tile_product(Num *c, ptrdiff_t c_row, const Num *a, ptrdiff_t a_row, ptrdiff_t a_step,
                         const Num *b, ptrdiff_t b_step, int depth) {
    Num sum[Rows][Columns];
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < Columns; ++j) sum[i][j] = Fresh ? Num::zero() : c[i * c_row + j];
    for (int k = 0; k < depth; ++k, a += a_step, b += b_step) {
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i) {
            const Num factor = a[i * a_row];
#pragma GCC unroll 8
            for (int j = 0; j < Columns; ++j) sum[i][j].add_product(factor, b[j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < Columns; ++j) c[i * c_row + j] = sum[i][j];
}

template <class Num, bool Fresh, int Rows>
inline void row_product(int columns, Num *c, ptrdiff_t c_row, const Num *a, ptrdiff_t a_row,
                        ptrdiff_t a_step, const Num *b, ptrdiff_t b_step, int depth) {
    constexpr int step = Num::tile_columns;
    int j = 0;
    for (; j + step <= columns; j += step)
        tile_product<Num, Fresh, Rows, step>(c + j, c_row, a, a_row, a_step, b + j, b_step, depth);
    for (; j < columns; ++j)
        tile_product<Num, Fresh, Rows, 1>(c + j, c_row, a, a_row, a_step, b + j, b_step, depth);
}

// The same for a whole block. The order of the terms of a sum does not depend on the tiles.
template <class Num, bool Fresh = false>
void add_product(int rows, int columns, Num *c, ptrdiff_t c_row, const Num *a, ptrdiff_t a_row,
                 ptrdiff_t a_step, const Num *b, ptrdiff_t b_step, int depth) {
    if (depth == 0) return;
    constexpr int step = Num::tile_rows;
    int i = 0;
    for (; i + step <= rows; i += step)
        row_product<Num, Fresh, step>(columns, c + i * c_row, c_row, a + i * a_row, a_row, a_step, b,
                                      b_step, depth);
    for (; i < rows; ++i)
        row_product<Num, Fresh, 1>(columns, c + i * c_row, c_row, a + i * a_row, a_row, a_step, b,
                                   b_step, depth);
}

}  // namespace
