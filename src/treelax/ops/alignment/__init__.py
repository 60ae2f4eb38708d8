"""Monotone alignments: paths through a grid."""

from treelax.ops.chain import backends
from treelax.ops.chain.rules import Grid, PathAlgorithm

ALGORITHM = PathAlgorithm.of(Grid(), "alignment", "alignment", "move")
reference, diagonal, native = backends(ALGORITHM, kind=2)
