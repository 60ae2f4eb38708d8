"""What a plain ``kill`` does while runs are going on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from treelax.errors import Terminated


@contextmanager
def end_when_told() -> Iterator[None]:
    """Let SIGTERM end what is inside as Ctrl-C does: after all that is open has been closed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return

    def end(number: int, frame: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
