"""Training a parser: what it learns, how it goes on, and which treebanks it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sentence_runs import interrupted_after_an_epoch
from tiny_treebank import train, treebank

from treelax.apps.data.conllu import read_conllu

Output = pytest.CaptureFixture[str]
FEW = ("--set", "train.epochs=2")
GOOD = treebank(1, 8)
CROSSING = """\
1\ta\t_\t_\t_\t_\t3\tobj\t_\t_
2\tb\t_\t_\t_\t_\t0\troot\t_\t_
3\tc\t_\t_\t_\t_\t2\tobj\t_\t_
4\td\t_\t_\t_\t_\t1\tobj\t_\t_

"""


def result(folder: Path) -> dict:
    return json.loads((folder / "run" / "test.json").read_text())


def test_a_toy_treebank_is_learned(run: Path) -> None:
    dev = json.loads((run / "test.json").read_text())["splits"]["dev"]
    assert dev["las"] == dev["uas"] == 100


@pytest.mark.parametrize(
    "settings",
    [
        ["model.loss=labelled", "model.structure=projective"],
        ["model.loss=heads", "model.structure=heads"],
        ["model.loss=heads", "data.tags=upos"],
        ["model.single_root=false", "model.filters=0"],
    ],
)
def test_every_loss_and_structure_learns(files: Path, settings: list[str]) -> None:
    options = [part for own in settings for part in ("--set", own)]
    assert train(files, *options) == 0
    assert result(files)["splits"]["dev"]["las"] > 95


def test_an_interrupted_run_ends_with_the_same_figures(files: Path, tmp_path: Path) -> None:
    assert train(files, *FEW) == 0
    whole = result(files)
    (files / "run").rename(files / "whole")
    with interrupted_after_an_epoch():
        assert train(files, *FEW) == 130
    assert train(files, *FEW, "--resume") == 0
    assert {**result(files), "seconds": 0} == {**whole, "seconds": 0}


def test_vectors_are_kept_with_the_run(files: Path, capsys: Output) -> None:
    (files / "v.txt").write_text("cats 1 0 0\ndogs 0 1 0\nwolves 0 1 0.1\n")
    assert train(files, "--vectors", str(files / "v.txt"), *FEW) == 0
    assert "word vectors: 2 of" in capsys.readouterr().err


def test_crossing_trees_are_made_projective_and_told(files: Path, capsys: Output) -> None:
    with (files / "train.conllu").open("a") as file:
        file.write(CROSSING)
    assert train(files, *FEW, "--set", "model.structure=projective") == 0
    assert "train: 1 tree with crossing arcs" in capsys.readouterr().err


def test_long_sentences_and_new_labels_are_told(files: Path, capsys: Output) -> None:
    text = (files / "dev.conllu").read_text()
    text = text.replace("\tobj\t", "\tiobj\t", 1).replace("\tobj\t", "\tobj:new\t", 1)
    (files / "dev.conllu").write_text(text)
    assert train(files, *FEW, "--set", "data.max_length=6") == 0
    told = capsys.readouterr().err
    assert "of more than 6 words left out" in told
    assert "dev: 1 word with a label that training never saw, counted as wrong (iobj)" in told
    lengths = [len(sentence) for sentence in read_conllu(files / "train.conllu")]
    assert result(files)["training_sentences"] == sum(n <= 6 for n in lengths)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "bad.conllu: received nothing"),
        ("\n\n", "bad.conllu: received nothing"),
        (GOOD + "1\ta\t_\t_\t0\troot\n\n", "columns; expected 10"),
        (
            "1\ta\t_\t_\t_\t_\t2\tdep\t_\t_\n2\tb\t_\t_\t_\t_\t1\tdep\t_\t_\n\n",
            "line 1: received head 2",
        ),
        (
            "# x\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n2\tb\t_\t_\t_\t_\t0\troot\t_\t_\n\n",
            "line 3: received head 0 for a second word; expected one root",
        ),
        ("1\ta\t_\t_\t_\t_\t7\tdep\t_\t_\n\n", "line 1: received head 7; expected 0 to 1"),
        ("1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n", "line 1: received no head (_)"),
        ("1\ta\t_\t_\t_\t_\t0\t_\t_\t_\n\n", "line 1: received no label (_)"),
    ],
)
def test_bad_treebanks_are_refused_in_one_line(
    files: Path, capsys: Output, text: str, told: str
) -> None:
    (files / "bad.conllu").write_text(text)
    assert train(files, train="bad.conllu") == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert "bad.conllu" in line
    assert told in line


def test_several_roots_are_allowed_if_asked_for(files: Path) -> None:
    with (files / "train.conllu").open("a") as file:
        file.write("1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n2\tb\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    assert train(files, *FEW, "--set", "model.single_root=false") == 0


def test_the_figures_that_choose_an_epoch_are_the_final_ones(files: Path) -> None:
    """The words of the dev set are read as in prediction, here in lower case."""
    lines = [line.split("\t") for line in (files / "dev.conllu").read_text().splitlines()]
    shouted = ("\t".join([*own[:1], *map(str.upper, own[1:2]), *own[2:]]) for own in lines)
    (files / "dev.conllu").write_text("\n".join(shouted) + "\n\n")
    # no word has a vector, so that its characters tell all
    assert train(files, "--set", "data.min_count=1000") == 0
    metrics = map(json.loads, (files / "run" / "metrics.jsonl").read_text().splitlines())
    final = result(files)
    [best] = [row["dev"] for row in metrics if row["epoch"] == final["best_epoch"]]
    assert best["las"] == pytest.approx(final["splits"]["dev"]["las"])
    assert best["las"] > 95
