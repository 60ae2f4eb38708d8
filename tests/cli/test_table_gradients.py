"""``treelax table gradients``: its files, and what it refuses."""

import csv

from treelax.__main__ import main

COMMAND = ["table", "gradients"]
SMALL = ["--words", "3", "--draws", "5", "--seeds", "2"]


def test_files_and_table(tmp_path, capsys):
    assert main([*COMMAND, *SMALL, "--results", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "| exact " in shown
    assert "| trained scores " in shown
    with (tmp_path / "gradients.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:8] == [
        *("structure", "words", "scores", "loss", "estimator", "setting", "value", "draws")
    ]
    exact = [row for row in rows if row["estimator"] == "exact"]
    assert len(exact) == 6
    assert all(float(row["bias"]) < 1e-10 for row in exact)
    assert rows[0]["seeds"] == "2"
    text = (tmp_path / "gradients.md").read_text(encoding="utf-8")
    assert "`treelax table gradients --structure projective --words 3 --draws 5 --seeds 2`" in text
    assert "## Trained scores, network loss" in text
    assert (tmp_path / "gradients.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert {path.name for path in tmp_path.iterdir()} == {
        *("gradients.csv", "gradients.md", "gradients.svg")
    }
