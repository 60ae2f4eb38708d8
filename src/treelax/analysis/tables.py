"""What all tables of results share: means and spreads, files, and care for those that are there."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from treelax.errors import DataError, InputError

RUNS = "runs.csv"
TABLE = "table.md"


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation, in words.

    Args:
        values: at least one.

    Returns:
        ``MEAN ± DEVIATION``, or the value alone if there is only one.

    Example:
        >>> spread([98.0, 100.0])
        '99.00 ± 1.41'
    """
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{mean(values):.2f} ± {stdev(values):.2f}"


def to_csv(columns: Sequence[str], records: Iterable[dict[str, Any]]) -> str:
    """Records as CSV, a line each, with three decimals.

    Args:
        columns: their names, in order.
        records: a value for each column; one that is missing or None is left empty.

    Returns:
        The text, with a line of column names in front.

    Example:
        >>> to_csv(["preset", "accuracy"], [{"preset": "gold", "accuracy": 99.5}])
        'preset,accuracy\\ngold,99.500\\n'
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    for line in records:
        writer.writerow({k: f"{v:.3f}" if isinstance(v, float) else v for k, v in line.items()})
    return out.getvalue()


def to_markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    Args:
        headings: of the columns.
        rows: a cell for each.

    Returns:
        The lines, without one at the end.

    Example:
        >>> print(to_markdown(["trees", "accuracy"], [["gold", "100.00"]]))
        | trees | accuracy |
        |---|---|
        | gold | 100.00 |
    """
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def where(results: Iterable[dict[str, Any]]) -> str:
    """The machines of some runs, in words; which preset ran on which, if there are several.

    Args:
        results: each with its ``device`` and ``preset``.

    Returns:
        The words.

    Example:
        >>> where([{"device": "CPU", "preset": "gold"}])
        'CPU'
    """
    devices: dict[str, dict[str, None]] = {}
    for result in results:
        devices.setdefault(result["device"], {})[result["preset"]] = None
    if len(devices) < 2:
        return ", ".join(devices)
    return "; ".join(f"{name} ({', '.join(presets)})" for name, presets in devices.items())


def refuse_to_shrink(folder: Path, coming: Iterable[tuple[str, int]]) -> None:
    """Refuse to write a table over one that has runs which the new one lacks.

    Args:
        folder: where the table goes.
        coming: preset and seed of the runs of the new table.

    Raises:
        InputError: runs would be lost.
        DataError: the list of runs that is there cannot be read.

    Example:
        >>> refuse_to_shrink(Path("nowhere"), [("gold", 0)])
    """
    file = folder / RUNS
    if not file.exists():
        return
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            there = [(row["preset"], int(row["seed"])) for row in csv.DictReader(lines)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{file}: cannot be read as a list of runs ({error!r}); move it away or give another "
            "--results"
        ) from error
    lost = set(there) - set(coming)
    if lost:
        preset, seed = min(lost)
        raise InputError(
            f"{file}: holds {len(there)} runs, of which {len(lost)} are not in this table, such as "
            f"{preset} with seed {seed}; expected another --results, or those rows and seeds too"
        )
