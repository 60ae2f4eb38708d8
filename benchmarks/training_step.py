"""How much of a ListOps training step on the CPU is spent in the tree operation.

    python benchmarks/training_step.py       about a minute

Writes ``results/training-step-<date>.csv`` and prints a table. A step is forward, backward, clipping
and Adam on a batch of 64 expressions; the tree operation is ``soft_tree``, forward and backward, on
the perturbed scores of the same batches. Medians of CPU time over the same batches, taken in turns.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import torch

from benchmarks import machine
from benchmarks.report import table, write_rows
from treelax.apps.data.listops import EncodedListOps
from treelax.apps.tasks.listops.config import preset
from treelax.apps.training.steps import Stepper
from treelax.lab.listops.experiment import ListOpsExperiment
from treelax.noise import perturbation
from treelax.ops import soft_tree

RESULTS = Path(__file__).resolve().parent / "results"
COLUMNS = (
    *("preset", "max_length", "threads", "step_ms", "tree_ms", "share_percent", "batches"),
    *("machine", "torch", "commit"),
)


def milliseconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start)


def measure(name: str, max_length: int, threads: int, batches: int) -> dict[str, object]:
    torch.set_num_threads(threads)
    config = preset(name)
    data = replace(config.data, train=5_000, dev=1, test=1, max_length=max_length)
    train = replace(config.train, updates=batches)
    experiment = ListOpsExperiment(replace(config, data=data, train=train), torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    groups = experiment.groups()
    stepper = Stepper(
        experiment.model, experiment.loss, groups, generator, 5.0, torch.device("cpu")
    )
    stepper.set_rate(config.train.learning_rate)
    steps, trees = [], []
    for length, indices in experiment.batches(0):
        steps.append(milliseconds(lambda: stepper.step(length, indices)))  # noqa: B023
        trees.append(tree_time(experiment, length, indices, generator))
    step, tree = statistics.median(steps), statistics.median(trees)
    return {
        "preset": name,
        "max_length": max_length,
        "threads": threads,
        "step_ms": round(step, 2),
        "tree_ms": round(tree, 3),
        "share_percent": round(100 * tree / step, 2),
        "batches": batches,
    }


def tree_time(
    experiment: ListOpsExperiment, length: int, indices: torch.Tensor, generator: torch.Generator
) -> float:
    """Forward and backward of the tree operation on the scores the step would have."""
    data = experiment.train
    batch = EncodedListOps(
        data.tokens[indices, :length],
        data.lengths[indices],
        data.heads[indices, :length],
        data.tags[indices, :length],
    )
    parser = experiment.model.parser
    assert parser is not None
    with torch.no_grad():
        scores = parser.scores(batch.tokens, batch.lengths)
        scores += perturbation("gumbel", scores, batch.lengths, generator=generator)
    scores.requires_grad_()
    upstream = torch.randn(scores.shape, generator=generator)

    def run() -> None:
        tree = soft_tree(scores, batch.lengths, validate=False)
        torch.autograd.grad(tree, scores, upstream)

    return milliseconds(run)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    here = machine.describe("cpu")
    rows = [
        measure(name, length, 1, arguments.batches)
        for name in ("balanced-mc", "small")
        for length in (20, 40, 100)
    ]
    path = arguments.out / f"training-step-{datetime.now():%Y-%m-%d-%H%M}.csv"
    write_rows(path, COLUMNS, rows, here)
    head = ["preset", "longest", "threads", "step, ms", "tree, ms", "share, %", "batches"]
    print(table(head, [[str(value) for value in row.values()] for row in rows]))
    print(f"{here}\n{path.name}")


if __name__ == "__main__":
    main()
