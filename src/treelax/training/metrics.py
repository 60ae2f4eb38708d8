"""Metrics: one JSON object a line in ``metrics.jsonl``, and the numbers for TensorBoard beside it."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from treelax.errors import DataError, InputError
from treelax.files import atomic_write

__all__ = ["MetricsLog", "read_metrics"]

FILE, FOLDER = "metrics.jsonl", "tensorboard"
RESTORE = "restore the file, or train anew with another --out"
# what tensorboard and the libraries under it are known to say when they are imported
IMPORT_WARNINGS = (
    "pkg_resources is deprecated",
    "Deprecated call to `pkg_resources",
    "distutils Version classes are deprecated",
    r"Type google\._upb\._message\.",
    r"datetime\.datetime\.utcfromtimestamp\(\) is deprecated",
    "`np.bool8` is a deprecated alias",
)


class MetricsLog:
    """Writes the metrics of a run as it trains.

    Rows are on the disk when `append` returns. Numbers also go to TensorBoard, with the epoch as
    the step, if tensorboard is installed.
    """

    def __init__(self, run_path: str | os.PathLike[str], *, keep_until: int | None) -> None:
        self._path = Path(run_path, FILE)
        self._drop_rows_after(keep_until)
        try:
            # without a buffer, for what a full disk refused must not be written later
            self._file = self._path.open("ab", buffering=0)
        except OSError as error:
            raise DataError(f"{self._path}: cannot be written: {error}") from error
        self._writer = _summary_writer(Path(run_path, FOLDER), keep_until)

    @property
    def tensorboard(self) -> bool:
        """Whether the numbers go to TensorBoard."""
        return self._writer is not None

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        if not _has_epoch(row):
            raise InputError(
                f"row: received epoch {row.get('epoch')!r}; expected a whole number from 0"
            )
        try:
            line = json.dumps(_finite(row), ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise InputError(f"row: received what is not JSON ({error})") from error
        end = self._file.seek(0, os.SEEK_END)
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(end)
            raise DataError(
                f"{self._path}: the row of epoch {row['epoch']} was not written: {error.strerror}; "
                "the rows before it are intact, mend that and use --resume"
            ) from error
        self._show(row)

    def close(self) -> None:
        """Close the files; closing twice does no harm."""
        self._file.close()
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(OSError):
                writer.close()

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _show(self, row: Mapping[str, Any]) -> None:
        """Give the numbers to TensorBoard, whose troubles never stop a training."""
        if self._writer is None:
            return
        try:
            for name, value in _numbers(row):
                self._writer.add_scalar(name, value, row["epoch"])
            self._writer.flush()
        except OSError:
            self._writer = None

    def _drop_rows_after(self, epoch: int | None) -> None:
        if not self._path.exists():
            return
        kept = "".join(
            f"{text}\n" for text, row in _rows(self._path) if epoch is None or row["epoch"] <= epoch
        ).encode()
        if kept != self._path.read_bytes():
            with atomic_write(self._path, "wb") as out:
                out.write(kept)


def read_metrics(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read the rows of ``metrics.jsonl``."""
    file = Path(path)
    file = file / FILE if file.is_dir() else file
    return [row for _, row in _rows(file)]


def check_metrics(file: Path) -> int:
    """Check that a run's rows are those of epochs 1, 2, 3, … and hold numbers."""
    rows = read_metrics(file) if file.exists() else []
    for number, row in enumerate(rows, 1):
        dev = row.get("dev", {})
        values = {**row, "dev": None, **(dev if isinstance(dev, dict) else {"dev": dev})}
        wrong = {k: v for k, v in values.items() if not isinstance(v, int | float | None)}
        if row["epoch"] != number or wrong:
            name, value = next(iter(wrong.items()), ("epoch", row["epoch"]))
            raise DataError(
                f"{file}, line {number}: received {name} {value!r:.40}; expected the numbers of epoch "
                f"{number}: {RESTORE}"
            )
    return len(rows)


def _rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The whole lines of a file, each as text and as a row."""
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise DataError(f"{file}: {what}; expected the metrics of a run")
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode()
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            if number == len(lines):  # no line end follows: cut off, or nothing at all
                return
            raise DataError(f"{file}, line {number}: is not JSON: {error}; {RESTORE}") from error
        if not isinstance(row, dict) or not _has_epoch(row):
            raise DataError(
                f"{file}, line {number}: expected an object with a whole number epoch; {RESTORE}"
            )
        yield text, row


def _has_epoch(row: Mapping[str, Any]) -> bool:
    return type(row.get("epoch")) is int and row["epoch"] >= 0


def _finite(value: Any) -> Any:
    """A value with None for the numbers that JSON does not know."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _numbers(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{name}/")
        elif type(value) in (int, float) and prefix + name != "epoch":
            yield prefix + name, value


def _summary_writer(folder: Path, keep_until: int | None) -> Any:
    """TensorBoard's writer, or None if tensorboard is not installed or cannot write there."""
    with warnings.catch_warnings():
        # of tensorboard's own imports, which nobody here can mend
        for message in IMPORT_WARNINGS:
            warnings.filterwarnings("ignore", message=message)
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return None
    try:
        return SummaryWriter(str(folder), purge_step=None if keep_until is None else keep_until + 1)
    except OSError:
        return None
