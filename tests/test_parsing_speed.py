"""The benchmark of parsing writes what it promises."""

import csv
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from commands import TREEBANK

from benchmarks import parsing_speed


def test_a_row_for_each_batch_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing_speed, "STARTS", 1)
    monkeypatch.setattr(parsing_speed.torch, "set_num_threads", lambda count: None)
    data = tmp_path / "two.conllu"
    data.write_text(TREEBANK)
    sizes = ["--batch-size", "1", "8", "--rounds", "2", "--out", str(tmp_path)]
    parsing_speed.main([str(data), *sizes])
    (path,) = tmp_path.glob("parsing-speed-cpu-*.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == parsing_speed.COLUMNS
    assert [row["batch_size"] for row in rows] == ["1", "8"]
    for row in rows:
        assert float(row["quickest"]) <= float(row["seconds"]) <= float(row["slowest"])
        assert float(row["first_answer_s"]) > 0
        assert row["data"] == "two.conllu"
