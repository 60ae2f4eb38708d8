"""Figures of a parser against a treebank, counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from treelax.__main__ import main
from treelax.apps.data.conllu import Sentence
from treelax.apps.tasks.parsing.evaluation import ParsingFigures

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
    assert "the run was trained without test data; expected --data FILE" in capsys.readouterr().err


def test_sentences_too_long_are_refused_or_skipped(
    run: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treelax.apps.tasks.sentences.inputs.MAX_WORDS", 2)
    file, out = tmp_path / "x.conllu", tmp_path / "y.conllu"
    rows = [f"{m}\ta\t_\t_\t_\t_\t{m - 1}\tdep\t_\t_" for m in (1, 2, 3)]
    file.write_text("\n".join([*rows, "", rows[0], "", ""]))
    common = ["--device", "cpu"]
    for command, option in (
        (["eval", str(run), "--data", str(file)], ["--max-length", "2"]),
        (["predict", str(run), str(file), "--out", str(out)], ["--unusable", "drop"]),
    ):
        assert main([*command, *common]) == 2
        told = capsys.readouterr().err
        assert "x.conllu, line 1: received 3 words" in told
        assert option[0] in told
        assert main([*command, *common, *option]) == 0
        assert "1 line dropped: too many words (1)" in capsys.readouterr().err
    assert len(out.read_text().splitlines()) == 2
