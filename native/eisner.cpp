// Entry points of the projective dynamic program.

#include "decode.h"
// the calls need the program
#include "calls.h"
#include "sparsemap.h"

TREELAX_EXPORT int64_t TREELAX_NAME(lanes, f32)() { return Simd<float>::lanes; }
TREELAX_EXPORT int64_t TREELAX_NAME(lanes, f64)() { return Simd<double>::lanes; }
TREELAX_ENTRY_POINTS(, float, f32)
TREELAX_ENTRY_POINTS(, double, f64)
TREELAX_SPARSEMAP(, Parts)
