"""Chart programs on a GPU, through Triton: allocates, chooses tile sizes and launches.

One program per sentence; the forward pass (inside and outside sweep) and the backward pass (up and
down sweep) are one launch each. The README here says how the kernels work. With
``TRITON_INTERPRET=1`` set before the import everything runs on CPU tensors, slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from treelax.ops.backend import Batch


class Tiles(NamedTuple):
    """Shape of the work of one program: cells of a width × splits, and its number of warps.

    All three are powers of two; ``lanes <= 32``, since a row must stay inside a warp; a tile of
    fewer than ``32 * warps`` entries leaves threads idle.
    """

    rows: int
    lanes: int
    warps: int


#: One stage: no load may be moved ahead of the stores and barriers before it.
COMMON_OPTIONS: dict[str, Any] = {"num_stages": 1, "enable_fp_fusion": True}

ChooseTiles = Callable[[int, torch.dtype], Tiles]


def launch_device(tensor: Tensor) -> AbstractContextManager[Any]:
    """Triton launches on the current device, which need not be that of the tensors."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


def tile_options(tiles: Tiles) -> dict[str, Any]:
    """Launch options of the kernels that run in tiles."""
    return {"ROWS": tiles.rows, "LANES": tiles.lanes, "num_warps": tiles.warps, **COMMON_OPTIONS}


@dataclass(frozen=True)
class TritonBackend:
    """The backend `triton` of a chart program."""

    #: Those named as the methods below, and ``centre_kernel``, if centring is a launch of its own.
    kernels: ModuleType
    #: Its constants say how many planes ``N×N`` a sentence takes for what.
    sweeps: ModuleType
    forward_tiles: ChooseTiles
    backward_tiles: ChooseTiles
    #: Numbers a word and sample on the agenda.
    agenda: int

    def planes(self, purpose: str) -> int:
        """Of ``CHART``, ``VALUE``, ``SAMPLE``, ``BEST``, ``FORWARD`` …: 0 where none are needed."""
        constant = getattr(self.sweeps, f"{purpose}_PLANES", None)
        return constant.value if constant is not None else 0

    def saved_shape(self, shape: torch.Size, dtype: torch.dtype) -> tuple[int, ...]:
        """The chart, the normalisers of its cells and their contributions."""
        batch, size, _ = shape
        return (batch, self.planes("CHART"), size, size)

    def launch(self, name: str, programs: int, options: dict[str, Any], **values: Any) -> None:
        """Launch a kernel with those of the ``values`` that it takes."""
        kernel = getattr(self.kernels, f"{name}_kernel")
        taken = {argument: values[argument] for argument in kernel.arg_names if argument in values}
        kernel[(programs,)](**taken, **options)

    def centres(self, dtype: torch.dtype) -> bool:
        """Whether a launch of its own makes the values of charts small."""
        return dtype == torch.float32 and hasattr(self.kernels, "centre_kernel")

    def centring(self, given: Batch, chart: Tensor, options: dict[str, Any]) -> Tensor | None:
        """What to take off the columns of the scores, in the ``chart``'s memory."""
        scores = given.scores
        if not self.centres(scores.dtype):
            return None
        batch, size, _ = scores.shape
        shift = scores.new_empty((batch, size))
        self.launch(
            "centre", batch, options, scores=scores, lengths=given.lengths, chart=chart,
            shift=shift, size=size, single_root=int(given.single_root), PLANES=chart.shape[1],
        )  # fmt: skip
        return shift

    def sweep(
        self, name: str, planes: int, given: Batch, centres: bool = True, **values: Any
    ) -> tuple[Tensor, Tensor]:
        """Centring and an inside sweep, one launch each: the chart and the value."""
        scores = given.scores
        batch, size, _ = scores.shape
        options = tile_options(self.forward_tiles(size, scores.dtype))
        chart = scores.new_empty((batch, planes, size, size))
        value = scores.new_empty(batch)
        with launch_device(scores):
            shift = self.centring(given, chart, options) if centres else None
            self.launch(
                name, batch, options, scores=scores, shift=shift, lengths=given.lengths,
                chart=chart, value=value, size=size, single_root=int(given.single_root),
                PLANES=planes, **values,
            )  # fmt: skip
        return chart, value

    def soft_tree(self, given: Batch, save: bool) -> tuple[Tensor, Tensor, Tensor]:
        scores = given.scores
        batch, size, _ = scores.shape
        tree = torch.empty_like(scores)
        chart, value = self.sweep(
            "soft_tree", self.planes("CHART"), given, tree=tree,
            scratch=scores.new_empty((batch, self.planes("FORWARD"), size, size)),
            MEAN=given.relaxation == "softmax", SAVE=save,
        )  # fmt: skip
        return tree, value, chart if save else scores.new_empty(0)

    def soft_tree_backward(
        self, grad_tree: Tensor, grad_value: Tensor, saved: Tensor, given: Batch
    ) -> Tensor:
        grad_tree = grad_tree.contiguous()
        batch, size, _ = grad_tree.shape
        options = tile_options(self.backward_tiles(size, saved.dtype))
        grad = torch.empty_like(grad_tree)
        with launch_device(saved):
            self.launch(
                "soft_tree_backward", batch, options, grad_tree=grad_tree,
                grad_value=grad_value.contiguous(), chart=saved, lengths=given.lengths,
                scratch=saved.new_empty((batch, self.planes("BACKWARD"), size, size)), grad=grad,
                size=size, single_root=int(given.single_root), MEAN=given.relaxation == "softmax",
            )  # fmt: skip
        return grad

    def inside_chart(self, given: Batch, keep: bool) -> tuple[Tensor, Tensor]:
        """The entropy chart, with its normalisers if ``keep``, and the log-partition."""
        planes = "SAMPLE" if keep else "CENTRE" if self.centres(given.scores.dtype) else "VALUE"
        return self.sweep("log_partition", self.planes(planes), given, KEEP=keep)

    def log_partition(self, given: Batch) -> Tensor:
        return self.inside_chart(given, False)[1]

    def best_tree(self, given: Batch) -> tuple[Tensor, Tensor]:
        tree = torch.empty_like(given.scores)
        _, value = self.sweep("best_tree", self.planes("BEST"), given, False, tree=tree)
        return tree, value

    def sample_tree(self, given: Batch, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """One inside sweep a sentence, then one program a sample."""
        scores, lengths = given.scores, given.lengths
        batch, size, _ = scores.shape
        samples = uniforms.shape[0]
        chart, value = self.inside_chart(given, True)
        trees = scores.new_empty((samples, batch, size, size))
        with launch_device(scores):
            self.launch(
                "sample_tree", samples * batch, {"num_warps": 1, **COMMON_OPTIONS}, chart=chart,
                lengths=lengths, uniforms=uniforms.contiguous(),
                agenda=lengths.new_empty((samples * batch, self.agenda * size)), trees=trees,
                batch=batch, size=size, single_root=int(given.single_root),
                BLOCK=max(32, triton.next_power_of_2(size)),
            )  # fmt: skip
        return trees, value
