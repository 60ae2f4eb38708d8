"""The section of estimators on whole tasks; see `benchmarks.figures`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import ROOT, table
from treelax.analysis.estimators import COMPARISONS, RATE, ROWS, TRIAL_SEED, Key, Study

FOLDER = Path("results", "estimators")
SEEDS = 5


def tasks() -> str:
    """For each task its table, or its trials as long as there is no other run."""
    parts = []
    for name, comparison in COMPARISONS.items():
        study = Study(name, Path("runs"), ROOT / FOLDER, list(ROWS))
        if not study.records:
            parts.append(f"{comparison.title}: not run yet.")
            continue
        headings, rows = study.table_rows(SEEDS)
        if not rows:
            headings, rows = trials(study)
            rest = [row.label for key, row in ROWS.items() if key not in study.chosen()]
            about = (
                "Trials, one run each: dev accuracy of operators with discrete trees at the best epoch."
                f" Not run yet: {', '.join(rest)}, and the five seeds of all rows."
            )
        else:
            about = f"[Table and trials]({FOLDER}/{name}/table.md)."
        devices = ", ".join(dict.fromkeys(line["device"] for line in study.records.values()))
        where = f"`treelax table estimators {name}` on {devices}; [runs]({FOLDER}/{name}/runs.csv)."
        parts += [f"**{comparison.title}**", table(headings, rows), f"{about} {where}"]
    return "\n\n".join(parts)


def trials(study: Study) -> tuple[list[str], list[list[str]]]:
    """A row for each estimator whose trials have ended."""
    rows = []
    for row in study.chosen():
        own = ROWS[row]
        cells = []
        for value in own.values:
            line = study.records[Key(row, value, TRIAL_SEED)]
            cells.append(f"{float(line['dev']):.1f} ({value:g})")
        name = own.key.rpartition(".")[2].replace("_", " ") + (" ×" if own.key == RATE else "")
        rows.append([own.label, name, *cells])
    return ["estimator", "tuned", "first", "second", "third"], rows


ESTIMATOR_SECTIONS: dict[str, Callable[[], str]] = {"estimator-tasks": tasks}
