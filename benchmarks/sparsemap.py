"""SparseMAP on a CPU or a GPU, and its kernels against the loop in PyTorch.

    python benchmarks/run.py sparsemap --device cuda --batch 128

Milliseconds of an ordinary call and of its backward pass (medians, each with a synchronisation), the
median size of the supports, the largest gap, and on a few sentences the largest difference from the
loop, of the point and of the gradient.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.measure import Row, turns
from treelax.structures import Binary, NonProjective, Projective, Structure

COMPARED = 8  # sentences


def projected(
    structure: Structure, scores: Tensor, upstream: Tensor, backend: str | None
) -> tuple[Tensor, Tensor]:
    """The point and the gradient of its product with a tensor."""
    scores = scores.detach()[:COMPARED].double().requires_grad_()
    tree = structure.sparsemap(scores, backend=backend).tree
    return tree.detach(), torch.autograd.grad(tree, scores, upstream[:COMPARED].double())[0]


def measure(
    device: str = "cpu",
    batch: int = 64,
    runs: int = 5,
    threads: int = 1,
    lengths: tuple[int, ...] = (20, 40),
    deviations: tuple[float, ...] = (1.0, 3.0, 0.3),
) -> Iterator[Row]:
    """A row for each structure, length and deviation of the scores."""
    torch.set_num_threads(threads)
    cases = [(n, deviation) for n in lengths for deviation in deviations]
    for structure in (Projective(), Binary(), NonProjective()):
        for n, deviation in cases:
            size, generator = n + structure.rooted, torch.Generator().manual_seed(n)
            scores, upstream = torch.randn(2, batch, size, size, generator=generator).to(device)
            scores = (deviation * scores).requires_grad_()
            solution = structure.sparsemap(scores)

            def backward(
                tree: Tensor = solution.tree, scores: Tensor = scores, upstream: Tensor = upstream
            ) -> object:
                return torch.autograd.grad(tree, scores, upstream, retain_graph=True)

            def forward(structure: Structure = structure, scores: Tensor = scores) -> object:
                return structure.sparsemap(scores)

            times = turns({"forward": forward, "backward": backward}, runs, device=device)
            pairs = zip(
                *(projected(structure, scores, upstream, name) for name in (None, "diagonal")),
                strict=True,
            )
            point, gradient = (float((one - other).abs().max()) for one, other in pairs)
            yield {
                **{"structure": structure.name, "n": n, "deviation": deviation, "batch": batch},
                **{"device": device, "threads": threads, "runs": runs},
                **{f"{k}_ms": round(1e3 * statistics.median(v), 3) for k, v in times.items()},
                "support": int((solution.support.weights > 0).sum(-1).median()),
                "gap": f"{float(solution.gap.max()):.0e}",
                "point_off": f"{point:.0e}",
                "gradient_off": f"{gradient:.0e}",
            }
