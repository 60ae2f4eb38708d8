"""Checkpoints: named tensors and a state, in one safetensors file that appears whole or not at all.

The file's header says ``format`` (treelax), ``version``, ``kind`` (of which task) and ``state``,
which is JSON. Nothing is pickled, so a checkpoint from elsewhere can be loaded without running it.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from treelax.errors import CheckpointError, DataError, InputError
from treelax.files import atomic_write

__all__ = [
    "Checkpoint",
    "flatten_optimizer",
    "load_checkpoint",
    "read_checkpoint_state",
    "restore_optimizer",
    "save_checkpoint",
]

FORMAT, VERSION = "treelax", "1"
DISK_IS_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
PREFIX = "optimizer."
# how the arithmetic is carried out, which is for the optimiser at hand to say, not for the file
EXECUTION = {"params", "capturable", "differentiable", "foreach", "fused"}


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
    content = save(_separate(tensors), header)
    before = file.is_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file, "wb") as out:
            out.write(content)
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
                else f"{advice} and start again"
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


def flatten_optimizer(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Take the state of an optimiser apart into tensors and JSON.

    Names are ``optimizer.<parameter>.<name>``, with parameters counted from 0 over all groups, and
    ``optimizer.group.<group>.<name>`` for a learning rate that is a tensor. How the arithmetic is
    carried out (``fused``, ``capturable``, ``foreach``) is no part of the state.

    Args:
        optimizer: the optimiser, such as Adam.

    Returns:
        Copies of the tensors, and the rest; both are for `restore_optimizer`.

    Raises:
        InputError: the optimiser keeps something that is neither a tensor nor JSON.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Adam([weight])
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> sorted(flatten_optimizer(optimizer)[0])
        ['optimizer.0.exp_avg', 'optimizer.0.exp_avg_sq', 'optimizer.0.step']
    """
    tensors: dict[str, Tensor] = {}

    def plain(values: Mapping[str, Any], name: str) -> dict[str, Any]:
        rest = {}
        for key, value in values.items():
            if isinstance(value, Tensor):
                tensors[f"{PREFIX}{name}.{key}"] = value.detach().clone()
            elif not _is_json(value):
                raise InputError(
                    f"{type(optimizer).__name__}: received {key!r} of type "
                    f"{type(value).__name__}; expected tensors and JSON"
                )
            else:
                rest[key] = value
        return rest

    groups = [
        plain({key: value for key, value in group.items() if key not in EXECUTION}, f"group.{i}")
        | {"shapes": [list(parameter.shape) for parameter in group["params"]]}
        for i, group in enumerate(optimizer.param_groups)
    ]
    state = [
        plain(optimizer.state.get(parameter, {}), str(i))
        for i, (parameter, _) in enumerate(_parameters(optimizer))
    ]
    return tensors, {"groups": groups, "state": state}


def restore_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], state: Mapping[str, Any]
) -> None:
    """Put the state from `flatten_optimizer` into an optimiser, to the bit.

    Tensors that the optimiser has already are filled in place, for a captured CUDA graph may hold
    their addresses; others are made. Where the optimiser has stepped and the saved one had not,
    the state of Adam and AdamW is set to zero in place and that of others is dropped.

    Args:
        optimizer: an optimiser over the same parameters.
        tensors: the tensors, on any device; names without ``optimizer.`` are read over.
        state: the rest, also after a way through JSON.

    Raises:
        CheckpointError: the state is that of other groups or shapes.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Adam([weight], lr=0.5)
        >>> saved = flatten_optimizer(optimizer)
        >>> optimizer.param_groups[0]["lr"] = 0.25
        >>> restore_optimizer(optimizer, *saved)
        >>> optimizer.param_groups[0]["lr"]
        0.5
    """
    _check_shapes(optimizer, state)
    saved = _by_owner(tensors)
    for i, (group, values) in enumerate(zip(optimizer.param_groups, state["groups"], strict=True)):
        for key, value in (values | saved.get(f"group.{i}", {})).items():
            if key != "shapes":
                _set_group(group, key, value)
    for i, (parameter, group) in enumerate(_parameters(optimizer)):
        values = saved.get(str(i), {}) | state["state"][i]
        if not values and parameter not in optimizer.state:
            continue
        on_host = not (group.get("capturable") or group.get("fused"))
        _set_state(optimizer, parameter, values, on_host)


def _check_shapes(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Refuse the state of another model's optimiser."""
    received = [[tuple(shape) for shape in group["shapes"]] for group in state["groups"]]
    expected = [[tuple(p.shape) for p in group["params"]] for group in optimizer.param_groups]
    advice = "resume with the config that the checkpoint was saved with"
    counts = [len(group) for group in received], [len(group) for group in expected]
    if counts[0] != counts[1]:
        raise CheckpointError(
            f"optimizer: received the state of groups of {counts[0]} parameters; expected "
            f"{counts[1]}: {advice}"
        )
    for old, new in zip(chain(*received), chain(*expected), strict=True):
        if old != new:
            raise CheckpointError(
                f"optimizer: received the state of a parameter of shape {old}; expected {new}: "
                f"{advice}"
            )


def _set_group(group: dict[str, Any], key: str, value: Any) -> None:
    present = group.get(key)
    if isinstance(present, Tensor):
        present.copy_(value) if isinstance(value, Tensor) else present.fill_(value)
    elif isinstance(value, Tensor):
        group[key] = value.item() if isinstance(present, float) else value.clone()
    else:
        group[key] = tuple(value) if isinstance(present, tuple) else value


def _set_state(
    optimizer: torch.optim.Optimizer, parameter: Tensor, values: dict[str, Any], on_host: bool
) -> None:
    """Fill one parameter's state; ``on_host`` says that Adam counts its steps there."""
    present = optimizer.state[parameter]
    zero = isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW)
    for key in present.keys() - values.keys():
        if zero and isinstance(present[key], Tensor):
            present[key].zero_()
        else:
            del present[key]
    for key, value in values.items():
        old = present.get(key)
        if isinstance(value, Tensor) and isinstance(old, Tensor) and old.shape == value.shape:
            old.copy_(value)
        elif isinstance(value, Tensor):
            device = torch.device("cpu") if key == "step" and on_host else parameter.device
            present[key] = value.detach().to(device, copy=True)
        else:
            present[key] = value


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[tuple[Tensor, dict[str, Any]]]:
    """Every parameter with its group."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            yield parameter, group


def _by_owner(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """The optimiser's tensors by parameter or group, then by name."""
    owners: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(PREFIX):
            owner, _, key = name.removeprefix(PREFIX).rpartition(".")
            owners.setdefault(owner, {})[key] = tensor
    return owners


def _is_json(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_json(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


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
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{file}: its header is damaged ({error!r}); use another checkpoint or train again"
        ) from error
