"""Paths over positions: the programs of chains, and of segments with transitions."""

from treelax.ops.chain.native import NativePaths
from treelax.ops.chain.plain import PlainBackend
from treelax.ops.chain.reference import ReferenceBackend
from treelax.ops.chain.rules import PathAlgorithm, Steps

ALGORITHM = PathAlgorithm(
    "chain",
    "path",
    decisions=Steps().decisions,
    backends=("reference", "diagonal", "native"),
    program=Steps(),
    made_of="transition",
)
reference, diagonal = ReferenceBackend(Steps()), PlainBackend(Steps())
native = NativePaths(ALGORITHM, kind=0)
