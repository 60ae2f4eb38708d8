"""Trained models by name: a run's folder, a file, or a model that comes with treelax."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from treelax.errors import CheckpointError, InputError
from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.listops.model import ListOpsTagger
from treelax.training.checkpoint import load_checkpoint
from treelax.training.config import from_table
from treelax.training.run import CONFIG, Run

BUILT_IN = ("listops",)


@dataclass(frozen=True)
class TrainedModel:
    """A model ready for use."""

    model: ListOpsTagger
    config: ListOpsConfig
    state: dict[str, Any]
    source: Path


def load_model(name: str | os.PathLike[str], *, device: str | torch.device = "cpu") -> TrainedModel:
    """Load a trained ListOps tagger."""
    file = model_file(name)
    saved = load_checkpoint(file, kind="listops", device=device)
    try:
        config = from_table(ListOpsConfig, saved.state.pop("config", {}), "config")
        with torch.random.fork_rng(devices=[]):  # what is drawn here is overwritten at once
            model = ListOpsTagger(config.model).to(device)
        model.load_state_dict(saved.tensors)
        for name, value in saved.tensors.items():
            if not bool(value.isfinite().all()):
                raise InputError(f"{name} has numbers that are not finite")
    except (InputError, RuntimeError) as error:
        # torch says in the first line that something is wrong and in the second what it is
        what = " ".join(line.strip() for line in str(error).splitlines()[:2])
        raise CheckpointError(
            f"{file}: does not fit this version of treelax ({what}); train again or use the "
            "version that saved it"
        ) from error
    return TrainedModel(model.eval(), config, saved.state, file)


def model_file(name: str | os.PathLike[str]) -> Path:
    """The file of a model."""
    if isinstance(name, str) and name in BUILT_IN:
        return Path(str(files("treelax") / "models" / f"{name}.safetensors"))
    path = Path(name)
    if path.is_file():
        return path
    if path.is_dir():
        run = Run.open(path)
        if not run.best_model.exists():
            raise InputError(
                f"{path}: holds no model yet; expected a run that has finished its first epoch: "
                "continue it with --resume"
            )
        return run.best_model
    raise InputError(
        f"{name}: does not exist; expected the folder of a run, a model.safetensors, or "
        f"{', '.join(BUILT_IN)} for the model that comes with treelax"
    )


def is_listops(name: str | os.PathLike[str]) -> bool:
    """Whether a model is one of ListOps, or of sentences; no model is loaded."""
    path = Path(name)
    if name in BUILT_IN or not path.is_dir():
        model_file(name)  # which says what is missing
        return True
    return (path / CONFIG).is_file() and Run.open(path).task == "listops"
