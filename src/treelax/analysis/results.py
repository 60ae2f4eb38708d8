"""The result of a finished run: its best model on its test set, kept as ``test.json``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from treelax.errors import DataError
from treelax.files import atomic_write
from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.listops.evaluation import Evaluation, evaluate
from treelax.tasks.listops.experiment import load_splits
from treelax.training.loop import Training
from treelax.training.run import Run

FILE = "test.json"
KEYS = {"preset", "seed", "max_length", "best_epoch", "epochs", "seconds", "device", "test"}


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
        progress: called with the number of expressions done.

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
    with atomic_write(run.path / FILE, "w") as file:
        file.write(json.dumps(record, indent=1) + "\n")
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
    file = run.path / FILE
    if not file.exists():
        return None
    try:
        record = dict(json.loads(file.read_text(encoding="utf-8")))
        missing = KEYS - record.keys()
        if missing:
            raise ValueError(f"without {', '.join(sorted(missing))}")
        figures_of(record)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(
            f"{file}: cannot be read as a result ({error}); remove it and use --resume"
        ) from error
    return record


def figures_of(record: dict[str, Any]) -> Evaluation:
    """The figures in what `read_result` returns.

    Args:
        record: the result of a run.

    Returns:
        The figures, as `treelax.tasks.listops.evaluation.evaluate` gave them.
    """
    return Evaluation(**record["test"])


def device_name(training: Training) -> str:
    """The device in words: the GPU's name, or CPU."""
    device = training.experiment.device
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
