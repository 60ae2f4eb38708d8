"""Non-projective trees on a GPU, through Triton.

The README of this folder says how the kernels work. This module allocates and
launches. Its functions are those of `treelax.ops.backend.Backend`.

Marginals, their gradient and samples are two launches: a linear one, and one that repeats in the log
domain the sentences for which the first saw too small numbers. Both are queued at once.

With ``TRITON_INTERPRET=1`` set before the import everything runs on CPU tensors, slowly.
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from treelax.ops.backend import Batch
from treelax.ops.chart.triton import Tiles, launch_device, tile_options
from treelax.ops.matrix_tree import triton_discrete, triton_kernels

#: One entry a thread and the same lanes whatever the padding, so that sums add up in the same order;
#: the fastest of seven on an H200 at n = 20, 40 and 80.
TILES = Tiles(64, 8, 16)
BACKWARD_TILES = Tiles(32, 16, 16)
SAMPLE_TILES = Tiles(8, 16, 4)


def chain_entries(size: int, levels: int, planes: int) -> int:
    """Numbers a sentence takes in its planes."""
    return planes * max(size - 1, 0) * (size - 1 + 3 * levels)


def saved_shape(shape: torch.Size, dtype: torch.dtype) -> tuple[int, ...]:
    """The scores, and in a corner which arithmetic the sentence takes."""
    return tuple(shape)


def soft_tree(given: Batch, save: bool) -> tuple[Tensor, Tensor, Tensor]:
    scores = given.scores
    batch, size, _ = scores.shape
    levels = max(1, (size - 1).bit_length())
    saved, tree, value = torch.empty_like(scores), torch.empty_like(scores), scores.new_empty(batch)
    entries = chain_entries(size, levels, planes=3)
    chain = scores.new_empty(batch * entries, dtype=torch.float64)
    with launch_device(scores):
        for logarithms in (False, True):
            triton_kernels.soft_tree_kernel[(batch,)](
                scores, given.lengths, chain if logarithms else chain.view(scores.dtype), saved,
                tree, value, size, levels, entries, int(given.single_root), LOG=logarithms,
                **tile_options(TILES),
            )  # fmt: skip
    return tree, value, saved if save else scores.new_empty(0)


def soft_tree_backward(
    grad_tree: Tensor, grad_value: Tensor, saved: Tensor, given: Batch
) -> Tensor:
    batch, size, _ = saved.shape
    levels = max(1, (size - 1).bit_length())
    entries = chain_entries(size, levels, planes=6)
    chain = saved.new_empty(batch * entries, dtype=torch.float64)
    grad = torch.empty_like(saved)
    with launch_device(saved):
        for logarithms in (False, True):
            triton_kernels.soft_tree_backward_kernel[(batch,)](
                grad_tree.contiguous(), grad_value.contiguous(), saved, given.lengths,
                chain if logarithms else chain.view(saved.dtype), grad, size, levels, entries,
                int(given.single_root), LOG=logarithms, **tile_options(BACKWARD_TILES),
            )  # fmt: skip
    return grad


def log_partition(given: Batch) -> Tensor:
    """That of the marginals: the way down alone would save a third."""
    return soft_tree(given, False)[1]


def room_for_best_trees(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors of whole numbers, of each round too, and of float64: ``whole`` and ``gains``."""
    batch, size, _ = scores.shape
    rounds = triton_discrete.ROUND_VECTORS.value * (size + 1)
    rows = triton_discrete.VECTORS.value + rounds
    whole = scores.new_empty((batch, rows, size), dtype=torch.int32)
    gains = (batch, triton_discrete.GAINS.value, size)
    return whole, scores.new_empty(gains, dtype=torch.float64)


def best_tree(given: Batch) -> tuple[Tensor, Tensor]:
    scores = given.scores
    batch, size, _ = scores.shape
    arcs, tree, value = torch.empty_like(scores), torch.empty_like(scores), scores.new_empty(batch)
    whole, gains = room_for_best_trees(scores)
    with launch_device(scores):
        triton_discrete.best_tree_kernel[(batch,)](
            scores, given.lengths, arcs, whole, gains, tree, value, size, size.bit_length(),
            int(given.single_root), **tile_options(TILES),
        )  # fmt: skip
    return tree, value


def sample_tree(given: Batch, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Marginals of a sentence, then one program a sample."""
    scores, lengths = given.scores, given.lengths
    batch, size, _ = scores.shape
    samples = uniforms.shape[0]
    marginals, value, saved = soft_tree(given, True)
    draws = samples * batch
    chain = scores.new_empty(draws * 2 * (size - 1) * (size + 1), dtype=torch.float64)
    tops = lengths.new_empty((draws, size), dtype=torch.int32)
    again = lengths.new_empty(draws, dtype=torch.int32)
    trees = scores.new_empty((samples, batch, size, size))
    uniforms = uniforms.contiguous()
    with launch_device(scores):
        for logarithms in (False, True):
            triton_discrete.sample_tree_kernel[(draws,)](
                saved, marginals, lengths, uniforms,
                chain if logarithms else chain.view(scores.dtype), tops, again, trees, batch, size,
                int(given.single_root), LOG=logarithms,
                BLOCK=max(32, triton.next_power_of_2(size)), **tile_options(SAMPLE_TILES),
            )  # fmt: skip
    return trees, value
