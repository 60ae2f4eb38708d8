"""ListOps as a task: its training, its test, its models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from treelax.apps.table import Cell, Table
from treelax.apps.tasks.base import Heads, Progress
from treelax.apps.tasks.listops.config import FILES, PRESETS, ListOpsConfig, preset
from treelax.apps.tasks.listops.data import load_splits
from treelax.apps.tasks.listops.evaluation import Evaluation, evaluate, parse_all
from treelax.apps.tasks.task import Task
from treelax.apps.training.experiment import Experiment
from treelax.apps.training.loop import Training
from treelax.apps.training.results import KINDS, expect, run_facts
from treelax.errors import counted
from treelax.lab.listops.experiment import ListOpsExperiment

DRAWN, DRAWN_LENGTH = 3, 16  # test expressions to draw, and their most tokens


class ListOps(Task):
    """Valency tagging of ListOps."""

    name = "listops"
    title = "ListOps"
    config_type = ListOpsConfig
    files = FILES

    def preset(self, name: str) -> ListOpsConfig:
        return preset(name)

    def presets(self, name: str) -> Mapping[str, str]:
        return {preset: text for preset, (_, text) in PRESETS.items()}

    def experiment(
        self,
        config: ListOpsConfig,
        device: torch.device,
        folder: Path,
        tell: Callable[[str], None],
        progress: Callable[[int, str], None],
    ) -> ListOpsExperiment:
        return ListOpsExperiment(config, device)

    def headline(self, experiment: Experiment) -> str:
        config = experiment.config
        return (
            f"expressions of at most {config.data.max_length} tokens, "
            f"{counted(config.train.epochs, 'epoch')} of {counted(config.train.updates, 'update')}"
        )

    def describe(self, dev: Mapping[str, float]) -> str:
        return f"acc {dev['operator_accuracy']:.1f} att {dev['attachment']:.1f}"

    def test_size(self, experiment: Experiment) -> int:
        return sum(map(len, load_splits(experiment.config.data)["test"]))

    def finish(self, training: Training, progress: Progress | None = None) -> dict[str, Any]:
        config: ListOpsConfig = training.experiment.config
        test = load_splits(config.data)["test"]
        figures = evaluate(training.experiment.model, test, progress=progress)
        return {
            **run_facts(training),
            "max_length": config.data.max_length,
            "test": figures.record(),
        }

    def drawn(self, training: Training) -> list[tuple[Sequence[str], Heads, Heads]]:
        test = load_splits(training.experiment.config.data)["test"]
        short = [e for e in test if e.depth > 1 and len(e) <= DRAWN_LENGTH][:DRAWN]
        parsed = parse_all(training.experiment.model, short)
        return [(e.tokens, p.heads, e.heads) for e, p in zip(short, parsed, strict=True)]

    def check_result(self, record: dict[str, Any]) -> None:
        expect(record, {**KINDS, "max_length": int, "test": dict})
        Evaluation(**record["test"]).tables("")

    def summary(self, record: Mapping[str, Any]) -> list[dict[str, Cell]]:
        test = Evaluation(**record["test"])
        return [
            {
                "data": "test",
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
        return Evaluation(**record["test"]).tables(f"test, at most {record['max_length']} tokens")


LISTOPS = ListOps()
