"""Monotone alignments: paths through a grid."""

from treelax.ops.chain.native import NativePaths
from treelax.ops.chain.plain import PlainBackend
from treelax.ops.chain.reference import ReferenceBackend
from treelax.ops.chain.rules import Grid, PathAlgorithm

PROGRAM = Grid()
ALGORITHM = PathAlgorithm(
    "alignment",
    "alignment",
    decisions=PROGRAM.decisions,
    backends=("reference", "diagonal", "native"),
    program=PROGRAM,
    made_of="move",
)
reference, diagonal = ReferenceBackend(PROGRAM), PlainBackend(PROGRAM)
native = NativePaths(ALGORITHM, kind=2)
