"""A run that is killed, however often, goes on and ends with the numbers it would have had."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from listops_runs import metrics, options, result

from treelax.cli.main import main
from treelax.training.checkpoint import load_checkpoint

EPOCHS = 18
SETTINGS = ["--preset", "paper-mc", *options(train__epochs=EPOCHS, train__patience=1)]
PATIENCE = 120  # seconds, after which something is wrong

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is of POSIX")


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "treelax", "train", "listops"),
            *("--device", "cpu", "--out", str(folder), "--resume", *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def rows(folder: Path) -> int:
    file = folder / "metrics.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    begun = time.monotonic()
    while not happened() and process.poll() is None:
        assert time.monotonic() - begun < PATIENCE
        time.sleep(0.002)


def test_kill_9_at_random_moments(tmp_path: Path) -> None:
    folder, chance = tmp_path / "killed", random.Random(20190601)
    killed_after = []
    # as soon as there is a folder; some epochs later; some epochs and a part of one after that
    for kill in range(3):
        arguments = SETTINGS if kill == 0 else []
        process = start(folder, *arguments)
        if kill == 0:
            wait_for((folder / "config.toml").exists, process)
        else:
            seen = rows(folder)
            more = chance.randint(1, 5)
            wait_for(lambda least=seen + more: rows(folder) >= least, process)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        said, _ = process.communicate()
        assert process.returncode == -signal.SIGKILL, said
        assert not (folder / "test.json").exists()
        killed_after.append(rows(folder))
    assert 0 < killed_after[1] < killed_after[2] < EPOCHS
    last = load_checkpoint(folder / "checkpoint" / "last.safetensors").state["epoch"]
    assert killed_after[2] - 1 <= last <= killed_after[2]

    process = start(folder)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert f"going on after epoch {last} of {EPOCHS}" in said

    straight = tmp_path / "straight"
    arguments = ["--device", "cpu", "--out", str(straight), *SETTINGS]
    assert main(["train", "listops", *arguments]) == 0
    assert metrics(folder) == metrics(straight)
    assert result(folder) == result(straight)
    one, other = (
        load_checkpoint(f / "best" / "model.safetensors").tensors for f in (folder, straight)
    )
    assert one.keys() == other.keys()
    assert all(bool((one[name] == other[name]).all()) for name in one)
    assert not list(folder.rglob("*.tmp"))  # what a kill leaves half-written is cleared away
