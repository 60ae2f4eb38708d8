"""The result of a finished run: its best model on its test set, kept as ``test.json``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from treelax.errors import DataError
from treelax.files import atomic_write
from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.listops.evaluation import Evaluation, evaluate
from treelax.tasks.listops.experiment import load_splits
from treelax.training.loop import Training
from treelax.training.run import Run

FILE = "test.json"


def finish(run: Run, training: Training, config: ListOpsConfig) -> Evaluation:
    """Evaluate the best model of a run on its test set, once, and write ``test.json``.

    Args:
        run: the folder.
        training: the run, trained to its end; its model is set to the best one.
        config: of the run.

    Returns:
        The figures.
    """
    training.load_best()
    figures = evaluate(training.experiment.model, load_splits(config.data).expressions["test"])
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
    with atomic_write(run.path / FILE, "w") as file:
        file.write(json.dumps(record, indent=1) + "\n")
    return figures


def read_result(run: Run) -> dict[str, Any] | None:
    """What `finish` wrote, or None if the run has not ended.

    Raises:
        DataError: the file is damaged.
    """
    file = run.path / FILE
    if not file.exists():
        return None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        record["test"]["attachment"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{file}: cannot be read as a result ({error}); remove it and use --resume"
        ) from error
    return dict(record)


def device_name(training: Training) -> str:
    """The device in words."""
    import torch

    device = training.experiment.device
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
