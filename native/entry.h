// Names of entry points: treelax_<operation>_<type>_<variant>.
#pragma once

#include <cstdint>

#ifndef TREELAX_VARIANT
#define TREELAX_VARIANT generic
#endif

#define TREELAX_JOIN_(a, b) a##_##b
#define TREELAX_JOIN(a, b) TREELAX_JOIN_(a, b)
#define TREELAX_NAME(op, type) TREELAX_JOIN(TREELAX_JOIN(treelax_##op, type), TREELAX_VARIANT)
#define TREELAX_EXPORT extern "C" __attribute__((visibility("default")))

// Of a file with the functions soft_tree, soft_tree_backward, best_tree and sample_tree.
#define TREELAX_ENTRY_POINTS(prefix, T, type)                                                       \
    TREELAX_EXPORT int64_t TREELAX_NAME(prefix##soft_tree, type)(                                   \
        const T *scores, const int64_t *lengths, int64_t batch, int64_t size, int64_t entropy,      \
        int64_t single_root, T *trees, T *values, T *saved, int64_t threads, const int *stop) {     \
        return (entropy ? soft_tree<T, true> : soft_tree<T, false>)(                                \
            scores, lengths, batch, size, single_root != 0, trees, values, saved, threads, stop);   \
    }                                                                                               \
    TREELAX_EXPORT int64_t TREELAX_NAME(prefix##soft_tree_backward, type)(                          \
        const T *grad_tree, const T *grad_value, const T *saved, const int64_t *lengths,            \
        int64_t batch, int64_t size, int64_t entropy, int64_t single_root, T *grad_scores,          \
        int64_t threads, const int *stop) {                                                         \
        return (entropy ? soft_tree_backward<T, true> : soft_tree_backward<T, false>)(              \
            grad_tree, grad_value, saved, lengths, batch, size, single_root != 0, grad_scores,      \
            threads, stop);                                                                         \
    }                                                                                               \
    TREELAX_EXPORT int64_t TREELAX_NAME(prefix##best_tree, type)(                                   \
        const T *scores, const int64_t *lengths, int64_t batch, int64_t size, int64_t single_root,  \
        T *trees, T *values, int64_t threads, const int *stop) {                                    \
        return best_tree<T>(scores, lengths, batch, size, single_root != 0, trees, values, threads, \
                            stop);                                                                  \
    }                                                                                               \
    TREELAX_EXPORT int64_t TREELAX_NAME(prefix##sample_tree, type)(                                 \
        const T *scores, const int64_t *lengths, const T *uniforms, int64_t samples, int64_t batch, \
        int64_t size, int64_t single_root, T *trees, T *values, int64_t threads, const int *stop) { \
        return sample_tree<T>(scores, lengths, uniforms, samples, batch, size, single_root != 0,    \
                              trees, values, threads, stop);                                        \
    }
