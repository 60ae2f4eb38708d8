"""Runs: folders that are made once, opened again, and used by one process at a time."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

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


def test_no_run(tmp_path: Path) -> None:
    Run.create(tmp_path / "runs" / "a", CONFIG, task="x")
    for name, message in {
        "nowhere": "does not exist; expected the folder of a run",
        "runs": f"holds no config.toml; expected the folder of a run, such as {tmp_path}/runs/a$",
    }.items():
        with pytest.raises(InputError, match=f"/{name}: {message}"):
            Run.open(tmp_path / name)


def test_a_broken_config(tmp_path: Path) -> None:
    for content, message in {
        "task = \n": "cannot be read as TOML: .*line 1",
        "": "names no task; expected task = ",
    }.items():
        (tmp_path / "config.toml").write_text(content)
        with pytest.raises(DataError, match=f"config.toml: {message}"):
            Run.open(tmp_path)


# ------------------------------------------------------------------ one process at a time

HOLD = """
import sys
from treelax.apps.training.run import Run
with Run.open(sys.argv[1]).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(run: Run) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


@needs_locks
def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")
    with another_process(run) as process:
        with (
            pytest.raises(RunInUseError, match=f"is in use by process {process.pid} on"),
            run.lock(),
        ):
            pass
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert str(process.pid) in run.lock_file.read_text()  # it had no time to clean up
        with run.lock():
            assert run.lock_file.read_text().startswith(f"process {os.getpid()} on ")


def test_systems_without_locks_do_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")

    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if files.fcntl is not None:  # a file system without locks
        monkeypatch.setattr(files.fcntl, "flock", flock)
        with run.lock(), run.lock():
            assert str(os.getpid()) in run.lock_file.read_text()
    monkeypatch.setattr(files, "fcntl", None)
    with run.lock(), run.lock():
        assert str(os.getpid()) in run.lock_file.read_text()


@needs_locks
@pytest.mark.parametrize("still_trains", [False, True])
def test_the_slower_of_two_that_make_a_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, still_trains: bool
) -> None:
    make, quicker = os.mkdir, ExitStack()

    def slow(path: str, mode: int = 0o777) -> None:
        make(path, mode)
        monkeypatch.setattr(os, "mkdir", make)
        quicker.enter_context(Run.start(path, CONFIG, task="the quicker"))
        if not still_trains:
            quicker.close()

    monkeypatch.setattr(os, "mkdir", slow)
    with quicker, pytest.raises(RunInUseError if still_trains else InputError):
        Run.create(tmp_path / "one", CONFIG, task="the slower")
    assert Run.open(tmp_path / "one").task == "the quicker"
