"""How exact float32 is, against the reference in float64, and how long the import takes.

For every backend of the device, relaxation, length and scale of the scores (unit Gaussian times the
scale, seeds 0, 1, …): the largest error of the soft tree, the largest error of the gradient relative to
its largest entry (upstream gradient: unit Gaussian), and the largest distance of a word's column sum
from 1. The reference is plain loops, so this takes about three minutes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.measure import Row
from treelax import ops

BACKENDS = {"cpu": ("native", "diagonal"), "cuda": ("triton", "diagonal")}


def problem(n: int, scale: float, sentences: int) -> tuple[Tensor, Tensor]:
    """Scores, and the upstream gradient of the tree."""
    draw = [
        torch.randn(2, n + 1, n + 1, generator=torch.Generator().manual_seed(seed))
        for seed in range(sentences)
    ]
    scores, upstream = torch.stack(draw).unbind(1)
    return scale * scores, upstream


def answer(
    scores: Tensor, upstream: Tensor, relaxation: str, backend: str
) -> tuple[Tensor, Tensor]:
    """Soft tree and gradient, as float64 on the CPU."""
    scores = scores.clone().requires_grad_()
    tree = ops.soft_tree(scores, relaxation=relaxation, backend=backend)
    (grad,) = torch.autograd.grad(tree, scores, upstream.to(scores))
    return tree.detach().double().cpu(), grad.double().cpu()


def measure(
    device: str = "cpu", sentences: int = 4, largest: int = 80, starts: int = 9
) -> Iterator[Row]:
    """One row per figure; the slow reference runs once for all backends."""
    cases = [(n, scale, sentences) for n in (20, 40, 80) if n <= largest for scale in (1, 10)]
    for n, scale, count in [*cases, (largest, 100, 64)]:
        scores, upstream = problem(n, scale, count)
        for relaxation in ("softmax", "entropy"):
            exact = None
            if scale < 100:
                exact = answer(scores.double(), upstream, relaxation, "reference")
            for backend in BACKENDS[device]:
                tree, grad = answer(scores.to(device), upstream, relaxation, backend)
                row: Row = {"backend": backend, "relaxation": relaxation, "n": n, "scale": scale}
                row["sentences"] = count
                if exact is not None:
                    row["tree_error"] = float((tree - exact[0]).abs().max())
                    error = (grad - exact[1]).abs().max() / exact[1].abs().max()
                    row["gradient_error"] = float(error)
                row["sum_error"] = float((tree.sum(-2)[:, 1:] - 1).abs().max())
                yield row | {"against": "1" if exact is None else "reference, float64"}
    yield {"backend": "import", "import_seconds": import_seconds(starts)}


def import_seconds(starts: int) -> float:
    """Median time of ``from treelax import *`` after ``import torch``, each in a fresh process."""
    code = (
        "import time, torch; start = time.perf_counter(); from treelax import *; "
        "print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", code]
    return statistics.median(
        float(subprocess.run(command, capture_output=True, check=True).stdout)
        for _ in range(starts)
    )
