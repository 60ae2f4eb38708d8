"""Checkpoints: named tensors and a state, in one safetensors file that appears whole or not at all.

The file's header says ``format`` (treelax), ``version``, ``kind`` (of which task), ``state``, which
is JSON, and ``sha256``, the sum of the state and the tensors, which older files lack. Nothing is
pickled, so a checkpoint from elsewhere can be loaded without running it.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from treelax.data.tensor_files import DamagedError, check_sum, open_tensors, write_tensors
from treelax.errors import CheckpointError, DataError, InputError

__all__ = [
    "Checkpoint",
    "load_checkpoint",
    "misfit",
    "read_checkpoint_kind",
    "read_checkpoint_state",
    "save_checkpoint",
]

FORMAT, VERSION = "treelax", "1"
DISK_IS_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds; in the state tuples are lists and keys strings, as in JSON."""

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
    try:
        text = json.dumps(dict(state))
    except (TypeError, ValueError) as error:
        raise InputError(f"state: received what is not JSON ({error})") from error
    header = {"format": FORMAT, "version": VERSION, "kind": kind, "state": text}
    before = file.is_file()
    try:
        write_tensors(file, tensors, header)
    except (OSError, DataError) as error:
        reason = error.__cause__ if isinstance(error, DataError) else error
        what = (reason.strerror if isinstance(reason, OSError) else None) or str(reason)
        full = isinstance(reason, OSError) and reason.errno in DISK_IS_FULL
        advice = "free some space" if full else "mend that"
        raise CheckpointError(
            f"{file}: was not saved: {what}; "
            + (
                f"the previous checkpoint is intact, {advice} and use --resume"
                if before
                else f"{advice} and use --resume, which starts again"
            )
        ) from error


def load_checkpoint(
    path: str | os.PathLike[str], *, kind: str | None = None, device: str | torch.device = "cpu"
) -> Checkpoint:
    """Load a checkpoint."""
    file = Path(path)
    with _opened(file) as opened:
        found, state = _header(file, opened.metadata())
        check_sum(file, opened.metadata())
        if kind is not None and found != kind:
            raise CheckpointError(
                f"{file}: holds a checkpoint of {found!r}; expected one of {kind!r}: give the "
                f"checkpoint of a {kind!r} run"
            )
        # copied, for the library's tensors are windows on the file
        tensors = {
            name: opened.get_tensor(name).to(device, copy=True) for name in sorted(opened.keys())
        }
    return Checkpoint(tensors, state, found)


def read_checkpoint_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the state of a checkpoint without its tensors."""
    file = Path(path)
    with _opened(file) as opened:
        return _header(file, opened.metadata())[1]


def read_checkpoint_kind(path: str | os.PathLike[str]) -> str:
    """Of which task a checkpoint is."""
    file = Path(path)
    with _opened(file) as opened:
        return _header(file, opened.metadata())[0]


def misfit(file: Path, error: Exception) -> CheckpointError:
    """The error for a file whose weights or settings are not those of this version."""
    # torch says in the first line that something is wrong and in the second what it is
    what = " ".join(line.strip() for line in str(error).splitlines()[:2])
    return CheckpointError(
        f"{file}: does not fit this version of treelax ({what}); train again or use the version "
        "that saved it"
    )


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """The open file; its faults as errors that say what to do."""
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise CheckpointError(f"{file}: {what}; expected a checkpoint")
    try:
        with open_tensors(file) as opened:
            yield opened
    except DamagedError as error:
        with file.open("rb") as raw:
            start = raw.read(9)
        if len(start) < 9 or start.endswith(b"{"):  # eight bytes of length, then JSON
            raise CheckpointError(
                f"{file}: is cut off or damaged ({error}); use another checkpoint or train again"
            ) from error
        raise CheckpointError(
            f"{file}: is no safetensors file; expected a checkpoint that treelax saved"
        ) from error
    except OSError as error:
        raise CheckpointError(f"{file}: cannot be read: {error}") from error


def _header(file: Path, metadata: Mapping[str, str] | None) -> tuple[str, dict[str, Any]]:
    """The kind and the state in a header."""
    metadata = metadata or {}
    if metadata.get("format") != FORMAT:
        raise CheckpointError(
            f"{file}: is a safetensors file of something else; expected a checkpoint that treelax "
            "saved"
        )
    if metadata.get("version") != VERSION:
        raise CheckpointError(
            f"{file}: is a checkpoint of version {metadata.get('version')}; expected {VERSION}: "
            "load it with the treelax that saved it"
        )
    try:
        return metadata["kind"], dict(json.loads(metadata["state"]))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{file}: its header is damaged ({error!r}); use another checkpoint or train again"
        ) from error
