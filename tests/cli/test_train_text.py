"""``treelax train classify | pair | tag | …`` on one's own files."""

import json
import shutil
from pathlib import Path

import pytest
from listops_runs import result
from sentence_runs import SIZES, SMALL, interrupted_after_an_epoch, write_files

from treelax.__main__ import main

SETTINGS = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def files(tmp_path):
    write_files("classify", tmp_path)
    return tmp_path


def named(folder, suffix, *splits):
    return [part for s in splits for part in (f"--{s}", str(folder / f"{s}.{suffix}"))]


def classify(files, out, *more):
    columns = ["--text", "review", "--label", "liked", "--tokens"]
    data = named(files, "tsv", "train", "dev", "test")
    return main(["train", "classify", *data, *columns, "--out", str(out), *SETTINGS, *more])


def test_classify_ends_with_figures_and_resumes(files, capsys):
    out = files / "run"
    assert classify(files, out) == 0
    printed = capsys.readouterr().out
    assert "discrete trees" in printed
    assert str(out) in printed
    record = result(out)
    assert record["labels"] == ["no", "yes"]
    assert set(record["splits"]) == {"dev", "test"}
    assert record["splits"]["test"]["examples"] == SIZES["test"]
    assert (out / "words.safetensors").exists()
    # an ended run shows its figures again, also when it is named by its folder alone
    assert main(["train", "classify", "--out", str(out), "--resume"]) == 0
    assert "discrete trees" in capsys.readouterr().out


def test_other_test_data_and_commands_of_another_kind_are_refused_on_resuming(files, capsys):
    """Test data have no part in training, but the figures at the end are theirs."""
    out, test, record = files / "run", files / "test.tsv", files / "run" / "data.json"
    with interrupted_after_an_epoch():
        assert classify(files, out) == 130
    resume, began = ["train", "classify", "--out", str(out), "--resume"], record.read_text()
    moved = shutil.copy(test, files / "moved.tsv")
    test.write_text("".join(test.read_text().splitlines(keepends=True)[:2]))
    for kind in (["pair"], ["sst"], ["snli", "--preset", "snli-none"]):
        capsys.readouterr()
        assert main(["train", *kind, "--out", str(out), "--resume"]) == 2
        line = capsys.readouterr().err
        assert line.startswith(f"treelax: error: {out}: is a run of ")
        assert line.endswith("give another --out\n")
    assert main(resume) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"treelax: error: {test}: is not the test data that the run began with")
    assert line.endswith("or give --test FILE\n")
    assert record.read_text() == began
    older = shutil.copytree(out, files / "older")
    (older / "data.json").unlink()
    assert main([*resume[:3], str(older), "--resume"]) == 0
    assert result(older)["splits"]["test"]["examples"] == 1
    assert main([*resume, "--test", str(moved)]) == 0
    assert result(out)["splits"]["test"]["examples"] == SIZES["test"]


def test_a_run_without_test_data_is_given_some_on_resuming(files, capsys):
    out, data = files / "run", named(files, "tsv", "train", "dev")
    columns = ["--text", "review", "--label", "liked", "--tokens"]
    with interrupted_after_an_epoch():
        assert main(["train", "classify", *data, *columns, "--out", str(out), *SETTINGS]) == 130
    resume = ["train", "classify", "--out", str(out), "--resume", "--test"]
    capsys.readouterr()
    assert main([*resume, str(files / "nope.tsv")]) == 2
    assert f"{files / 'nope.tsv'}: does not exist; expected" in capsys.readouterr().err
    assert main([*resume, str(files / "test.tsv")]) == 0
    assert set(result(out)["splits"]) == {"dev", "test"}


def test_a_run_that_is_resumed_in_another_folder(files, monkeypatch, capsys):
    """It says which file is not there, where it was, and two ways to go on, which work."""
    whole, broken, other, away = (files / name for name in ("whole", "broken", "other", "away"))
    away.mkdir()
    assert classify(files, whole) == 0
    monkeypatch.chdir(files)
    with interrupted_after_an_epoch():
        assert classify(Path(), broken) == 130
    shutil.copytree(broken, other)
    train, resume = files / "train.tsv", ["train", "classify", "--resume", "--out"]

    def refused(run):
        capsys.readouterr()
        monkeypatch.chdir(away)
        assert main([*resume, str(run)]) == 2
        return capsys.readouterr().err.removeprefix("treelax: error: ")

    line = refused(broken)
    assert line.startswith(
        f"{away / 'train.tsv'}: does not exist; expected the train data of the run"
    )
    assert str(train) in line
    assert line.endswith("or give --train FILE\n")
    assert main([*resume, str(broken), *named(Path(".."), "tsv", "train", "dev", "test")]) == 0
    assert result(broken) == result(whole)
    moved_away = train.rename(files / "kept.tsv")
    assert refused(other).endswith("give --train FILE\n")
    assert main([*resume, str(broken)]) == 0  # it has ended and needs no files
    record = other / "data.json"
    record.write_text(record.read_text()[:40])
    assert refused(other).startswith(f"{record}: cannot be read as a record of files (")
    moved_away.rename(train)
    record.unlink()
    monkeypatch.chdir(files)
    assert main([*resume, str(other)]) == 0
    assert result(other) == result(whole)
    assert json.loads(record.read_text())["train"]["path"] == str(train)
