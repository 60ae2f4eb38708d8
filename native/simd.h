// Vectors of lanes: one lane is one sentence.
//
// With TREELAX_LONE a vector has one lane, for long sentences: there are wide vectors beside it, in which
// a lane is one of the splits of a cell (lone.h).
//
// With TREELAX_NARROW vectors are short, for calls with few sentences: the same operations in the same
// order, so the same bits, in a fraction of the memory.
//
// Everything here has internal linkage. The same sources are compiled several times for different
// instruction sets into one library; an inline function with external linkage would be merged across
// them by the linker and could run AVX-512 code on a machine that has none.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__) && !defined(TREELAX_NARROW)
#define TREELAX_VECTOR_BYTES 64
#elif defined(__AVX2__) && !defined(TREELAX_NARROW)
#define TREELAX_VECTOR_BYTES 32
#else
#define TREELAX_VECTOR_BYTES 16
#endif

namespace {

template <class T> struct Wide;

template <> struct Wide<float> {
    typedef float V __attribute__((vector_size(TREELAX_VECTOR_BYTES), may_alias));
    typedef int32_t I __attribute__((vector_size(TREELAX_VECTOR_BYTES), may_alias));
    static constexpr int lanes = TREELAX_VECTOR_BYTES / 4;
    static constexpr int mantissa_bits = 23;
    static constexpr int exponent_bias = 127;
    // adding and subtracting 1.5 * 2^23 rounds to an integer
    static constexpr float round_magic = 12582912.0f;
    // 2^x is 0 below this
    static constexpr float exp2_lowest = -126.0f;
};

template <> struct Wide<double> {
    typedef double V __attribute__((vector_size(TREELAX_VECTOR_BYTES), may_alias));
    typedef int64_t I __attribute__((vector_size(TREELAX_VECTOR_BYTES), may_alias));
    static constexpr int lanes = TREELAX_VECTOR_BYTES / 8;
    static constexpr int mantissa_bits = 52;
    static constexpr int exponent_bias = 1023;
    static constexpr double round_magic = 6755399441055744.0;
    static constexpr double exp2_lowest = -1022.0;
};

#if defined(TREELAX_LONE)
template <class T> struct Simd;
template <> struct Simd<float> : Wide<float> {
    typedef float V __attribute__((vector_size(4), may_alias));
    typedef int32_t I __attribute__((vector_size(4), may_alias));
    static constexpr int lanes = 1;
};
template <> struct Simd<double> : Wide<double> {
    typedef double V __attribute__((vector_size(8), may_alias));
    typedef int64_t I __attribute__((vector_size(8), may_alias));
    static constexpr int lanes = 1;
};
#else
template <class T> using Simd = Wide<T>;
#endif

template <class T> using Vec = typename Simd<T>::V;
template <class T> using IVec = typename Simd<T>::I;
template <class T> using WideVec = typename Wide<T>::V;

template <class T> inline Vec<T> splat(T x) { return Vec<T>{} + x; }

template <class T> inline Vec<T> bits_as_real(IVec<T> x) { return (Vec<T>)x; }
template <class T> inline IVec<T> bits_as_int(Vec<T> x) { return (IVec<T>)x; }

// max, lane by lane
template <class T> inline WideVec<T> vmax(WideVec<T> a, WideVec<T> b) { return a > b ? a : b; }
#if defined(TREELAX_LONE)
template <class T> inline Vec<T> vmax(Vec<T> a, Vec<T> b) { return Vec<T>{a[0] > b[0] ? a[0] : b[0]}; }
#endif
#if TREELAX_VECTOR_BYTES == 64
template <> inline WideVec<float> vmax<float>(WideVec<float> a, WideVec<float> b) {
    return (WideVec<float>)_mm512_max_ps((__m512)a, (__m512)b);
}
template <> inline WideVec<double> vmax<double>(WideVec<double> a, WideVec<double> b) {
    return (WideVec<double>)_mm512_max_pd((__m512d)a, (__m512d)b);
}
#elif TREELAX_VECTOR_BYTES == 32
template <> inline WideVec<float> vmax<float>(WideVec<float> a, WideVec<float> b) {
    return (WideVec<float>)_mm256_max_ps((__m256)a, (__m256)b);
}
template <> inline WideVec<double> vmax<double>(WideVec<double> a, WideVec<double> b) {
    return (WideVec<double>)_mm256_max_pd((__m256d)a, (__m256d)b);
}
#elif TREELAX_VECTOR_BYTES == 16 && defined(__SSE2__)
template <> inline WideVec<float> vmax<float>(WideVec<float> a, WideVec<float> b) {
    return (WideVec<float>)_mm_max_ps((__m128)a, (__m128)b);
}
template <> inline WideVec<double> vmax<double>(WideVec<double> a, WideVec<double> b) {
    return (WideVec<double>)_mm_max_pd((__m128d)a, (__m128d)b);
}
#endif

// Is any lane different from zero?
template <class T> inline bool any_nonzero(Vec<T> x) {
#if TREELAX_VECTOR_BYTES == 64 && !defined(TREELAX_LONE)
    if constexpr (sizeof(T) == 4)
        return _mm512_cmp_ps_mask((__m512)x, _mm512_setzero_ps(), _CMP_NEQ_UQ) != 0;
    else
        return _mm512_cmp_pd_mask((__m512d)x, _mm512_setzero_pd(), _CMP_NEQ_UQ) != 0;
#else
    IVec<T> different = (x != Vec<T>{});
    for (int l = 0; l < Simd<T>::lanes; ++l)
        if (different[l]) return true;
    return false;
#endif
}

// Is it so in any lane?
template <class T> inline bool any(const IVec<T> &mask) {
    return any_nonzero<T>(bits_as_real<T>(mask & bits_as_int<T>(splat<T>(1))));
}

// 2^r for 0 <= r <= 1, by a minimax polynomial with p(0) = 1 exactly:
// relative error below 9e-8 in float32 (degree 5) and 4e-18 in float64 (degree 11).
inline WideVec<float> exp2_fraction(WideVec<float> r) {
    WideVec<float> p = WideVec<float>{} + (0.001867130211951263324f);
    p = p * r + 0.009017029962529612758f;
    p = p * r + 0.05579991342522428381f;
    p = p * r + 0.2401644500392730294f;
    p = p * r + 0.6931513118176097903f;
    return p * r + 1.0f;
}

inline WideVec<double> exp2_fraction(WideVec<double> r) {
    WideVec<double> p = WideVec<double>{} + (6.263466142296021015e-10);
    p = p * r + 6.559529322770528367e-9;
    p = p * r + 1.025321243572193423e-7;
    p = p * r + 1.320836728895114037e-6;
    p = p * r + 0.00001525317505556279599;
    p = p * r + 0.000154035123096286604;
    p = p * r + 0.001333355862956675523;
    p = p * r + 0.009618129099550795572;
    p = p * r + 0.0555041086656022533;
    p = p * r + 0.240226506959063302;
    p = p * r + 0.6931471805599459284;
    return p * r + 1.0;
}

// 2^x for finite x <= 0; exactly 1 at 0, and 0 where the result would be denormal.
template <class T> inline WideVec<T> vexp2(WideVec<T> x) {
#if defined(__AVX512DQ__)
    // r = x - floor(x), then p(r) * 2^floor(x): two instructions beside the polynomial
#if TREELAX_VECTOR_BYTES == 64
#define TREELAX_512(name) _mm512_##name
    typedef __m512 Singles;
    typedef __m512d Doubles;
#else
#define TREELAX_512(name) _mm_##name
    typedef __m128 Singles;
    typedef __m128d Doubles;
#endif
    if constexpr (sizeof(T) == 4) {
        const Singles r = TREELAX_512(reduce_ps)((Singles)x, _MM_FROUND_TO_NEG_INF);
        return (WideVec<T>)TREELAX_512(scalef_ps)((Singles)exp2_fraction((WideVec<T>)r), (Singles)x);
    } else {
        const Doubles r = TREELAX_512(reduce_pd)((Doubles)x, _MM_FROUND_TO_NEG_INF);
        return (WideVec<T>)TREELAX_512(scalef_pd)((Doubles)exp2_fraction((WideVec<T>)r), (Doubles)x);
    }
#undef TREELAX_512
#else
    using S = Wide<T>;
    WideVec<T> lowest = WideVec<T>{} + S::exp2_lowest;
    typename Wide<T>::I in_range = x >= lowest;
    x = vmax<T>(x, lowest);
    WideVec<T> shifted = (x - T(0.5)) + S::round_magic;
    WideVec<T> r = x - (shifted - S::round_magic);
    // the low bits of `shifted` hold floor(x) as an integer
    typename Wide<T>::I exponent = (typename Wide<T>::I)shifted << S::mantissa_bits;
    WideVec<T> p = (WideVec<T>)((typename Wide<T>::I)exp2_fraction(r) + exponent);
    return (WideVec<T>)((typename Wide<T>::I)p & in_range);
#endif
}

// log2(z) for normal z >= 1: z = m * 2^e with m in [sqrt(1/2), sqrt(2)), log2(m) by the series of
// atanh, whose argument t = (m - 1) / (m + 1) stays below 0.172.
template <class T> inline Vec<T> vlog2(Vec<T> z) {
    using S = Simd<T>;
    IVec<T> bits = bits_as_int<T>(z);
    IVec<T> exponent = (bits >> S::mantissa_bits) - S::exponent_bias;
    const auto one = decltype(bits[0] + bits[0])(S::exponent_bias) << S::mantissa_bits;
    const auto mask = (decltype(bits[0] + bits[0])(1) << S::mantissa_bits) - 1;
    Vec<T> m = bits_as_real<T>((bits & mask) | one);
    IVec<T> high = m > T(1.41421356237309504880);
    m = bits_as_real<T>((bits_as_int<T>(m * T(0.5)) & high) | (bits_as_int<T>(m) & ~high));
    exponent = exponent - high;  // high is -1 where true
    Vec<T> t = (m - T(1)) / (m + T(1));
    Vec<T> t2 = t * t;
    constexpr int terms = sizeof(T) == 4 ? 5 : 11;
    Vec<T> series = splat<T>(T(1) / (2 * terms - 1));
    for (int k = terms - 2; k >= 0; --k) series = series * t2 + T(1) / (2 * k + 1);
    return __builtin_convertvector(exponent, Vec<T>) + t * series * T(2.88539008177792681472);  // 2 / ln 2
}

// a[0], b[0], a[1], b[1], … from the lower (Half = 0) or the upper halves (Half = 1)
template <class T, int Half, size_t... K>
inline Vec<T> interleave(Vec<T> a, Vec<T> b, std::index_sequence<K...>) {
    constexpr int lanes = Simd<T>::lanes;
#if defined(__clang__)
    return __builtin_shufflevector(a, b, (int(K / 2) + Half * lanes / 2 + (K % 2 ? lanes : 0))...);
#else
    constexpr IVec<T> mask = {(int(K / 2) + Half * lanes / 2 + (K % 2 ? lanes : 0))...};
    return __builtin_shuffle(a, b, mask);
#endif
}

// Transpose a square of `lanes` vectors in registers: log2(lanes) perfect shuffles.
template <class T> inline void transpose(Vec<T> (&rows)[Simd<T>::lanes]) {
    constexpr int lanes = Simd<T>::lanes;
    using Sequence = std::make_index_sequence<lanes>;
    if constexpr (lanes > 1) for (int round = 1; round < lanes; round *= 2) {
        Vec<T> next[lanes];
        for (int k = 0; k < lanes / 2; ++k) {
            next[2 * k] = interleave<T, 0>(rows[k], rows[k + lanes / 2], Sequence());
            next[2 * k + 1] = interleave<T, 1>(rows[k], rows[k + lanes / 2], Sequence());
        }
        for (int k = 0; k < lanes; ++k) rows[k] = next[k];
    }
}

// The first `count` numbers at `from`, any alignment, then zeros; and the way back.
#if TREELAX_VECTOR_BYTES == 64
inline unsigned first_lanes(int64_t count) {
    return count <= 0 ? 0u : count >= 16 ? 0xffffu : (1u << count) - 1;
}
inline WideVec<float> load_some(const float *from, int64_t count) {
    return (WideVec<float>)_mm512_maskz_loadu_ps(__mmask16(first_lanes(count)), from);
}
inline WideVec<double> load_some(const double *from, int64_t count) {
    return (WideVec<double>)_mm512_maskz_loadu_pd(__mmask8(first_lanes(count)), from);
}
inline void store_some(float *to, WideVec<float> x, int64_t count) {
    _mm512_mask_storeu_ps(to, __mmask16(first_lanes(count)), (__m512)x);
}
inline void store_some(double *to, WideVec<double> x, int64_t count) {
    _mm512_mask_storeu_pd(to, __mmask8(first_lanes(count)), (__m512d)x);
}
#else
template <class T> inline WideVec<T> load_some(const T *from, int64_t count) {
    WideVec<T> x = {};
    if (count >= Wide<T>::lanes) std::memcpy(&x, from, sizeof(x));
    else
        for (int k = 0; k < count; ++k) x[k] = from[k];
    return x;
}
template <class T> inline void store_some(T *to, WideVec<T> x, int64_t count) {
    if (count >= Wide<T>::lanes) std::memcpy(to, &x, sizeof(x));
    else
        for (int k = 0; k < count; ++k) to[k] = x[k];
}
#endif

// The same for sentences.
template <class T> inline Vec<T> load_lanes(const T *from, int64_t count) {
#if defined(TREELAX_LONE)
    return Vec<T>{count > 0 ? *from : T(0)};
#else
    return load_some(from, count);
#endif
}
template <class T> inline void store_lanes(T *to, Vec<T> x, int64_t count) {
#if defined(TREELAX_LONE)
    if (count > 0) *to = x[0];
#else
    store_some(to, x, count);
#endif
}

#if defined(TREELAX_LONE)
// The first `count` lanes, then `other`.
template <class T> inline WideVec<T> keep_some(WideVec<T> x, int64_t count, T other) {
    for (int k = 0; k < Wide<T>::lanes; ++k) x[k] = k < count ? x[k] : other;
    return x;
}
#if TREELAX_VECTOR_BYTES == 64
template <> inline WideVec<float> keep_some<float>(WideVec<float> x, int64_t count, float other) {
    return (WideVec<float>)_mm512_mask_mov_ps(_mm512_set1_ps(other), __mmask16(first_lanes(count)),
                                              (__m512)x);
}
template <> inline WideVec<double> keep_some<double>(WideVec<double> x, int64_t count, double other) {
    return (WideVec<double>)_mm512_mask_mov_pd(_mm512_set1_pd(other), __mmask8(first_lanes(count)),
                                               (__m512d)x);
}
#endif

#endif

// The lanes turned by `Turn` places.
template <class T, int Turn, size_t... K>
inline WideVec<T> turned(WideVec<T> x, std::index_sequence<K...>) {
    constexpr int lanes = Wide<T>::lanes;
#if defined(__clang__)
    return __builtin_shufflevector(x, x, (int(K + Turn) % lanes)...);
#else
    constexpr typename Wide<T>::I mask = {(int(K + Turn) % lanes)...};
    return __builtin_shuffle(x, mask);
#endif
}

// All lanes joined two by two.
template <class T, int Turn = Wide<T>::lanes / 2, class Join>
inline T across(WideVec<T> x, Join join) {
    x = join(x, turned<T, Turn>(x, std::make_index_sequence<Wide<T>::lanes>()));
    if constexpr (Turn > 1) return across<T, Turn / 2>(x, join);
    else return x[0];
}

// Flush denormals to zero in this thread for the lifetime of the object. A noisy chart is full of
// denormal contributions that cost a hundred cycles each and carry nothing. The mode is put back, so
// the process outside sees no change.
class FlushDenormals {
#if defined(__SSE2__)
    unsigned before_;

  public:
    FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
    ~FlushDenormals() { _mm_setcsr(before_); }
#elif defined(__aarch64__)
    uint64_t before_;

  public:
    FlushDenormals() {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        asm volatile("msr fpcr, %0" ::"r"(before_ | (uint64_t(1) << 24)));
    }
    ~FlushDenormals() { asm volatile("msr fpcr, %0" ::"r"(before_)); }
#else
  public:
    FlushDenormals() {}
    ~FlushDenormals() {}
#endif
    FlushDenormals(const FlushDenormals &) = delete;
    FlushDenormals &operator=(const FlushDenormals &) = delete;
};

}  // namespace
