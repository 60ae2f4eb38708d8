"""How processes that train together find each other, and how they end together.

torchrun ends all processes when one fails. A process that fails prints one line that says why; one
that only lost another prints nothing unless it is the first.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch
import torch.distributed as dist

from treelax.apps.training.distributed import LostProcessError, World, launched
from treelax.errors import InputError, TreelaxError

FAILED = 2  # exit status, as that of the program
GRACE = 2.0  # seconds for the first to print: launchers end all processes with one
WAITING = timedelta(hours=2)  # for what another process does alone, such as reading data


def quiet_unless_first() -> None:
    """Silence this process if it is not the first of those that train together."""
    if not launched().first:
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


@contextmanager
def joined() -> Iterator[World]:
    """Join the processes that torchrun or accelerate started, as a context manager or a decorator.

    Without such a start it does nothing. Otherwise all begin together and end together: the others
    wait for the first at the end. If one of them fails it says why, and all end. Processes other
    than the first then exit at once with status 2, whatever surrounds the context.

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
            _tell(world, error)
            os._exit(FAILED)
        with suppress(RuntimeError):  # left to the end of the interpreter, its threads may abort it
            dist.destroy_process_group()
        raise
    dist.destroy_process_group()


def _tell(world: World, error: BaseException) -> None:
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
