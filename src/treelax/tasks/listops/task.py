"""ListOps as a task: its train command, its test, its models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from treelax.data.text.rows import counted
from treelax.errors import InputError
from treelax.tasks.base import Progress, Table, Task, TrainCommand
from treelax.tasks.listops.config import FILES, PRESETS, ListOpsConfig, preset
from treelax.tasks.listops.evaluation import Evaluation, evaluate
from treelax.tasks.listops.experiment import ListOpsExperiment, load_splits
from treelax.tasks.listops.parser import ListOpsParser, load_tagger
from treelax.training.experiment import Experiment
from treelax.training.loop import Training
from treelax.training.results import NUMBER, Kinds, device_name, expect

HELP = """Train a tagger of ListOps valencies with latent trees.

A run is a folder: config.toml, metrics.jsonl, checkpoint/, best/,
tensorboard/, and test.json at its end. A checkpoint is written after every
epoch; a run that was killed goes on with --resume and ends with the numbers
it would have had; one that has ended trains on with --resume and more epochs.
--list shows the presets and all settings.

Examples:
  treelax train listops --preset small --out runs/small
  treelax train listops --out runs/small --resume
  treelax train listops --out runs/small --resume --set train.epochs=60
  treelax train listops --device cuda --seed 1 --set train.epochs=50
"""
KINDS: Kinds = {
    **dict.fromkeys(("preset", "device"), str),
    **dict.fromkeys(("seed", "max_length", "best_epoch", "epochs"), int),
    "seconds": NUMBER,
    "test": dict,
}
FIGURES = {field.name: NUMBER for field in fields(Evaluation) if field.type in ("int", "float")} | {
    "attachment_by_kind": dict,
    "by_length": list,
    "baselines": dict,
}


class ListOps(Task):
    """Valency tagging of ListOps."""

    name = "listops"
    title = "ListOps"
    config_type = ListOpsConfig
    files = FILES
    commands = (
        TrainCommand(
            "listops", HELP, "balanced-mc", {name: text for name, (_, text) in PRESETS.items()}
        ),
    )

    def preset(self, name: str) -> ListOpsConfig:
        """The config of a preset."""
        return preset(name)

    def experiment(
        self,
        config: ListOpsConfig,
        device: torch.device,
        folder: Path,
        tell: Callable[[str], None],
        progress: Callable[[int, str], None],
    ) -> ListOpsExperiment:
        """Model, data and loss of a run."""
        return ListOpsExperiment(config, device)

    def headline(self, experiment: Experiment) -> str:
        """The sizes of a training."""
        config = experiment.config
        return (
            f"expressions of at most {config.data.max_length} tokens, "
            f"{counted(config.train.epochs, 'epoch')} of {counted(config.train.updates, 'update')}"
        )

    def describe(self, dev: Mapping[str, float]) -> str:
        """The dev figures of an epoch."""
        return f"acc {dev['operator_accuracy']:.1f} att {dev['attachment']:.1f}"

    def test_size(self, experiment: Experiment) -> int:
        """Tokens of the test set."""
        return sum(map(len, load_splits(experiment.config.data).expressions["test"]))

    def finish(self, training: Training, progress: Progress | None = None) -> dict[str, Any]:
        """Test the best model, once."""
        config: ListOpsConfig = training.experiment.config
        test = load_splits(config.data).expressions["test"]
        figures = evaluate(training.experiment.model, test, progress=progress)
        return {
            "preset": config.preset,
            "seed": config.seed,
            "max_length": config.data.max_length,
            "best_epoch": training.best_epoch,
            "epochs": training.epochs,
            "seconds": training.seconds,
            "device": device_name(training.experiment.device),
            "test": figures.record(),
        }

    def check_result(self, record: dict[str, Any]) -> None:
        """Raise a ValueError if a result is damaged."""
        expect(record, KINDS)
        expect(record["test"], FIGURES)
        Evaluation(**record["test"]).tables("")

    def result_tables(self, record: dict[str, Any]) -> list[Table]:
        """The figures of a result."""
        return Evaluation(**record["test"]).tables(f"test, at most {record['max_length']} tokens")

    def load(
        self,
        path: Path,
        *,
        name: str,
        device: str | torch.device = "cpu",
        vectors: Sequence[Path] | None = None,
    ) -> ListOpsParser:
        """The tagger of a run or of a file."""
        if vectors:
            raise InputError(
                f"vectors: received {', '.join(map(str, vectors))}, and {name} is a model of ListOps, "
                "whose words are all known; expected none"
            )
        return load_tagger(path, name=name, device=device)


LISTOPS = ListOps()
