"""The result of a finished run on sentences, kept as ``test.json``."""

from __future__ import annotations

from typing import Any

import torch

from treelax.analysis.result_file import (
    NUMBER,
    Kinds,
    device_name,
    expect,
    read_record,
    write_record,
)
from treelax.tasks.text.experiment import TextExperiment, evaluation_batches
from treelax.training.loop import Training
from treelax.training.run import Run

KINDS: Kinds = {
    **dict.fromkeys(("preset", "kind", "device"), str),
    **dict.fromkeys(("seed", "training_examples", "best_epoch", "epochs", "updates"), int),
    "seconds": NUMBER,
    "labels": list,
    "splits": dict,
}
LATER = ("mixed_examples", "parameters")  # numbers that the first results did not have


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
        "mixed_examples": experiment.mixed,
        "parameters": sum(p.numel() for p in experiment.model.parameters() if p.requires_grad),
        "best_epoch": training.best_epoch,
        "epochs": training.epochs,
        "updates": training.updates,
        "seconds": training.seconds,
        "device": device_name(training),
        "data": experiment.data.fingerprint(("train", *splits), trees=False),
        "splits": splits,
    }
    write_record(run, record)
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
    return read_record(run, KINDS, _check)


def _check(record: dict[str, Any]) -> None:
    expect(record, {key: int for key in LATER if key in record})
    expect(record["splits"], {"dev": dict})
    for figures in record["splits"].values():
        expect(figures, dict.fromkeys(("examples", "accuracy", "soft_accuracy"), NUMBER))


@torch.no_grad()
def _figures(experiment: TextExperiment, split: str) -> dict[str, float | int]:
    data = experiment.data.splits[split].to(experiment.device)
    batches = evaluation_batches(
        experiment.data.splits[split], experiment.device, experiment.subwords[split]
    )
    discrete, soft = (
        experiment.summary(experiment.count(data, batches, soft=which))["accuracy"]
        for which in (False, True)
    )
    return {"examples": len(data), "accuracy": discrete, "soft_accuracy": soft}
