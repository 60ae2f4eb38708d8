"""Segments whose scores do not depend on the label before: paths that forget their state."""

from treelax.ops.chain import backends
from treelax.ops.chain.rules import PathAlgorithm, Steps

ALGORITHM = PathAlgorithm.of(Steps(joined=True), "segments", "segmentation", "segment")
reference, diagonal, native = backends(ALGORITHM, kind=1)
