"""The section of estimators on whole tasks; see `benchmarks.figures`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import ROOT, table
from treelax.analysis.estimators import COMPARISONS, Study

FOLDER = Path("results", "estimators")
SEEDS = 5


def tasks() -> str:
    """A table for each task."""
    parts = []
    for name, comparison in COMPARISONS.items():
        study = Study(name, Path("runs"), ROOT / FOLDER)
        devices = ", ".join(dict.fromkeys(line["device"] for line in study.records.values()))
        parts += [
            f"**{comparison.title}**",
            table(*study.table_rows(SEEDS)),
            f"[Table and trials]({FOLDER}/{name}/table.md). `treelax table estimators {name}` on "
            f"{devices}; [runs]({FOLDER}/{name}/runs.csv).",
        ]
    return "\n\n".join(parts)


ESTIMATOR_SECTIONS: dict[str, Callable[[], str]] = {"estimator-tasks": tasks}
