"""What is in ``results/``: tables say what the runs beside them say."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import mean, stdev

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


def test_the_table_of_taggers_is_that_of_its_runs() -> None:
    with (RESULTS / "tagging" / "runs.csv").open(newline="", encoding="utf-8") as file:
        runs = list(csv.DictReader(file))
    page = (RESULTS.parent / "docs" / "own-data.md").read_text(encoding="utf-8")
    for output, name in (("softmax", "each tag by itself"), ("chain", "a chain")):
        cells = [name]
        for tags, key in (("upos", "accuracy"), ("chunks", "accuracy"), ("chunks", "f1")):
            values = [float(r[key]) for r in runs if (r["tags"], r["output"]) == (tags, output)]
            cells.append(f"{mean(values):.2f} ± {stdev(values):.2f}")
        lone = mean(float(r["lone_i"]) for r in runs if r["lone_i"] and r["output"] == output)
        assert f"| {' | '.join(cells)} | {lone:.0f}" in page
