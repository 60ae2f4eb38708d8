"""The projective dynamic program (Eisner 1996), exact and relaxed; the README here explains it."""

from treelax.ops.backend import Algorithm
from treelax.ops.chart.plain import PlainBackend
from treelax.ops.chart.reference import ReferenceBackend
from treelax.ops.chart.rules import EISNER
from treelax.ops.native import LONGEST_IN_LANES
from treelax.ops.native_program import NativeProgram

ALGORITHM = Algorithm(
    "eisner",
    "projective tree",
    decisions=lambda size, _: 2 * (size - 1),
    backends=("reference", "diagonal", "native", "triton", "cuda"),
    kind=0,
)
reference, diagonal = ReferenceBackend(EISNER), PlainBackend(EISNER)
# planes: `saved_planes` in native/eisner.cpp; the root has a row of its own
native = NativeProgram(ALGORITHM, "", planes=5, largest=LONGEST_IN_LANES + 1)
