"""Rows of figures, the CSV they are kept in, and the tables a person reads."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.problem import (
    BACKWARD,
    BEST,
    BEST_TREE,
    BINARY_BEST,
    BINARY_MARGINALS,
    FORWARD_BACKWARD,
    NONPROJECTIVE_MARGINALS,
)

#: Of one (operation, contender, n, threads). Times are milliseconds per call of a whole batch:
#: ``cpu_ms`` CPU time of all threads, ``wall_ms`` elapsed time (on CUDA: eager), ``device_ms`` device
#: time on CUDA, by ``device_clock`` ("graph" replays or "events"). ``*_q1`` and ``*_q3`` are quartiles,
#: ``peak_mb`` is in units of 10^6 bytes. What was not measured is empty.
COLUMNS = (
    *("date", "device", "operation", "contender", "library", "version", "relaxation", "ragged"),
    *("batch", "n", "threads"),
    *(f"{clock}_ms{part}" for clock in ("cpu", "wall", "device") for part in ("", "_q1", "_q3")),
    *("device_clock", "repetitions", "calls_per_repetition", "peak_mb"),
    *("machine", "python", "torch", "commit", "dirty"),
)
#: How the names of the contenders begin that the bars speak of.
FAST = ("treelax native", "treelax triton")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """One line per row, floats to six significant digits; what is missing is left empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def short(value: float | None) -> str:
    """Three significant digits without an exponent: 0.01234 is 0.0123, 12345.6 is 12346."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


@dataclass(frozen=True)
class Bar:
    """Figures that the project has set itself."""

    what: str  # is measured
    operation: str
    ours: str  # our contender
    column: str  # of the figure
    bars: Mapping[int, float]  # by n
    over: str | None = None  # the contender whose figure is divided by ours; None: absolute bars

    def verdict(self, value: float | None, bar: float) -> str:
        """Whether a figure meets a bar: a ratio is to be above it, a time or a size below."""
        if value is None:
            return "not measured"
        return "met" if (value <= bar if self.over is None else value >= bar) else "NOT met"


def _bars_of_cpu() -> list[Bar]:
    both, marginals, best = "treelax native softmax", "treelax native entropy", "treelax native"
    ours = {**dict.fromkeys(BACKWARD, marginals), **dict.fromkeys(BEST, best)}
    ours[FORWARD_BACKWARD] = both
    ratios = (
        (FORWARD_BACKWARD, "torch-struct", {20: 80, 40: 50, 80: 30}),
        (FORWARD_BACKWARD, "treelax diagonal softmax", {20: 8, 40: 8}),
        (BEST_TREE, "torch-struct", {20: 50, 40: 40}),
        (NONPROJECTIVE_MARGINALS, "plain torch", {20: 10, 40: 8, 80: 3}),
        (BINARY_MARGINALS, "torch-struct", {20: 60, 40: 50, 80: 30}),
        (BINARY_BEST, "torch-struct", {20: 100, 40: 100, 80: 100}),
    )
    bars = [
        Bar(f"{peer} / ours, {name}, one thread", name, ours[name], "cpu_ms", by_size, peer)
        for name, peer, by_size in ratios
    ]
    return bars + [
        Bar(f"peak memory above base in MB, {name}", name, who, "peak_mb", {80: 40})
        for name, who in ours.items()
    ]


_TRITON = (FORWARD_BACKWARD, "treelax triton softmax")
_MILLISECONDS = {10: 0.1, 20: 0.2, 40: 0.5, 80: 1.9}
BARS: dict[str, list[Bar]] = {
    "cpu": _bars_of_cpu(),
    "cuda": [
        Bar("soft tree forward+backward, graph replay, ms", *_TRITON, "device_ms", _MILLISECONDS),
        *(
            Bar(f"torch-struct marginals+backward / ours, {name}", *_TRITON, column, bars, peer)
            for name, column in (("device time", "device_ms"), ("eager wall time", "wall_ms"))
            for bars, peer in [({20: 40, 40: 40}, "torch-struct")]
        ),
    ],
}


def clocks(device: str, threads: int) -> list[tuple[str, str]]:
    """The clocks worth a table: column and name."""
    if device == "cuda":
        return [("device_ms", "device time"), ("wall_ms", "eager wall time")]
    if threads == 1:  # CPU time and wall time are the same up to noise
        return [("cpu_ms", "one thread, CPU time")]
    return [
        ("cpu_ms", f"{threads} threads, CPU time of all threads"),
        ("wall_ms", f"{threads} threads, wall time"),
    ]


def compared(kinds: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Operation, slow and fast contender of each ratio: our kernels against all others."""
    kinds = list(kinds)
    return [
        (operation, slow, fast)
        for operation, slow in kinds
        for kind, fast in kinds
        if kind == operation
        and fast.startswith(FAST)
        and not fast.endswith("ragged")
        and not slow.startswith(FAST)
        # our own backends are compared like with like
        and (not slow.startswith("treelax") or slow.split()[2:] == fast.split()[2:])
    ]
