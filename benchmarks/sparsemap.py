"""Time SparseMAP on a CPU or a GPU, and compare its kernels with the plain loop.

    python -m benchmarks.sparsemap --device cuda --batch 128

Writes ``results/sparsemap-<device>-<date>.csv`` and prints a table: milliseconds of an ordinary call and
of its backward pass (the median of a few runs, each with a synchronisation), the median size of the
supports, the largest gap, and on a few sentences the largest difference from the loop in PyTorch, of the
point and of the gradient.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks import machine
from benchmarks.report import table, write_rows
from treelax.ops.backend import CKY, EISNER, MATRIX_TREE, Algorithm
from treelax.ops.sparsemap.function import sparsemap

COMPARED = 8  # sentences
RESULTS = Path(__file__).parent / "results"


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


def measure(
    algorithm: Algorithm, n: int, deviation: float, options: argparse.Namespace
) -> dict[str, object]:
    """One row of the record."""
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
    return {
        **{"algorithm": algorithm.name, "n": n, "deviation": deviation, "batch": options.batch},
        **{"device": options.device, "threads": options.threads, "runs": options.runs},
        "forward_ms": round(forward, 3),
        "backward_ms": round(backward, 3),
        "support": int((found.weights > 0).sum(-1).median()),
        "gap": f"{float(found.gap.max()):.0e}",
        "point_off": f"{point:.0e}",
        "gradient_off": f"{gradient:.0e}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--lengths", type=int, nargs="+", default=[20, 40])
    parser.add_argument("--deviations", type=float, nargs="+", default=[1.0, 3.0, 0.3])
    parser.add_argument("--commit", help="of a copy of the tree without its history")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = [
        measure(algorithm, n, deviation, options)
        for algorithm in (EISNER, CKY, MATRIX_TREE)
        for n in options.lengths
        for deviation in options.deviations
    ]
    here = machine.describe(options.device, options.commit)
    path = options.out / f"sparsemap-{options.device}-{datetime.now():%Y-%m-%d-%H%M}.csv"
    write_rows(path, [*rows[0], "machine", "torch", "commit"], rows, here)
    print(table(list(rows[0]), [[str(cell) for cell in row.values()] for row in rows]))
    print(f"{here}\n{path.name}")


if __name__ == "__main__":
    main()
