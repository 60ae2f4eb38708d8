"""``test.json``, the result of a run: written whole, checked when it is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any

import torch

from treelax.apps.training.loop import Training
from treelax.apps.training.run import Run
from treelax.errors import DataError
from treelax.files import atomic_write

FILE = "test.json"
NUMBER = int | float
Kinds = Mapping[str, type | UnionType]
KINDS: Kinds = {  # of what `run_facts` has
    **dict.fromkeys(("preset", "device"), str),
    **dict.fromkeys(("seed", "best_epoch", "epochs"), int),
    "seconds": NUMBER,
}


def run_facts(training: Training) -> dict[str, Any]:
    """The part of a result that every task has."""
    experiment = training.experiment
    return {
        "preset": experiment.config.preset,
        "seed": experiment.config.seed,
        "best_epoch": training.best_epoch,
        "epochs": training.epochs,
        "seconds": training.seconds,
        "device": device_name(experiment.device),
    }


def write_result(run: Run, record: dict[str, Any]) -> None:
    """Write the result of a run."""
    with atomic_write(run.path / FILE, "w") as file:
        file.write(json.dumps(record, indent=1) + "\n")


def read_result(run: Run, check: Callable[[dict[str, Any]], None]) -> dict[str, Any] | None:
    """The result of a run, or None if it has not ended; ``check`` raises what is wrong with it."""
    file = run.path / FILE
    if not file.exists():
        return None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        check(record)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{file}: cannot be read as a result ({error}); remove it and use --resume"
        ) from error
    return dict(record)


def expect(record: Any, kinds: Kinds) -> None:
    """Check that a record has some keys, with values of their types."""
    for key, kind in kinds.items():
        if key not in record:
            raise ValueError(f"without {key}")
        # a bool is an int to Python
        if not isinstance(record[key], kind) or isinstance(record[key], bool):
            raise ValueError(f"{key} is {record[key]!r:.40}")


def device_name(device: torch.device) -> str:
    """The name of the GPU, or "CPU"."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
