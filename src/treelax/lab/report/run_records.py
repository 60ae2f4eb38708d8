"""What the folder of a run says: its settings, metrics and result, and what is missing of them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treelax.apps.tasks import BUILT_IN, task_named
from treelax.apps.tasks.task import Task
from treelax.apps.training.config import flatten
from treelax.apps.training.metrics import read_metrics
from treelax.apps.training.results import read_result
from treelax.apps.training.run import Run
from treelax.errors import InputError
from treelax.lab.plots import Curve


@dataclass(frozen=True)
class RunRecord:
    """A run, read from its folder."""

    name: str  # tells it from the other runs of the report
    path: Path
    task: Task
    config: Any
    rows: Sequence[dict[str, Any]]  # of its metrics, one for each epoch that has ended
    result: dict[str, Any] | None  # its test.json; None if it has not ended

    @property
    def has_model(self) -> bool:
        """Whether there is a model to load."""
        return Run(self.path, self.task.name).best_model.exists()

    @property
    def places(self) -> frozenset[str]:
        """Settings that say nothing of the experiment."""
        return frozenset((*self.task.files, *self.task.columns, "seed"))

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by their dotted keys."""
        return flatten(self.config)

    @property
    def changed(self) -> dict[str, Any]:
        """What the preset has where this run has something else, seed and places left out."""
        try:
            usual = flatten(self.task.preset(self.config.preset))
        except InputError:  # a preset that there is no longer
            return {}
        settings = self.settings
        return {k: v for k, v in usual.items() if k not in self.places and settings[k] != v}

    @property
    def best_row(self) -> Mapping[str, Any] | None:
        """The row of the epoch whose model was kept, as far as there is one."""
        scored = [row for row in self.rows if math.isfinite(figure_of(row, "score"))]
        if self.result is not None:
            scored = [row for row in scored if row["epoch"] == self.result["best_epoch"]] or scored
        return max(scored, key=lambda row: figure_of(row, "score"), default=None)

    @property
    def dev(self) -> dict[str, float]:
        """Figures of the best row."""
        figures = {} if self.best_row is None else self.best_row["dev"]
        return {k: float(v) for k, v in figures.items() if k != "score" and v is not None}

    def curve(self, key: str, look: int) -> Curve:
        """The loss or a dev figure by epoch, with a dot at the best one."""
        best = None if self.best_row is None else float(self.best_row["epoch"])
        values = [figure_of(row, key) for row in self.rows]
        return Curve(
            self.name, [float(r["epoch"]) for r in self.rows], values, look=look, mark=best
        )

    @property
    def seconds(self) -> float | None:
        """How long it was trained."""
        return (self.result or (self.rows[-1] if self.rows else {})).get("seconds")

    @property
    def state(self) -> str:
        """How far it has come, in words."""
        if self.result is not None:
            return "finished"
        done = self.rows[-1]["epoch"] if self.rows else 0
        return f"epoch {done} of {self.config.train.epochs}"

    @property
    def missing(self) -> list[str]:
        """What its folder lacks, a sentence each."""
        sentences = [] if self.rows else ["no epoch has ended yet, so there are no curves."]
        if self.result is None:
            lacking = "so there are no test figures: continue it with --resume."
            sentences.append(f"has not ended ({self.state}), {lacking}")
        return sentences


def read_run(path: str | os.PathLike[str], name: str | None = None) -> RunRecord:
    """Read all that the folder of a run says, its models left out; it may be unfinished."""
    if str(path) in BUILT_IN and not Path(path).exists():
        raise InputError(
            f"{path}: is a model that comes with treelax, without a run to report on; expected the "
            f"folder of a run: treelax eval {path} --data FILE and treelax analyse {path} --data FILE "
            "tell of the model"
        )
    run = Run.open(path)
    rows = read_metrics(run.metrics_file) if run.metrics_file.exists() else []
    called = run.path.absolute().name if name is None else name
    task = task_named(run.task)
    result = read_result(run, task.check_result)
    return RunRecord(called, run.path, task, run.config(task.config_type), rows, result)


def figure_of(row: Mapping[str, Any], key: str) -> float:
    """The loss or a dev figure of an epoch; NaN if it has none."""
    value = (row if key == "loss" else row.get("dev", {})).get(key)
    return math.nan if value is None else float(value)
