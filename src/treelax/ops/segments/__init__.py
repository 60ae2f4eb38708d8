"""Segments whose scores know nothing of the label before: paths that forget their state."""

from treelax.ops.chain.native import NativePaths
from treelax.ops.chain.plain import PlainBackend
from treelax.ops.chain.reference import ReferenceBackend
from treelax.ops.chain.rules import PathAlgorithm, Steps

PROGRAM = Steps(joined=True)
ALGORITHM = PathAlgorithm(
    "segments",
    "segmentation",
    decisions=PROGRAM.decisions,
    backends=("reference", "diagonal", "native"),
    program=PROGRAM,
    made_of="segment",
)
reference, diagonal = ReferenceBackend(PROGRAM), PlainBackend(PROGRAM)
native = NativePaths(ALGORITHM, kind=1)
