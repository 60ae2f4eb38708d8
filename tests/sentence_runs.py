"""Small runs of ``treelax train classify | pair | tag`` on files that can be learned in no time."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import treebank_runs

from treelax.__main__ import main
from treelax.apps.tasks import task_named
from treelax.apps.tasks.text.config import ModelConfig
from treelax.apps.training.loop import Training

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


SNLI_SAMPLE = Path(__file__).parent / "data" / "text" / "snli_sample.jsonl"
COLUMNS = {
    "classify": {"data.text": "review", "data.label": "liked"},
    "pair": {"data.text": "q,a"},
    "tag": {},
}
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


def write_files(kind: str, folder: Path, new: Mapping[str, str] | None = None) -> list[str]:
    """Write train, dev and test files, that of test with new words; returns the options for them."""
    named = []
    for seed, (split, count) in enumerate(SIZES.items()):
        ones = sentences(seed, count)
        if new and split == "test":
            ones = [([new.get(word, word) for word in words], label) for words, label in ones]
        if kind == "classify":
            file = folder / f"{split}.tsv"
            rows = ["review\tliked", *(f"{' '.join(words)}\t{label}" for words, label in ones)]
        elif kind == "pair":
            file = folder / f"{split}.jsonl"
            rows = [
                json.dumps({"q": " ".join(w), "a": " ".join(w[: i % 4 + 1]), "label": y})
                for i, (w, y) in enumerate(ones)
            ]
        else:
            file = folder / f"{split}.conll"
            rows = ["".join(f"{w}\t{w[0].upper()}\n" for w in words) for words, _ in ones]
        file.write_text("\n".join([*rows, ""]))
        named += [f"--{split}", str(file)]
    columns = {"classify": "--text review --label liked", "pair": "--text q --text a", "tag": ""}
    return named + columns[kind].split()


def train(kind: str, folder: Path, **settings: Any) -> Path:
    """A run in a folder beside its files; ``model__trees="chain"`` changes a setting."""
    folder.mkdir(parents=True, exist_ok=True)
    options = write_files(kind, folder)
    return _train(
        kind, folder / "run", options, {k.replace("__", "."): settings[k] for k in settings}
    )


def _train(kind: str, run: Path, options: list[str], settings: Mapping[str, Any]) -> Path:
    for key, value in (SMALL | settings).items():
        text = value if isinstance(value, str) else str(value).lower()
        options += ["--set", f"{key}={text}"]
    with mock.patch.dict(os.environ, TREELAX_CACHE=str(run.parent / "cache")):
        assert main(["train", kind, *options, "--device", "cpu", "--out", str(run)]) == 0
    return run


def figures(run: Path) -> dict[str, Any]:
    """Accuracies by split, as the run says."""
    return dict(json.loads((run / "test.json").read_text())["splits"])


def tiny_model(**changes: Any) -> ModelConfig:
    """The settings of a small network."""
    sizes: dict[str, Any] = {"projection_size": 12, "encoder_size": 6, "output_size": 12}
    sizes |= {"scorer_size": 8, "gcn_size": 8, "dropout": 0.0}
    return ModelConfig(**sizes | changes)


def prepared(kind: str, folder: Path, *, device: str = "cpu", **settings: Any) -> Any:
    """The experiment of a config with the small files in a folder: without noise and dropout."""
    if kind == "parser":
        treebank_runs.write_treebanks(folder)
        small: dict[str, Any] = dict(treebank_runs.SETTINGS)
        small |= {f"data.{split}": folder / f"{split}.conllu" for split in ("train", "dev")}
    else:
        options = write_files(kind, folder)
        small = SMALL | dict(
            zip(("data.train", "data.dev", "data.test"), options[1:6:2], strict=True)
        )
        small |= {"model.projection_size": 8, "model.noise": "none"} | COLUMNS[kind]
    small |= {"model.dropout": 0} | {k.replace("__", "."): settings[k] for k in settings}
    task = task_named(kind)
    config = task.configured(
        "small" if kind == "parser" else kind, [f"{key}={value}" for key, value in small.items()]
    )
    return task.experiment(config, torch.device(device), folder, lambda _: None, lambda *_: None)


# ------------------------------------------------------------------ word vectors from files

NEW = {"good": "superb", "bad": "awful", "film": "Film", "plot": "zzyzx"}
KNOWN = ["the", "film", "was", "a", "plot", "good", "fine", "bad", "sad"]


def write_vectors(folder: Path) -> list[Path]:
    """Two files: all words but zzyzx, and of another size some of them; Film is not film in one."""
    rng = random.Random(4)
    named = {"big.txt": ([*KNOWN, "superb", "awful", "Film"], 5), "more.txt": (["a", "superb"], 3)}
    for name, (words, size) in named.items():
        lines = [
            " ".join([word, *(f"{rng.gauss(0, 1):.4f}" for _ in range(size))]) for word in words
        ]
        (folder / name).write_text("\n".join([*lines, ""]))
    return [folder / name for name in named]


def train_with(folder: Path, vectors: Sequence[Path], *settings: str, test: bool) -> Path:
    """A classifier that knows the words of the test set or has never seen them."""
    options = write_files("classify", folder, NEW)
    if not test:
        del options[4:6]  # --test FILE
    options += [part for file in vectors for part in ("--vectors", str(file))]
    changes = dict(setting.split("=") for setting in settings)
    return _train("classify", folder / ("with" if test else "without"), options, changes)
