"""Runs with word vectors from files, and texts with words that training never saw."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from sentence_runs import SMALL, sentences

from treelax.cli.main import main

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


def write_texts(folder: Path) -> dict[str, Path]:
    """Tables; that of test has new words."""
    files = {}
    for seed, (split, count) in enumerate({"train": 48, "dev": 13, "test": 17}.items()):
        new = NEW if split == "test" else {}
        rows = [
            f"{' '.join(new.get(word, word) for word in words)}\t{label}"
            for words, label in sentences(seed, count)
        ]
        files[split] = folder / f"{split}.tsv"
        files[split].write_text("\n".join(["text\tlabel", *rows, ""]))
    return files


def train_with(folder: Path, vectors: Sequence[Path], *settings: str, test: bool) -> Path:
    """A run on the texts, which knows the words of the test set or has never seen them."""
    files = write_texts(folder)
    options = ["--train", str(files["train"]), "--dev", str(files["dev"])]
    options += ["--test", str(files["test"])] if test else []
    for file in vectors:
        options += ["--vectors", str(file)]
    for setting in (*(f"{key}={value}" for key, value in SMALL.items()), *settings):
        options += ["--set", setting]
    run = folder / ("with" if test else "without")
    with mock.patch.dict(os.environ, TREELAX_CACHE=str(folder / "cache")):
        assert main(["train", "classify", *options, "--device", "cpu", "--out", str(run)]) == 0
    return run
