"""Monotone alignments on a GPU."""

from treelax.ops.alignment import ALGORITHM
from treelax.ops.chain.triton import TritonPaths

BACKEND = TritonPaths(ALGORITHM, kind=2)
