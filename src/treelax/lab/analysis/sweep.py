"""Many runs, several at a time, that can be interrupted and resumed.

Every run is ``treelax train TASK --out FOLDER --resume``, so a sweep keeps no state. Processes take
one run after the other (``treelax.lab.cli.worker``), which share what loading torch, reading data and
compiling kernels cost; one whose run fails ends, and so affects no other run. On a GPU the processes
overlap if NVIDIA's multi-process service is on (``nvidia-cuda-mps-control -d``), else they take turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from treelax.apps.tasks.task import Task
from treelax.apps.training.config import settings_between
from treelax.apps.training.metrics import read_metrics
from treelax.apps.training.run import CONFIG, Run, exit_on_sigterm, refuse_changes
from treelax.errors import InputError, TrainingError

# called with the run that has come further, its last row of metrics, and the epochs of all runs
Report = Callable[[Run, dict[str, Any], int], None]
LOG = "log.txt"
POLL = 0.5  # seconds
ERROR = "treelax: error: "


def run_name(config: Any) -> str:
    """A run's folder in a sweep: ``PRESET-SEED``."""
    return f"{config.preset}-{config.seed}"


def epochs_of(path: Path) -> int:
    """How many epochs of a run are done: whole lines of its metrics; 0 if it is not there yet."""
    file = Run(path, "").metrics_file
    return file.read_bytes().count(b"\n") if file.exists() else 0


def refuse_other_settings(task: Task, run: Run, config: Any) -> None:
    """Refuse a run that was started with other settings; files may have moved."""
    if run.task != task.name:
        raise InputError(
            f"{run.path}: is a run of {run.task!r}; expected one of {task.name!r}: give another "
            "--runs"
        )
    advice = "give the --set that it was started with, or another --runs"
    free = set(task.files) - set(task.unchecked)
    refuse_changes(run, run.config(task.config_type), config, advice, free=free)


def open_or_create(task: Task, path: Path, config: Any) -> Run:
    """The run in a folder: new, or one with the same settings, or one of which nothing was trained."""
    if not (path / CONFIG).exists():
        return Run.create(path, config, task=task.name)
    run = Run.open(path)
    trained = run.last_checkpoint.exists() or epochs_of(path) or task.result(run) is not None
    if not trained and run.task == task.name and run.config(task.config_type) != config:
        with run.lock():  # a run that failed before it began keeps nobody from the right settings
            run.config_file.unlink()
        return Run.create(path, config, task=task.name)
    refuse_other_settings(task, run, config)
    return run


def ended_runs(task: Task, configs: Mapping[Path, Any]) -> list[tuple[Run, dict[str, Any]]]:
    """The runs that have ended, of configs by folder, with their results."""
    ended = []
    for path, config in configs.items():
        if (path / CONFIG).exists():
            run = Run.open(path)
            result = task.result(run) if run.task == task.name else {}
            if result is not None:
                refuse_other_settings(task, run, config)
                ended.append((run, result))
    return ended


class Worker:
    """A process that trains runs one after the other, until one fails.

    The log of the first one has what goes wrong before it begins; ``jobs`` share the processor.
    """

    def __init__(self, run: Run, jobs: int) -> None:
        threads = max(1, (os.cpu_count() or 1) // jobs)
        with (run.path / LOG).open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "treelax.lab.cli.worker"],
                bufsize=0,
                stdin=subprocess.PIPE,  # which closes when the sweep ends, however it ends
                stdout=subprocess.PIPE,
                stderr=log,
                env=os.environ | {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"},
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        os.set_blocking(self.stdout.fileno(), False)

    def train(self, run: Run, device: str, *settings: str) -> None:
        """Begin or resume a run."""
        arguments = ["train", run.task, "--resume", "--out", str(run.path), "--device", device]
        arguments += [part for setting in settings for part in ("--set", setting)]
        with suppress(BrokenPipeError):  # then the answer is False
            self.stdin.write(json.dumps([str(run.path / LOG), arguments]).encode() + b"\n")

    def answer(self) -> bool | None:
        """Whether the run has ended well; None while it goes on."""
        byte = self.stdout.read(1)
        return None if byte is None else bool(byte)

    def stop(self) -> None:
        """Tell the process to end; a run that this interrupts can be resumed."""
        self.process.terminate()

    def close(self) -> None:
        """Wait for the end of the process."""
        self.process.wait()
        self.stdin.close()
        self.stdout.close()


def sweep(
    task: Task,
    configs: Mapping[Path, Any],
    *,
    device: str,
    jobs: int,
    report: Report | None = None,
) -> list[Run]:
    """Train and test all configs, in their folders, ``jobs`` at a time; ended runs are left alone."""
    runs = [open_or_create(task, path, config) for path, config in configs.items()]
    moved = {
        run.path: settings_between(run.config(task.config_type), configs[run.path]) for run in runs
    }
    waiting = [run for run in runs if task.result(run) is None]
    going: dict[Worker, Run] = {}
    idle: list[Worker] = []
    epochs = {run.path: epochs_of(run.path) for run in runs}
    failed: list[str] = []
    with exit_on_sigterm():  # so that its runs do not outlive it
        try:
            while waiting or going:
                while waiting and len(going) < jobs:
                    run = waiting.pop(0)
                    worker = idle.pop() if idle else Worker(run, jobs)
                    going[worker] = run
                    worker.train(run, device, *moved[run.path])
                time.sleep(POLL)
                for worker, run in list(going.items()):
                    answer = worker.answer()
                    done = epochs_of(run.path)
                    if done > epochs[run.path]:
                        epochs[run.path] = done
                        if report is not None:
                            row = read_metrics(run.metrics_file)[done - 1]
                            report(run, row, sum(epochs.values()))
                    if answer is None:
                        continue
                    del going[worker]
                    if answer:
                        idle.append(worker)
                    else:
                        worker.close()
                        failed.append(f"{run.path.name} ({_last_line(run)})")
        finally:
            for worker in (*going, *idle):
                worker.stop()
            for worker in (*going, *idle):
                worker.close()
    if failed:
        raise TrainingError(
            f"{len(failed)} of {len(runs)} runs failed: {'; '.join(failed[:3])}; the same command "
            "goes on with them"
        )
    return runs


def _last_line(run: Run) -> str:
    lines = (run.path / LOG).read_text(encoding="utf-8", errors="replace").split("\n")
    output = [line.strip() for line in lines if line.strip()] or ["no output"]
    # another process may write there too, of the same run
    errors = [line for line in output if line.startswith(ERROR)]
    return (errors or output)[-1].removeprefix(ERROR)
