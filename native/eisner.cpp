// Entry points of the projective dynamic program.

#include "decode.h"
// the calls need the program
#include "calls.h"
#if !defined(TREELAX_LONE)
#include "sparsemap.h"
#endif

TREELAX_EXPORT int64_t TREELAX_NAME(lanes, f32)() { return Simd<float>::lanes; }
TREELAX_EXPORT int64_t TREELAX_NAME(lanes, f64)() { return Simd<double>::lanes; }
TREELAX_ENTRY_POINTS(, float, f32)
TREELAX_ENTRY_POINTS(, double, f64)
#if !defined(TREELAX_LONE)
TREELAX_SPARSEMAP(, Parts)
#endif
