"""What tests of tables share: tiny corpora, runs without training, sweeps in this process."""

from __future__ import annotations

import json
import random
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from treelax.__main__ import main
from treelax.apps.tasks.text.config import TextConfig
from treelax.apps.training.run import Run
from treelax.lab.analysis import sweep

SMALL = ["data.vector_size=8", "model.gcn_size=8", "model.scorer_size=8", "model.output_size=8"]
SMALL += ["train.epochs=2", "train.updates=2", "train.batch_size=8", "train.threads=1"]
SETTINGS = [part for setting in SMALL for part in ("--set", setting)]
CLASSES = ("entailment", "neutral", "contradiction")


class TrainedHere:
    """Stands for the process of a sweep: trains its runs in this one."""

    def __init__(self, run: Run, jobs: int) -> None:
        self.status = 0

    def train(self, run: Run, device: str, *settings: str) -> None:
        changes = [part for setting in settings for part in ("--set", setting)]
        command = ["train", run.task, "--resume", *changes, "--out", str(run.path)]
        with (
            (run.path / sweep.LOG).open("a") as log,
            redirect_stdout(log),
            redirect_stderr(log),
        ):
            self.status = main([*command, "--device", device])

    def answer(self) -> bool:
        return self.status == 0

    def stop(self) -> None:
        pass

    close = stop


def write_sst(folder: Path) -> Path:
    rng = random.Random(0)
    folder.mkdir()
    for split, count in (("train", 24), ("dev", 8), ("test", 8)):
        lines = []
        for i in range(count):
            words = [rng.choice(["good", "bad", "film", "plot"]) for _ in range(3)]
            leaves = [f"(2 {word})" for word in words]
            lines.append(f"({(0, 4)[i % 2]} {leaves[0]} (2 {leaves[1]} {leaves[2]}))\n")
        (folder / f"{split}.txt").write_text("".join(lines))
    return folder


def write_nli(folder: Path, name: str, splits: tuple[str, ...]) -> Path:
    rng = random.Random(1)
    folder.mkdir()
    for split in splits:
        with (folder / f"{name}_{split}.jsonl").open("w") as out:
            for i in range(24):
                first, second = (
                    " ".join(rng.choice(["a", "man", "dog", "runs"]) for _ in range(4))
                    for _ in range(2)
                )
                row = {"gold_label": CLASSES[i % 3], "sentence1": first, "sentence2": second}
                row |= {f"sentence{n}_binary_parse": row[f"sentence{n}"] for n in (1, 2)}
                out.write(json.dumps(row) + "\n")
    return folder


def ended(folder: Path, config: TextConfig, **changes: object) -> Run:
    """A run that has ended, without any training."""
    run = Run.create(folder / f"{config.preset}-{config.seed}", config, task=config.kind)
    (run.path / "test.json").write_text(json.dumps(result(config.preset, config.seed) | changes))
    return run


def result(name: str, seed: int, dev: float = 80.0, test: float | None = 70.0) -> dict[str, Any]:
    splits = {"dev": {"examples": 10, "accuracy": dev, "soft_accuracy": dev + 1}}
    if test is not None:
        splits["test"] = {"examples": 20, "accuracy": test, "soft_accuracy": test - 1}
    return {
        **{"preset": name, "seed": seed, "kind": "pair", "labels": list(CLASSES)},
        **{"training_examples": 116_000, "mixed_examples": 0, "parameters": 382_003},
        **{"best_epoch": 3, "epochs": 5, "updates": 100, "seconds": 1.25, "device": "CPU"},
        "splits": splits,
    }
