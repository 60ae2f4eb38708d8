"""How much of a ListOps training step on the CPU is spent in the tree operation.

A step is forward, backward, clipping and Adam on a batch of 64 expressions; the tree operation is
``soft_tree``, forward and backward, on the perturbed scores of the same batches. Medians of CPU time
over the same batches, taken in turns; about a minute.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from benchmarks.measure import Row, seconds_of
from treelax.apps.tasks.listops.config import preset
from treelax.apps.training.steps import Stepper
from treelax.lab.listops.experiment import ListOpsExperiment
from treelax.noise import perturbation
from treelax.ops import soft_tree


def measure(batches: int = 60) -> Iterator[Row]:
    """A row for each preset and largest length."""
    for name in ("balanced-mc", "small"):
        for length in (20, 40, 100):
            step, tree = medians(name, length, batches)
            yield {
                **{"preset": name, "max_length": length, "threads": 1},
                **{"step_ms": round(step, 2), "tree_ms": round(tree, 3)},
                **{"share_percent": round(100 * tree / step, 2), "batches": batches},
            }


def medians(name: str, max_length: int, batches: int) -> tuple[float, float]:
    """Milliseconds of a step and of the tree operation in it."""
    torch.set_num_threads(1)
    config = preset(name)
    data = replace(config.data, train=5_000, dev=1, test=1, max_length=max_length)
    train = replace(config.train, updates=batches)
    cpu = torch.device("cpu")
    experiment = ListOpsExperiment(replace(config, data=data, train=train), cpu)
    generator = torch.Generator().manual_seed(0)
    stepper = Stepper(experiment.model, experiment.loss, experiment.groups(), generator, 5.0, cpu)
    stepper.set_rate(config.train.learning_rate)
    times: list[tuple[float, float]] = []
    for length, indices in experiment.batches(0):
        step = seconds_of(lambda: stepper.step(length, indices), time.process_time)  # noqa: B023
        run = tree_operation(experiment, length, indices, generator)
        times.append((1e3 * step, 1e3 * seconds_of(run, time.process_time)))
    step, tree = map(statistics.median, zip(*times, strict=True))
    return step, tree


def tree_operation(
    experiment: ListOpsExperiment, length: int, indices: torch.Tensor, generator: torch.Generator
) -> Callable[[], object]:
    """Forward and backward of the tree operation on the scores the step would have."""
    tokens, lengths = experiment.train.tokens[indices, :length], experiment.train.lengths[indices]
    parser = experiment.model.parser
    assert parser is not None
    with torch.no_grad():
        scores = parser.scores(tokens, lengths)
        scores += perturbation("gumbel", scores, lengths, generator=generator)
    scores.requires_grad_()
    upstream = torch.randn(scores.shape, generator=generator)
    return lambda: torch.autograd.grad(soft_tree(scores, lengths, validate=False), scores, upstream)
