"""Time SparseMAP on a CPU or a GPU, and compare its kernels with the plain loop.

    PYTHONPATH=src python3 benchmarks/sparsemap.py --device cuda --batch 128

A line a setting: milliseconds of the forward and the backward pass (the median of a few runs, each with
a synchronisation), the median size of the supports, the largest gap, and on a few sentences the largest
difference from the loop in PyTorch, of the point and of the gradient.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from treelax.ops.backend import CKY, EISNER, MATRIX_TREE, Algorithm
from treelax.ops.sparsemap.function import sparsemap

COMPARED = 8  # sentences


def median(run: Callable[[], Any], device: str, runs: int) -> float:
    """Milliseconds of a call."""
    times = []
    for _ in range(runs + 1):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return sorted(times[1:])[runs // 2]  # the first one compiles


def projected(
    algorithm: Algorithm, scores: Tensor, upstream: Tensor, backend: str | None
) -> tuple[Tensor, Tensor]:
    """The point and the gradient of its product with a tensor."""
    scores = scores.detach().requires_grad_()
    tree = sparsemap(algorithm, scores, backend=backend).tree
    return tree.detach(), torch.autograd.grad(tree, scores, upstream)[0]


def measure(algorithm: Algorithm, n: int, deviation: float, options: argparse.Namespace) -> None:
    size, device = n + algorithm.rooted, options.device
    generator = torch.Generator().manual_seed(n)
    scores, upstream = (
        torch.randn(options.batch, size, size, generator=generator).to(device) for _ in range(2)
    )
    scores = (deviation * scores).requires_grad_()
    found = sparsemap(algorithm, scores)
    forward = median(lambda: sparsemap(algorithm, scores), device, options.runs)
    backward = median(
        lambda: torch.autograd.grad(found.tree, scores, upstream, retain_graph=True),
        device,
        options.runs,
    )
    own, plain = (
        projected(algorithm, scores[:COMPARED].double(), upstream[:COMPARED].double(), backend)
        for backend in (None, "diagonal")
    )
    point, gradient = (float((a - b).abs().max()) for a, b in zip(own, plain, strict=True))
    support = int((found.weights > 0).sum(-1).median())
    print(
        f"{algorithm.name:12} n={n:<3} sd={deviation:<4} {forward:9.3f} ms {backward:8.3f} ms  "
        f"support {support:4}  gap {float(found.gap.max()):.0e}  "
        f"off by {point:.0e}, gradient {gradient:.0e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--lengths", type=int, nargs="+", default=[20, 40])
    parser.add_argument("--deviations", type=float, nargs="+", default=[1.0, 3.0, 0.3])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for algorithm in (EISNER, CKY, MATRIX_TREE):
        for n in options.lengths:
            for deviation in options.deviations:
                measure(algorithm, n, deviation, options)


if __name__ == "__main__":
    main()
