"""CKY and its relaxations on a GPU, through Triton: kernels and tile sizes. There is no root."""

from __future__ import annotations

import torch

from treelax.ops.chart.triton import Tiles, TritonBackend
from treelax.ops.cky import sweeps_generated, triton_kernels


def choose_tiles(size: int, dtype: torch.dtype | None = None) -> Tiles:
    """The fastest of twelve on an H200 at n = 20, 40 and 80, in both passes.

    Lanes and entries a thread are the same for all sizes: the order of a sum, and so the bits of a
    sentence, must not depend on its padding.
    """
    return Tiles(16, 16, 8) if size <= 32 else Tiles(32, 16, 16)


BACKEND = TritonBackend(
    triton_kernels,
    sweeps_generated,
    forward_tiles=choose_tiles,
    backward_tiles=choose_tiles,
    agenda=1,
)
