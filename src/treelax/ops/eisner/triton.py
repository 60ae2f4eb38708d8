"""Eisner's algorithm and its relaxations on a GPU, through Triton.

One program per sentence; the forward pass (inside and outside sweep) and the backward pass (up and
down sweep) are one launch each, and in float32 a look at the scores goes before the forward pass.
`treelax.ops.eisner.triton_parts` says how the kernels work. This module allocates, chooses tile sizes
and launches. Its functions are those of `treelax.ops.backend.Backend`; ``tiles=`` overrides the
tile sizes, for tuning.

With ``TRITON_INTERPRET=1`` set before the import everything runs on CPU tensors, slowly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from treelax.ops.eisner import triton_discrete, triton_kernels, triton_parts


class Tiles(NamedTuple):
    """Shape of the work of one program: cells of a width × splits, and its number of warps.

    All three are powers of two; ``lanes <= 32``, since a row must stay inside a warp; a tile of
    fewer than ``32 * warps`` entries leaves threads idle.
    """

    rows: int
    lanes: int
    warps: int


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
#: One stage: no load may be moved ahead of the stores and barriers before it.
COMMON_OPTIONS: dict[str, Any] = {"num_stages": 1, "enable_fp_fusion": True}


def choose_tiles(size: int, table: tuple[tuple[int, Tiles], ...], dtype: torch.dtype) -> Tiles:
    """Tile sizes for a chart of ``size`` positions, the root included."""
    tiles = next((tiles for largest, tiles in table if size <= largest), LARGEST_TILES)
    if dtype == torch.float64 and tiles.warps > LARGEST_DOUBLE_TILES.warps:
        return LARGEST_DOUBLE_TILES
    return tiles


def launch_device(tensor: Tensor) -> AbstractContextManager[Any]:
    """Triton launches on the current device, which need not be that of the tensors."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


def tile_options(tiles: Tiles) -> dict[str, Any]:
    """Launch options of the kernels that run in tiles."""
    return {"ROWS": tiles.rows, "LANES": tiles.lanes, "num_warps": tiles.warps, **COMMON_OPTIONS}


def saved_shape(batch: int, size: int, dtype: torch.dtype) -> tuple[int, ...]:
    """The chart, the normalisers of its cells and their contributions: nine planes a sentence."""
    return (batch, triton_parts.CHART_PLANES.value, size, size)


def launch_centring(
    scores: Tensor, lengths: Tensor, chart: Tensor, single_root: bool, tiles: Tiles
) -> Tensor | None:
    """What to take off the columns of the scores, in the ``chart``'s memory; None in float64."""
    if scores.dtype != torch.float32:
        return None
    batch, size, _ = scores.shape
    shift = scores.new_empty((batch, size))
    triton_discrete.centre_kernel[(batch,)](
        scores, lengths, chart, shift, size, int(single_root), PLANES=chart.shape[1],
        **tile_options(tiles),
    )  # fmt: skip
    return shift


def soft_tree(
    scores: Tensor,
    lengths: Tensor,
    relaxation: str,
    single_root: bool,
    save: bool,
    *,
    tiles: Tiles | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Centring, then inside and outside sweep in one launch."""
    batch, size, _ = scores.shape
    tiles = tiles or choose_tiles(size, FORWARD_TILES, scores.dtype)
    chart = scores.new_empty(saved_shape(batch, size, scores.dtype))
    scratch = scores.new_empty((batch, triton_parts.FORWARD_PLANES.value, size, size))
    tree = torch.empty_like(scores)
    value = scores.new_empty(batch)
    with launch_device(scores):
        shift = launch_centring(scores, lengths, chart, single_root, tiles)
        triton_kernels.soft_tree_kernel[(batch,)](
            scores, shift, lengths, chart, scratch, tree, value, size, int(single_root),
            MEAN=relaxation == "softmax", SAVE=save, **tile_options(tiles),
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
    scratch = saved.new_empty((batch, triton_parts.BACKWARD_PLANES.value, size, size))
    grad = torch.empty_like(grad_tree)
    with launch_device(saved):
        triton_kernels.soft_tree_backward_kernel[(batch,)](
            grad_tree, grad_value.contiguous(), saved, lengths, scratch, grad, size,
            int(single_root), MEAN=relaxation == "softmax",
            **tile_options(tiles or choose_tiles(size, BACKWARD_TILES, saved.dtype)),
        )  # fmt: skip
    return grad


def chart_planes(dtype: torch.dtype, keep: bool) -> int:
    """Planes of an inside sweep: a whole chart to ``keep``, else its own, or those of centring."""
    if keep:
        return int(triton_parts.CHART_PLANES.value)
    centres = dtype == torch.float32
    return int((triton_parts.CENTRE_PLANES if centres else triton_parts.VALUE_PLANES).value)


def inside_chart(
    scores: Tensor, lengths: Tensor, single_root: bool, keep: bool, tiles: Tiles | None
) -> tuple[Tensor, Tensor]:
    """The entropy chart, with its normalisers if ``keep``, and the log-partition."""
    batch, size, _ = scores.shape
    tiles = tiles or choose_tiles(size, FORWARD_TILES, scores.dtype)
    planes = chart_planes(scores.dtype, keep)
    chart = scores.new_empty((batch, planes, size, size))
    value = scores.new_empty(batch)
    with launch_device(scores):
        shift = launch_centring(scores, lengths, chart, single_root, tiles)
        triton_kernels.log_partition_kernel[(batch,)](
            scores, shift, lengths, chart, value, size, int(single_root),
            PLANES=planes, KEEP=keep, **tile_options(tiles),
        )  # fmt: skip
    return chart, value


def log_partition(
    scores: Tensor, lengths: Tensor, single_root: bool, *, tiles: Tiles | None = None
) -> Tensor:
    """Inside sweep of the entropy relaxation alone."""
    return inside_chart(scores, lengths, single_root, False, tiles)[1]


def best_tree(
    scores: Tensor, lengths: Tensor, single_root: bool, *, tiles: Tiles | None = None
) -> tuple[Tensor, Tensor]:
    """(max, +) chart with the splits taken, and a walk down from the goal; one launch."""
    batch, size, _ = scores.shape
    chart = scores.new_empty((batch, triton_parts.BEST_PLANES.value, size, size))
    tree = torch.empty_like(scores)
    value = scores.new_empty(batch)
    with launch_device(scores):
        triton_discrete.best_tree_kernel[(batch,)](
            scores, lengths, chart, tree, value, size, int(single_root),
            **tile_options(tiles or choose_tiles(size, FORWARD_TILES, scores.dtype)),
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
    chart, value = inside_chart(scores, lengths, single_root, True, tiles)
    agenda = lengths.new_empty((samples * batch, 2 * size))
    trees = scores.new_empty((samples, batch, size, size))
    with launch_device(scores):
        triton_discrete.sample_tree_kernel[(samples * batch,)](
            chart, lengths, uniforms.contiguous(), agenda, trees, batch, size, int(single_root),
            BLOCK=max(32, triton.next_power_of_2(size)), num_warps=1, **COMMON_OPTIONS,
        )  # fmt: skip
    return trees, value


def kernel_variants(dtype: torch.dtype, tiles: Tiles) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Every kernel in every form the functions above launch: a name, the kernel, its constants."""
    shape = {"ROWS": tiles.rows, "LANES": tiles.lanes}
    centres = dtype == torch.float32
    first: dict[str, Any] = shape if centres else {"shift": None, **shape}
    for relaxation, mean in (("softmax", True), ("entropy", False)):
        yield f"soft_tree[{relaxation}]", triton_kernels.soft_tree_kernel, {
            "MEAN": mean, "SAVE": True, **first
        }  # fmt: skip
        yield f"soft_tree_backward[{relaxation}]", triton_kernels.soft_tree_backward_kernel, {
            "MEAN": mean, **shape
        }  # fmt: skip
    for keep in (False, True):
        yield f"log_partition[keep={keep}]", triton_kernels.log_partition_kernel, {
            "PLANES": chart_planes(dtype, keep), "KEEP": keep, **first
        }  # fmt: skip
    if centres:
        yield "centre", triton_discrete.centre_kernel, {
            "PLANES": triton_parts.CHART_PLANES.value, **shape
        }  # fmt: skip
    yield "best_tree", triton_discrete.best_tree_kernel, shape
    yield "sample_tree", triton_discrete.sample_tree_kernel, {"BLOCK": 32}


def compile_ahead(arch: int, dtype: torch.dtype, tiles: Tiles) -> Iterator[tuple[str, Any]]:
    """Compile every kernel for a CUDA architecture (80, 90, …) without a GPU, as a launch would.

    Yields a name and Triton's compiled kernel; its ``asm`` holds ``ttgir``, ``ptx`` and ``cubin``.
    Not possible under ``TRITON_INTERPRET=1``.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    number = {torch.float32: "fp32", torch.float64: "fp64"}[dtype]
    types = {"lengths": "*i64", "agenda": "*i64"}
    types |= {"batch": "i32", "size": "i32", "single_root": "i32"}
    for name, kernel, constants in kernel_variants(dtype, tiles):
        signature = {
            argument: "constexpr" if argument in constants else types.get(argument, f"*{number}")
            for argument in kernel.arg_names
        }
        # tensors start at multiples of 16 bytes, and a launch tells the compiler so
        aligned = {
            (place,): [["tt.divisibility", 16]]
            for place, kind in enumerate(signature.values())
            if kind.startswith("*")
        }
        warps = 1 if kernel is triton_discrete.sample_tree_kernel else tiles.warps
        yield (
            name,
            triton.compile(
                ASTSource(kernel, signature, constants, aligned),
                target=GPUTarget("cuda", arch, 32),
                options={"num_warps": warps, **COMMON_OPTIONS},
            ),
        )
