"""What the folder of a run says: its settings, metrics and result, and what is missing of them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from treelax.analysis.listops_results import read_result
from treelax.analysis.text_results import read_text_result
from treelax.errors import InputError
from treelax.tasks.listops.config import PRESETS as LISTOPS_PRESETS
from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.listops.config import preset as listops_preset
from treelax.tasks.text.config import Kind, TextConfig
from treelax.tasks.text.presets import PRESETS as TEXT_PRESETS
from treelax.tasks.text.presets import preset as text_preset
from treelax.training.config import flatten
from treelax.training.metrics import read_metrics
from treelax.training.run import Run

__all__ = ["RunRecord", "read_run"]

# where files are says nothing of the experiment
PLACES = frozenset(
    f"data.{key}"
    for key in (
        *("folder", "path", "train", "dev", "test", "text", "label"),
        *("vectors", "more_vectors", "mix", "trees"),
    )
)


@dataclass(frozen=True)
class RunRecord:
    """A run, read from its folder.

    Attributes:
        name: that tells it from the other runs of the report.
        path: its folder.
        config: all of its settings.
        rows: of its metrics, one for each epoch that has ended.
        result: its ``test.json``; None if it has not ended.
    """

    name: str
    path: Path
    config: ListOpsConfig | TextConfig
    rows: Sequence[Mapping[str, Any]]
    result: Mapping[str, Any] | None

    @property
    def listops(self) -> bool:
        """Whether it is a run of ListOps."""
        return isinstance(self.config, ListOpsConfig)

    @property
    def kind(self) -> str:
        """The task, in words."""
        if isinstance(self.config, ListOpsConfig):
            return "ListOps"
        words = {"classify": "classes of texts", "pair": "pairs of texts", "tag": "tags of words"}
        return words[self.config.kind]

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by their dotted keys."""
        return flatten(self.config)

    @property
    def changed(self) -> dict[str, Any]:
        """What the preset has where this run has something else, seed and places left out."""
        name = self.config.preset
        if isinstance(self.config, ListOpsConfig):
            usual = flatten(listops_preset(name)) if name in LISTOPS_PRESETS else {}
        else:
            usual = flatten(text_preset(name)) if name in TEXT_PRESETS else {}
        own, left_out = self.settings, {"seed"} | (PLACES if not self.listops else {"data.folder"})
        return {k: v for k, v in usual.items() if k not in left_out and own[k] != v}

    @property
    def best_row(self) -> Mapping[str, Any] | None:
        """The row of the epoch whose model was kept, as far as there is one."""
        scored = [row for row in self.rows if _score(row) > -math.inf]
        if self.result is not None:
            scored = [row for row in scored if row["epoch"] == self.result["best_epoch"]] or scored
        return max(scored, key=_score, default=None)

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
        found = []
        if not self.rows:
            found.append("no epoch has ended yet, so there are no curves.")
        if self.result is None:
            found.append(
                f"has not ended ({self.state}), so there are no figures of the test set: continue "
                "it with --resume."
            )
        return found


def read_run(path: str | os.PathLike[str], name: str | None = None) -> RunRecord:
    """Read all that the folder of a run says, its models left out.

    Args:
        path: the folder; the run may be unfinished.
        name: what to call it; the name of its folder by default.

    Returns:
        The run.

    Raises:
        InputError: there is no run, it is of an unknown task, or its settings do not fit.
        DataError: a file is damaged.

    Example:
        >>> read_run("nowhere")
        Traceback (most recent call last):
        ...
        treelax.errors.InputError: nowhere: does not exist; expected the folder of a run
    """
    run = Run.open(path)
    rows = read_metrics(run.metrics_file) if run.metrics_file.exists() else []
    called = run.path.absolute().name if name is None else name
    if run.task == "listops":
        return RunRecord(called, run.path, run.config(ListOpsConfig), rows, read_result(run))
    if run.task not in get_args(Kind):
        raise InputError(
            f"{run.config_file}: task is {run.task!r}; expected listops, {', '.join(get_args(Kind))}"
        )
    return RunRecord(called, run.path, run.config(TextConfig), rows, read_text_result(run))


def _score(row: Mapping[str, Any]) -> float:
    dev = row.get("dev")
    value = dev.get("score") if isinstance(dev, Mapping) else None
    return float(value) if isinstance(value, int | float) else -math.inf
