"""The table over runs, by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from listops_runs import tiny

from treelax.analysis.listops_table import (
    COLUMNS,
    HEADINGS,
    ROWS,
    curves,
    record,
    table_rows,
)
from treelax.analysis.tables import spread, to_csv
from treelax.errors import DataError
from treelax.tasks.listops.config import PRESETS
from treelax.training.metrics import MetricsLog
from treelax.training.run import Run


def by_length(longest: int | None, tokens: int, operators: int, figure: float) -> dict[str, Any]:
    return {
        "longest": longest,
        "sentences": 1,
        "tokens": tokens,
        "operators": operators,
        "operator_accuracy": figure,
        "attachment": figure + 1,
        "exact_trees": 0.0,
        "attachment_operator": 0.0,
    }


def result(preset: str, seed: int, accuracy: float, attachment: float) -> dict[str, Any]:
    return {
        "preset": preset,
        "seed": seed,
        "max_length": 100,
        "best_epoch": 7,
        "epochs": 9,
        "seconds": 12.3456,
        "device": "CPU",
        "test": {
            "sentences": 4,
            "tokens": 400,
            "operators": 100,
            "operator_accuracy": accuracy,
            "token_accuracy": 95.0,
            "attachment": attachment,
            "exact_trees": 50.0,
            "soft_operator_accuracy": 88.0,
            "soft_token_accuracy": 87.0,
            "attachment_by_kind": {},
            "by_length": [
                by_length(10, 10, 2, 40.0),
                by_length(50, 30, 6, 80.0),
                by_length(100, 100, 20, 0.0),
                by_length(None, 260, 72, 0.0),
            ],
            "baselines": {},
        },
    }


def dev(*accuracies: float, epoch: int) -> list[dict[str, Any]]:
    """Rows of metrics from an epoch on."""
    return [
        {"epoch": number, "dev": {"operator_accuracy": accuracy}}
        for number, accuracy in enumerate(accuracies, epoch)
    ]


def test_a_line_of_the_csv_by_hand() -> None:
    line = record(result("gold", 1, 99.0, 98.0))
    assert sorted(line) == sorted(COLUMNS)
    assert line["operator_accuracy"] == 99.0
    assert line["attachment"] == 98.0
    # up to 50 tokens: 2 operators at 40 % and 6 at 80 %, 10 tokens at 41 % and 30 at 81 %
    assert line["operator_accuracy_50"] == (2 * 40 + 6 * 80) / 8
    assert line["attachment_50"] == (10 * 41 + 30 * 81) / 40
    assert line["seconds"] == 12.3
    assert (line["best_epoch"], line["epochs"], line["device"]) == (7, 9, "CPU")


def test_a_run_without_short_expressions() -> None:
    only_long = result("gold", 1, 99.0, 98.0)
    only_long["test"]["by_length"] = only_long["test"]["by_length"][2:]
    assert record(only_long)["attachment_50"] == 0


def test_the_csv() -> None:
    text = to_csv(COLUMNS, [record(result("gold", seed, 99.0, 98.0)) for seed in (0, 1)])
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == list(COLUMNS)
    assert [row["seed"] for row in rows] == ["0", "1"]
    assert rows[0]["operator_accuracy"] == "99.000"
    assert to_csv(COLUMNS, []) == ",".join(COLUMNS) + "\n"


def test_rows_by_hand() -> None:
    records = [
        record(result("gold", 1, 99.0, 98.0), dev(60, 89.9, 91, 80, 95, epoch=6)),
        record(result("own", 0, 50.0, 50.0)),
        record(result("paper-mc", 0, 77.0, 66.0)),
        record(result("gold", 0, 97.0, 100.0)),
    ]
    rows = table_rows(records)
    assert [len(row) for row in rows] == [len(HEADINGS)] * 3
    # the order is the table's, seeds are sorted, what the table does not know comes last
    assert [row[0] for row in rows] == [
        "MC, forward relaxed",
        "gold trees",
        "own",
    ]
    assert [row[1] for row in rows] == ["99.6 / 99.7", "100.0 / 100.0", "–"]
    assert [row[2] for row in rows] == ["1", "2", "1"]
    assert rows[0][3:5] == ["77.00", "66.00"]
    assert rows[1][3:] == [
        "98.00 ± 1.41",
        "99.00 ± 1.41",
        "50.00 ± 0.00",
        "88.00 ± 0.00",
        "8 (1 of 2)",
        "97.0/100.0, 99.0/98.0",
    ]


def test_every_row_is_a_preset_and_none_comes_twice() -> None:
    presets = [row.preset for row in ROWS]
    assert set(presets) <= set(PRESETS)
    assert len(set(presets)) == len(presets)


def test_spread() -> None:
    assert spread([99.5]) == "99.50"
    assert spread([1, 2, 3, 4]) == "2.50 ± 1.29"


def test_curves_by_preset_and_seed(tmp_path: Path) -> None:
    rows = {
        name: [{"epoch": e, "loss": 1 / (e + int(name[-1]))} for e in (1, 2)]
        for name in ("paper-mc-3", "paper-mc-0", "gold-11")
    }
    runs = []
    for name, log_rows in rows.items():
        runs.append(Run.create(tmp_path / name, tiny(), task="listops"))
        with MetricsLog(runs[-1].path) as log:
            for row in log_rows:
                log.append(row)
    assert curves(runs) == {
        "paper-mc": {3: rows["paper-mc-3"], 0: rows["paper-mc-0"]},
        "gold": {11: rows["gold-11"]},
    }
    runs[0].metrics_file.unlink()
    with pytest.raises(DataError, match=r"metrics.jsonl: cannot be read"):
        curves(runs)


def test_results_on_record_can_be_read_as_json() -> None:
    """What a line holds can be written: numbers and text, nothing else."""
    line = record(json.loads(json.dumps(result("gold", 1, 99.0, 98.0))))
    assert {type(value) for value in line.values()} <= {int, float, str, type(None)}
