"""Tables of the paper with our runs beside them: rows, CSV, Markdown, curves."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from treelax.errors import DataError, InputError
from treelax.files import atomic_write
from treelax.lab.plots import Curve, Panel, draw_panels
from treelax.lab.tables.paper import Column, PaperTable, Record
from treelax.ops.checks import one_of

RUNS, TABLE, CURVES = "runs.csv", "table.md", "curves.csv"
Logs = Mapping[str, Mapping[int, Sequence[Mapping[str, Any]]]]  # by preset and seed


def headings(table: PaperTable) -> list[str]:
    """Headings of the columns of `table_rows`."""
    return ["trees", *filter(None, [table.paper]), *table.columns]


def table_rows(table: PaperTable, records: Sequence[Record]) -> list[list[str]]:
    """A row for each preset that has runs: what it is, the paper's figures, ours."""
    rows = []
    for preset in dict.fromkeys((*table.figures, *table.labels)):
        runs = sorted((r for r in records if r["preset"] == preset), key=lambda r: r["seed"])
        if runs:
            paper = [table.figures.get(preset) or "–"] if table.paper else []
            cells = (_cell(column, runs) for column in table.columns.values())
            rows.append([table.labels[preset], *paper, *cells])
    return rows


def _cell(column: Column, records: Sequence[Record]) -> str:
    cell = [r[column] for r in records] if isinstance(column, str) else column(records)
    if isinstance(cell, str):
        return cell
    return spread([value for value in cell if value is not None])


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation, or the value alone if there is only one; a dash for none."""
    if len(values) < 2:
        return f"{values[0]:.2f}" if values else "–"
    return f"{mean(values):.2f} ± {stdev(values):.2f}"


def choose_rows(names: str, known: Iterable[str]) -> list[str]:
    """The rows of a list with commas."""
    rows = list(dict.fromkeys(name for part in names.split(",") if (name := part.strip())))
    known = tuple(known)
    for name in rows or [names]:
        one_of("--rows", name, known)
    return rows


def write_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Write texts by the names of their files, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with atomic_write(folder / name, "w") as file:
            file.write(text)


def to_csv(
    columns: Sequence[str], records: Iterable[Mapping[str, Any]], number: str = ".3f"
) -> str:
    """Records as CSV; what is missing or None is left empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    for line in records:
        writer.writerow(
            {k: f"{v:{number}}" if isinstance(v, float) else v for k, v in line.items()}
        )
    return out.getvalue()


def read_rows(file: Path, columns: Mapping[str, Callable[[str], Any]]) -> list[Record]:
    """The rows of a CSV file, converted in the columns that it must have."""
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            return [
                row | {column: convert(row[column]) for column, convert in columns.items()}
                for row in csv.DictReader(lines)
            ]
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{file}: cannot be read as a list of runs ({error!r}); expected the columns "
            f"{', '.join(columns)}, as treelax table writes them: move it away or give another"
        ) from error


def to_markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def where(results: Iterable[Record]) -> str:
    """The machines of some runs; which preset ran on which, if there are several."""
    devices: dict[str, dict[str, None]] = {}
    for result in results:
        devices.setdefault(result["device"], {})[result["preset"]] = None
    if len(devices) < 2:
        return ", ".join(devices)
    return "; ".join(f"{name} ({', '.join(presets)})" for name, presets in devices.items())


def curves_csv(table: PaperTable, logs: Logs) -> str:
    """All epochs of all runs as CSV."""
    rows = (
        {"preset": preset, "run": seed, "epoch": row["epoch"], "loss": row["loss"]}
        | {key: row["dev"].get(key) for key in table.curves}
        for preset, seeds in logs.items()
        for seed, log in seeds.items()
        for row in log
    )
    return to_csv(["preset", "run", "epoch", "loss", *table.curves], rows, ".4f")


def plot_curves(table: PaperTable, logs: Logs, folder: Path) -> None:
    """Dev figures by epoch, a file for each plot that has runs."""
    for name, presets in table.plots.items():
        if not any(preset in logs for preset in presets):
            continue
        panels = []
        for key, title in table.panels.items():
            lines = [
                Curve.of_runs(
                    label,
                    {
                        seed: {row["epoch"]: row["dev"][key] for row in log}
                        for seed, log in logs[preset].items()
                    },
                    look=look,  # so that a cell looks the same in every plot
                )
                for look, (preset, label) in enumerate(presets.items())
                if preset in logs
            ]
            panels.append(Panel(lines, "epoch", f"dev {title}, %", title.capitalize(), (0, 100)))
        draw_panels(panels).save(folder / f"curves-{name}.svg")


def refuse_to_shrink(folder: Path, coming: Iterable[tuple[str, int]]) -> None:
    """Refuse to write a table over one that has runs which the new one lacks."""
    file = folder / RUNS
    if not file.exists():
        return
    there = [(row["preset"], row["seed"]) for row in read_rows(file, {"preset": str, "seed": int})]
    if lost := set(there) - set(coming):
        preset, seed = min(lost)
        raise InputError(
            f"{file}: holds {len(there)} runs, of which {len(lost)} are not in this table, such as "
            f"{preset} with seed {seed}; expected another --results, or those rows and seeds too"
        )
