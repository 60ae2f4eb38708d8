"""``treelax predict``: what it refuses, and models whose trees come with the file or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from predict_commands import KINDS, ask, fail, records, typed, written
from sentence_runs import SIZES, figures, sentences, train

from treelax.data.conllu import Sentence, write_conllu


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each kind; only to be looked at."""
    return {kind: train(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS}


@pytest.mark.parametrize(
    ("name", "text", "options", "said"),
    [
        ("a.tsv", "revue\tx\nfine\t1\n", [], "a.tsv, line 1: no column 'review'; did you mean"),
        ("a.tsv", "review\tx\nfine\n", [], "a.tsv, line 2: received 1 column; expected 2"),
        ("a.tsv", "", [], "a.tsv: received nothing; expected at least one record"),
        ("a.tsv", "review\n", [], "a.tsv: received nothing; expected at least one record"),
        ("a.tsv", b"review\nfine\n\xff\n", [], "a.tsv, line 3: is not UTF-8"),
        ("a.txt", b"fine\n\xff\n", [], "a.txt, line 2: is not UTF-8"),
        ("a.jsonl", '{"review": 3}\n', [], "a.jsonl, line 1: received 3 as 'review'; expected"),
        ("a.jsonl", "review\n", [], "a.jsonl, line 1, column 1: is no JSON"),
        ("a.tsv.gz", b"review\nfine\n", [], "a.tsv.gz, after line 0: cannot be read"),
        ("a.pdf", "x", [], "a.pdf: received a file in '.pdf'; expected .tsv, .tab, .csv"),
        (
            "a.tsv",
            "review\nx\n",
            ["--text", "a", "--text", "b"],
            "--text: received a b; expected 1",
        ),
        ("a.txt", "x\n", ["--text", "review"], "--text: received 'review', a column, and"),
        ("a.txt", "x\n", ["--input", "xls"], "Invalid value for '--input': "),
        ("a.txt", "x\n", ["--format", "xml"], "Invalid value for '--format': "),
        (
            "a.txt",
            "x\n",
            ["--batch-size", "0"],
            "Invalid value for '--batch-size': ",
        ),
        ("a.txt", "x\n", ["--device", "gpu"], "device is 'gpu'; expected cpu, cuda"),
    ],
)
def test_bad_input_is_told_in_a_line(
    runs: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str | bytes,
    options: list[str],
    said: str,
) -> None:
    file = written(tmp_path, text, name)
    out = written(tmp_path, "the older file", "out.jsonl")
    line = fail(capsys, runs["classify"], file, "--out", out, *options)
    assert line.removeprefix(f"{tmp_path}/").startswith(said)
    assert out.read_text() == "the older file"
    assert sorted(os.listdir(tmp_path)) == sorted([file.name, out.name])


def test_bad_input_of_pairs_and_taggers(
    runs: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = written(tmp_path, "one\n", "a.txt")
    assert "line 1: received 1 text; expected 2 with a tab" in fail(capsys, runs["pair"], file)
    line = fail(capsys, runs["pair"], file, "--input", "conll")
    assert line.startswith("--input: received 'conll', a word a line, for a model of pairs")
    line = fail(capsys, runs["pair"], written(tmp_path, "q\n", "a.csv"), "--text", "q")
    assert line == "--text: received q; expected 2 columns, for the model is of kind pair"
    assert "does not say what is on a line; expected --input conll" in fail(
        capsys, runs["tag"], file
    )
    typed(monkeypatch, b"fine\n\xff\n")
    assert fail(capsys, runs["tag"], "-").startswith("standard input, line 2: is not UTF-8")
    typed(monkeypatch, "")
    assert fail(capsys, runs["tag"], "-").startswith("standard input: received nothing")
    assert "received 'jsonl' for standard input" in fail(
        capsys, runs["tag"], "-", "--input", "jsonl"
    )


def test_folders_and_files_that_are_not_there(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "fine\n", "a.txt")
    assert "'runs/star' does not exist" in fail(capsys, "runs/star", file)
    assert "holds neither config.toml of a run nor config.json" in fail(capsys, tmp_path, file)
    assert "a.txt: is a file; expected the folder of a run" in fail(capsys, file, file)
    line = fail(capsys, runs["classify"], tmp_path / "b.txt")
    assert line.endswith("b.txt: does not exist; expected a file of texts, or - for standard input")
    out = tmp_path / "no" / "x.tsv"
    line = fail(capsys, runs["classify"], file, "--out", out)
    assert line.startswith(f"{out}: there is no folder {out.parent}; expected one: make it")
    line = fail(capsys, runs["classify"], file, "--out", file)
    assert line == f"--out: received {file}, the file that is read; expected another"


def test_a_run_of_another_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from treelax.tasks.listops.config import ListOpsConfig
    from treelax.training.run import Run

    run = Run.create(tmp_path / "run", ListOpsConfig(), task="listops")
    file = written(tmp_path, "fine\n", "a.txt")
    assert fail(capsys, run.path, file).startswith(f"{run.path}: is a run of listops; expected one")


def test_given_trees_come_with_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model that takes them predicts with the heads of a CoNLL-U file, and of nothing else."""
    for seed, (split, count) in enumerate(SIZES.items()):
        ones = [Sentence(tuple(w), tuple(range(len(w)))) for w, _ in sentences(seed, count)]
        write_conllu(tmp_path / f"{split}.conllu", ones)
    trees = str(tmp_path / "{split}.conllu")
    run = train("classify", tmp_path, model__trees="given", data__trees=trees)
    said = records(capsys, run, tmp_path / "test.conllu")
    assert [each["words"] for each in said] == [words for words, _ in sentences(2, SIZES["test"])]
    assert all(each["heads"] == list(range(len(each["words"]))) for each in said)
    expected = figures(run)["test"]["accuracy"]
    right = [
        each["label"] == label
        for each, (_, label) in zip(said, sentences(2, SIZES["test"]), strict=True)
    ]
    assert 100 * sum(right) / len(right) == pytest.approx(expected)
    for file in (tmp_path / "test.tsv", "-"):
        line = fail(capsys, run, file)
        assert line.startswith(f"{file}: the model takes given trees with its texts")
        assert "expected a CoNLL-U file with heads" in line
    nothing = "\t_" * 8
    bare = written(tmp_path, f"1\tfine{nothing}\n", "bare.conllu")
    assert fail(capsys, run, bare).startswith(f"{bare}, line 1: received no head (_)")
    row = "\t_\t_\t_\t_\t{}\t_\t_\t_\n"
    round_ = f"1\ta{row.format(2)}2\tb{row.format(1)}"
    circle = written(tmp_path, f"# no = tree\n{round_}", "circle.conllu")
    assert fail(capsys, run, circle).startswith(f"{circle}, line 1: the heads of word 1 lead back")


def test_trees_of_a_model_without_trees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = train("classify", tmp_path / "none", model__trees="none", train__epochs=1)
    file = written(tmp_path, "fine\n", "a.txt")
    [said] = records(capsys, run, file)
    assert said["heads"] is None
    assert ask(capsys, run, file, "--format", "tsv").splitlines()[1].endswith("\tfine\t")
    line = fail(capsys, run, file, "--format", "conllu")
    assert line.startswith("--format: received conllu, and the model has no trees (model.trees is")
