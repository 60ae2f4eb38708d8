"""``treelax train listops``: what goes wrong on the way."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from listops_commands import QUICK, interrupt, train
from listops_runs import metrics, result

from treelax.cli.main import main
from treelax.training.checkpoint import load_checkpoint


@pytest.mark.parametrize("call", [4, 5, 6, 8])
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


def test_an_interruption_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt(tmp_path / "run", 1, *QUICK)
    output = capsys.readouterr()
    assert output.out == ""
    line = output.err.splitlines()[-1]
    assert "a training run that had begun goes on with --resume" in line
    assert json.loads((tmp_path / "run" / "metrics.jsonl").read_text())["epoch"] == 1
