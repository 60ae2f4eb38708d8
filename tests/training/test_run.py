"""Runs: folders that are made once, opened again, and used by one process at a time."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import Mock

import pytest

import treelax
from treelax import files
from treelax.apps.training.run import Run
from treelax.errors import DataError, InputError, RunInUseError, TreelaxError


@dataclass(frozen=True)
class Model:
    width: int = 8


@dataclass(frozen=True)
class Experiment:
    model: Model = Model()
    name: str = "first"
    noise: str | None = None


CONFIG = Experiment(Model(width=3), "second")
needs_locks = pytest.mark.skipif(files.fcntl is None, reason="no locks on this system")


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_new_run(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "runs" / "one", CONFIG, task="listops")
    assert (run.path, run.task) == (tmp_path / "runs" / "one", "listops")
    assert run.config_file.read_text() == (
        f"# A run of listops by treelax {treelax.__version__}\n"
        'task = "listops"\n'
        "\n"
        'name = "second"\n'
        "# noise = none\n"
        "\n"
        "[model]\n"
        "width = 3\n"
    )
    assert sorted(os.listdir(run.path)) == [".lock", "config.toml"]
    opened = Run.open(str(run.path))
    assert (opened.path, opened.task, opened.config(Experiment)) == (run.path, "listops", CONFIG)


@pytest.mark.parametrize("part", ["config.toml", "metrics.jsonl", "best/model.safetensors"])
def test_a_folder_that_holds_a_run(tmp_path: Path, part: str) -> None:
    (tmp_path / part).parent.mkdir(exist_ok=True)
    (tmp_path / part).write_text("the older file")
    with pytest.raises(
        InputError, match=rf"already holds a run \({part}\); continue it with --res"
    ):
        Run.create(tmp_path, CONFIG, task="x")
    assert (tmp_path / part).read_text() == "the older file"
    assert not (tmp_path / ".lock").exists()


def test_other_folders_and_files(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    Run.create(tmp_path, CONFIG, task="x")
    assert sorted(os.listdir(tmp_path)) == [".lock", "config.toml", "notes.txt"]
    with pytest.raises(InputError, match=r"notes.txt: is a file; expected a folder"):
        Run.create(file, CONFIG, task="x")
    with pytest.raises(InputError, match=r"notes.txt/sub: cannot be made: Not a directory"):
        Run.create(file / "sub", CONFIG, task="x")
    assert file.read_text() == "mine"


@needs_locks
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(TreelaxError, match=r"one.*: was not written: No space left"):
            Run.create(tmp_path / "one", CONFIG, task="x")
    assert not (tmp_path / "one" / "config.toml").exists()
    run = Run.create(tmp_path / "one", CONFIG, task="x")
    monkeypatch.setattr(os, "write", full)
    with run.lock(), pytest.raises(RunInUseError, match="by another process;"), run.lock():
        pass


def test_folders_without_a_run_that_can_be_opened(tmp_path: Path) -> None:
    Run.create(tmp_path / "runs" / "a", CONFIG, task="x")
    for name, content in {"broken": "task = \n", "empty": ""}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text(content)
    for name, message in {
        "nowhere": "nowhere: does not exist; expected the folder of a run",
        "runs": f"runs: holds no config.toml; .* of a run, such as {tmp_path}/runs/a$",
        "broken": "config.toml: cannot be read as TOML: .*line 1",
        "empty": "config.toml: names no task; expected task = ",
    }.items():
        with pytest.raises((InputError, DataError), match=f"/{message}"):
            Run.open(tmp_path / name)


HOLD = """
import sys
from treelax.apps.training.run import Run
with Run.open(sys.argv[1]).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@needs_locks
def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")
    command = [sys.executable, "-c", HOLD, str(run.path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with (
            pytest.raises(RunInUseError, match=f"is in use by process {process.pid} on"),
            run.lock(),
        ):
            pass
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert str(process.pid) in run.lock_file.read_text()  # it had no time to clean up
        with run.lock():
            assert run.lock_file.read_text().startswith(f"process {os.getpid()} on ")


def test_systems_without_locks_do_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")
    error = OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))  # a file system without locks
    if files.fcntl is not None:
        monkeypatch.setattr(files.fcntl, "flock", Mock(side_effect=error))
        with run.lock(), run.lock():
            assert str(os.getpid()) in run.lock_file.read_text()
    monkeypatch.setattr(files, "fcntl", None)
    with run.lock(), run.lock():
        assert str(os.getpid()) in run.lock_file.read_text()


@needs_locks
def test_the_slower_of_two_that_make_a_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, quicker = os.mkdir, ExitStack()

    def slow(path: str, mode: int = 0o777) -> None:
        make(path, mode)
        monkeypatch.setattr(os, "mkdir", make)
        quicker.enter_context(Run.start(path, CONFIG, task="the quicker"))
        if Path(path).name == "ended":
            quicker.close()

    for name, error in (("trains", RunInUseError), ("ended", InputError)):
        monkeypatch.setattr(os, "mkdir", slow)
        with quicker, pytest.raises(error):
            Run.create(tmp_path / name, CONFIG, task="the slower")
        assert Run.open(tmp_path / name).task == "the quicker"
