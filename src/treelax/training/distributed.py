"""Several processes that train one model: who they are, and what they say to each other.

Each process holds the whole model and takes its share of every batch; gradients are added up over
all of them, so every process takes the step that one process alone would take. How they come together
is in `treelax.training.processes`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from treelax.errors import InputError, TrainingError
from treelax.training.config import from_toml, to_toml

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["World", "current", "in_turn", "launched"]

Config = TypeVar("Config", bound="DataclassInstance")
Prepared = TypeVar("Prepared")


class LostProcessError(TrainingError):
    """Another process has ended or cannot be reached."""


@dataclass(frozen=True)
class World:
    """The processes that train together, as one of them sees them; one alone by default.

    Example:
        >>> [World(rank, 3).share(8) for rank in range(3)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 8, None)]
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0  # among those on its machine, which is the number of its GPU
    local_size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process reads and writes the run and speaks to the user."""
        return self.rank == 0

    @property
    def part(self) -> slice:
        """This process's items of a list that all share."""
        return slice(self.rank, None, self.size)

    def share(self, count: int) -> slice:
        """This process's examples of a batch; all shares together are the batch, in its order."""
        if count < self.size:
            raise InputError(
                f"train.batch_size is {count} but {self.size} processes share every batch; expected "
                "at least one example for each: raise it or start fewer processes"
            )
        return slice(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def on(self, device: torch.device) -> str:
        """Where these processes are, in words."""
        return str(device) if self.size == 1 else f"{device.type} in {self.size} processes"

    def sum_(self, tensor: Tensor) -> Tensor:
        """Add a tensor up over all processes, in place; alone it stays as it is."""
        if self.size > 1:
            _together(partial(dist.all_reduce, tensor))
        return tensor

    def tell(self, value: Any) -> Any:
        """Give what the first process has to all."""
        if self.size == 1:
            return value
        text = json.dumps(value).encode() if self.first else b""
        length = torch.tensor(len(text))
        _together(partial(dist.broadcast, length, 0))
        data = torch.zeros(int(length), dtype=torch.uint8)
        if self.first:
            data = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        _together(partial(dist.broadcast, data, 0))
        return json.loads(bytes(data.tolist()))

    def tell_tensors(
        self, tensors: Mapping[str, Tensor], device: torch.device
    ) -> dict[str, Tensor]:
        """Give the named tensors that the first process has to all."""
        facts = self.tell(
            [(name, str(t.dtype).removeprefix("torch."), t.shape) for name, t in tensors.items()]
        )
        result = {}
        for name, dtype, shape in facts:
            value = torch.empty(shape, dtype=getattr(torch, dtype), device=device)
            if self.first:
                value.copy_(tensors[name])
            if self.size > 1:
                _together(partial(dist.broadcast, value, 0))
            result[name] = value
        return result

    def check_same(self, value: Any, message: str) -> None:
        """Refuse to go on where the processes do not have the same."""
        digest = hashlib.sha256(json.dumps(value).encode()).digest()[:7]
        number = int.from_bytes(digest)
        ends = torch.tensor([number, -number])
        if self.size > 1:
            _together(partial(dist.all_reduce, ends, dist.ReduceOp.MAX))
        if ends[0] != -ends[1]:
            raise TrainingError(message)


def current() -> World:
    """The processes that this one has joined."""
    if not (dist.is_available() and dist.is_initialized()):
        return World()
    rank, size = dist.get_rank(), dist.get_world_size()
    return World(rank, size, _number("LOCAL_RANK", rank), _number("LOCAL_WORLD_SIZE", size))


def launched() -> World:
    """The processes that torchrun or accelerate started, as the environment says."""
    size = _number("WORLD_SIZE", 1)
    if size < 2 or "RANK" not in os.environ:
        return World()
    rank = _number("RANK", 0)
    return World(rank, size, _number("LOCAL_RANK", rank), _number("LOCAL_WORLD_SIZE", size))


def in_turn(config: Config, prepare: Callable[..., Prepared], *arguments: Any) -> Prepared:
    """Prepare something in the first process, then in the others, and wait until all have it."""
    world = current()
    prepared = prepare(config, *arguments) if world.first else None
    if world.size > 1:
        text = world.tell(to_toml(config))
        if prepared is None:
            config = from_toml(type(config), text, "config of the first process")
            prepared = prepare(config, *arguments)
        world.sum_(torch.zeros(()))
    return cast(Prepared, prepared)


def _together(call: Callable[[], Any]) -> None:
    """Do what all processes do at the same time."""
    try:
        call()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:  # of gloo and NCCL, whose own errors are children of it
        # without the place in their sources in front and the advice behind
        reason = re.sub(r"^\[[^]]*\] ", "", next(iter(str(error).splitlines()), "")).split(". ")[0]
        raise LostProcessError(
            f"another process of this training has ended or cannot be reached ({reason}); expected "
            f"all {current().size} to stay: see what it said, then go on with --resume"
        ) from error


def _number(name: str, default: int) -> int:
    """A variable of the environment."""
    text = os.environ.get(name, "")
    with suppress(ValueError):
        return int(text) if text else default
    raise InputError(
        f"{name} is {text!r} in the environment; expected a number, as torchrun sets it"
    )
