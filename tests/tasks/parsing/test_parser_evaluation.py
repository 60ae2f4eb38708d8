"""Figures of a parser against a treebank, counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from treelax.cli.main import main
from treelax.data.conllu import Sentence
from treelax.tasks.parsing.evaluation import ParsingFigures

Output = pytest.CaptureFixture[str]


def test_counted_by_hand() -> None:
    gold = [
        Sentence(
            ("Dogs", "were", "seen", "."),
            (3, 3, 0, 3),
            labels=("nsubj:pass", "aux:pass", "root", "punct"),
        ),
        Sentence(("Hi", "!"), (0, 1), labels=("root", "punct")),
    ]
    found = [
        ((3, 3, 0, 2), ("nsubj", "aux:pass", "root", "punct")),  # a subtype and a head are wrong
        ((0, 1), ("root", "obj")),  # a label is wrong
    ]
    words = [own.words for own in gold]
    figures = ParsingFigures.of(gold, [(w, *own) for w, own in zip(words, found, strict=True)])
    assert (figures.sentences, figures.words) == (2, 6)
    assert figures.uas == pytest.approx(100 * 5 / 6)
    assert figures.las == pytest.approx(100 * 4 / 6)
    assert figures.exact_las == pytest.approx(100 * 3 / 6)
    assert figures.exact_trees == 50
    assert figures.without_punctuation == {"words": 4, "uas": 100, "las": 100, "exact_las": 75}
    assert figures.by_label["punct"] == {"words": 2, "uas": 50, "las": 0, "exact_las": 0}
    assert list(figures.by_label) == ["punct", "root", "aux", "nsubj"]
    assert {key: own["words"] for key, own in figures.by_arc.items()} == {"1": 3, "2": 1, "root": 2}
    assert list(figures.by_length) == ["1-10"]


def test_eval_prints_the_figures_of_the_run(run: Path, capsys: Output) -> None:
    data = str(run.parent / "dev.conllu")
    assert main(["eval", str(run), "--data", data, "--json", "--device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["sentences"], found["las"]) == (20, 100)
    assert found.keys() >= {"uas", "words", "without_punctuation", "by_label", "by_arc"}
    assert main(["eval", str(run), "--data", data, "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert "without punctuation" in shown
    assert "nsubj" in shown


def test_eval_needs_a_treebank(run: Path, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "x.conllu").write_text("1\ta" + "\t_" * 8 + "\n\n")
    assert main(["eval", str(run), "--data", str(tmp_path / "x.conllu"), "--device", "cpu"]) == 2
    assert "x.conllu, line 1: received no head (_)" in capsys.readouterr().err
    assert main(["eval", str(run), "--device", "cpu"]) == 2
    assert "data.test is none" in capsys.readouterr().err
