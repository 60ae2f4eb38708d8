"""The section of estimators on whole tasks; see `benchmarks.figures`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.figures_records import ROOT, table
from treelax.lab.analysis.estimators import COMPARISONS, Study

FOLDER = Path("results", "estimators")
SEEDS = 5
IN_FILES = ("trials, dev", "seeds", "every seed")  # columns that would make a page too wide


def tasks() -> str:
    """A table for each task."""
    parts = []
    for name, comparison in COMPARISONS.items():
        study = Study(name, Path("runs"), ROOT / FOLDER)
        devices = ", ".join(dict.fromkeys(line["device"] for line in study.records.values()))
        headings, rows = study.table_rows(SEEDS)
        shown = [i for i, heading in enumerate(headings) if not heading.endswith(IN_FILES)]
        parts += [
            f"**{comparison.title}**",
            table([headings[i] for i in shown], [[row[i] for i in shown] for row in rows]),
            f"[Trials and every seed]({FOLDER}/{name}/table.md). `treelax table estimators {name}` on "
            f"{devices}; [runs]({FOLDER}/{name}/runs.csv).",
        ]
    return "\n\n".join(parts)


ESTIMATOR_SECTIONS: dict[str, Callable[[], str]] = {"estimator-tasks": tasks}
