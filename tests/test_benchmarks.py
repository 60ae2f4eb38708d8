"""The benchmark runs, writes what it promises, and refuses to time what disagrees.

No speed is asserted anywhere: figures are made by `make bench`.
"""

import csv
import dataclasses
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import agreement, measure, registry, report, run
from benchmarks.problem import BEST_TREE, FORWARD_BACKWARD, OPERATIONS, Call

TINY = ["--quick", "--no-peers", "--batch=2", "--threads=1", "--rounds=1", "--seconds=0"]


@pytest.fixture(autouse=True)
def short_turns(monkeypatch):
    monkeypatch.setattr(measure, "SAMPLE_SECONDS", 0.0)
    monkeypatch.setattr(measure, "TURN_SECONDS", 0.0)


def test_a_tiny_run_writes_the_promised_columns(tmp_path, capsys):
    arguments = [*TINY, "--sizes", "4", "--long", "6:2", "--out", str(tmp_path)]
    assert run.main(arguments) == 0
    (path,) = tmp_path.glob("*.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == report.COLUMNS
    assert {row["operation"] for row in rows} == set(OPERATIONS)
    assert {int(row["n"]) for row in rows} == {4, 6}
    keys = [(r["operation"], r["contender"], r["n"], r["threads"]) for r in rows]
    assert len(set(keys)) == len(keys)
    for row in rows:
        assert float(row["cpu_ms_q1"]) <= float(row["cpu_ms"]) <= float(row["cpu_ms_q3"])
        assert float(row["wall_ms"]) > 0
        assert float(row["peak_mb"]) >= 0
        assert row["device_ms"] == ""
    printed = capsys.readouterr()
    assert path.with_suffix(".md").read_text(encoding="utf-8") == printed.out
    assert "Results agree" in printed.out
    assert "left" in printed.err


def wrong(quantity, spoil):
    """Our diagonal backend with one of its results spoilt."""
    operations = (BEST_TREE,) if quantity == "best score" else (FORWARD_BACKWARD,)
    right = registry.ours("diagonal", "softmax", operations)

    def prepare(operation, problem, single_root):
        call = right.prepare(operation, problem, single_root)

        def read(out):
            result = call.read(out)
            return result | {quantity: spoil(result[quantity])}

        return Call(call.run, read)

    return dataclasses.replace(right, name="wrong", prepare=prepare)


@pytest.mark.parametrize(
    ("quantity", "spoil"),
    [
        ("tree", lambda value: value * 1.01),
        ("gradient", lambda value: torch.full_like(value, float("nan"))),
        ("best score", lambda value: value[:1]),
    ],
    ids=["one percent", "nan", "shape"],
)
def test_disagreement_makes_it_refuse(quantity, spoil, tmp_path, monkeypatch, capsys):
    family = "entropy" if quantity == "best score" else "softmax"
    operations = (BEST_TREE,) if quantity == "best score" else (FORWARD_BACKWARD,)
    contenders = [registry.ours("diagonal", family, operations), wrong(quantity, spoil)]
    monkeypatch.setattr(registry, "contenders", lambda *_: contenders)
    assert run.main([*TINY, "--sizes", "4", "--out", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    last = printed.err.splitlines()[-1]
    assert last.startswith("refusing to time anything: wrong and treelax diagonal")
    assert quantity in last
    assert "n=4" in last
    assert list(tmp_path.iterdir()) == []


def test_the_matrix_tree_theorem_in_plain_torch_agrees():
    [plain] = [contender for contender in registry.peers() if contender.name == "plain torch"]
    own = registry.ours("reference", "entropy", plain.operations)
    found = agreement.check([own, plain], 2, (2, 4), "cpu", lambda _: None)
    assert found.comparisons == 8  # tree and gradient, two sizes, two root rules


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_names_are_unique_and_bars_speak_of_contenders_that_exist(device):
    contenders = registry.contenders(device)
    names = [contender.name for contender in contenders]
    assert len(set(names)) == len(names)

    plan = registry.PLANS[device]
    blank = dict.fromkeys(report.COLUMNS)
    rows = [
        report.Row(
            **blank
            | {"device": device, "operation": operation, "contender": contender.name}
            | {"batch": plan.batch, "n": n, "threads": 1, "peak_mb": 1.0}
            | {"cpu_ms": 1.0, "wall_ms": 1.0, "device_ms": 1e-3}
        )
        for contender in contenders
        for operation in contender.operations
        for n in plan.sizes
    ]
    found = report.bars(rows, device, plan.batch)
    assert {bar.value for bar in found} == {1.0}
    for bar in found:
        assert bar.verdict == ("NOT met" if bar.at_least else "met")
    assert {bar.verdict for bar in report.bars(rows, device, 1)} == {"not measured"}


def test_growth_of_a_cubic_is_three():
    blank = dict.fromkeys(report.COLUMNS)
    rows = [
        report.Row(
            **blank
            | {"operation": FORWARD_BACKWARD, "contender": "x", "batch": batch, "n": n}
            | {"threads": 1, "cpu_ms": 1e-6 * n**3 * batch}
        )
        for n, batch in ((40, 64), (80, 64), (160, 16))
    ]
    text = report.growth_table(report.Figures(rows), "x", (40, 80, 160))
    assert text.count("3.00") == 2


def test_what_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert run.main(["--device", "cuda"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    with pytest.raises(SystemExit):
        run.main(["--long", "160"])
    assert "N:BATCH" in capsys.readouterr().err
