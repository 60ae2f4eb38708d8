"""Segments whose scores do not depend on the label before on a GPU."""

from treelax.ops.chain.triton import TritonPaths
from treelax.ops.segments import ALGORITHM

BACKEND = TritonPaths(ALGORITHM, kind=1)
