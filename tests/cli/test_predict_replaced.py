"""``--out`` of ``treelax predict | parse``: files of the run itself are never replaced."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from parse_commands import fail as parse_fails
from parse_commands import parse
from predict_commands import ask, fail, written
from vector_runs import train_with, write_vectors

from treelax.cli.output import refuse_files_of_run
from treelax.errors import DataError, InputError
from treelax.files import sha256
from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.text.config import DataConfig, TextConfig
from treelax.tasks.text.pretrained import SentenceModel
from treelax.training.run import Run

FILES = {
    "train.tsv": "the train data",
    "dev.tsv": "the dev data",
    "test.tsv": "the test data",
    "big.txt": "the word vectors",
    "more.txt": "the word vectors",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two files of word vectors; its files are beside it and stay as they are."""
    folder = tmp_path_factory.mktemp("run")
    return train_with(folder, write_vectors(folder), test=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


# ------------------------------------------------------------------ the commands


@pytest.mark.parametrize(("name", "what"), FILES.items())
def test_predict_refuses_the_files_of_the_run(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, what: str
) -> None:
    new = written(tmp_path, "a fine film\n", "new.txt")
    out, before = run.parent / name, contents(run.parent)
    link = tmp_path / "link.tsv"
    link.symlink_to(out)
    for file in (out, link):
        line = fail(capsys, run, new, "--out", file, "--format", "tsv")
        assert line == f"--out: received {file}, {what} of {run}; expected another file"
    assert contents(run.parent) == before
    assert link.is_symlink()


@pytest.mark.parametrize(("name", "what"), FILES.items())
def test_parse_refuses_the_files_of_the_run(
    run: Path, capsys: pytest.CaptureFixture[str], name: str, what: str
) -> None:
    out, before = run.parent / name, contents(run.parent)
    line = parse_fails(capsys, run, "a fine film", "--out", out, "--format", "heads")
    assert line == f"--out: received {out}, {what} of {run}; expected another file"
    assert contents(run.parent) == before


def test_vectors_that_are_read_are_not_replaced(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of a saved model too, which does not know where they are."""
    model = tmp_path / "saved"
    SentenceModel.from_run(run).save_pretrained(model)
    first, second = write_vectors(tmp_path)
    new, before = written(tmp_path, "a fine film\n", "new.txt"), second.read_bytes()
    options = ["--vectors", first, "--vectors", second, "--out", second]
    expected = f"--out: received {second}, the file that is read; expected another"
    assert fail(capsys, model, new, *options, "--format", "tsv") == expected
    assert parse_fails(capsys, model, "a film", *options, "--format", "heads") == expected
    assert second.read_bytes() == before


def test_other_files_are_replaced(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = written(tmp_path, "a fine film\n", "new.txt")
    out = written(tmp_path, (run.parent / "train.tsv").read_bytes(), "train.tsv")
    ask(capsys, run, new, "--out", out)
    assert out.read_text() == ask(capsys, run, new, "--format", "tsv")
    parse(capsys, run, "a fine film", "--out", out, "--format", "heads")
    assert out.read_text() == parse(capsys, run, "a fine film", "--format", "heads")


def test_a_saved_model_has_no_files(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, new = tmp_path / "saved", written(tmp_path, "a fine film\n", "new.txt")
    SentenceModel.from_run(run).save_pretrained(model)
    out = written(tmp_path, "the older file", "train.tsv")
    ask(capsys, model, new, "--out", out)
    assert out.read_text() == ask(capsys, model, new, "--format", "tsv")


# ------------------------------------------------------------------ which files


def recorded(folder: Path, origins: dict[str, Any], **data: Any) -> Path:
    """The folder of a run whose record has these files."""
    config = TextConfig(kind="classify", data=DataConfig(**data))
    run = Run.create(folder / "run", config, task="classify")
    (run.path / "data.json").write_text(json.dumps(origins))
    return run.path


@pytest.mark.parametrize(
    ("name", "what"), [("mix", "the data mixed in"), ("dev trees", "the dev trees")]
)
def test_what_is_mixed_in_and_given_trees(tmp_path: Path, name: str, what: str) -> None:
    out = written(tmp_path, "x", "some.zip")
    run = recorded(tmp_path, {name: {"path": str(out), "sha256": "gone by"}})
    with pytest.raises(InputError, match=f"received {out}, {what} of {run}; expected another file"):
        refuse_files_of_run(out, run)


def test_the_files_in_the_folder_of_a_corpus(tmp_path: Path) -> None:
    """The record has the folder and the sum of the file that was read there."""
    corpus = tmp_path / "corpus"
    (corpus / "trees").mkdir(parents=True)
    train = written(corpus / "trees", "train", "train.txt")
    run = recorded(tmp_path, {"train": {"path": str(corpus), "sha256": sha256(train)}})
    with pytest.raises(InputError, match=f"received {train}, the train data of {run}; expected"):
        refuse_files_of_run(train, run)
    refuse_files_of_run(written(corpus, "labels", "labels.txt"), run)
    refuse_files_of_run(written(tmp_path, "train", "copy.txt"), run)


@pytest.mark.parametrize("name", ["train.tsv", "test.tsv", "trees-dev.conllu", "words.txt"])
def test_names_are_seen_from_here_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Of a run that was moved together with its files, or that is older than the record."""
    names = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv", "vectors": "words.txt"}
    moved = {"train": {"path": "/moved/train.tsv", "sha256": ""}}
    run = recorded(tmp_path, moved, **names, trees="trees-{split}.conllu")
    written(tmp_path, "x", name)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"--out: received {name}, the .* of {run}; expected"):
        refuse_files_of_run(Path(name), run)
    os.remove(run / "data.json")
    with pytest.raises(InputError, match=f"--out: received {name}, the .* of {run}; expected"):
        refuse_files_of_run(Path(name), run)
    refuse_files_of_run(Path("new.tsv"), run)
    refuse_files_of_run(None, run)


def test_a_damaged_record_is_told_before_anything_is_replaced(tmp_path: Path) -> None:
    run = recorded(tmp_path, {"train": 3})
    out = written(tmp_path, "x", "out.tsv")
    with pytest.raises(DataError, match=r"data\.json: cannot be read as a record of files"):
        refuse_files_of_run(out, run)
    refuse_files_of_run(tmp_path / "new.tsv", run)


def test_runs_of_listops_have_no_files(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", ListOpsConfig(), task="listops")
    refuse_files_of_run(written(tmp_path, "x", "out.tsv"), run.path)
