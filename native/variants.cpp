// Which of the compiled variants this processor can run.

#include <cstring>

#define TREELAX_EXPORT extern "C" __attribute__((visibility("default")))

// 1 if the named variant was compiled in and runs on this processor.
TREELAX_EXPORT int treelax_supports(const char *variant) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!std::strcmp(variant, "v4"))
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
    if (!std::strcmp(variant, "v3"))
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("bmi2");
    if (!std::strcmp(variant, "v2")) return __builtin_cpu_supports("sse4.2");
    return 0;
#else
    return !std::strcmp(variant, "generic");
#endif
}
