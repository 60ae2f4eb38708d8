"""Soft projective trees on a GPU, through kernels in CUDA C++; the other operations are Triton's.

``soft_tree.cu`` says how the kernels work; this module allocates, chooses their shape and launches.
A chart that fits lies in shared memory. A few long sentences have several blocks each, with charts in
global memory. Many long ones are left to Triton.
"""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

import torch
from torch import Tensor

from treelax.ops import nvrtc
from treelax.ops.eisner import triton
from treelax.ops.eisner.triton import best_tree, launch_device, log_partition, sample_tree

__all__ = [
    "best_tree",
    "log_partition",
    "sample_tree",
    "saved_shape",
    "soft_tree",
    "soft_tree_backward",
]
PLANES = {"soft_tree": 5, "soft_tree_backward": 7}  # of a chart in shared memory
FEW = 32  # sentences: beyond, one program each keeps an H200 busy
MANY = 512  # short sentences: beyond, threads that wait cost more than splits in a row


class Shape(NamedTuple):
    """Threads of a block, and blocks that share a sentence in global memory, 0 for shared memory."""

    threads: int
    blocks: int

    def plane(self, size: int) -> int:
        """Numbers in a plane of a chart; see ``STRIDE`` in ``soft_tree.cu``."""
        return -(-size * (size if self.blocks else size | 7) // 2) * 2

    def saved(self) -> int:
        """Planes that the backward pass reads."""
        return 9 if self.blocks else 8

    def shared(self, kernel: str, size: int, number: int) -> int:
        """Bytes of shared memory, with ``number`` bytes a number."""
        return number * (size + (0 if self.blocks else PLANES[kernel] * self.plane(size)))


def choose(batch: int, size: int, dtype: torch.dtype) -> Shape | None:
    """The quickest shape on an H200 that has two threads a word; None for Triton."""
    threads = (64 if batch > MANY else 256) if size <= 33 else 256 if size <= 65 else 512
    shape = Shape(threads, 0)
    if shape.shared("soft_tree_backward", size, dtype.itemsize) <= nvrtc.MOST_SHARED_MEMORY:
        return shape
    return Shape(512 if size > 200 else 256, 8) if batch <= FEW and size <= 2000 else None


@functools.cache
def module(device: int, dtype: torch.dtype, relaxation: str, shape: Shape) -> nvrtc.Module:
    """Kernels for the current device."""
    return nvrtc.Module(
        "eisner/soft_tree.cu",
        tuple(PLANES),
        REAL="double" if dtype == torch.float64 else "float",
        MEAN=int(relaxation == "softmax"),
        CLUSTER_BLOCKS=shape.blocks,
        THREADS_AT_MOST=shape.threads,
    )


def launch(
    kernel: str,
    shape: Shape,
    relaxation: str,
    single_root: bool,
    keep: bool,
    *tensors: Tensor | None,
) -> None:
    """Launch with the tensors of ``Args``; the last but one, tree or gradient, has the shape."""
    tree = tensors[-2]
    assert tree is not None
    batch, size, _ = tree.shape
    with launch_device(tree):
        module(tree.get_device(), tree.dtype, relaxation, shape).launch(
            kernel,
            batch * max(shape.blocks, 1),
            shape.threads,
            shape.shared(kernel, size, tree.itemsize),
            struct.pack(
                "8Q4i",
                *(0 if x is None else x.data_ptr() for x in tensors),
                *(batch, size, single_root, keep),
            ),
        )


def saved_shape(batch: int, size: int, dtype: torch.dtype) -> tuple[int, ...]:
    """Of the chart, the normalisers of its cells and their contributions."""
    shape = choose(batch, size, dtype)
    if shape is None:
        return triton.saved_shape(batch, size, dtype)
    return (batch, shape.saved(), shape.plane(size))


def soft_tree(
    scores: Tensor, lengths: Tensor, relaxation: str, single_root: bool, save: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Inside and outside sweep in one launch."""
    batch, size, _ = scores.shape
    shape = choose(batch, size, scores.dtype)
    if shape is None:
        return triton.soft_tree(scores, lengths, relaxation, single_root, save)
    saved = scores.new_empty((batch, shape.saved(), shape.plane(size)))
    scratch = scores.new_empty((batch, 2, shape.plane(size))) if shape.blocks else None
    tree, value = torch.empty_like(scores), scores.new_empty(batch)
    tensors = (scores, None, None, lengths, saved, scratch, tree, value)
    launch("soft_tree", shape, relaxation, single_root, save, *tensors)
    return tree, value, saved if save else scores.new_empty(0)


def soft_tree_backward(
    grad_tree: Tensor,
    grad_value: Tensor | None,
    saved: Tensor,
    lengths: Tensor,
    relaxation: str,
    single_root: bool,
) -> Tensor:
    """Up and down sweep in one launch."""
    batch, size, _ = grad_tree.shape
    shape = choose(batch, size, saved.dtype)
    if shape is None:
        value = grad_tree.new_zeros(batch) if grad_value is None else grad_value
        return triton.soft_tree_backward(grad_tree, value, saved, lengths, relaxation, single_root)
    scratch = saved.new_empty((batch, 6 if shape.blocks else 1, shape.plane(size)))
    grad = torch.empty_like(grad_tree)
    tensors = (None, grad_tree, grad_value, lengths, saved, scratch, grad, None)
    launch("soft_tree_backward", shape, relaxation, single_root, True, *tensors)
    return grad
