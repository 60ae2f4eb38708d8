"""Metrics: one JSON object per epoch in ``metrics.jsonl``, and the same numbers for TensorBoard."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from treelax.errors import DataError
from treelax.files import atomic_write

FILE, FOLDER = "metrics.jsonl", "tensorboard"
RESTORE = "restore the file, or train anew with another --out"


class MetricsLog(AbstractContextManager["MetricsLog"]):
    """Writes the metrics of a run as it trains; rows after epoch ``keep_until`` are dropped.

    Rows are on the disk when `append` returns. Numbers also go to TensorBoard, with the epoch as
    the step, if tensorboard is installed.
    """

    def __init__(self, run_path: str | os.PathLike[str], *, keep_until: int = 0) -> None:
        self._path = Path(run_path, FILE)
        if self._path.exists():
            content = b"".join(line + b"\n" for line, _ in list(_rows(self._path))[:keep_until])
            if content != self._path.read_bytes():
                with atomic_write(self._path) as out:
                    out.write(content)
        try:
            self._file = self._path.open("ab")
        except OSError as error:
            raise DataError(f"{self._path}: cannot be written: {error}") from error
        self._writer = _summary_writer(Path(run_path, FOLDER), keep_until + 1)

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row. What an error leaves half written is dropped when the run is resumed."""
        try:
            self._file.write(json.dumps(row).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise DataError(
                f"{self._path}: the row of epoch {row['epoch']} was not written: {error.strerror}; "
                "the rows before it are intact: solve this and use --resume"
            ) from error
        self._show(row)

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # append has reported it
            self._file.close()
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()

    def _show(self, row: Mapping[str, Any]) -> None:
        """Pass the numbers on to TensorBoard, whose problems never stop a training."""
        if self._writer is None:
            return
        dev = {f"dev/{name}": value for name, value in row.get("dev", {}).items()}
        try:
            for name, value in ({**row, **dev}).items():
                if type(value) in (int, float) and name != "epoch":
                    self._writer.add_scalar(name, value, row["epoch"])
            self._writer.flush()
        except OSError:
            self._writer = None


def read_metrics(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read the rows of a run's folder or of its ``metrics.jsonl``, which are of epochs 1, 2, 3, …"""
    file = Path(path)
    return [row for _, row in _rows(file / FILE if file.is_dir() else file)]


def check_metrics(file: Path) -> int:
    """The number of epochs in a file, 0 if it does not exist."""
    return len(read_metrics(file)) if file.exists() else 0


def _rows(file: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The complete lines of a file, each with its row."""
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):  # no line end follows: cut off, or empty
                return
            raise DataError(f"{file}, line {number}: is not JSON: {error}; {RESTORE}") from error
        if not isinstance(row, dict) or row.get("epoch") != number:
            expected = f"expected the numbers of epoch {number}: {RESTORE}"
            raise DataError(f"{file}, line {number}: received {row!r:.60}; {expected}")
        yield line, row


def _summary_writer(folder: Path, first: int) -> Any:
    """TensorBoard's writer, or None if tensorboard is not installed or cannot write there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from tensorboard's imports
        try:
            from torch.utils.tensorboard import SummaryWriter

            return SummaryWriter(str(folder), purge_step=first)
        except (ImportError, OSError):
            return None
