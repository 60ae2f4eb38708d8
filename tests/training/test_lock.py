"""The lock of a run: one process at a time, in whatever order they come and go."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from treelax import files
from treelax.errors import InputError, RunInUseError
from treelax.training.run import Run


@dataclass(frozen=True)
class Experiment:
    name: str = "first"


CONFIG = Experiment("second")

HOLD = """
import os, sys
from treelax.training.run import Run
with Run.open(sys.argv[1]).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(run: Run) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until its input ends."""
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


needs_locks = pytest.mark.skipif(files.fcntl is None, reason="no locks on this system")


@needs_locks
def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")
    with another_process(run) as process:
        with pytest.raises(RunInUseError) as caught, run.lock():
            pass
        assert str(caught.value) == (
            f"{run.path}: is in use by process {process.pid} on {socket.gethostname()}; wait until "
            "it ends, or give another --out"
        )
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert str(process.pid) in run.lock_file.read_text()  # it had no time to clean up
        with run.lock():
            assert run.lock_file.read_text().startswith(f"process {os.getpid()} on ")


@needs_locks
def test_the_lock_is_free_when_the_first_process_is_done(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")
    with another_process(run) as process:
        process.communicate("")
        assert process.returncode == 0
        assert run.lock_file.read_text() == ""
        with run.lock():
            pass


@needs_locks
def test_a_run_is_not_made_where_another_process_is_making_one(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")
    with run.lock():
        run.config_file.unlink()
        with pytest.raises(RunInUseError, match=f"is in use by process {os.getpid()} on"):
            Run.create(run.path, CONFIG, task="x")


@needs_locks
def test_the_slower_of_two_that_make_a_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = os.mkdir

    def slow(path: str, mode: int = 0o777) -> None:
        make(path, mode)
        monkeypatch.setattr(os, "mkdir", make)
        Run.create(path, CONFIG, task="the quicker")

    monkeypatch.setattr(os, "mkdir", slow)
    with pytest.raises(InputError, match="already holds a run"):
        Run.create(tmp_path / "one", CONFIG, task="the slower")
    assert Run.open(tmp_path / "one").task == "the quicker"


@needs_locks
def test_the_lock_is_let_go_after_an_error(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")
    with pytest.raises(KeyboardInterrupt), run.lock():
        raise KeyboardInterrupt
    with run.lock(), pytest.raises(RunInUseError), run.lock():
        pass


@needs_locks
def test_a_holder_that_has_not_yet_said_its_name(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")
    with run.lock():
        os.truncate(run.lock_file, 0)
        with pytest.raises(RunInUseError, match="is in use by another process;"), run.lock():
            pass


@needs_locks
def test_a_full_disk_does_not_unlock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with run.lock(), pytest.raises(RunInUseError), run.lock():
            pass


def test_systems_without_locks_do_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    run = Run.create(tmp_path / "one", CONFIG, task="x")
    with run.lock(), run.lock():
        assert str(os.getpid()) in run.lock_file.read_text()


@needs_locks
def test_file_systems_without_locks_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")

    def refuse(code: int) -> None:
        def flock(*_: object) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(files.fcntl, "flock", flock)

    refuse(errno.ENOLCK)
    with run.lock(), run.lock():
        assert str(os.getpid()) in run.lock_file.read_text()
    refuse(errno.EIO)
    with pytest.raises(OSError, match="Input/output error"), run.lock():
        pass


# ------------------------------------------------------------------ starting


@needs_locks
def test_a_started_run_is_locked_from_its_first_moment(tmp_path: Path) -> None:
    with Run.start(tmp_path / "one", CONFIG, task="x") as run:
        assert run.config(Experiment) == CONFIG
        assert run.lock_file.read_text().startswith(f"process {os.getpid()} on ")
        with pytest.raises(RunInUseError), run.lock():
            pass
    with run.lock():
        pass


@needs_locks
def test_who_comes_second_hears_of_the_first_and_nothing_of_resuming(tmp_path: Path) -> None:
    with Run.start(tmp_path / "one", CONFIG, task="x") as run:
        said = f"{run.path}: is in use by process {os.getpid()} on"
        for start in (Run.create, lambda *a, **k: Run.start(*a, **k).__enter__()):
            with pytest.raises(RunInUseError, match=f"^{said}"):
                start(run.path, CONFIG, task="y")
    with pytest.raises(InputError, match=r"already holds a run .* continue it with --resume"):
        Run.create(run.path, CONFIG, task="y")


@needs_locks
def test_the_slower_of_two_hears_of_the_quicker_one_that_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, quicker = os.mkdir, ExitStack()

    def slow(path: str, mode: int = 0o777) -> None:
        make(path, mode)
        monkeypatch.setattr(os, "mkdir", make)
        quicker.enter_context(Run.start(path, CONFIG, task="the quicker"))

    monkeypatch.setattr(os, "mkdir", slow)
    with quicker, pytest.raises(RunInUseError, match="is in use by process"):
        Run.create(tmp_path / "one", CONFIG, task="the slower")
    assert Run.open(tmp_path / "one").task == "the quicker"


def test_an_error_in_a_started_run_is_raised_as_it_is(tmp_path: Path) -> None:
    error = OSError(errno.ENOSPC, "No space left on device")
    with (
        pytest.raises(OSError, match="No space left") as caught,
        Run.start(tmp_path / "one", CONFIG, task="x"),
    ):
        raise error
    assert caught.value is error
