"""Eisner's algorithm and its relaxations on a GPU, through Triton: kernels and tile sizes.

In float32 a launch that looks at the scores goes before the forward pass: centring.
"""

from __future__ import annotations

import torch

from treelax.ops.chart.triton import Tiles, TritonBackend
from treelax.ops.eisner import sweeps_generated, triton_kernels

#: Tile sizes by the largest chart size ``N = n + 1`` they serve. On an H200 the fastest tiles had one
#: entry a thread: benchmarks/results/tune-triton-h200-2026-11-15.csv, at n = 10, 20, 40 and 80.
FORWARD_TILES: tuple[tuple[int, Tiles], ...] = (
    (32, Tiles(16, 8, 4)),
    (64, Tiles(16, 16, 8)),
    (128, Tiles(32, 16, 16)),
)
BACKWARD_TILES: tuple[tuple[int, Tiles], ...] = (
    (16, Tiles(16, 8, 4)),
    (32, Tiles(16, 16, 8)),
    (128, Tiles(32, 16, 16)),
)
LARGEST_TILES = Tiles(32, 16, 16)
#: float64 takes twice the registers: with more warps than this they spill.
LARGEST_DOUBLE_TILES = Tiles(32, 16, 8)


def choose_tiles(size: int, table: tuple[tuple[int, Tiles], ...], dtype: torch.dtype) -> Tiles:
    """Tile sizes for a chart of ``size`` positions, the root included."""
    tiles = next((tiles for largest, tiles in table if size <= largest), LARGEST_TILES)
    if dtype == torch.float64 and tiles.warps > LARGEST_DOUBLE_TILES.warps:
        return LARGEST_DOUBLE_TILES
    return tiles


BACKEND = TritonBackend(
    triton_kernels,
    sweeps_generated,
    forward_tiles=lambda size, dtype: choose_tiles(size, FORWARD_TILES, dtype),
    backward_tiles=lambda size, dtype: choose_tiles(size, BACKWARD_TILES, dtype),
    agenda=2,
)
