"""Several processes that train one model: who they are, and what they say to each other.

Each process holds the whole model and takes its share of every batch; gradients are added up over
all of them, so every process takes the step that a single process would take. How they find each
other is in `treelax.training.processes`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from treelax.errors import InputError, TrainingError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Prepared = TypeVar("Prepared")


class LostProcessError(TrainingError):
    """Another process has ended or cannot be reached."""


@dataclass(frozen=True)
class World:
    """The processes that train together, as one of them sees them; a single one by default.

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
        """Add a tensor up over all processes, in place."""
        if self.size > 1:
            _together(partial(dist.all_reduce, tensor))
        return tensor

    def tell(self, value: Any) -> Any:
        """The value of the first process, in all of them."""
        values = [value]
        if self.size > 1:
            _together(partial(dist.broadcast_object_list, values, device=torch.device("cpu")))
        return values[0]

    def check_same(self, value: Any, message: str) -> None:
        """Raise an error in all processes unless they have the same value."""
        digest = hashlib.sha256(json.dumps(value).encode()).hexdigest()
        if self.sum_(torch.tensor(float(self.tell(digest) != digest))):
            raise TrainingError(message)


def current() -> World:
    """The processes that this one has joined."""
    if not (dist.is_available() and dist.is_initialized()):
        return World()
    return _world(dist.get_rank(), dist.get_world_size())


def launched() -> World:
    """The processes that torchrun or accelerate started, according to the environment."""
    size = int(os.environ.get("WORLD_SIZE") or 1)
    if size < 2 or "RANK" not in os.environ:
        return World()
    return _world(int(os.environ["RANK"]), size)


def _world(rank: int, size: int) -> World:
    local_rank, local_size = os.environ.get("LOCAL_RANK"), os.environ.get("LOCAL_WORLD_SIZE")
    return World(rank, size, int(local_rank or rank), int(local_size or size))


def in_turn(
    config: DataclassInstance, prepare: Callable[..., Prepared], *arguments: Any
) -> Prepared:
    """Prepare something in the first process, then in the others, and wait until all have it."""
    world = current()
    prepared = [prepare(config, *arguments)] if world.first else []
    config = world.tell(config)
    prepared = prepared or [prepare(config, *arguments)]
    world.sum_(torch.zeros(()))
    return prepared[0]


def _together(call: Callable[[], Any]) -> None:
    """Do what all processes do at the same time."""
    try:
        call()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:  # from gloo and NCCL
        reason = str(error).partition("\n")[0]
        raise LostProcessError(
            f"another process of this training has ended or cannot be reached ({reason}); expected "
            f"all {current().size} to stay: see what it said, then continue with --resume"
        ) from error
