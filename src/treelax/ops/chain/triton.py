"""Programs over positions on a GPU, through Triton: allocates, chooses tiles and launches.

With ``TRITON_INTERPRET=1`` set before the import everything runs on CPU tensors, slowly.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from treelax.ops.backend import Batch, spoil
from treelax.ops.chain import ALGORITHM, triton_kernels
from treelax.ops.chain.rules import PathAlgorithm
from treelax.ops.chart.triton import COMMON_OPTIONS, launch_device

#: Entries of a tile, and those of a thread.
LARGEST_TILE, PER_THREAD = 8192, 8
CHOICES = {"best": 0, "softmax": 1, "entropy": 2}


class TritonPaths:
    """The backend `triton` of a program over positions; the kernels know it by its ``kind``."""

    def __init__(self, algorithm: PathAlgorithm, kind: int) -> None:
        self.algorithm = algorithm
        self.kind = kind

    def sizes(self, shape: torch.Size) -> dict[str, int]:
        """What the kernels take the shape ``(B, …)`` of scores to be."""
        _, n, longest, *labels = shape
        tails, states = labels if self.kind < 2 else (n + 1, n + 1)
        positions = n + 1 if self.kind < 2 else n + longest + 1
        return {
            **{"n": n, "longest": longest, "tails": tails, "states": states, "width": states + 1},
            **{"positions": positions, "plane": positions * (states + 1)},
            "part_count": shape[1:].numel(),
        }

    def tile(self, edges: int, lanes: int) -> dict[str, int]:
        """Rows and lanes for some edges into each of some states, and warps."""
        lanes = triton.next_power_of_2(lanes)
        rows = min(triton.next_power_of_2(edges), max(1, LARGEST_TILE // lanes))
        warps = min(16, max(1, rows * lanes // (32 * PER_THREAD)))
        return {"ROWS": rows, "LANES": lanes, "num_warps": warps}

    def launch(self, name: str, programs: int, given: Batch, **values: Any) -> None:
        """Launch a kernel with those of the values that it takes."""
        kernel = getattr(triton_kernels, f"{name}_kernel")
        sizes = self.sizes(given.scores.shape)
        longest, tails, states = sizes["longest"], sizes["tails"], sizes["states"]
        ends, begins = (states, tails) if name == "down" else (tails, states)
        edges = 3 if self.kind == 2 else longest * ends
        tile = self.tile(edges, 1 if name == "follow" else begins)
        values |= sizes | tile | {"scores": given.scores, "lengths": given.lengths}
        values |= {"STATES": triton.next_power_of_2(states), "KIND": self.kind}
        taken = {argument: values[argument] for argument in kernel.arg_names if argument in values}
        with launch_device(given.scores):
            kernel[(programs,)](**taken, **COMMON_OPTIONS, num_warps=tile["num_warps"])

    def saved_shape(self, shape: torch.Size, dtype: torch.dtype) -> tuple[int, ...]:
        """Flat: planes of float64."""
        planes = shape[0] * triton_kernels.PLANES.value * self.sizes(shape)["plane"]
        return (planes * (8 // dtype.itemsize),)

    def inside(self, given: Batch, choice: str) -> tuple[Tensor, Tensor]:
        """The nodes of all sentences, and their values."""
        scores = given.scores
        nodes = scores.new_empty(self.saved_shape(scores.shape, scores.dtype)).view(torch.float64)
        goal = scores.new_empty(len(scores))
        self.launch("inside", len(scores), given, nodes=nodes, goal=goal, CHOICE=CHOICES[choice])
        return nodes, goal

    def down(self, given: Batch, nodes: Tensor, **gradient: Tensor) -> Tensor:
        """The tree, or the gradient of the scores."""
        scores = given.scores
        result = torch.empty_like(scores)
        absent = dict.fromkeys(("adjoints", "grad_tree", "grad_value"))
        self.launch(
            "down", len(scores), given, nodes=nodes, result=result,
            CHOICE=CHOICES[given.relaxation], GRADIENT=bool(gradient), **(absent | gradient),
        )  # fmt: skip
        return result

    def soft_tree(self, given: Batch, save: bool) -> tuple[Tensor, Tensor, Tensor]:
        nodes, goal = self.inside(given, given.relaxation)
        saved = nodes.view(given.scores.dtype) if save else goal.new_empty(0)
        return self.down(given, nodes), goal, saved

    def soft_tree_backward(
        self, grad_tree: Tensor, grad_value: Tensor, saved: Tensor, given: Batch
    ) -> Tensor:
        nodes = saved.view(torch.float64)
        planes = triton_kernels.ADJOINTS.value * self.sizes(given.scores.shape)["plane"]
        adjoints = nodes.new_empty(len(given.scores) * planes)
        self.launch(
            "mean", len(given.scores), given, nodes=nodes, adjoints=adjoints, grad_tree=grad_tree
        )
        return self.down(
            given, nodes, adjoints=adjoints, grad_tree=grad_tree, grad_value=grad_value
        )

    def log_partition(self, given: Batch) -> Tensor:
        return self.inside(given, "entropy")[1]

    def follow(self, given: Batch, uniforms: Tensor | None, choice: str) -> tuple[Tensor, Tensor]:
        """Paths back from the goals."""
        scores, lengths = given.scores, given.lengths
        nodes, goal = self.inside(given, choice)
        samples = 1 if uniforms is None else len(uniforms)
        trees = scores.new_zeros((samples, *scores.shape))
        self.launch(
            "follow", samples * len(scores), given, nodes=nodes, trees=trees,
            uniforms=nodes if uniforms is None else uniforms,  # which the best path never reads
            batch=len(scores), decisions=0 if uniforms is None else uniforms.shape[-1],
            CHOICE=CHOICES[choice],
        )  # fmt: skip
        spoil(scores, self.algorithm.parts(lengths, *scores.shape[1:]), trees)
        return trees, goal

    def best_tree(self, given: Batch) -> tuple[Tensor, Tensor]:
        trees, goal = self.follow(given, None, "best")
        return trees[0], goal

    def sample_tree(self, given: Batch, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        return self.follow(given, uniforms.contiguous(), "entropy")


BACKEND = TritonPaths(ALGORITHM, kind=0)
