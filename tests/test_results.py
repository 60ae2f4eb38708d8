"""What is in ``results/``: tables say what the runs beside them say."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from treelax.lab.analysis.tables import table_rows
from treelax.lab.tables.text import TABLES

RESULTS = Path(__file__).resolve().parents[1] / "results"
FOLDERS = sorted(
    path.parent.relative_to(RESULTS).as_posix() for path in RESULTS.glob("*-tuned/**/table.md")
)


def number(key: str, text: str) -> object:
    """A cell of the CSV as it was written."""
    if not key.endswith(("accuracy", "parameters", "seed")):
        return text
    return None if not text else float(text) if "." in text else int(text)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_table_is_that_of_its_runs(folder: str) -> None:
    with (RESULTS / folder / "runs.csv").open(newline="", encoding="utf-8") as file:
        runs = [{k: number(k, text) for k, text in row.items()} for row in csv.DictReader(file)]
    table = TABLES[folder.partition("-")[0]].tuned
    lines = (RESULTS / folder / "table.md").read_text(encoding="utf-8").splitlines()
    cells = [line for line in lines if line.startswith("| ")][1:]  # without the headings
    assert cells == [f"| {' | '.join(row)} |" for row in table_rows(table, runs)]
