"""The section of estimators on whole tasks; see `benchmarks.figures`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from benchmarks.figures import ROOT, table
from treelax.analysis.estimators import COMPARISONS, RATE, ROWS, TRIAL_SEED, Key, Study

FOLDER = Path("results", "estimators")
SEEDS = 5


def tasks() -> str:
    """For each task its table, and the trials of rows that have no other run."""
    parts = []
    for name, comparison in COMPARISONS.items():
        study = Study(name, Path("runs"), ROOT / FOLDER)
        if not study.records:
            parts.append(f"{comparison.title}: not run yet.")
            continue
        parts.append(f"**{comparison.title}**")
        headings, rows = study.table_rows(SEEDS)
        if rows:
            parts += [table(headings, rows), f"[Table and trials]({FOLDER}/{name}/table.md)."]
        finished = {row[0] for row in rows}
        headings, rest = trials(study, finished)
        if rest:
            about = "Trials, one run each: dev accuracy with discrete trees at the best epoch."
            parts += [table(headings, rest), about]
        missing = [ROWS[row].label for row in study.rows if ROWS[row].label not in finished]
        if missing:
            named = "; ".join(missing) if finished else "the five seeds of all rows"
            parts.append(f"Not run yet: {named}.")
        devices = ", ".join(dict.fromkeys(line["device"] for line in study.records.values()))
        where = f"`treelax table estimators {name}` on {devices}; [runs]({FOLDER}/{name}/runs.csv)."
        parts[-1] += f" {where}"
    return "\n\n".join(parts)


def trials(study: Study, finished: Collection[str]) -> tuple[list[str], list[list[str]]]:
    """A row for each estimator whose trials have ended and whose runs over seeds have not."""
    rows = []
    for row in study.chosen():
        own = ROWS[row]
        if own.label in finished:
            continue
        cells = []
        for value in own.values:
            line = study.records[Key(row, value, TRIAL_SEED)]
            cells.append(f"{float(line['dev']):.1f} ({value:g})")
        name = own.key.rpartition(".")[2].replace("_", " ") + (" ×" if own.key == RATE else "")
        rows.append([own.label, name, *cells])
    return ["estimator", "tuned", "first", "second", "third"], rows


ESTIMATOR_SECTIONS: dict[str, Callable[[], str]] = {"estimator-tasks": tasks}
