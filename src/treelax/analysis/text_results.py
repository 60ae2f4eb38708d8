"""The result of a finished run on sentences, kept as ``test.json``."""

from __future__ import annotations

import json
from typing import Any

import torch

from treelax.analysis.results import FILE, device_name
from treelax.errors import DataError
from treelax.files import atomic_write
from treelax.tasks.text.experiment import TextExperiment, evaluation_batches
from treelax.training.loop import Training
from treelax.training.run import Run


def finish_text(run: Run, training: Training, experiment: TextExperiment) -> dict[str, Any]:
    """Evaluate the best model of a run on dev and test, with discrete and with soft trees, once.

    Args:
        run: the folder, where ``test.json`` is written.
        training: the run, trained to its end; its model is set to the best one.
        experiment: model and data of the run.

    Returns:
        What was written.

    Raises:
        DataError: the file cannot be written.
    """
    training.load_best()
    config = experiment.config
    splits = {
        name: _figures(experiment, name) for name in experiment.data.splits if name != "train"
    }
    record = {
        "preset": config.preset,
        "seed": config.seed,
        "kind": config.kind,
        "labels": list(experiment.labels),
        "training_examples": len(experiment.data.splits["train"]),
        "best_epoch": training.best_epoch,
        "epochs": training.epochs,
        "updates": training.updates,
        "seconds": training.seconds,
        "device": device_name(training),
        "splits": splits,
    }
    with atomic_write(run.path / FILE, "w") as file:
        file.write(json.dumps(record, indent=1) + "\n")
    return record


def read_text_result(run: Run) -> dict[str, Any] | None:
    """What `finish_text` wrote, or None if the run has not ended.

    Args:
        run: the folder.

    Returns:
        The record; its ``splits`` hold the figures.

    Raises:
        DataError: the file is damaged.
    """
    file = run.path / FILE
    if not file.exists():
        return None
    try:
        record = dict(json.loads(file.read_text(encoding="utf-8")))
        for figures in record["splits"].values():
            float(figures["accuracy"]), float(figures["soft_accuracy"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(
            f"{file}: cannot be read as a result ({error}); remove it and use --resume"
        ) from error
    return record


@torch.no_grad()
def _figures(experiment: TextExperiment, split: str) -> dict[str, float | int]:
    data = experiment.data.splits[split].to(experiment.device)
    batches = evaluation_batches(experiment.data.splits[split], experiment.device)
    discrete, soft = (
        experiment.summary(experiment.count(data, batches, soft=which))["accuracy"]
        for which in (False, True)
    )
    return {"examples": len(data), "accuracy": discrete, "soft_accuracy": soft}
