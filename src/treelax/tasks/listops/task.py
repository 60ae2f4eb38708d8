"""ListOps as a task: its training, its test, its models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from treelax.errors import InputError, counted
from treelax.table import Cell
from treelax.tasks.base import Heads, Progress, Table, Task
from treelax.tasks.listops.config import FILES, PRESETS, ListOpsConfig, preset
from treelax.tasks.listops.evaluation import Evaluation, evaluate, parse_all
from treelax.tasks.listops.experiment import ListOpsExperiment, load_splits
from treelax.tasks.listops.parser import ListOpsParser, load_tagger
from treelax.tasks.listops.table import TABLE
from treelax.training.experiment import Experiment
from treelax.training.loop import Training
from treelax.training.results import NUMBER, Kinds, device_name, expect

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
DRAWN, DRAWN_LENGTH = 3, 16  # test expressions to draw, of at most so many tokens


class ListOps(Task):
    """Valency tagging of ListOps."""

    name = "listops"
    title = "ListOps"
    config_type = ListOpsConfig
    files = FILES
    tables = {"listops": TABLE}  # noqa: RUF012

    def preset(self, name: str) -> ListOpsConfig:
        """The config of a preset."""
        return preset(name)

    def presets(self, name: str) -> Mapping[str, str]:
        """All presets: they have the same kind of data."""
        return {each: text for each, (_, text) in PRESETS.items()}

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

    def drawn(self, training: Training) -> list[tuple[Sequence[str], Heads, Heads]]:
        """The first short test expressions."""
        test = load_splits(training.experiment.config.data).expressions["test"]
        short = [e for e in test if e.depth > 1 and len(e) <= DRAWN_LENGTH][:DRAWN]
        parsed = parse_all(training.experiment.model, short)
        return [(e.tokens, p.heads, e.heads) for e, p in zip(short, parsed, strict=True)]

    def check_result(self, record: dict[str, Any]) -> None:
        """Raise a ValueError if a result is damaged."""
        expect(record, KINDS)
        expect(record["test"], FIGURES)
        Evaluation(**record["test"]).tables("")

    def summary(self, record: Mapping[str, Any]) -> list[dict[str, Cell]]:
        """The figures of the test set."""
        test = Evaluation(**record["test"])
        return [
            {
                "expressions": test.sentences,
                "operators": test.operator_accuracy,
                "operators, soft trees": test.soft_operator_accuracy,
                "all tokens": test.token_accuracy,
                "all tokens, soft trees": test.soft_token_accuracy,
                "attachment": test.attachment,
                "exact trees": test.exact_trees,
            }
        ]

    def result_tables(self, record: Mapping[str, Any]) -> list[Table]:
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
