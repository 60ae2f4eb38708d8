"""The result of a finished run on ListOps, kept as ``test.json``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

from treelax.analysis.result_file import (
    NUMBER,
    Kinds,
    device_name,
    expect,
    read_record,
    write_record,
)
from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.listops.evaluation import Evaluation, evaluate
from treelax.tasks.listops.experiment import load_splits
from treelax.training.loop import Training
from treelax.training.run import Run

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
# of each row of figures by length, beside "longest", which is none in the last
BY_LENGTH = dict.fromkeys(
    (
        *("sentences", "tokens", "operators", "operator_accuracy"),
        *("attachment", "exact_trees", "attachment_operator"),
    ),
    NUMBER,
)


def finish(
    run: Run,
    training: Training,
    config: ListOpsConfig,
    *,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Evaluate the best model of a run on its test set, once, and write ``test.json``.

    Args:
        run: the folder.
        training: the run, trained to its end; its model is set to the best one.
        config: of the run.
        progress: called with the number of tokens done.

    Returns:
        The figures.

    Raises:
        DataError: the file cannot be written.
    """
    training.load_best()
    test = load_splits(config.data).expressions["test"]
    figures = evaluate(training.experiment.model, test, progress=progress)
    record = {
        "preset": config.preset,
        "seed": config.seed,
        "max_length": config.data.max_length,
        "best_epoch": training.best_epoch,
        "epochs": training.epochs,
        "seconds": training.seconds,
        "device": device_name(training),
        "test": asdict(figures),
    }
    write_record(run, record)
    return figures


def read_result(run: Run) -> dict[str, Any] | None:
    """What `finish` wrote, or None if the run has not ended.

    Args:
        run: the folder.

    Returns:
        The preset, the seed and the like, and under ``test`` the figures; see `figures_of`.

    Raises:
        DataError: the file is damaged.
    """
    return read_record(run, KINDS, _check)


def figures_of(record: dict[str, Any]) -> Evaluation:
    """The figures in what `read_result` returns.

    Args:
        record: the result of a run.

    Returns:
        The figures, as `treelax.tasks.listops.evaluation.evaluate` gave them.
    """
    return Evaluation(**record["test"])


def _check(record: dict[str, Any]) -> None:
    test = record["test"]
    expect(test, FIGURES)
    figures_of(record)
    for name in ("attachment_by_kind", "baselines"):
        expect(test[name], dict.fromkeys(test[name], NUMBER))
    for row in test["by_length"]:
        expect(row, BY_LENGTH | {"longest": int | None})
