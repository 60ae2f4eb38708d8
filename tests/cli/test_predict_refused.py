"""``treelax predict``: what it refuses, and files that it never replaces."""

from pathlib import Path

import pytest
from commands import fail, written
from sentence_runs import train_with, write_vectors

from treelax.apps.tasks.sentences.origins import Origin, trained_with
from treelax.apps.tasks.text.config import DataConfig
from treelax.apps.tasks.text.sources import training_files

# ------------------------------------------------------------------ files of the run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two files of word vectors; its files are beside it and stay as they are."""
    folder = tmp_path_factory.mktemp("run")
    return train_with(folder, write_vectors(folder), test=True)


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@pytest.mark.parametrize(
    ("name", "what"), [("train.tsv", "train data"), ("more.txt", "word vectors")]
)
def test_files_of_the_run_are_not_replaced(run, tmp_path, capsys, name, what):
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
def test_names_are_seen_from_here_too(tmp_path, monkeypatch, name):
    """Of a run that was moved together with its files, or that is older than the record."""
    files = {name: f"{name}.tsv" for name in ("train", "dev", "test")}
    config = DataConfig(**files, vectors="words.txt", trees="trees-{split}.conllu")  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    file = written(Path(), "x", name)
    for origins in ({}, {"train": Origin("/moved/train.tsv", "")}):
        assert trained_with(file, origins, training_files(config)) is not None
        other = written(Path(), "x", "new.tsv")
        assert trained_with(other, origins, training_files(config)) is None
