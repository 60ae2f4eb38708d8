"""SparseMAP on a GPU, through Triton: the whole loop in one launch, and its gradient in another.

`treelax.ops.sparsemap.triton_kernels` says how the kernels work. This module allocates and launches.
With ``TRITON_INTERPRET=1`` set before the import everything runs on CPU tensors, slowly.
"""

from __future__ import annotations

import torch
from torch import Tensor

from treelax.ops import checks
from treelax.ops.backend import Algorithm
from treelax.ops.chart.triton import COMMON_OPTIONS, Tiles, launch_device, tile_options
from treelax.ops.cky import triton as cky
from treelax.ops.eisner import triton as eisner
from treelax.ops.matrix_tree.triton import room_for_best_trees
from treelax.ops.sparsemap import triton_kernels
from treelax.ops.sparsemap.limits import most_trees, usual_room
from treelax.ops.sparsemap.plain import Solution

#: The kernel of non-projective trees does more than the best tree, and needs few warps for it.
TILES = Tiles(32, 8, 8)
#: Planes of a chart, by the kind of algorithm.
PLANES = {
    triton_kernels.PROJECTIVE.value: eisner.BACKEND.planes("BEST"),
    triton_kernels.BINARY.value: cky.BACKEND.planes("BEST"),
    triton_kernels.NON_PROJECTIVE.value: 1,
}


def choose_tiles(kind: int, size: int) -> Tiles:
    """Those of the best tree in float64."""
    if kind == triton_kernels.PROJECTIVE.value:
        return eisner.choose_tiles(size, eisner.FORWARD_TILES, torch.float64)
    return cky.choose_tiles(size) if kind == triton_kernels.BINARY.value else TILES


def solve(
    scores: Tensor,
    lengths: Tensor,
    start: Tensor,
    algorithm: Algorithm,
    single_root: bool,
    max_iterations: int | None,
) -> Solution:
    """The arguments are those of `treelax.ops.sparsemap.plain.solve`, scores ``(B, N, N)``.

    Memory is made for a support of the usual size, and for a larger one if a sentence turns out to need
    it: that takes a look at one number, where one may look.
    """
    size = scores.shape[-1]
    most = most_trees(size * size) if max_iterations is None else max_iterations
    limit = max(1, min(size * size, most + 1))
    (words,) = algorithm.room(size)
    room = usual_room(words, size * size, most)
    while True:
        options = (algorithm, single_root, most, room)
        solution, full = launch(scores.contiguous(), lengths, start, *options)
        if room >= limit or not checks.readable(full) or not bool(full.any()):
            return solution
        room = min(2 * room, limit)


def launch(
    scores: Tensor,
    lengths: Tensor,
    start: Tensor,
    algorithm: Algorithm,
    single_root: bool,
    most: int,
    room: int,
) -> tuple[Solution, Tensor]:
    """The solution with supports of ``room`` trees, and where that was not enough."""
    batch, size, _ = scores.shape
    start = start.to(torch.float64).contiguous()
    point, rest, tree = (torch.empty_like(scores) for _ in range(3))
    value, gap = scores.new_empty(batch), scores.new_empty(batch)
    full = lengths.new_empty(batch, dtype=torch.int32)
    row = algorithm.most_parts(size)
    trees = lengths.new_full((batch, room, row), size * size)
    parts = lengths.new_empty((batch, row))
    weights = scores.new_zeros((batch, room))
    right = scores.new_empty((batch, room + 1))
    system = scores.new_empty((batch, room + 1, room + 1))
    inverse = scores.new_zeros((batch, room + 1, room + 1))
    vectors = scores.new_empty((batch, triton_kernels.VECTORS.value, room + 1))
    kind = algorithm.kind
    chart = scores.new_empty((batch, PLANES[kind], size, size))
    whole = gains = None
    if kind == triton_kernels.NON_PROJECTIVE.value:
        whole, gains = room_for_best_trees(scores)
    with launch_device(scores):
        triton_kernels.sparsemap_kernel[(batch,)](
            scores, lengths, start, rest, tree, value, chart, whole, gains, point, gap, full,
            trees, parts, weights, right, system, inverse, vectors, size, size.bit_length(),
            int(single_root), room, row, most, KIND=kind,
            **tile_options(choose_tiles(kind, size)),
        )  # fmt: skip
    return Solution(point, gap, trees, weights, inverse[:, 1:, 1:].contiguous()), full


def backward(grad: Tensor, indices: Tensor, inverse: Tensor) -> Tensor:
    """``Z S Zᵀ g`` for gradients ``(B, ...)`` in float64."""
    batch, room, row = indices.shape
    grad = grad.contiguous()
    out = torch.zeros_like(grad)
    vectors = grad.new_empty((batch, 2, room))
    with launch_device(grad):
        triton_kernels.backward_kernel[(batch,)](
            grad, indices, inverse, vectors, out, room, row, grad[0].numel(), BLOCK=128,
            num_warps=4, **COMMON_OPTIONS,
        )  # fmt: skip
    return out
