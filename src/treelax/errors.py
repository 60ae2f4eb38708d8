"""The errors a user of treelax can meet.

Everything that a user can get wrong raises a `TreelaxError` whose one-line message says what was
received, what was expected and what to do. The children also derive from the built-in exception a
Python programmer would expect, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

from signal import SIGTERM

SHOWN = 40  # characters of a value in a message


class TreelaxError(Exception):
    """Base of all errors raised by treelax on purpose."""


class InputError(TreelaxError, ValueError):
    """An argument has the wrong shape, type, device or value."""


class NoTreeError(InputError):
    """The forbidden arcs of a sentence leave no tree at all."""


class BackendError(TreelaxError, RuntimeError):
    """A backend was asked for by name but cannot run here."""


class ChartMemoryError(TreelaxError, MemoryError):
    """There is not enough memory for the charts of a batch of sentences."""


class SecondDerivativeError(TreelaxError, RuntimeError):
    """A second derivative of a tree operation was asked for; only first derivatives exist."""


class ForwardModeError(TreelaxError, RuntimeError):
    """A derivative in forward mode was asked for; only reverse mode exists."""


class DataError(TreelaxError, ValueError):
    """A file cannot be read as what it should be; the message names the file and the line."""


class CheckpointError(TreelaxError, RuntimeError):
    """A checkpoint cannot be saved, read or used here; the message names the file."""


class RunInUseError(TreelaxError, RuntimeError):
    """Another process is training in the folder of this run."""


class Terminated(SystemExit):
    """The process received SIGTERM: it ends once all that is open has been closed.

    Its exit status is the one that a shell has for the signal.
    """

    def __init__(self) -> None:
        super().__init__(128 + SIGTERM)


class TrainingError(TreelaxError, RuntimeError):
    """Training cannot go on; for example, the loss became NaN."""


def install_command(extra: str) -> str:
    """How to install an extra of treelax; in a checkout no package index is needed to find treelax."""
    return f'pip install "treelax[{extra}]", or in a checkout pip install ".[{extra}]"'


def counted(count: int, noun: str) -> str:
    """``1 column``, ``1,200 columns``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short(value: object) -> str:
    """The repr of a value for a message, truncated."""
    if isinstance(value, str):
        return repr(value if len(value) <= SHOWN else f"{value[:SHOWN]}…")
    written = repr(value)
    return written if len(written) <= SHOWN else f"{written[:SHOWN]}…"
