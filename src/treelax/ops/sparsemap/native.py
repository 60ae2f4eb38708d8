"""SparseMAP in C++: `native/sparsemap.h`, the whole loop in one call."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from treelax.ops import dispatch
from treelax.ops.backend import Algorithm
from treelax.ops.native import call
from treelax.ops.sparsemap.limits import most_trees
from treelax.ops.sparsemap.plain import Solution


def solve(
    scores: Tensor,
    lengths: Tensor,
    start: Tensor,
    algorithm: Algorithm,
    single_root: bool,
    max_iterations: int | None,
) -> Solution:
    """The arguments are those of `treelax.ops.sparsemap.plain.solve`, scores ``(B, N, N)``."""
    batch, size, _ = scores.shape
    scores, start = scores.contiguous(), start.to(torch.float64).contiguous()
    most = most_trees(size * size) if max_iterations is None else max_iterations
    tree, gap = torch.empty_like(scores), scores.new_empty(batch)
    name = f"{dispatch.load(algorithm.name, 'native').prefix}sparsemap"
    handle, slots = ctypes.c_void_p(), ctypes.c_int64()

    def take(*places: int | None) -> None:
        """Have the supports written down, and freed."""
        supports, handle.value = handle.value, None
        values = (supports, slots.value, *places)
        call(f"{name}_take", "pipppip", torch.float64, lengths, size, *values, algorithm=algorithm)

    try:
        call(
            *(name, "pppiiiippppip", torch.float64, lengths, size),
            *(scores.data_ptr(), lengths.data_ptr(), start.data_ptr(), batch, size, single_root),
            *(most, tree.data_ptr(), gap.data_ptr()),
            *(ctypes.addressof(handle), ctypes.addressof(slots)),
            # flat scores: as many trees as parts, and for each a product with a matrix of that size
            times=max(1, size**3 // 10),
            algorithm=algorithm,
        )
        indices = lengths.new_empty((batch, slots.value, algorithm.most_parts(size)))
        weights = scores.new_empty((batch, slots.value))
        inverse = scores.new_empty((batch, slots.value, slots.value))
        take(indices.data_ptr(), weights.data_ptr(), inverse.data_ptr())
    finally:
        if handle.value is not None:
            take(None, None, None)
    return Solution(tree, gap, indices, weights, inverse)
