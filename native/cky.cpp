// Entry points of the dynamic program over spans.

#include "spans.h"
// the calls need the program
#include "calls.h"
#include "sparsemap.h"

TREELAX_ENTRY_POINTS(cky_, float, f32)
TREELAX_ENTRY_POINTS(cky_, double, f64)
TREELAX_SPARSEMAP(cky_, Parts)
