"""Tables of the paper over runs, by hand."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import Any

import pytest

from treelax.apps.data.text.readers_corpora import CORPORA
from treelax.apps.tasks.listops.config import PRESETS as LISTOPS_PRESETS
from treelax.apps.tasks.text.presets import PRESETS, preset
from treelax.apps.training.config import override
from treelax.lab.analysis.tables import headings, table_rows, to_csv
from treelax.lab.listops.table import TABLE
from treelax.lab.tables import text as text_table
from treelax.lab.tables.text import TABLES, amount

BY_LENGTH = [(10, 5, 1, 100.0), (50, 15, 3, 80.0), (100, 60, 9, 10.0), (None, 300, 87, 0.0)]
LOG = [
    {"epoch": n, "loss": 0.5, "dev": {"operator_accuracy": accuracy, "attachment": 50.0}}
    for n, accuracy in enumerate((20.0, 90.0, 95.0), 1)
]


def result(preset: str, seed: int, accuracy: float, attachment: float) -> dict[str, Any]:
    return {
        **{"preset": preset, "seed": seed, "max_length": 100, "best_epoch": 7, "epochs": 9},
        **{"seconds": 12.3456, "device": "CPU"},
        "test": {
            **{"sentences": 4, "tokens": 400, "operators": 100, "operator_accuracy": accuracy},
            **{"token_accuracy": 95.0, "attachment": attachment, "exact_trees": 50.0},
            **{"soft_operator_accuracy": 88.0, "soft_token_accuracy": 87.0},
            "attachment_by_kind": {"argument": 99.0, "bracket": 97.0},  # no operator is nested
            "by_length": [
                {"longest": longest, "sentences": 1, "tokens": arcs, "arcs": arcs}
                | {"operators": operators, "operator_accuracy": figure, "attachment": figure + 1}
                | {"exact_trees": 0.0, "attachment_operator": 0.0}
                for longest, arcs, operators, figure in BY_LENGTH
            ],
            "baselines": {},
        },
    }


def test_a_record_of_listops() -> None:
    line = TABLE.record(result("gold", 3, 99.12345, 98.5), LOG)
    assert set(line) == set(TABLE.keys)
    assert line["operator_accuracy"] == 99.123  # rounded once, for CSV and table alike
    assert line["operator_accuracy_50"] == 85.0  # of four operators three have 80, one 100
    assert line["attachment_50"] == 86.0
    assert (line["turn"], line["seconds"]) == (2, 12.3)
    assert (line["attachment_bracket"], line["attachment_nested"]) == (97.0, None)
    assert TABLE.record(result("gold", 3, 99.0, 98.5), LOG[:1])["turn"] is None
    [read] = csv.DictReader(io.StringIO(to_csv(TABLE.keys, [line | {"turn": None}])))
    assert (read["preset"], read["seed"], read["turn"]) == ("gold", "3", "")
    assert read["operator_accuracy"] == "99.123"


def test_rows_of_listops() -> None:
    records = [
        TABLE.record(result("balanced-mc", 1, 98.0, 97.0)),
        TABLE.record(result("gold", 0, 99.5, 99.0), LOG),
        TABLE.record(result("balanced-mc", 0, 100.0, 99.0), LOG),
    ]
    gold, balanced = table_rows(TABLE, records)
    assert len(gold) == len(headings(TABLE))
    assert gold[:5] == ["gold trees", "100.0 / 100.0", "1", "88.00", "99.50"]
    assert balanced == [
        *("balanced recipe, MC, forward relaxed", "–", "2", "88.00 ± 0.00", "99.00 ± 1.41"),
        *("98.00 ± 1.41", "99.00 ± 0.00", "97.00 ± 0.00", "–", "50.00 ± 0.00"),
        *("2 (1 of 2)", "100.0/99.0, 98.0/97.0"),
    ]
    [through] = table_rows(TABLE, [TABLE.record(result("paper-mc-st", 0, 60.0, 50.0))])
    assert through[3:5] == ["60.00", "60.00"]  # trained on discrete trees


def test_every_row_is_a_preset() -> None:
    assert set(TABLE.figures) <= set(TABLE.labels) == set(LISTOPS_PRESETS)
    for table in TABLES.values():
        assert set(table.figures) | set(table.tuned.figures) <= PRESETS.keys()


@pytest.mark.parametrize(
    ("name", "count", "mixed", "text"),
    [
        ("sst-tree", 6_920, 0, "all 6,920 training sentences of SST"),
        (
            "multinli-none",
            129_340,
            100_000,
            "29,340 of the 392,702 training pairs of MultiNLI (7.5 %) and 100,000 of the 549,367 "
            "training pairs of SNLI (18 %), of which each epoch draws 15 %",
        ),
        ("classify", 9, 0, "9 training examples"),
    ],
)
def test_the_amount_of_training_data(name: str, count: int, mixed: int, text: str) -> None:
    assert amount(preset(name), {"training_examples": count, "mixed_examples": mixed}) == text


def test_what_the_whole_is_the_corpora_say(monkeypatch: pytest.MonkeyPatch) -> None:
    five = override(preset("sst-tree"), ["data.classes=five"])
    assert amount(five, {"training_examples": 8_544}) == "all 8,544 training sentences of SST"
    smaller = {name: replace(corpus, official={"train": 9}) for name, corpus in CORPORA.items()}
    monkeypatch.setattr(text_table, "CORPORA", smaller)
    assert amount(preset("snli-none"), {"training_examples": 9}) == "all 9 training pairs of SNLI"
