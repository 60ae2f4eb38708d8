"""Whose model a folder or a file holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from treelax.errors import CheckpointError, InputError

# models that come with treelax, with their tasks
BUILT_IN = {"english": "parser", "listops": "listops"}
FORMAT = "treelax sentence model"  # in the config of a saved model


def task_of(path: Path) -> str:
    """The task of the model in a folder or file; no weights are read."""
    from treelax.apps.training.checkpoint import read_checkpoint_header
    from treelax.apps.training.run import CONFIG, Run

    if path.is_file():
        return read_checkpoint_header(path)[0]
    if (path / CONFIG).is_file():
        return Run.open(path).task
    saved = path / "config.json"
    if not saved.is_file():
        what = f"holds neither {CONFIG} nor {saved.name}" if path.exists() else "does not exist"
        raise InputError(
            f"{path}: {what}; expected the folder of a run or of a saved model, a model.safetensors, "
            f"or {' or '.join(BUILT_IN)} for a model that comes with treelax"
        )
    try:
        return str(read_config(saved)["settings"]["kind"])
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{saved}: has no settings.kind; restore it") from error


def read_config(file: Path) -> dict[str, Any]:
    """The config of a saved model."""
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{file}: cannot be read as JSON ({error})") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise CheckpointError(
            f"{file}: is of another program; expected the config of a sentence model which treelax saved"
        )
    return config
