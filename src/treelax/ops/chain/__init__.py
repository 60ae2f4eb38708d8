"""Paths over positions: the programs of chains, and of segments with transitions."""

from treelax.ops.chain.native import NativePaths
from treelax.ops.chain.plain import PlainBackend
from treelax.ops.chain.reference import ReferenceBackend
from treelax.ops.chain.rules import PathAlgorithm, Steps


def backends(
    algorithm: PathAlgorithm, kind: int
) -> tuple[ReferenceBackend, PlainBackend, NativePaths]:
    """`reference`, `diagonal` and `native` of an algorithm that the C++ kernel knows by its ``kind``."""
    program = algorithm.program
    return ReferenceBackend(program), PlainBackend(program), NativePaths(algorithm, kind)


ALGORITHM = PathAlgorithm.of(Steps(), "chain", "path", "transition")
reference, diagonal, native = backends(ALGORITHM, kind=0)
