"""The lock of a run's folder: one process trains there at a time."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from treelax.errors import InputError, RunInUseError
from treelax.files import try_lock


@contextmanager
def lock(file: Path) -> Iterator[None]:
    """Hold a lock and say so in its file, as a context manager."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"{file.parent}: cannot be locked: {error.strerror}; give a folder that can be written"
        ) from error
    try:
        if not try_lock(descriptor):
            holder = os.pread(descriptor, 1000, 0).decode(errors="replace").strip()
            raise RunInUseError(
                f"{file.parent}: is in use by {holder or 'another process'}; wait until it ends, "
                "or give another --out"
            )
        with suppress(OSError):  # a full disk: the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
