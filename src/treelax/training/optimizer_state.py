"""The state of an optimiser as named tensors and JSON, which is what a checkpoint holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from treelax.errors import CheckpointError

__all__ = ["flatten_optimizer", "restore_optimizer"]

PREFIX = "optimizer."
# how the arithmetic is carried out, which is for the optimiser at hand to say, not for the file
EXECUTION = {"params", "capturable", "differentiable", "foreach", "fused"}


def flatten_optimizer(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Take the state of an optimiser apart into tensors and JSON.

    Names are ``optimizer.<parameter>.<name>``, with parameters counted from 0 over all groups, and
    ``optimizer.group.<group>.<name>`` for a learning rate that is a tensor. How the arithmetic is
    carried out (``fused``, ``capturable``, ``foreach``) is no part of the state.
    """
    tensors: dict[str, Tensor] = {}

    def plain(values: Mapping[str, Any], name: str) -> dict[str, Any]:
        rest = {}
        for key, value in values.items():
            if isinstance(value, Tensor):
                tensors[f"{PREFIX}{name}.{key}"] = value.detach().clone()
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
    received = [group["shapes"] for group in state["groups"]]
    expected = [[list(p.shape) for p in group["params"]] for group in optimizer.param_groups]
    if received == expected:
        return
    what = "groups with numbers of parameters"
    old, new = ([len(group) for group in shapes] for shapes in (received, expected))
    if old == new:
        what = "a parameter of shape"
        pairs = zip(chain(*received), chain(*expected), strict=True)
        old, new = next((one, other) for one, other in pairs if one != other)
    raise CheckpointError(
        f"optimizer: received the state of {what} {old}; expected {new}: resume with the config that "
        "the checkpoint was saved with"
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
