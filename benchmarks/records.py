"""Records as the sections of the pages read them: rows of CSV files, and figures made of them."""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.problem import OPERATIONS
from benchmarks.report import Bar, clocks, compared, short

ROOT = Path(__file__).resolve().parents[1]
SIZES = (10, 20, 40, 80)
Row = dict[str, str]
Rows = list[Row]


def rows(path: str) -> Rows:
    """The rows of a CSV file, by its path in the repository."""
    return read(ROOT / path)


def read(path: Path) -> Rows:
    """The rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def newest(prefix: str, contender: str | None = None) -> tuple[str, Rows]:
    """Name and rows of the last record of a kind, or of the last that has a contender."""
    for path in sorted((ROOT / "benchmarks" / "results").glob(f"{prefix}-2*.csv"), reverse=True):
        records = rows(f"benchmarks/results/{path.name}")
        if contender is None or any(row["contender"] == contender for row in records):
            return path.name, records
    sys.exit(f"no benchmarks/results/{prefix}-*.csv; run the benchmark first, see its README")


def latest_by(prefix: str, *columns: str) -> list[tuple[str, Rows]]:
    """The last record of a kind for each of the entries that its first row has in some columns."""
    latest: dict[tuple[str, ...], tuple[str, Rows]] = {}
    for path in sorted((ROOT / "benchmarks" / "results").glob(f"{prefix}-*.csv")):
        records = rows(f"benchmarks/results/{path.name}")
        latest[tuple(records[0][column] for column in columns)] = path.name, records
    return list(latest.values())


def link(name: str) -> str:
    """A link to a record."""
    return f"[{name}](benchmarks/results/{name})"


def where(records: Rows, **wanted: object) -> Rows:
    """The rows that have these entries."""
    return [row for row in records if all(row[key] == str(value) for key, value in wanted.items())]


def find(records: Rows, column: str, **wanted: object) -> float | None:
    """The figure in a column of the first row that has these entries."""
    text = next((row[column] for row in where(records, **wanted)), "")
    return float(text) if text else None


def by_size(
    records: Rows, column: str, scale: float = 1, sizes: Iterable[int] = SIZES, **wanted: object
) -> list[float | None]:
    """A figure for each number of words."""
    values = [find(records, column, n=n, **wanted) for n in sizes]
    return [None if value is None else scale * value for value in values]


def ratios(
    records: Rows, operation: str, above: str, below: str, column: str = "cpu_ms", **wanted: Any
) -> list[float | None]:
    """How many times as much one contender takes as another, for each number of words."""
    pairs = zip(
        *(
            by_size(records, column, operation=operation, contender=c, **wanted)
            for c in (above, below)
        ),
        strict=True,
    )
    return [one / other if one and other else None for one, other in pairs]


def kinds_of(records: Rows, **wanted: object) -> list[tuple[str, str]]:
    """Operations and contenders, in the order of operations."""
    kinds = dict.fromkeys((one["operation"], one["contender"]) for one in where(records, **wanted))
    return sorted(kinds, key=lambda kind: OPERATIONS.index(kind[0]))


def bar_value(records: Rows, bar: Bar, n: int, batch: int) -> float | None:
    """The figure that a bar is about."""
    at = {"operation": bar.operation, "batch": batch, "n": n, "threads": 1}
    ours = find(records, bar.column, contender=bar.ours, **at)
    if bar.over is None or ours is None:
        return ours
    other = find(records, bar.column, contender=bar.over, **at)
    return other / ours if other is not None and ours else None


def times(values: Iterable[float | None]) -> list[str]:
    """Ratios with their sign; above 10 without a fraction."""
    return [
        "–" if value is None else f"{short(value) if value < 10 else f'{value:.0f}'}×"
        for value in values
    ]


def span(values: Iterable[float | None]) -> str:
    """The lowest and the highest of some ratios."""
    known = [value or 0 for value in values]
    return f"{min(known):.0f} to {max(known):.0f}"


def numbers(records: Rows, column: str) -> list[float]:
    """The figures of a column, where there are any."""
    return [float(row[column]) for row in records if row.get(column)]


def row(*cells: object) -> str:
    """A line of a Markdown table; a float has three significant digits, None is a dash."""
    texts = (short(c) if c is None or isinstance(c, float) else str(c) for c in cells)
    return f"| {' | '.join(texts)} |"


def growth(records: Rows, operation: str, contender: str, sizes: Iterable[int]) -> str:
    """Lines with the time of a sentence, and the exponent by which it grows between sizes."""
    lines = []
    previous: tuple[int, float] | None = None
    for n in sizes:
        wanted = {"operation": operation, "contender": contender, "threads": 1, "n": n}
        for record in where(records, **wanted)[:1]:
            if not record["cpu_ms"]:
                continue
            sentence = 1e3 * float(record["cpu_ms"]) / int(record["batch"])
            exponent = "–"
            if previous is not None:
                exponent = f"{math.log(sentence / previous[1], n / previous[0]):.2f}"
            peak = float(record["peak_mb"]) if record["peak_mb"] else None
            lines.append(row(n, record["batch"], sentence, exponent, peak))
            previous = n, sentence
    return "\n".join(lines)


def slower(records: Rows, column: str, ours: str) -> str:
    """Lines of the operations in which a peer is better than one of our contenders."""
    kinds = kinds_of(records)
    lines = []
    for operation, contender in kinds:
        peers = [peer for kind, peer in kinds if kind == operation and "treelax" not in peer]
        for peer in peers if contender.startswith(ours) else []:
            values = ratios(records, operation, peer, contender, column)
            if any((value or 1) < 1 for value in values):
                lines.append(row(f"{operation}, {contender}: {peer} takes", *times(values)))
    return "\n".join(lines)


def difference(records: Rows, column: str, other: float) -> float:
    """The mean of a column minus a number."""
    return mean(numbers(records, column)) - other


def markdown(text: str) -> str:
    """Text with each paragraph on a line, and tables that are readable in a terminal too."""
    return "\n\n".join(_block(block.splitlines()) for block in re.split(r"\n\s*\n", text.strip()))


def _block(lines: list[str]) -> str:
    if lines[0].startswith("|"):
        return "\n".join(_table([[c.strip() for c in line[1:-1].split("|")] for line in lines]))
    return " ".join(map(str.strip, lines)).replace(" - **", "\n- **")


def _table(lines: list[list[str]]) -> list[str]:
    right = [rule.endswith(":") for rule in lines[1]]
    body = [lines[0], *lines[2:]]
    widths = [max(3, *map(len, column)) for column in zip(*body, strict=True)]
    cells = [
        [
            cell.rjust(width) if at_right else cell.ljust(width)
            for cell, width, at_right in zip(line, widths, right, strict=True)
        ]
        for line in body
    ]
    rule = [
        "-" * (w - at_right) + ":" * at_right for w, at_right in zip(widths, right, strict=True)
    ]
    return [f"| {' | '.join(line)} |" for line in (cells[0], rule, *cells[1:])]


#: What templates can call.
FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(rows, newest, latest_by, link, where, find, by_size, ratios, times, span, numbers),
        *(row, growth, slower, difference, short, min, max),
        *(kinds_of, bar_value, clocks, compared),
    )
}


def templates(**more: Any) -> Environment:
    """The templates of ``sections/``, which can call the functions of this module and more."""
    loader = FileSystemLoader(Path(__file__).parent / "sections")
    environment = Environment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= FUNCTIONS | more
    return environment
