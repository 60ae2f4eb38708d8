"""Training throughput of the sentence models, and what a tree costs beside head selection.

    python benchmarks/text_training.py                                       on the CPU, generated pairs
    python benchmarks/text_training.py --device cuda --train snli.tsv --vectors glove.npz

Writes ``results/text-training-<device>-<date>.csv`` and prints a table. A model is the 2-GCN network
of the paper's table 2 over latent trees or head selection, batch 64; a step is forward, backward,
clipping and Adam, as ``treelax train snli`` takes it. The models take turns, block by block of the
same batches; figures are medians over blocks of wall time. Without ``--train`` the pairs are
generated, with the mean lengths of SNLI (14 and 8 words).
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import argparse
import os
import random
import statistics
import tempfile
import time
from datetime import datetime

import torch

from benchmarks import machine
from benchmarks.report import table, write_rows
from treelax.apps.tasks.text.config import TextConfig
from treelax.apps.tasks.text.data import load_text
from treelax.apps.tasks.text.experiment import TextExperiment
from treelax.apps.tasks.text.presets import preset
from treelax.apps.training.config import override
from treelax.apps.training.steps import Stepper

RESULTS = Path(__file__).resolve().parent / "results"
MODELS = ("snli-tree-2", "snli-heads-2", "snli-tree-1", "snli-none")
COLUMNS = (
    *("preset", "device", "precision", "threads", "pairs_per_second", "step_ms", "over_heads_2"),
    *("batch_size", "updates", "blocks", "data", "machine", "torch", "commit"),
)
WARM_UP = 20


def generated(folder: Path, pairs: int = 20_000) -> Path:
    """Pairs of random words, as long as those of SNLI."""
    rng = random.Random(0)
    words = [f"w{i}" for i in range(5_000)]
    with (folder / "train.tsv").open("w", encoding="utf-8") as file:
        for _ in range(pairs):
            texts = [
                " ".join(rng.choices(words, k=max(2, round(rng.gauss(mean, mean / 3)))))
                for mean in (14, 8)
            ]
            file.write("\t".join((rng.choice(("entailment", "neutral", "contradiction")), *texts)))
            file.write("\n")
    return folder / "train.tsv"


def config(name: str, train: str, vectors: str | None, precision: str) -> TextConfig:
    changes = [f"data.train={train}", f"data.dev={train}", f"train.precision={precision}"]
    if vectors is not None:
        changes.append(f"data.vectors={vectors}")
    else:
        changes.append("data.vector_size=300")
    return override(preset(name), changes, list_all="")


class Model:
    """A model under measurement."""

    def __init__(self, settings: TextConfig, device: torch.device) -> None:
        self.settings, self.device = settings, device
        self.experiment = TextExperiment(settings, load_text(settings.data), device)
        generator = torch.Generator(device).manual_seed(0)
        self.stepper = Stepper(
            self.experiment.model,
            self.experiment.loss,
            self.experiment.groups(),
            generator,
            settings.train.clip,
            device,
        )
        self.stepper.set_rate(settings.train.learning_rate)

    def seconds(self, batches: list[tuple[tuple[int, ...], torch.Tensor]]) -> float:
        """Wall time of some steps, all of them done."""
        self.stepper.mean_loss(1)
        start = time.perf_counter()
        for shape, batch in batches:
            self.stepper.step(shape, batch)
        self.stepper.mean_loss(1)
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--train", help="a file of SNLI: pairs to train on")
    parser.add_argument("--vectors", help="word vectors; random ones of 300 numbers by default")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--precision", default=None, help="float32; tf32 on a GPU")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--updates", type=int, default=None, help="in a block; 20, on a GPU 300")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--commit", help="of this tree, where there is no git to ask")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    gpu = arguments.device == "cuda"
    precision = arguments.precision or ("tf32" if gpu else "float32")
    updates = arguments.updates or (300 if gpu else 20)
    torch.set_num_threads(arguments.threads)
    device = torch.device(arguments.device)
    with tempfile.TemporaryDirectory() as folder:
        train = arguments.train or str(generated(Path(folder)))
        models = {
            name: Model(config(name, train, arguments.vectors, precision), device)
            for name in arguments.models.split(",")
        }
        some = next(iter(models.values())).experiment
        count = WARM_UP + updates * arguments.blocks
        epochs = -(-count // some.updates)
        batches = [batch for seed in range(epochs) for batch in some.batches(seed)][:count]
        times: dict[str, list[float]] = {name: [] for name in models}
        for model in models.values():
            model.stepper.prepare(dict(batches))
            model.seconds(batches[:WARM_UP])
        for block in range(arguments.blocks):
            chosen = batches[WARM_UP + block * updates :][:updates]
            for name, model in models.items():
                times[name].append(model.seconds(chosen) / len(chosen))
    here = machine.describe(arguments.device, arguments.commit)
    heads = statistics.median(times["snli-heads-2"]) if "snli-heads-2" in times else None
    rows = []
    for name, model in models.items():
        step = statistics.median(times[name])
        size = model.settings.train.batch_size
        rows.append(
            {
                "preset": name,
                "device": arguments.device,
                "precision": precision,
                "threads": arguments.threads,
                "pairs_per_second": round(size / step),
                "step_ms": round(1e3 * step, 3),
                "over_heads_2": "" if heads is None else round(step / heads, 3),
                "batch_size": size,
                "updates": updates,
                "blocks": arguments.blocks,
                "data": Path(arguments.train).name if arguments.train else "generated",
            }
        )
    path = arguments.out / f"text-training-{arguments.device}-{datetime.now():%Y-%m-%d-%H%M}.csv"
    write_rows(path, COLUMNS, rows, here)
    head = ["preset", "pairs/s", "step, ms", "over head selection"]
    keys = ("preset", "pairs_per_second", "step_ms", "over_heads_2")
    print(table(head, [[str(row[key]) for key in keys] for row in rows]))
    print(f"{here}\n{path.name}")


if __name__ == "__main__":
    main()
