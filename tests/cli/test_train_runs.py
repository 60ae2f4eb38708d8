"""``treelax train``: two processes in one folder, lost checkpoints, a plain kill, moved folders."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from listops_runs import QUICK, content, fail, interrupt, metrics, result, tiny, train

from treelax.__main__ import main
from treelax.apps.cli import train as command
from treelax.apps.data.listops import generate_listops, write_listops
from treelax.apps.training import loop
from treelax.apps.training.checkpoint import load_checkpoint
from treelax.apps.training.run import Run

# ------------------------------------------------------------------ two at once


@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_who_is_slower_to_start_hears_that_the_folder_is_in_use(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
) -> None:
    pytest.importorskip("fcntl")
    folder, prepare, rival = tmp_path / "run", command._prepare, ExitStack()

    def slow(*arguments: Any) -> Any:
        rival.enter_context(Run.start(folder, tiny("chain"), task="listops"))
        return prepare(*arguments)

    monkeypatch.setattr(command, "_prepare", slow)
    with rival:
        line = fail(capsys, "--out", folder, *QUICK, *more)
        assert line.startswith(f"{folder}: is in use by process {os.getpid()} on ")
        assert line.endswith("wait until it ends, or give another --out")


def test_a_folder_in_use_is_said_to_be_so_before_the_data_are_read(
    half: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fcntl")

    def refuse(*_: object) -> None:
        raise AssertionError("there is no need of the data")

    monkeypatch.setattr(command, "_prepare", refuse)
    with Run.open(half).lock():
        for more in ([], ["--resume"]):
            assert f"{half}: is in use by process" in fail(capsys, "--out", half, *QUICK, *more)


# ------------------------------------------------------------------ lost checkpoints


def test_a_run_whose_checkpoint_is_lost(half: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(half / "checkpoint")
    before = content(half)
    assert fail(capsys, "--out", half, "--resume") == (
        f"{half}/checkpoint/last.safetensors: does not exist, but metrics.jsonl has 3 epochs; put it "
        "back, or train anew with another --out"
    )
    assert content(half) == before


def test_a_run_that_was_killed_before_its_first_checkpoint_starts_again(tmp_path: Path) -> None:
    interrupt(tmp_path / "run", 1, *QUICK)
    assert len(metrics(tmp_path / "run")) == 1
    said = train("--out", tmp_path / "run", "--resume").stderr.splitlines()
    assert said[0] == f"{tmp_path / 'run'}: has no checkpoint yet; starting again at epoch 1"
    train("--out", tmp_path / "straight", *QUICK)
    assert metrics(tmp_path / "run") == metrics(tmp_path / "straight")


# ------------------------------------------------------------------ a plain kill


def test_a_plain_kill_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, save, before = tmp_path / "run", loop.Training._save, signal.getsignal(signal.SIGTERM)

    def kill(self: loop.Training) -> None:
        if self.epoch == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        save(self)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Training, "_save", kill)
        arguments = ["train", "listops", "--device", "cpu", "--out", str(folder), *QUICK]
        assert main(arguments) == 143
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines()[-1].startswith("treelax: ended by SIGTERM; continue a training")
    assert signal.getsignal(signal.SIGTERM) == before
    assert (folder / ".lock").read_text() == ""  # let go
    assert "going on after epoch 2 of 4" in train("--out", folder, "--resume").stderr
    train("--out", tmp_path / "straight", *QUICK)
    assert result(folder) == result(tmp_path / "straight")


# ------------------------------------------------------------------ folders of data


def test_a_folder_of_data_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    for split, size in (("train", 40), ("dev", 20), ("test", 12)):
        file = tmp_path / "data" / f"{split}.tsv"
        write_listops(file, generate_listops(size, seed=size, max_length=12))
    monkeypatch.chdir(tmp_path)
    settings = [*QUICK, "--set", "data.folder=data"]
    interrupt(tmp_path / "run", 3, *settings)
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    assert f'folder = "{tmp_path}/data"' in (tmp_path / "run" / "config.toml").read_text()
    train("--out", "run", "--resume", *settings)  # the same settings, said in the same words
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    train("--out", "../other", "--resume")
    assert result(tmp_path / "other") == result(tmp_path / "run")
    assert result(tmp_path / "run")["test"]["sentences"] == 12


# ------------------------------------------------------------------ trouble


@pytest.mark.parametrize("call", [4, 6])
def test_a_full_disk(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    call: int,
) -> None:
    """The config comes to the disk, then of each epoch the row, the best model, the checkpoint."""
    folder, calls = tmp_path / "run", 0
    original = os.fsync

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(descriptor)

    arguments = ["train", "listops", "--device", "cpu", "--out", str(folder), *QUICK]
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    *before, line = output.err.splitlines()
    assert all(said.startswith(("chain, seed 0", "training:")) for said in before)
    assert line.startswith(f"treelax: error: {folder}")
    assert "No space left on device" in line
    if call > 4:
        done = load_checkpoint(folder / "checkpoint" / "last.safetensors").state["epoch"]
        assert done == (call - 2) // 3
    train("--out", folder, "--resume")
    train("--out", tmp_path / "straight", *QUICK)
    assert metrics(folder) == metrics(tmp_path / "straight")
    assert result(folder) == result(tmp_path / "straight")


def test_a_loss_that_is_no_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    arguments = [*QUICK, "--set", "train.learning_rate=1e38", "--set", "train.clip=1e38"]
    assert main(["train", "listops", "--device", "cpu", "--out", str(folder), *arguments]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith(f"treelax: error: {folder}: ")
    assert "epoch 1" in line
    assert line.endswith("train anew with a lower train.learning_rate or train.clip")
    assert metrics(folder) == []
