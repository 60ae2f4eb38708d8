"""Checkpoints: named tensors and a state in one safetensors file, written atomically.

The file's header has ``format`` (treelax), ``version``, ``kind`` (the task), ``state`` as JSON, and
``sha256``, a checksum of the state and the tensors, which older files lack. Nothing is pickled, so
loading a checkpoint from elsewhere runs no code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from treelax.apps.data.tensor_files import DamagedError, check_sum, open_tensors, write_tensors
from treelax.errors import CheckpointError, DataError, InputError

FORMAT, VERSION = "treelax", "1"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint; its state is as in JSON: tuples are lists, keys are strings."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]
    kind: str


def save_checkpoint(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Tensor],
    *,
    kind: str,
    state: Mapping[str, Any],
) -> None:
    """Save tensors and a state as one file."""
    file = Path(path)
    header = {"format": FORMAT, "version": VERSION, "kind": kind, "state": json.dumps(dict(state))}
    try:
        write_tensors(file, tensors, header)
    except (OSError, DataError) as error:
        reason = error.__cause__ if isinstance(error, DataError) else error
        raise CheckpointError(
            f"{file}: was not saved: {getattr(reason, 'strerror', None) or reason}; an earlier "
            "checkpoint is intact: solve this and use --resume"
        ) from error


def load_checkpoint(
    path: str | os.PathLike[str], *, kind: str | None = None, device: str | torch.device = "cpu"
) -> Checkpoint:
    """Load a checkpoint."""
    file = Path(path)
    with _opened(file) as (opened, task, state):
        check_sum(file, opened.metadata())
        if kind is not None and task != kind:
            raise CheckpointError(
                f"{file}: holds a checkpoint of {task!r}; expected one of {kind!r}"
            )
        # copied: the library's tensors are views of the file
        tensors = {
            name: opened.get_tensor(name).to(device, copy=True) for name in sorted(opened.keys())
        }
    return Checkpoint(tensors, state, task)


def read_checkpoint_header(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """The kind and the state of a checkpoint, without its tensors."""
    with _opened(Path(path)) as (_, kind, state):
        return kind, state


@contextmanager
def restoring(
    file: Path, *, keep: type[Exception] | tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Build a model from a checkpoint, which must fit; no random number is drawn.

    Errors to ``keep`` are raised as they are.
    """
    try:
        with torch.random.fork_rng(devices=[]):  # weights are overwritten at once
            yield
    except keep:
        raise
    except (InputError, KeyError, TypeError, RuntimeError) as error:
        # torch's second line says what is wrong
        what = " ".join(line.strip() for line in str(error).splitlines()[:2])
        raise CheckpointError(
            f"{file}: does not fit this version of treelax ({what}); train again or use the version "
            "that saved it"
        ) from error


@contextmanager
def _opened(file: Path) -> Iterator[tuple[Any, str, dict[str, Any]]]:
    """The open file, its kind and its state; raises errors that say what to do."""
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise CheckpointError(f"{file}: {what}; expected a checkpoint")
    try:
        with open_tensors(file) as opened:
            metadata = opened.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise DamagedError("not saved by treelax")
            if metadata.get("version") != VERSION:
                raise CheckpointError(
                    f"{file}: is a checkpoint of version {metadata.get('version')}; expected "
                    f"{VERSION}: load it with the treelax that saved it"
                )
            yield opened, metadata["kind"], json.loads(metadata["state"])
    except (DamagedError, KeyError, json.JSONDecodeError) as error:
        raise CheckpointError(
            f"{file}: is cut off or damaged, or no checkpoint ({error}); use another or train again"
        ) from error
    except OSError as error:
        raise CheckpointError(f"{file}: cannot be read: {error}") from error
