"""Checkpoints: named tensors and a state, in one safetensors file that appears whole or not at all.

The file's header says ``format`` (treelax), ``version``, ``kind`` (of which task), ``state``, which
is JSON, and ``sha256``, the sum of the state and the tensors, which older files lack. Nothing is
pickled, so a checkpoint from elsewhere can be loaded without running it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from treelax.errors import CheckpointError, DataError, InputError
from treelax.files import atomic_write

__all__ = ["Checkpoint", "load_checkpoint", "read_checkpoint_state", "save_checkpoint"]

FORMAT, VERSION = "treelax", "1"
DISK_IS_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds.

    Attributes:
        tensors: the tensors by name.
        state: what else was saved, as JSON gives it back: tuples are lists, keys are strings.
        kind: of which task.
    """

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
    """Save tensors and a state as one file.

    Args:
        path: the file, replaced if it exists; its folder is made if it does not exist.
        tensors: any dense tensors, on any device; they may share memory or have gaps.
        kind: of which task, such as ``"listops"``.
        state: anything else, as JSON; numbers may be infinite or NaN.

    Raises:
        CheckpointError: the file cannot be written, for want of space, say; an older file of that
            name is intact.
        InputError: the state holds something that is not JSON.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "last.safetensors")
        ...     save_checkpoint(path, {"w": torch.ones(2)}, kind="listops", state={"epoch": 3})
        ...     load_checkpoint(path)
        Checkpoint(tensors={'w': tensor([1., 1.])}, state={'epoch': 3}, kind='listops')
    """
    from safetensors.torch import save

    file = Path(path)
    try:
        text = json.dumps(dict(state))
    except (TypeError, ValueError) as error:
        raise InputError(f"state: received what is not JSON ({error})") from error
    header = {"format": FORMAT, "version": VERSION, "kind": kind, "state": text}
    content = _with_sum(save(_separate(tensors), header), text)
    before = file.is_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file, "wb") as out:
            for part in content:
                out.write(part)
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
    """Load a checkpoint.

    Args:
        path: the file.
        kind: refuse a checkpoint of another kind.
        device: where the tensors go.

    Returns:
        The checkpoint; its tensors are its own, the file is not held open.

    Raises:
        CheckpointError: the file is missing, cut off, damaged or of something else, or holds
            another version or kind.

    Example:
        >>> load_checkpoint("nowhere.safetensors")
        Traceback (most recent call last):
        ...
        treelax.errors.CheckpointError: nowhere.safetensors: does not exist; expected a checkpoint
    """
    file = Path(path)
    with _opened(file) as opened:
        found, state = _header(file, opened.metadata())
        _check_sum(file, opened.metadata())
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
    """Read the state of a checkpoint without its tensors.

    Args:
        path: the file.

    Returns:
        The state.

    Raises:
        CheckpointError: as `load_checkpoint`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "last.safetensors")
        ...     save_checkpoint(path, {}, kind="listops", state={"epoch": 3})
        ...     read_checkpoint_state(path)
        {'epoch': 3}
    """
    file = Path(path)
    with _opened(file) as opened:
        return _header(file, opened.metadata())[1]


def _separate(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors on the host, without gaps and without shared memory, as the format wants them."""
    separate: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        host = tensor.detach().cpu().contiguous()
        memory = host.untyped_storage().data_ptr()
        separate[name] = host.clone() if memory in seen else host
        seen.add(memory)
    return separate


def _with_sum(content: bytes, state: str) -> tuple[bytes, bytes, memoryview]:
    """The parts of a safetensors file with a sum in its header; offsets count from the header's end."""
    end = 8 + int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8:end]), memoryview(content)[end:]
    digest = hashlib.sha256(state.encode())
    digest.update(data)
    header["__metadata__"]["sha256"] = digest.hexdigest()
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)  # tensors are aligned
    return len(text).to_bytes(8, "little"), text, data


def _check_sum(file: Path, metadata: Mapping[str, str]) -> None:
    with file.open("rb") as raw:
        raw.seek(8 + int.from_bytes(raw.read(8), "little"))
        start = hashlib.sha256(metadata["state"].encode())
        found = hashlib.file_digest(raw, lambda: start).hexdigest()
    if metadata.get("sha256", found) != found:
        raise CheckpointError(
            f"{file}: is damaged (its content is not what was saved); use another checkpoint or train "
            "again"
        )


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise CheckpointError(f"{file}: {what}; expected a checkpoint")
    try:
        with safe_open(file, framework="pt") as opened:
            yield opened
    except SafetensorError as error:
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
