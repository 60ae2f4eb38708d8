"""Soft projective trees on a GPU, through kernels in CUDA C++; the other operations are Triton's.

``soft_tree.cu`` says how the kernels work; this module allocates, chooses their shape and launches.
A chart that fits lies in shared memory. Long sentences have charts in global memory and a cluster of
blocks each, few of them a larger one.
"""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

import torch
from torch import Tensor

from treelax.ops import nvrtc, problems
from treelax.ops.backend import Batch
from treelax.ops.eisner import ALGORITHM
from treelax.ops.eisner.triton import BACKEND as TRITON

best_tree, log_partition, sample_tree = TRITON.best_tree, TRITON.log_partition, TRITON.sample_tree
PLANES = {"soft_tree": 5, "soft_tree_backward": 7}  # of a chart in shared memory
TILE = 16
TILED = {"soft_tree": 6688, "soft_tree_backward": 13376}  # numbers in shared memory for tiles
CLUSTERS = ((16, 8), (32, 4), (128, 2))  # up to so many sentences, so many blocks each
MANY = 512  # short sentences: beyond, threads that wait cost more than splits in a row


class Shape(NamedTuple):
    """Threads of a block, and blocks that share a sentence in global memory, 0 for shared memory."""

    threads: int
    blocks: int

    def plane(self, size: int) -> int:
        """Numbers in a plane of a chart: ``PLANE`` of the kernels."""
        if self.blocks:
            return (-(-size // TILE) * TILE) ** 2
        return -(-size * (size | 7) // 2) * 2

    def shared(self, kernel: str, size: int, number: int) -> int:
        """Bytes of shared memory, with ``number`` bytes a number."""
        chart = TILED[kernel] if self.blocks else PLANES[kernel] * self.plane(size)
        return number * (size + chart)


def choose(batch: int, size: int, dtype: torch.dtype) -> Shape | None:
    """The quickest shape on an H200; in shared memory with two threads a word. None for Triton."""
    threads = (64 if batch > MANY else 256) if size <= 33 else 256 if size <= 65 else 512
    shape = Shape(threads, 0)
    if shape.shared("soft_tree_backward", size, dtype.itemsize) <= nvrtc.MOST_SHARED_MEMORY:
        return shape
    if size > 2001:
        return None
    return Shape(TILE**2, next((blocks for most, blocks in CLUSTERS if batch <= most), 1))


class Plan(NamedTuple):
    """Both passes over batches of one shape: their kernels, and the shapes of what these write."""

    forward: nvrtc.Launch
    backward: nvrtc.Launch
    saved: tuple[int, ...]
    scratch: tuple[int, ...]


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


@functools.lru_cache(maxsize=256)
def plan(device: int, dtype: torch.dtype, relaxation: str, batch: int, size: int) -> Plan | None:
    """None for Triton."""
    shape = choose(batch, size, dtype)
    if shape is None:
        return None
    with torch.cuda.device(device):
        kernels = module(device, dtype, relaxation, shape)
    forward, backward = (
        nvrtc.Launch(
            kernels,
            name,
            batch * max(shape.blocks, 1),
            shape.threads,
            shape.shared(name, size, dtype.itemsize),
        )
        for name in PLANES
    )
    return Plan(
        forward,
        backward,
        (batch, 8, shape.plane(size)),
        (batch, 6 if shape.blocks else 1, shape.plane(size)),
    )


def packed(tensors: tuple[Tensor | None, ...], *numbers: int) -> bytes:
    """``Args`` of the kernels."""
    return struct.pack("9Q4i", *(0 if x is None else x.data_ptr() for x in tensors), *numbers)


def saved_shape(shape: torch.Size, dtype: torch.dtype) -> tuple[int, ...]:
    """Of the chart, the normalisers of its cells and their contributions."""
    batch, size, _ = shape
    launch = choose(batch, size, dtype)
    if launch is None:
        return TRITON.saved_shape(shape, dtype)
    return (batch, 8, launch.plane(size))


def soft_tree(given: Batch, save: bool, validate: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Inside and outside sweep in one launch, which also checks the scores if ``validate``."""
    scores, lengths, relaxation, single_root = given
    batch, size, _ = scores.shape
    device = scores.get_device()
    own = plan(device, scores.dtype, relaxation, batch, size)
    if own is None:
        found = TRITON.soft_tree(given, save)
        if validate:
            problems.launch_validation(ALGORITHM, scores, lengths, found[1])
        return found
    saved = scores.new_empty(own.saved)
    tree, value = torch.empty_like(scores), scores.new_empty(batch)
    problem = problems.error_slot(ALGORITHM, scores.device) if validate else None
    tensors = (scores, None, None, lengths, saved, None, tree, value, problem)
    own.forward(device, packed(tensors, batch, size, single_root, save))
    return tree, value, saved if save else scores.new_empty(0)


def soft_tree_backward(
    grad_tree: Tensor, grad_value: Tensor | None, saved: Tensor, given: Batch
) -> Tensor:
    """Up and down sweep in one launch."""
    _, lengths, relaxation, single_root = given
    batch, size, _ = grad_tree.shape
    device = grad_tree.get_device()
    own = plan(device, grad_tree.dtype, relaxation, batch, size)
    if own is None:
        value = grad_tree.new_zeros(batch) if grad_value is None else grad_value
        return TRITON.soft_tree_backward(grad_tree, value, saved, given)
    scratch, grad = grad_tree.new_empty(own.scratch), torch.empty_like(grad_tree)
    tensors = (None, grad_tree, grad_value, lengths, saved, scratch, grad, None, None)
    own.backward(device, packed(tensors, batch, size, single_root, True))
    return grad
