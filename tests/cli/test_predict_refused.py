"""``treelax predict``: what it refuses, and files that it never replaces."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from commands import Output, fail, saved, typed, written
from sentence_runs import train_with, write_vectors

from treelax.apps.tasks.sentences.origins import Origin, trained_with
from treelax.apps.tasks.text.config import DataConfig
from treelax.apps.tasks.text.sources import training_files

Runs = dict[str, Path]


@pytest.mark.parametrize(
    ("name", "text", "options", "said"),
    [
        ("a.tsv", "revue\tx\nfine\t1\n", [], "a.tsv, line 1: no column 'review'; did you mean"),
        ("a.tsv", "review\tx\nfine\n", [], "a.tsv, line 2: received 1 column; expected 2"),
        ("a.tsv", "", [], "a.tsv: received nothing; expected at least one record"),
        ("a.tsv", "review\n", [], "a.tsv: received nothing; expected at least one record"),
        ("a.conllu", "", [], "a.conllu: received nothing; expected at least one sentence"),
        ("a.tsv", b"review\nfine\n\xff\n", [], "a.tsv, line 3: is not UTF-8"),
        ("a.txt", b"fine\n\xff\n", [], "a.txt, line 2: is not UTF-8"),
        ("a.jsonl", '{"review": 3}\n', [], "a.jsonl, line 1: received 3 as 'review'; expected"),
        ("a.jsonl", "review\n", [], "a.jsonl, line 1"),
        ("a.tsv.gz", b"review\nfine\n", [], "a.tsv.gz, after line 0: cannot be read"),
        ("a.pdf", "x", [], "a.pdf: received a file in '.pdf'; expected .tsv, .tab, .csv"),
        ("a.tsv", "review\nx\n", ["--text", "a", "--text", "b"], "--text: received a b; expected"),
        ("a.txt", "x\n", ["--text", "review"], "--text and --label: received 'review', a column"),
        ("a.txt", "x\n", ["--input", "xls"], "Invalid value for '--input': "),
        ("a.txt", "x\n", ["--format", "xml"], "Invalid value for '--format': "),
        ("a.txt", "x\n", ["--batch-size", "0"], "Invalid value for '--batch-size': "),
        ("a.txt", "x\n", ["--device", "gpu"], "device is 'gpu'; expected cpu, cuda"),
    ],
)
def test_bad_input_is_told_in_a_line(
    sentence_runs: Runs,
    tmp_path: Path,
    capsys: Output,
    name: str,
    text: str | bytes,
    options: list[str],
    said: str,
) -> None:
    file = written(tmp_path, text, name)
    out = written(tmp_path, "the older file", "out.jsonl")
    line = fail(capsys, "predict", sentence_runs["classify"], file, "--out", out, *options)
    assert line.removeprefix(f"{tmp_path}/").startswith(said)
    assert out.read_text() == "the older file"
    assert sorted(os.listdir(tmp_path)) == sorted([file.name, out.name])


def test_bad_input_of_pairs_and_taggers(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, "one\n", "a.txt")
    pair = partial(fail, capsys, "predict", saved(tmp_path, "pair"))
    assert "line 1: received 1 " in pair(file)
    assert "--input" in pair(file, "--input", "conll")
    assert "has no pairs" in pair(written(tmp_path, "", "a.conllu"))
    table = written(tmp_path, "q\n", "a.csv")
    assert pair(table, "--text", "q").startswith("--text")
    tag = partial(fail, capsys, "predict", saved(tmp_path, "tag"))
    assert "does not say what is on a line; expected --input conll" in tag(file)
    typed(monkeypatch, b"fine\n\xff\n")
    assert tag("-").startswith("standard input, line 2: is not UTF-8")
    assert "standard input" in tag("-", "--input", "jsonl")


def test_folders_and_files_that_are_not_there(tmp_path: Path, capsys: Output) -> None:
    file, model = written(tmp_path, "fine\n", "a.txt"), saved(tmp_path)
    refused = partial(fail, capsys, "predict")
    assert "'runs/star', which does not exist" in refused("runs/star", file)
    assert "holds neither config.toml nor config.json" in refused(tmp_path, file)
    assert "a.txt: is cut off or damaged, or no checkpoint" in refused(file, file)
    assert "b.txt: does not exist; expected a file of texts" in refused(model, tmp_path / "b.txt")
    out = tmp_path / "no" / "x.tsv"
    assert refused(model, file, "--out", out).startswith(f"{out}: there is no folder {out.parent};")
    assert "has no known ending" in refused(model, file, "--out", tmp_path / "c.json.gz")
    line = refused(model, file, "--out", file)
    assert line == f"--out: received {file}, the file that is read; expected another"


# ------------------------------------------------------------------ files of the run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two files of word vectors; its files are beside it and stay as they are."""
    folder = tmp_path_factory.mktemp("run")
    return train_with(folder, write_vectors(folder), test=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@pytest.mark.parametrize(
    ("name", "what"), [("train.tsv", "train data"), ("more.txt", "word vectors")]
)
def test_files_of_the_run_are_not_replaced(
    run: Path, tmp_path: Path, capsys: Output, name: str, what: str
) -> None:
    new = written(tmp_path, "a fine film\n", "new.txt")
    out, before = run.parent / name, contents(run.parent)
    link = tmp_path / "link.tsv"
    link.symlink_to(out)
    predict = ["predict", run, new, "--format", "tsv"]
    parse = ["parse", run, "a fine film", "--format", "heads"]
    for command, file in ((predict, out), (predict, link), (parse, out)):
        line = fail(capsys, *command, "--out", file)
        assert line == f"--out: received {file}, the {what} of {run}; expected another file"
    assert contents(run.parent) == before
    assert link.is_symlink()


@pytest.mark.parametrize("name", ["train.tsv", "test.tsv", "trees-dev.conllu", "words.txt"])
def test_names_are_seen_from_here_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Of a run that was moved together with its files, or that is older than the record."""
    files = {name: f"{name}.tsv" for name in ("train", "dev", "test")}
    config = DataConfig(**files, vectors="words.txt", trees="trees-{split}.conllu")  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    file = written(Path(), "x", name)
    for origins in ({}, {"train": Origin("/moved/train.tsv", "")}):
        assert trained_with(file, origins, training_files(config)) is not None
        other = written(Path(), "x", "new.tsv")
        assert trained_with(other, origins, training_files(config)) is None
