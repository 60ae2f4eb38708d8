"""How processes that train together find each other, and how they end together.

`torch.distributed` leaves a process that waits for another one to itself: it hangs, or says
something of sockets. So every process watches a common store beside its work. One that fails says
there why; the first process tells the user, in one line, and all end.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from treelax.errors import InputError, TreelaxError
from treelax.training.distributed import World, launched

__all__ = ["joined", "quiet_unless_first"]

FAILED, INTERRUPTED = 2, 130  # exit statuses, as those of the program
POLL, GRACE, PATIENCE = 0.2, 2.0, 20.0  # seconds
# for each other at the start; later for what another process does alone, such as reading data
MEETING, WAITING = timedelta(minutes=5), timedelta(hours=2)


def quiet_unless_first() -> None:
    """Let this process say nothing if it is not the first of those that train together.

    Raises:
        InputError: a variable of the environment is no number.

    Example:
        >>> quiet_unless_first()
    """
    if not launched().first:
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


@contextmanager
def joined() -> Iterator[World]:
    """Join the processes that torchrun or accelerate started, as a context manager or a decorator.

    Alone, without such a start, it does nothing. Otherwise all begin together and end together: the
    others wait for the first at the end. If one of them fails, all end with status 2, and the first
    says why. Processes other than the first then end at once, whatever surrounds the context.

    Returns:
        A context manager that gives the processes.

    Raises:
        InputError: the processes do not find each other.

    Example:
        >>> with joined() as world:
        ...     world.size
        1
    """
    world = launched()
    if world.size == 1 or (dist.is_available() and dist.is_initialized()):
        yield world
        return
    watch = _First(world) if world.first else _Other(world)
    try:
        yield world
    except BaseException as error:
        watch.fail(error)
        raise
    watch.end()
    dist.destroy_process_group()


class _Watch(threading.Thread):
    """Watches what the other processes say, beside the work of this one."""

    def __init__(self, world: World) -> None:
        super().__init__(daemon=True)
        self.world = world
        self.store = _meet(world)
        self.over = threading.Event()  # this process has nothing left to do
        self.start()

    def said(self, key: str) -> str | None:
        """What stands in the store, or None."""
        return self.store.get(key).decode() if self.store.check([key]) else None


class _First(_Watch):
    """The watch of the first process, which tells the others when to end."""

    def __init__(self, world: World) -> None:
        self.speaker = threading.Lock()  # one error is told, by the work or by the watch
        super().__init__(world)

    def run(self) -> None:
        while not self.over.wait(POLL):
            with suppress(RuntimeError):  # the store is out of reach: so are the others
                trouble = self.said("trouble")
                if trouble is not None:
                    # what stops another process may be about to stop this one
                    if not self.over.wait(GRACE):
                        self._stop_all(trouble)
                    return

    def end(self) -> None:
        """Let all others end."""
        self._announce(0)
        self._wait(PATIENCE)

    def fail(self, error: BaseException) -> None:
        """Let all others end; the error of this process is raised further."""
        interrupted = isinstance(error, KeyboardInterrupt)
        self._announce(getattr(error, "exit_code", INTERRUPTED if interrupted else FAILED))
        # not now: a launcher may be about to end this process, which is still to say why
        atexit.register(self._wait, GRACE)

    def _announce(self, status: int) -> None:
        if not self.speaker.acquire(blocking=False):
            time.sleep(PATIENCE)  # the watch is about to end this process
        self.over.set()
        with suppress(RuntimeError):
            self.store.set("end", str(status))

    def _wait(self, seconds: float) -> None:
        """Wait until the others know, for the store may end with this process."""
        deadline = time.monotonic() + seconds
        with suppress(RuntimeError):
            while self.store.add("gone", 0) < self.world.size - 1 and time.monotonic() < deadline:
                time.sleep(POLL / 10)

    def _stop_all(self, trouble: str) -> None:
        """Say why and end this process, whose work may wait for another one for ever."""
        if not self.speaker.acquire(blocking=False):
            return
        if sys.stderr.isatty():
            print("\r\x1b[2K\x1b[?25h", end="", file=sys.stderr)  # a bar hides the cursor
        print(f"treelax: error: {trouble}", file=sys.stderr, flush=True)
        with suppress(RuntimeError):
            self.store.set("end", str(FAILED))
        self._wait(GRACE)
        os._exit(FAILED)


class _Other(_Watch):
    """The watch of any other process, which ends when the first says so."""

    def run(self) -> None:
        status = None
        while status is None:
            time.sleep(POLL)
            try:
                status = self.said("end")
            except RuntimeError:  # the first process is gone, and the store with it
                os._exit(FAILED)
        with suppress(RuntimeError):
            self.store.add("gone", 1)
        if status == "0" and self.over.wait(GRACE):
            return
        if status != "0":
            time.sleep(GRACE)  # launchers end all processes with one; the first is still to speak
        os._exit(int(status))

    def end(self) -> None:
        """Wait for the first process."""
        self.over.set()
        self.join()

    def fail(self, error: BaseException) -> None:
        """Tell the first process why, and end with it."""
        if not isinstance(
            error, TreelaxError | OSError | KeyboardInterrupt | torch.OutOfMemoryError
        ):
            traceback.print_exception(error, file=sys.__stderr__)  # a fault of the program
        where = f"process {self.world.rank} on {socket.gethostname()}"
        with suppress(RuntimeError):
            self.store.compare_set("trouble", "", f"{where}: {_explanation(error)}")
        time.sleep(PATIENCE)
        os._exit(FAILED)


def _explanation(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "was interrupted; go on with --resume"
    text = " ".join(line.strip() for line in str(error).splitlines())
    return text if isinstance(error, TreelaxError) else f"{type(error).__name__}: {text}"


def _meet(world: World) -> Any:
    """Form the group of all processes, and open a store beside it."""
    address, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    try:
        from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]
        from torch.distributed.rendezvous import rendezvous

        backend = "cpu:gloo,cuda:nccl" if dist.is_nccl_available() else "gloo"
        shared, rank, size = next(rendezvous("env://", timeout=MEETING))
        dist.init_process_group(backend, store=shared, rank=rank, world_size=size, timeout=WAITING)
        # one of its own: a process that waits for something keeps the group's store to itself
        store = TCPStore(address, int(port), is_master=False, timeout=MEETING)
    except (ImportError, RuntimeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), "")
        raise InputError(
            f"process {world.rank} of {world.size} finds no others at MASTER_ADDR {address!r} and "
            f"MASTER_PORT {port!r} ({reason}); expected all: start them with torchrun"
        ) from error
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return PrefixStore(f"treelax/{attempt}", store)
