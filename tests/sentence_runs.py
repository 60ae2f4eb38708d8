"""Small runs of ``treelax train classify | pair | tag`` on files that can be learned in no time."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from treelax.cli.main import main
from treelax.training.loop import Training

SMALL = {
    "data.vector_size": 8,
    "model.encoder_size": 6,
    "model.scorer_size": 6,
    "model.gcn_size": 6,
    "model.output_size": 8,
    "train.epochs": 2,
    "train.batch_size": 16,
    "train.learning_rate": 0.02,
    "train.threads": 1,
}


@contextmanager
def interrupted_after_an_epoch() -> Iterator[None]:
    """Trainings in here are interrupted as by Ctrl-C as soon as their first epoch is saved."""
    save = Training._save

    def interrupted(self: Training) -> None:
        save(self)
        raise KeyboardInterrupt

    with mock.patch.object(Training, "_save", interrupted):
        yield


SIZES = {"train": 48, "dev": 13, "test": 17}


def sentences(seed: int, count: int) -> list[tuple[list[str], str]]:
    """Words, and whether they are praise."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        words = [rng.choice(["the", "film", "was", "a", "plot"]) for _ in range(rng.randint(1, 7))]
        liked = rng.random() < 0.5
        word = rng.choice(["good", "fine"] if liked else ["bad", "sad"])
        words.insert(rng.randrange(len(words) + 1), word)
        found.append((words, "yes" if liked else "no"))
    return found


def write_files(kind: str, folder: Path) -> list[str]:
    """Write train, dev and test files; returns the options that name them."""
    named = []
    for seed, (split, count) in enumerate(SIZES.items()):
        ones = sentences(seed, count)
        if kind == "classify":
            file = folder / f"{split}.tsv"
            rows = [f"{' '.join(words)}\t{label}" for words, label in ones]
            file.write_text("\n".join(["review\tliked", *rows, ""]))
        elif kind == "pair":
            file = folder / f"{split}.jsonl"
            rows = [
                json.dumps({"q": " ".join(w), "a": " ".join(w[: i % 4 + 1]), "label": y})
                for i, (w, y) in enumerate(ones)
            ]
            file.write_text("\n".join([*rows, ""]))
        else:
            file = folder / f"{split}.conll"
            blocks = ["".join(f"{w}\t{w[0].upper()}\n" for w in words) for words, _ in ones]
            file.write_text("\n".join(blocks))
        named += [f"--{split}", str(file)]
    columns = {"classify": ["--text", "review", "--label", "liked"], "pair": ["--text", "q"]}
    columns["pair"] += ["--text", "a"]
    return named + columns.get(kind, [])


def train(kind: str, folder: Path, **settings: Any) -> Path:
    """A run in a folder beside its files; ``model__trees="chain"`` changes a setting."""
    folder.mkdir(parents=True, exist_ok=True)
    options = write_files(kind, folder)
    changed = SMALL | {key.replace("__", "."): value for key, value in settings.items()}
    for key, value in changed.items():
        text = value if isinstance(value, str) else str(value).lower()
        options += ["--set", f"{key}={text}"]
    run = folder / "run"
    with mock.patch.dict(os.environ, TREELAX_CACHE=str(folder / "cache")):
        assert main(["train", kind, *options, "--device", "cpu", "--out", str(run)]) == 0
    return run


def figures(run: Path) -> dict[str, Any]:
    """Accuracies by split, as the run says."""
    return dict(json.loads((run / "test.json").read_text())["splits"])
