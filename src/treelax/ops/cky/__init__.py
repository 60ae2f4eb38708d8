"""The dynamic program of binary trees (CKY), exact and relaxed; the README here explains it."""

from treelax.ops.backend import Algorithm
from treelax.ops.chart.plain import PlainBackend
from treelax.ops.chart.reference import ReferenceBackend
from treelax.ops.chart.rules import CKY
from treelax.ops.native import LONGEST_IN_LANES
from treelax.ops.native_program import NativeProgram

ALGORITHM = Algorithm(
    "cky", "binary tree", rooted=False, decisions=lambda size, _: max(size - 1, 0), kind=1
)
reference, diagonal = ReferenceBackend(CKY), PlainBackend(CKY)
# planes: `saved_planes` in native/cky.cpp
native = NativeProgram(ALGORITHM, "cky_", planes=4, largest=LONGEST_IN_LANES)
