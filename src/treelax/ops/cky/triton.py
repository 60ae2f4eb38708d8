"""CKY and its relaxations on a GPU, through Triton: binary trees over the words of a sentence.

One program per sentence; the forward pass (inside and outside sweep) and the backward pass (up and
down sweep) are one launch each. `treelax.ops.cky.triton_kernels` says how the kernels work. This
module allocates and launches. Its functions are those of `treelax.ops.backend.Backend`; ``tiles=``
overrides the tile sizes, for tuning. There is no root: ``single_root`` is ignored.

With ``TRITON_INTERPRET=1`` set before the import everything runs on CPU tensors, slowly.
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from treelax.ops.cky import triton_kernels
from treelax.ops.eisner.triton import COMMON_OPTIONS, Tiles, launch_device, tile_options


def choose_tiles(size: int) -> Tiles:
    """The fastest of twelve on an H200 at n = 20, 40 and 80, in both passes.

    Lanes and entries a thread are the same for all sizes: the order of a sum, and so the bits of a
    sentence, must not depend on its padding.
    """
    return Tiles(16, 16, 8) if size <= 32 else Tiles(32, 16, 16)


def saved_shape(batch: int, size: int, dtype: torch.dtype) -> tuple[int, ...]:
    """The chart, the normalisers of its cells and their contributions: three planes a sentence."""
    return (batch, triton_kernels.CHART_PLANES.value, size, size)


def soft_tree(
    scores: Tensor,
    lengths: Tensor,
    relaxation: str,
    single_root: bool,
    save: bool,
    *,
    tiles: Tiles | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Inside and outside sweep, one launch."""
    batch, size, _ = scores.shape
    chart = scores.new_empty(saved_shape(batch, size, scores.dtype))
    tree = torch.empty_like(scores)
    value = scores.new_empty(batch)
    with launch_device(scores):
        triton_kernels.soft_tree_kernel[(batch,)](
            scores, lengths, chart, tree, value, size, MEAN=relaxation == "softmax", SAVE=save,
            **tile_options(tiles or choose_tiles(size)),
        )  # fmt: skip
    return tree, value, chart if save else scores.new_empty(0)


def soft_tree_backward(
    grad_tree: Tensor,
    grad_value: Tensor,
    saved: Tensor,
    lengths: Tensor,
    relaxation: str,
    single_root: bool,
    *,
    tiles: Tiles | None = None,
) -> Tensor:
    """Up and down sweep, one launch."""
    grad_tree = grad_tree.contiguous()
    batch, size, _ = grad_tree.shape
    scratch = saved.new_empty((batch, triton_kernels.BACKWARD_PLANES.value, size, size))
    grad = torch.empty_like(grad_tree)
    with launch_device(saved):
        triton_kernels.soft_tree_backward_kernel[(batch,)](
            grad_tree, grad_value.contiguous(), saved, lengths, scratch, grad, size,
            MEAN=relaxation == "softmax",
            **tile_options(tiles or choose_tiles(size)),
        )  # fmt: skip
    return grad


def inside_chart(
    scores: Tensor, lengths: Tensor, keep: bool, tiles: Tiles | None
) -> tuple[Tensor, Tensor]:
    """The entropy chart, with its normalisers if ``keep``, and the log-partition."""
    batch, size, _ = scores.shape
    chart = scores.new_empty((batch, triton_kernels.VALUE_PLANES.value, size, size))
    value = scores.new_empty(batch)
    with launch_device(scores):
        triton_kernels.log_partition_kernel[(batch,)](
            scores, lengths, chart, value, size, KEEP=keep,
            **tile_options(tiles or choose_tiles(size)),
        )  # fmt: skip
    return chart, value


def log_partition(
    scores: Tensor, lengths: Tensor, single_root: bool, *, tiles: Tiles | None = None
) -> Tensor:
    """Inside sweep of the entropy relaxation alone."""
    return inside_chart(scores, lengths, False, tiles)[1]


def best_tree(
    scores: Tensor, lengths: Tensor, single_root: bool, *, tiles: Tiles | None = None
) -> tuple[Tensor, Tensor]:
    """(max, +) chart with the splits taken, and a walk down from the whole; one launch."""
    batch, size, _ = scores.shape
    chart = scores.new_empty((batch, triton_kernels.VALUE_PLANES.value, size, size))
    tree = torch.empty_like(scores)
    value = scores.new_empty(batch)
    with launch_device(scores):
        triton_kernels.best_tree_kernel[(batch,)](
            scores, lengths, chart, tree, value, size,
            **tile_options(tiles or choose_tiles(size)),
        )  # fmt: skip
    return tree, value


def sample_tree(
    scores: Tensor,
    lengths: Tensor,
    uniforms: Tensor,
    single_root: bool,
    *,
    tiles: Tiles | None = None,
) -> tuple[Tensor, Tensor]:
    """One inside sweep a sentence, then one program a sample."""
    batch, size, _ = scores.shape
    samples = uniforms.shape[0]
    chart, value = inside_chart(scores, lengths, True, tiles)
    agenda = lengths.new_empty((samples * batch, size))
    trees = scores.new_empty((samples, batch, size, size))
    with launch_device(scores):
        triton_kernels.sample_tree_kernel[(samples * batch,)](
            chart, lengths, uniforms.contiguous(), agenda, trees, batch, size,
            BLOCK=max(32, triton.next_power_of_2(size)), num_warps=1, **COMMON_OPTIONS,
        )  # fmt: skip
    return trees, value
