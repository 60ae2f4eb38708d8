"""How a task declares its commands, without importing torch: help must not wait for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple


class Option(NamedTuple):
    """An option of a command that stands for a setting."""

    name: str  # --train
    key: str  # data.train
    kind: Any  # its type for Typer: Path, str, list[str], bool
    help: str
    rest: str | None = None  # key of the setting for all values of a list but the first

    @property
    def parameter(self) -> str:
        """Name of the function's parameter."""
        return self.key.replace(".", "__")


class TrainCommand(NamedTuple):
    """A command ``treelax train NAME``."""

    name: str
    task: str
    help: str
    preset: str  # by default
    has_presets: bool = False  # whether there is an option --preset
    options: tuple[Option, ...] = ()  # beside --set, --out, --seed, --device, --resume


RUN_HELP = """A run is a folder: config.toml, data.json, metrics.jsonl, checkpoint/, best/,
words.safetensors, tensorboard/, and test.json when it has finished. A killed
run continues with --resume; a finished run trains further with --resume and
more epochs (--set train.epochs=60)."""
FILE_OPTIONS = (
    Option("--train", "data.train", Path, "Training data."),
    Option("--dev", "data.dev", Path, "Dev data, to select the best model."),
    Option("--test", "data.test", Path, "Test data."),
)
VECTORS = Option(
    "--vectors",
    "data.vectors",
    list[Path],
    "Word vectors: GloVe or word2vec text, may be zipped, or npz; several are concatenated.",
    rest="data.more_vectors",
)
