"""Several processes that train one model: how they find each other, communicate and end together.

Each process holds the whole model and takes its share of every batch; gradients are added up over
all of them, so every process takes the step that a single process would take.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from treelax.errors import InputError, TrainingError, TreelaxError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Prepared = TypeVar("Prepared")
FAILED = 2  # exit status, as that of the program
GRACE = 2.0  # seconds for the first to print: launchers end all processes with one
WAITING = timedelta(hours=2)  # for what another process does alone, such as reading data
FILLS = {
    torch.Tensor.bernoulli_,
    torch.Tensor.exponential_,
    torch.Tensor.normal_,
    torch.Tensor.random_,
    torch.Tensor.uniform_,
}


class LostProcessError(TrainingError):
    """Another process has ended or cannot be reached."""


@dataclass(frozen=True)
class World:
    """The processes that train together, as one of them sees them; a single one by default."""

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

    def broadcast(self, value: Any) -> Any:
        """The value of the first process, in all of them."""
        values = [value]
        if self.size > 1:
            _together(partial(dist.broadcast_object_list, values, 0, device=torch.device("cpu")))
        return values[0]

    def check_same(self, value: Any, message: str) -> None:
        """Raise an error in all processes unless they have the same value."""
        digest = hashlib.sha256(json.dumps(value).encode()).hexdigest()
        if self.sum_(torch.tensor(float(self.broadcast(digest) != digest))):
            raise TrainingError(message)


def current() -> World:
    """The processes that this one has joined."""
    if not (dist.is_available() and dist.is_initialized()):
        return World()
    return _world(dist.get_rank(), dist.get_world_size())


def launched() -> World:
    """The processes that torchrun or accelerate started, according to the environment."""
    rank, size = _variable("RANK", 0), _variable("WORLD_SIZE", 1)
    return World() if size < 2 or "RANK" not in os.environ else _world(rank, size)


def _world(rank: int, size: int) -> World:
    return World(rank, size, _variable("LOCAL_RANK", rank), _variable("LOCAL_WORLD_SIZE", size))


def _variable(name: str, default: int) -> int:
    """A number that a launcher puts into the environment."""
    value = os.environ.get(name) or str(default)
    if not value.isdecimal():
        raise InputError(f"{name} is {value!r} in the environment; expected a whole number")
    return int(value)


def rank0_first(
    config: DataclassInstance, prepare: Callable[..., Prepared], *arguments: Any
) -> Prepared:
    """Prepare something in the first process, then in the others, and wait until all have it."""
    world = current()
    prepared = [prepare(config, *arguments)] if world.first else []
    config = world.broadcast(config)
    prepared = prepared or [prepare(config, *arguments)]
    world.sum_(torch.zeros(()))
    return prepared[0]


def _together(call: Callable[[], Any]) -> None:
    """Call a collective operation; say so if another process is gone."""
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


def quiet_unless_first() -> None:
    """Silence this process if it is not the first of those that train together."""
    if not launched().first:
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


@contextmanager
def joined() -> Iterator[World]:
    """Join the processes that torchrun or accelerate started, as a context manager or a decorator.

    Without such a start it does nothing. Otherwise all begin together and end together: the others
    wait for the first at the end. torchrun ends all when one fails. One that fails prints a line that
    says why, and unless it is the first exits at once with status 2, whatever surrounds the context.

    Example:
        >>> with joined() as world:
        ...     world.size
        1
    """
    world = launched()
    if world.size == 1 or dist.is_initialized():
        yield world
        return
    try:
        backend = "cpu:gloo,cuda:nccl" if dist.is_nccl_available() else "gloo"
        dist.init_process_group(backend, timeout=WAITING)
    except (RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"process {world.rank} of {world.size} finds no others ({reason}); expected all: start "
            "them with torchrun"
        ) from error
    try:
        yield world
        world.sum_(torch.zeros(()))  # wait for the first
    except BaseException as error:
        if not world.first:
            _print_failure(world, error)
            os._exit(FAILED)
        with suppress(RuntimeError):  # left to the end of the interpreter, its threads may abort it
            dist.destroy_process_group()
        raise
    dist.destroy_process_group()


def _print_failure(world: World, error: BaseException) -> None:
    """Print why this process, which is not the first, has failed; nothing if another one has."""
    time.sleep(GRACE)
    if isinstance(error, LostProcessError) or not isinstance(error, Exception):
        return
    if isinstance(error, TreelaxError | OSError | torch.OutOfMemoryError):
        text = " ".join(line.strip() for line in str(error).splitlines())
        where = f"process {world.rank} on {socket.gethostname()}"
        print(f"treelax: error: {where}: {text}", file=sys.__stderr__, flush=True)
    else:
        traceback.print_exception(error, file=sys.__stderr__)  # a bug


class WholeBatchDraws(TorchFunctionMode):
    """Draws random numbers for a whole batch and keeps those of this process's share.

    Generators of all processes start from the same seed, and each draws for all examples: so an
    example has the noise that it would have in a single process. Examples must be in the first
    dimension, once or several times (the first texts of all pairs, then the second ones). Scalars
    are left alone: they are the same everywhere.
    """

    def __init__(self, world: World, count: int) -> None:
        super().__init__()
        self.world, self.count, self.part = world, count, world.share(count)

    def __torch_function__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in FILLS and args[0].dim():
            return args[0].copy_(self._cut(func(self._room(args[0]), *args[1:], **kwargs)))
        if func is torch._standard_gamma:
            return self._gamma(*args, **kwargs)
        if func is F.dropout:
            return self._dropout(*args, **kwargs)
        if func is F.scaled_dot_product_attention:
            return self._attention(*args, **kwargs)
        return func(*args, **kwargs)

    def _gamma(self, concentration: Tensor, generator: torch.Generator | None = None) -> Tensor:
        # how many numbers a draw takes depends on the concentration, also on that of other shares
        whole = self.world.sum_(self._padded(concentration))
        return self._cut(torch._standard_gamma(whole, generator=generator))

    def _dropout(
        self, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        if not training or not p:
            return input
        return input * self._cut(F.dropout(self._room(input).fill_(1), p))

    def _attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        **options: Any,
    ) -> Tensor:
        if not dropout_p:
            return F.scaled_dot_product_attention(query, key, value, attn_mask, **options)
        # its kernels draw inside, so they get a whole batch, of which the other shares are zeros
        query, key, value = (self._padded(part) for part in (query, key, value))
        if attn_mask is not None and attn_mask.dim() == query.dim() and len(attn_mask) > 1:
            attn_mask = self._padded(attn_mask, 1 if attn_mask.dtype == torch.bool else 0)
        return self._cut(
            F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, **options)
        )

    def _padded(self, share: Tensor, value: float = 0) -> Tensor:
        """The share with room for the others, filled with a value."""
        times = share.unflatten(0, (self._times(share), -1))
        around = (self.part.start, self.count - self.part.stop)
        return F.pad(times, (0, 0) * (share.dim() - 1) + around, value=value).flatten(0, 1)

    def _cut(self, whole: Tensor) -> Tensor:
        """The share of a whole batch."""
        return whole.unflatten(0, (-1, self.count))[:, self.part].flatten(0, 1)

    def _room(self, share: Tensor) -> Tensor:
        """An empty tensor for the whole batch."""
        size = (self._times(share) * self.count, *share.shape[1:])
        return torch.empty(size, dtype=share.dtype, device=share.device)

    def _times(self, share: Tensor) -> int:
        """How often the examples follow each other in the first dimension."""
        examples = self.part.stop - self.part.start
        if len(share) % examples:
            raise TrainingError(
                f"random numbers of shape {tuple(share.shape)} were drawn for a share of {examples} "
                "examples; expected examples in the first dimension: train it in one process"
            )
        return len(share) // examples
