"""Rows of figures, the CSV they are kept in, and the tables a person reads."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from benchmarks.machine import Machine
from benchmarks.problem import (
    BACKWARD,
    BEST,
    BEST_TREE,
    BINARY_BEST,
    BINARY_MARGINALS,
    FORWARD_BACKWARD,
    NONPROJECTIVE_MARGINALS,
    OPERATIONS,
)


@dataclass(frozen=True)
class Row:
    """One (operation, contender, n, threads). Times are milliseconds per call of a whole batch.

    ``cpu_ms`` is CPU time of all threads, ``wall_ms`` elapsed time (on CUDA: eager), ``device_ms``
    device time on CUDA, by ``device_clock`` ("graph" replays or "events"). ``*_q1`` and ``*_q3``
    are quartiles. ``peak_mb`` is in units of 10^6 bytes. What was not measured is empty.
    """

    date: str
    device: str
    operation: str
    contender: str
    library: str
    version: str
    relaxation: str
    ragged: bool
    batch: int
    n: int
    threads: int
    cpu_ms: float | None
    cpu_ms_q1: float | None
    cpu_ms_q3: float | None
    wall_ms: float | None
    wall_ms_q1: float | None
    wall_ms_q3: float | None
    device_ms: float | None
    device_ms_q1: float | None
    device_ms_q3: float | None
    device_clock: str
    repetitions: int
    calls_per_repetition: int
    peak_mb: float | None
    machine: str
    python: str
    torch: str
    commit: str
    dirty: str

    @property
    def main_ms(self) -> float | None:
        """The time that ratios are made of: device time on CUDA, CPU time elsewhere."""
        return self.device_ms if self.device == "cuda" else self.cpu_ms


#: How the names of the contenders begin that the bars speak of.
FAST = ("treelax native", "treelax triton")
COLUMNS = tuple(field.name for field in fields(Row))


def write_csv(rows: Iterable[Row], path: Path) -> None:
    """One line per row, floats to six significant digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow(
                f"{value:.6g}" if isinstance(value, float) else "" if value is None else value
                for value in asdict(row).values()
            )


class Figures:
    """Rows, found by what they measure."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.index = {(r.operation, r.contender, r.n, r.threads): r for r in rows}

    def row(self, operation: str, contender: str, n: int, threads: int = 1) -> Row | None:
        return self.index.get((operation, contender, n, threads))

    def contenders(self, operation: str, threads: int) -> list[str]:
        """Who was timed, in the order of the rows."""
        rows = (r for r in self.rows if r.operation == operation and r.threads == threads)
        return list(dict.fromkeys(row.contender for row in rows))

    def ratio(
        self,
        operation: str,
        slow: str,
        fast: str,
        n: int,
        threads: int = 1,
        clock: str = "main_ms",
    ) -> float | None:
        """How many times faster ``fast`` is; None where one of the two was not measured."""
        numerator = self.row(operation, slow, n, threads)
        denominator = self.row(operation, fast, n, threads)
        if numerator is None or denominator is None:
            return None
        above, below = getattr(numerator, clock), getattr(denominator, clock)
        return above / below if above is not None and below else None


@dataclass(frozen=True)
class Bar:
    """A figure that the project has set itself."""

    what: str
    n: int
    value: float | None
    bar: float
    at_least: bool
    unit: str

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        return "met" if (self.value >= self.bar) == self.at_least else "NOT met"


def bars(rows: Sequence[Row], device: str, batch: int) -> list[Bar]:
    """The bars of the device, with what this run found for the batch they were set for."""
    figures = Figures([row for row in rows if row.batch == batch])
    both = FORWARD_BACKWARD
    if device == "cuda":
        ours = "treelax triton softmax"
        out = []
        for n, most in ((10, 100), (20, 200), (40, 500), (80, 1900)):
            row = figures.row(both, ours, n)
            value = row.device_ms * 1e3 if row and row.device_ms is not None else None
            out.append(Bar("soft tree forward+backward, graph replay", n, value, most, False, "µs"))
        for n in (20, 40):
            for name, clock in (("device time", "device_ms"), ("eager wall time", "wall_ms")):
                value = figures.ratio(both, "torch-struct", ours, n, clock=clock)
                what = f"torch-struct marginals+backward / ours, {name}"
                out.append(Bar(what, n, value, 40, True, "×"))
        return out
    ours = "treelax native softmax"
    out = [
        Bar(
            "torch-struct marginals+backward / soft tree forward+backward, one thread",
            n,
            figures.ratio(both, "torch-struct", ours, n),
            least,
            True,
            "×",
        )
        for n, least in ((20, 80), (40, 50), (80, 30))
    ]
    for n in (20, 40):
        value = figures.ratio(both, "treelax diagonal softmax", ours, n)
        out.append(Bar("diagonal / native, forward+backward, one thread", n, value, 8, True, "×"))
    for n, least in ((20, 50), (40, 40)):
        value = figures.ratio(BEST_TREE, "torch-struct", "treelax native", n)
        out.append(Bar("torch-struct argmax / best tree, one thread", n, value, least, True, "×"))
    entropy, best = "treelax native entropy", "treelax native"
    for operation, peer, own, bars_of in (
        (NONPROJECTIVE_MARGINALS, "plain torch", entropy, ((20, 10), (40, 8), (80, 3))),
        (BINARY_MARGINALS, "torch-struct", entropy, ((20, 60), (40, 50), (80, 30))),
        (BINARY_BEST, "torch-struct", best, ((20, 100), (40, 100), (80, 100))),
    ):
        for n, least in bars_of:
            value = figures.ratio(operation, peer, own, n)
            out.append(Bar(f"{peer} / ours, {operation}, one thread", n, value, least, True, "×"))
    for operation in (*BACKWARD, *BEST):
        own = ours if operation == both else best if operation in BEST else entropy
        row = figures.row(operation, own, 80)
        peak = row.peak_mb if row else None
        out.append(Bar(f"peak memory above base, {operation}", 80, peak, 40, False, "MB"))
    return out


def short(value: float | None) -> str:
    """Three significant digits without an exponent.

    Example:
        >>> short(0.01234), short(12345.6), short(None)
        ('0.0123', '12346', '–')
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def write_rows(
    path: Path, columns: Sequence[str], rows: Iterable[dict[str, object]], here: Machine
) -> None:
    """Write measurements as CSV, each with the machine and the versions it belongs to."""
    about = {"machine": here.machine, "torch": here.torch, "commit": here.commit}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row | about)


def table(header: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table with aligned columns, readable in a terminal too; the first ``left``
    columns hold words."""
    columns = list(zip(header, *lines, strict=True))
    widths = [max(3, *(len(cell) for cell in column)) for column in columns]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join([line(header), line(rule), *(line(cells) for cells in lines)])


def clocks(device: str, threads: int) -> list[tuple[str, str]]:
    """The clocks worth a table: attribute of `Row` and name."""
    if device == "cuda":
        return [("main_ms", "device time"), ("wall_ms", "eager wall time")]
    if threads == 1:  # CPU time and wall time are the same up to noise
        return [("main_ms", "one thread, CPU time")]
    return [
        ("main_ms", f"{threads} threads, CPU time of all threads"),
        ("wall_ms", f"{threads} threads, wall time"),
    ]


def time_table(
    figures: Figures, sizes: Sequence[int], threads: int, clock: str, clock_name: str
) -> str:
    """Milliseconds per batch of every operation and contender."""
    lines = []
    for operation in OPERATIONS:
        for name in figures.contenders(operation, threads):
            rows = [figures.row(operation, name, n, threads) for n in sizes]
            times = [short(getattr(row, clock)) if row else "–" for row in rows]
            lines.append([operation, name, *times])
    header = ["operation", "contender", *(f"n={n}" for n in sizes)]
    return f"### {clock_name}, ms per batch (median)\n\n{table(header, lines, left=2)}"


def ratio_table(
    figures: Figures, sizes: Sequence[int], threads: int, clock: str, clock_name: str
) -> str | None:
    """How many times faster our kernel is than each peer and than our `diagonal` backend."""
    lines = []
    for operation in OPERATIONS:
        names = figures.contenders(operation, threads)
        fast = [n for n in names if n.startswith(FAST) and not n.endswith("ragged")]
        for slow in (n for n in names if not n.startswith(FAST)):
            for ours in fast:
                if slow.startswith("treelax") and slow.split()[2:] != ours.split()[2:]:
                    continue  # our own backends are compared like with like
                ratios = [figures.ratio(operation, slow, ours, n, threads, clock) for n in sizes]
                lines.append([operation, f"{slow} / {ours}", *(short(r) for r in ratios)])
    if not lines:
        return None
    header = ["operation", "ratio", *(f"n={n}" for n in sizes)]
    return f"### {clock_name}, ratios of medians\n\n{table(header, lines, left=2)}"


def time_tables(figures: Figures, sizes: Sequence[int], device: str) -> list[str]:
    """Times and ratios for every thread count and clock."""
    out = []
    for threads in sorted({row.threads for row in figures.rows}):
        for clock, name in clocks(device, threads):
            out.append(time_table(figures, sizes, threads, clock, name))
            out.append(ratio_table(figures, sizes, threads, clock, name) or "")
    return [part for part in out if part]


def memory_tables(figures: Figures, sizes: Sequence[int]) -> list[str]:
    """Peak memory of each operation with a backward pass, and of best trees."""
    out = []
    for operation in (*BACKWARD, *BEST):
        measured = [r for r in figures.rows if r.operation == operation and r.peak_mb is not None]
        lines = []
        for name in dict.fromkeys(row.contender for row in measured):
            rows = [figures.row(operation, name, n) for n in sizes]
            lines.append([name, *(short(row.peak_mb) if row else "–" for row in rows)])
        if lines:
            text = table(["", *(f"n={n}" for n in sizes)], lines)
            out.append(f"### {operation}: peak memory above base in MB\n\n{text}")
    return out


def growth_table(figures: Figures, contender: str, sizes: Sequence[int]) -> str | None:
    """Time per sentence and the exponent ``log2(t(2n) / t(n))`` between successive sizes."""
    lines = []
    previous: tuple[int, float] | None = None
    for n in sizes:
        row = figures.row(FORWARD_BACKWARD, contender, n)
        if row is None or row.cpu_ms is None:
            continue
        each = row.cpu_ms / row.batch
        exponent = None
        if previous is not None:
            exponent = math.log(each / previous[1]) / math.log(n / previous[0])
        growth = "–" if exponent is None else f"{exponent:.2f}"
        lines.append([str(n), str(row.batch), short(each * 1e3), growth, short(row.peak_mb)])
        previous = (n, each)
    if len(lines) < 2:
        return None
    header = ["n", "batch", "µs per sentence", "growth exponent", "peak MB"]
    return f"### {contender}, {FORWARD_BACKWARD}, one thread: growth\n\n{table(header, lines)}"


def alone(rows: Sequence[Row], sizes: Sequence[int]) -> list[str]:
    """Wall time of batches of one sentence."""
    return [
        f"One sentence of {row.n} words, {row.operation}, {row.threads} threads: "
        f"{short(row.wall_ms)} ms of wall time ({row.contender})."
        for row in rows
        if row.batch == 1 and row.n in sizes
    ]


def bars_table(found: Sequence[Bar], batch: int) -> str:
    """The bars and whether they are met."""
    lines = [
        [
            bar.what,
            str(bar.n),
            f"{'≥' if bar.at_least else '≤'} {bar.bar:g} {bar.unit}",
            short(bar.value) + (f" {bar.unit}" if bar.value is not None else ""),
            bar.verdict,
        ]
        for bar in found
    ]
    return f"### Bars, batch {batch}\n\n" + table(["measure", "n", "bar", "found", ""], lines)
