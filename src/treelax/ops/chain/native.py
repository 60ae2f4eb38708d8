"""Programs over positions in C++ as a backend: the Python side of `native/paths.cpp`."""

from __future__ import annotations

import ctypes
import functools

import torch
from torch import Tensor

from treelax.ops.backend import Batch
from treelax.ops.chain.rules import PathAlgorithm
from treelax.ops.native import (
    BAD_LENGTH,
    aligned,
    full_lanes,
    kernel_of,
    pool,
    raise_if_out_of_memory,
    run,
)


@functools.lru_cache(maxsize=256)
def sizes(shape: torch.Size) -> ctypes.Array[ctypes.c_int64]:
    """The sizes of a sentence's scores as the kernel reads them."""
    return (ctypes.c_int64 * 4)(*shape[:4], *[1] * (4 - len(shape)))


class NativePaths:
    """The backend `native` of a program over positions; the kernel knows it by its ``kind``."""

    def __init__(self, algorithm: PathAlgorithm, kind: int) -> None:
        self.algorithm = algorithm
        self.kind = kind

    def saved_shape(self, shape: torch.Size, dtype: torch.dtype) -> tuple[int, ...]:
        """Flat: four numbers for every state of a position, and a few for every position."""
        (batch, n, *others), lanes = shape, full_lanes(dtype)
        if self.kind == 2:
            states, positions, kinds = n + 1, n + others[0] + 1, 3
        else:
            states, positions, kinds = others[-1], n + 1, others[0]
        row = -(-states // lanes) + 1
        # `saved_vectors` in native/paths.h
        return (
            batch * lanes * (1 + 4 * positions * row + -(-positions * (1 + 2 * kinds) // lanes)),
        )

    def run(self, operation: str, given: Batch, arguments: str, *values: object) -> None:
        """Call an entry point: scores, lengths, sizes and kind come first."""
        scores, lengths, *_ = given
        kernel = kernel_of(f"path_{operation}", scores.dtype, "", f"ppipi{arguments}ip")
        shape = ctypes.addressof(sizes(scores.shape[1:]))
        pointers = scores.data_ptr(), lengths.data_ptr()
        status = run(kernel, scores.numel(), *pointers, len(scores), shape, self.kind, *values)
        raise_if_out_of_memory(status)
        if status & BAD_LENGTH:
            self.algorithm.check_lengths(lengths, *scores.shape[1:])

    def soft_tree(self, given: Batch, save: bool) -> tuple[Tensor, Tensor, Tensor]:
        scores = given.scores
        tree, value = torch.empty_like(scores), scores.new_empty(len(scores))
        saved = pool.empty(
            self.saved_shape(scores.shape, scores.dtype)[0] if save else 0, scores.dtype
        )
        pointer = saved.data_ptr() if save else None
        entropy = given.relaxation == "entropy"
        self.run("soft_tree", given, "ippp", entropy, tree.data_ptr(), value.data_ptr(), pointer)
        return tree, value, saved

    def soft_tree_backward(
        self, grad_tree: Tensor, grad_value: Tensor | None, saved: Tensor, given: Batch
    ) -> Tensor:
        saved, grad = aligned(saved), torch.empty_like(grad_tree)
        pointer = None if grad_value is None else grad_value.data_ptr()
        values = grad_tree.data_ptr(), pointer, saved.data_ptr(), grad.data_ptr()
        entropy = given.relaxation == "entropy"
        self.run("soft_tree_backward", given, "ipppp", entropy, *values)
        return grad

    def planned(self, *call: object) -> tuple[None, None]:
        """No shorter functions than these."""
        return None, None

    def log_partition(self, given: Batch) -> Tensor:
        value = given.scores.new_empty(len(given.scores))
        self.run("soft_tree", given, "ippp", True, None, value.data_ptr(), None)
        return value

    def best_tree(self, given: Batch) -> tuple[Tensor, Tensor]:
        tree, value = torch.empty_like(given.scores), given.scores.new_empty(len(given.scores))
        self.run("best_tree", given, "pp", tree.data_ptr(), value.data_ptr())
        return tree, value

    def sample_tree(self, given: Batch, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        samples, batch, decisions = uniforms.shape
        trees = given.scores.new_empty((samples, *given.scores.shape))
        value = given.scores.new_empty(batch)
        values = uniforms.data_ptr(), samples, decisions, trees.data_ptr(), value.data_ptr()
        self.run("sample_tree", given, "piipp", *values)
        return trees, value
