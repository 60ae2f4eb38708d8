"""Tiny ListOps runs: settings, ``treelax train listops`` in this process, comparable results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import commands
import pytest
from typer.testing import CliRunner, Result

from treelax.__main__ import app, main
from treelax.apps.tasks.listops.config import ListOpsConfig
from treelax.apps.training import loop
from treelax.apps.training.metrics import read_metrics
from treelax.lab.listops.task import LISTOPS

TINY = {
    "data.train": "300",
    "data.dev": "50",
    "data.test": "60",
    "data.max_length": "16",
    "model.embedding_size": "8",
    "model.encoder_size": "8",
    "model.scorer_size": "8",
    "model.gcn_size": "8",
    "model.tagger_size": "8",
    "train.epochs": "4",
    "train.updates": "5",
    "train.batch_size": "16",
    "train.learning_rate": "0.01",
    "train.threads": "1",
}


def tiny(preset: str = "balanced-mc", **changes: object) -> ListOpsConfig:
    """A preset in tiny; changes have ``__`` where their keys have dots: ``train__epochs=2``."""
    settings = TINY | {key.replace("__", "."): str(value) for key, value in changes.items()}
    config: ListOpsConfig = LISTOPS.configured(
        preset, [f"{key}={value}" for key, value in settings.items()]
    )
    return config


def options(**changes: object) -> list[str]:
    """The same settings as options of the command line."""
    settings = TINY | {key.replace("__", "."): str(value) for key, value in changes.items()}
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The metrics of a run without the seconds, which are never the same."""
    return [
        {key: value for key, value in row.items() if key != "seconds"}
        for row in read_metrics(folder)
    ]


def result(folder: Path) -> dict[str, Any]:
    """The result of a run without the seconds."""
    record = json.loads((folder / "test.json").read_text())
    return {key: value for key, value in record.items() if key != "seconds"}


# a chain needs no parser, so its epochs are over in no time
QUICK = ["--preset", "chain", *options()]


def train(*arguments: object) -> Result:
    """Train in this process, to the end."""
    done = CliRunner().invoke(app, ["train", "listops", "--device", "cpu", *map(str, arguments)])
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that the program says as it refuses."""
    return commands.fail(capsys, "train", "listops", *arguments)


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def interrupt(folder: Path, epoch: int, *arguments: object) -> None:
    """Press Ctrl-C before the checkpoint of an epoch."""
    original = loop.Training._save

    def save(self: loop.Training) -> None:
        if self.epoch == epoch:
            raise KeyboardInterrupt
        original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.Training, "_save", save)
        command = ["train", "listops", "--device", "cpu", "--out", str(folder)]
        assert main([*command, *map(str, arguments)]) == 130
