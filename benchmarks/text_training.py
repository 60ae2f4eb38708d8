"""Training throughput of the sentence models, and what a tree costs beside head selection.

    python benchmarks/run.py text-training                                on the CPU, generated pairs
    python benchmarks/run.py text-training --device cuda --train snli.tsv --vectors glove.npz

A model is the 2-GCN network of the paper's table 2 over latent trees or head selection, batch 64; a step
is forward, backward, clipping and Adam, as ``treelax train snli`` takes it. The models take turns, block
by block of the same batches (20 updates, 300 on a GPU); figures are medians over blocks of wall time.
The precision is float32, on a GPU tf32. Without ``--train`` the pairs are generated, with the mean
lengths of SNLI (14 and 8 words); without ``--vectors`` words have random ones of 300 numbers.
"""

from __future__ import annotations

import itertools
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.measure import Row, seconds_of
from treelax.apps.tasks.text.config import TextConfig
from treelax.apps.tasks.text.data import load_text
from treelax.apps.tasks.text.presets import preset
from treelax.apps.tasks.text.task import TextExperiment
from treelax.apps.training.config import override
from treelax.apps.training.steps import Stepper

WARM_UP = 20


def random_pairs(count: int, vocabulary: int) -> Iterator[list[str]]:
    """Pairs of random words, as long as those of SNLI."""
    rng = random.Random(0)
    words = [f"w{i}" for i in range(vocabulary)]
    for _ in range(count):
        lengths = [max(2, round(rng.gauss(mean, mean / 3))) for mean in (14, 8)]
        yield [" ".join(rng.choices(words, k=length)) for length in lengths]


def generated(folder: Path) -> str:
    """A file of random pairs."""
    labels = itertools.cycle(("entailment", "neutral", "contradiction"))
    rows = ("\t".join((next(labels), *texts)) + "\n" for texts in random_pairs(20_000, 5_000))
    file = folder / "train.tsv"
    file.write_text("".join(rows), encoding="utf-8")
    return str(file)


class Model:
    """A model under measurement."""

    def __init__(self, settings: TextConfig, device: torch.device) -> None:
        self.experiment = TextExperiment(settings, load_text(settings.data), device)
        made, noise = self.experiment, torch.Generator(device).manual_seed(0)
        self.stepper = Stepper(
            made.model, made.loss, made.groups(), noise, settings.train.clip, device
        )
        self.stepper.set_rate(settings.train.learning_rate)
        self.batch_size = settings.train.batch_size

    def steps(self, batches: list[tuple[tuple[int, ...], torch.Tensor]]) -> None:
        """Take some steps, all of them done at the end."""
        for shape, batch in batches:
            self.stepper.step(shape, batch)
        self.stepper.mean_loss(1)


def measure(
    device: str = "cpu",
    train: str = "",
    vectors: str = "",
    models: tuple[str, ...] = ("snli-tree-2", "snli-heads-2", "snli-tree-1", "snli-none"),
    precision: str = "",
    threads: int = os.cpu_count() or 1,
    updates: int = 0,
    blocks: int = 5,
) -> Iterator[Row]:
    """A row for each model."""
    precision = precision or ("tf32" if device == "cuda" else "float32")
    updates = updates or (300 if device == "cuda" else 20)
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        file = train or generated(Path(folder))
        changes = [f"data.train={file}", f"data.dev={file}", f"train.precision={precision}"]
        changes.append(f"data.vectors={vectors}" if vectors else "data.vector_size=300")
        built = {
            name: Model(override(preset(name), changes, list_all=""), torch.device(device))
            for name in models
        }
        some = next(iter(built.values())).experiment
        count = WARM_UP + updates * blocks
        epochs = -(-count // some.updates)
        batches = [batch for seed in range(epochs) for batch in some.batches(seed)][:count]
        times: dict[str, list[float]] = {name: [] for name in built}
        for model in built.values():
            model.stepper.prepare(dict(batches))
            model.steps(batches[:WARM_UP])
        for block in range(blocks):
            chosen = batches[WARM_UP + block * updates :][:updates]
            for name, model in built.items():
                seconds = seconds_of(lambda: model.steps(chosen), time.perf_counter)  # noqa: B023
                times[name].append(seconds / len(chosen))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    heads = medians.get("snli-heads-2")
    for name, step in medians.items():
        size = built[name].batch_size
        yield {
            **{"preset": name, "device": device, "precision": precision, "threads": threads},
            "pairs_per_second": round(size / step),
            "step_ms": round(1e3 * step, 3),
            "over_heads_2": "" if heads is None else round(step / heads, 3),
            **{"batch_size": size, "updates": updates, "blocks": blocks},
            "data": Path(train).name if train else "generated",
        }
