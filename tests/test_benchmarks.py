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

from commands import TREEBANK

from benchmarks import agreement, measure, records, registry, report, run, tagging
from benchmarks.problem import BEST_TREE, FORWARD_BACKWARD, OPERATIONS, Call
from treelax.apps.data.conllu import Sentence

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
        ("gradient", lambda value: torch.full_like(value, float("nan"))),
        ("best score", lambda value: value[:1]),
    ],
    ids=["nan", "shape"],
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
    [plain] = [contender for contender in registry.others() if contender.name == "plain torch"]
    own = registry.ours("reference", "entropy", plain.operations)
    found = agreement.check([own, plain], 2, (2, 4), "cpu", lambda _: None)
    assert found.comparisons == 8  # tree and gradient, two sizes, two root rules


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_names_are_unique_and_bars_speak_of_contenders_that_exist(device):
    contenders = registry.contenders(device)
    names = [contender.name for contender in contenders]
    assert len(set(names)) == len(names)

    plan = registry.PLANS[device]
    row = {"batch": str(plan.batch), "threads": "1"}
    row |= {"peak_mb": "1", "cpu_ms": "1", "wall_ms": "1", "device_ms": "1"}
    rows = [
        row | {"operation": operation, "contender": contender.name, "n": str(n)}
        for contender in contenders
        for operation in contender.operations
        for n in plan.sizes
    ]
    for bar in report.BARS[device]:
        for n, limit in bar.bars.items():
            assert records.bar_value(rows, bar, n, plan.batch) == 1
            assert records.bar_value(rows, bar, n, 1) is None
            worse, better = (2, 0.5) if bar.over is None else (0.5, 2)
            assert bar.verdict(better * limit, limit) == "met"
            assert bar.verdict(worse * limit, limit) == "NOT met"
            assert bar.verdict(None, limit) == "not measured"


@pytest.mark.parametrize("name", run.OTHERS)
def test_every_other_measurement_has_its_options(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        run.main([name, "--help"])
    assert "--commit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        (["accuracy", "--sentences=1", "--largest=6", "--starts=1"], 5),
        (["parsing-speed", "DATA", "--batch-size", "1", "8", "--rounds=2", "--starts=1"], 2),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_other_measurements_write_their_rows(arguments, rows, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    data = tmp_path / "two.conllu"
    data.write_text(TREEBANK)
    arguments = [str(data) if argument == "DATA" else argument for argument in arguments]
    assert run.main([*arguments, "--commit=abc", "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob(f"{arguments[0]}-cpu-*.csv")
    written = records.read(path)
    assert len(written) == rows == len(capsys.readouterr().out.splitlines()) - 2
    for row in written:
        assert row["commit"] == "abc"
        if arguments[0] == "parsing-speed":
            assert float(row["quickest"]) <= float(row["seconds"]) <= float(row["slowest"])
            assert float(row["first_answer_s"]) > 0
            assert row["data"] == "two.conllu"


def test_what_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert run.main(["--device", "cuda"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    with pytest.raises(SystemExit):
        run.main(["--long", "160"])
    assert "N:BATCH" in capsys.readouterr().err


def test_noun_chunks_of_a_tree():
    words = ["In", "her", "old", "dog", "'s", "bed", "John", "Smith", "saw", "them"]
    tags = ["ADP", "PRON", "ADJ", "NOUN", "PART", "NOUN", "PROPN", "PROPN", "VERB", "PRON"]
    labels = [
        "case",
        "nmod:poss",
        "amod",
        "nmod:poss",
        "case",
        "obl",
        "nsubj",
        "flat",
        "root",
        "obj",
    ]
    sentence = Sentence(tuple(words), (6, 4, 4, 6, 4, 9, 9, 7, 0, 9), tuple(tags), tuple(labels))
    found = tagging.noun_chunks(sentence)
    chunks = [" ".join(words[a : b + 1]) for a, b in tagging.spans(found)]
    assert chunks == ["her old dog 's bed", "John Smith", "them"]
    assert list(tagging.spans(["I-NP", "I-NP", "B-NP", "O", "B-NP"])) == [(0, 1), (2, 2), (4, 4)]


def test_taggers_with_and_without_a_chain(tmp_path):
    file = tmp_path / "all.conllu"
    file.write_text(TREEBANK * 4)
    files = [part for split in tagging.SPLITS for part in (f"--{split}", str(file))]
    small = [part for s in ("encoder_size=4", "output_size=4") for part in ("--set", f"model.{s}")]
    small += ["--set", "train.epochs=1", "--set", "train.batch_size=4", "--seeds", "1"]
    tagging.main([*files, *small, "--out", str(tmp_path)])
    with (tmp_path / "runs.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kinds = [(row["tags"], row["output"]) for row in rows]
    assert kinds == [(t, o) for t in tagging.TASKS for o in tagging.OUTPUTS]
    assert all(0 <= float(row["accuracy"]) <= 100 for row in rows)
    assert [bool(row["f1"]) for row in rows] == [False, False, True, True]
