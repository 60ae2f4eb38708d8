"""How exact float32 is, against the reference in float64, and how long the import takes.

    python benchmarks/accuracy.py            about three minutes: the reference is plain loops

Writes ``results/accuracy-<device>-<date>.csv`` and prints a table. For every backend of the device,
relaxation, length and scale of the scores (unit Gaussian times the scale, seeds 0, 1, …): the largest
error of the soft tree, the largest error of the gradient relative to its largest entry (upstream
gradient: unit Gaussian), and the largest distance of a word's column sum from 1.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import argparse
import csv
import statistics
from collections.abc import Iterator
from datetime import datetime

import torch

from benchmarks import machine
from benchmarks.report import short, table
from treelax import ops

RESULTS = Path(__file__).resolve().parent / "results"
BACKENDS = {"cpu": ("native", "diagonal"), "cuda": ("triton", "diagonal")}
RELAXATIONS = ("softmax", "entropy")
COLUMNS = (
    *("backend", "relaxation", "n", "scale", "sentences"),
    *("tree_error", "gradient_error", "sum_error", "against", "import_seconds"),
    *("machine", "torch", "commit"),
)


def problem(n: int, scale: float, sentences: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores, and the upstream gradient of the tree."""
    draw = [
        torch.randn(2, n + 1, n + 1, generator=torch.Generator().manual_seed(seed))
        for seed in range(sentences)
    ]
    scores, upstream = torch.stack(draw).unbind(1)
    return scale * scores, upstream


def answer(
    scores: torch.Tensor, upstream: torch.Tensor, relaxation: str, backend: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Soft tree and gradient, as float64 on the CPU."""
    scores = scores.clone().requires_grad_()
    tree = ops.soft_tree(scores, relaxation=relaxation, backend=backend)
    (grad,) = torch.autograd.grad(tree, scores, upstream.to(scores))
    return tree.detach().double().cpu(), grad.double().cpu()


def rows(device: str, sentences: int, largest: int) -> Iterator[dict[str, object]]:
    """One row per figure; the slow reference runs once for all backends."""
    for n in (n for n in (20, 40, 80) if n <= largest):
        for scale in (1, 10):
            scores, upstream = problem(n, scale, sentences)
            for relaxation in RELAXATIONS:
                print(f"reference, n={n}, scale {scale}, {relaxation}", file=sys.stderr)
                tree, grad = answer(scores.double(), upstream, relaxation, "reference")
                for backend in BACKENDS[device]:
                    got, got_grad = answer(scores.to(device), upstream, relaxation, backend)
                    yield {
                        "backend": backend,
                        "relaxation": relaxation,
                        "n": n,
                        "scale": scale,
                        "sentences": sentences,
                        "tree_error": float((got - tree).abs().max()),
                        "gradient_error": float((got_grad - grad).abs().max() / grad.abs().max()),
                        "sum_error": float((got.sum(-2)[:, 1:] - 1).abs().max()),
                        "against": "reference, float64",
                    }
    scores, upstream = problem(largest, 100, 64)
    for relaxation in RELAXATIONS:
        for backend in BACKENDS[device]:
            got, _ = answer(scores.to(device), upstream, relaxation, backend)
            yield {
                "backend": backend,
                "relaxation": relaxation,
                "n": largest,
                "scale": 100,
                "sentences": 64,
                "sum_error": float((got.sum(-2)[:, 1:] - 1).abs().max()),
                "against": "1",
            }


def import_seconds(repetitions: int = 9) -> float:
    """Median time of ``from treelax import *`` after ``import torch``, each in a fresh process."""
    code = (
        "import time, torch; start = time.perf_counter(); from treelax import *; "
        "print(time.perf_counter() - start)"
    )
    seconds = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(repetitions)
    ]
    return statistics.median(seconds)


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=tuple(BACKENDS), default="cpu")
    parser.add_argument("--sentences", type=int, default=4, help="sentences per figure (4)")
    parser.add_argument("--largest", type=int, default=80, help="longest sentences (80)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the CSV")
    parser.add_argument("--commit", help="the commit to write down, for a copy without history")
    args = parser.parse_args()
    described = machine.describe(args.device, args.commit)
    where = {"machine": described.machine, "torch": described.torch, "commit": described.commit}
    path = args.out / f"accuracy-{args.device}-{datetime.now():%Y-%m-%d-%H%M}.csv"
    lines = []
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows(args.device, args.sentences, args.largest):
            writer.writerow(row | where)
            errors = (row.get(k) for k in ("tree_error", "gradient_error", "sum_error"))
            lines.append(
                [f"{row['backend']} {row['relaxation']}", str(row["n"]), str(row["scale"])]
                + ["–" if e is None else f"{e:.1e}" for e in errors]
            )
        seconds = import_seconds()
        writer.writerow({"backend": "import", "import_seconds": seconds} | where)
    header = ["float32", "n", "scale", "tree", "gradient", "column sums"]
    print(described, table(header, lines), sep="\n\n")
    print(f"\nimport treelax, after import torch: {short(seconds)} s (median of 9)")
    print(f"written to benchmarks/results/{path.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
