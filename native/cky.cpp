// Entry points of the dynamic program over spans.

#include "spans.h"
// the calls need the program
#include "calls.h"
#if !defined(TREELAX_LONE)
#include "sparsemap.h"
#endif

TREELAX_ENTRY_POINTS(cky_, float, f32)
TREELAX_ENTRY_POINTS(cky_, double, f64)
#if !defined(TREELAX_LONE)
TREELAX_SPARSEMAP(cky_, Parts)
#endif
