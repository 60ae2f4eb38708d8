"""Many runs, several at a time, that can be interrupted and taken up again.

Every run is a process of its own, ``treelax train TASK --out FOLDER --resume``, so a sweep needs
nothing of its own to be resumable, and one that fails takes no other with it. On a GPU the processes
overlap if NVIDIA's multi-process service is on (``nvidia-cuda-mps-control -d``), else they take turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from treelax.analysis.results import read_result
from treelax.analysis.text_results import read_text_result
from treelax.errors import InputError, TrainingError
from treelax.tasks.listops.config import ListOpsConfig, preset
from treelax.tasks.text.config import TextConfig
from treelax.training.config import override
from treelax.training.metrics import read_metrics
from treelax.training.run import Run, refuse_changes
from treelax.training.signals import end_when_told

Config = TypeVar("Config", ListOpsConfig, TextConfig)
# called with the run that has come further, its last row of metrics, and the epochs of all runs
Report = Callable[[Run, dict[str, Any], int], None]
LOG = "log.txt"
PARENT = "TREELAX_PARENT"  # tells a run that its standard input closes when it is to end
POLL = 0.5  # seconds
OTHER_SETTINGS = "give the --set that it was started with, or another --runs"
ERROR = "treelax: error: "
LIST_ALL = "treelax train listops --list shows all settings"


def configure(name: str, settings: Sequence[str]) -> ListOpsConfig:
    """A preset of ListOps with some settings changed.

    Args:
        name: of the preset.
        settings: the changes, each ``key=value``.

    Returns:
        The config.

    Raises:
        InputError: there is no such preset or key, a value is none of its key, or the settings
            would change the preset's name.

    Example:
        >>> configure("gold", ["train.epochs=3"]).train.epochs
        3
    """
    return changed(preset(name), settings, LIST_ALL)


def changed(config: Config, settings: Sequence[str], list_all: str) -> Config:
    """The config of a preset with some settings changed, but not the preset's name.

    Args:
        config: of the preset.
        settings: the changes, each ``key=value``.
        list_all: what shows all settings, for messages.

    Returns:
        The config.

    Raises:
        InputError: there is no such key, a value is none of its key, or the settings would change
            the preset's name.

    Example:
        >>> changed(preset("gold"), ["seed=2"], "--list").seed
        2
    """
    new = override(config, settings, list_all=list_all)
    if new.preset != config.preset:
        raise InputError(
            f"preset: received the setting preset={new.preset}; expected it as the name of the "
            f"preset: --preset {new.preset}"
        )
    return new


def task_of(config: ListOpsConfig | TextConfig) -> str:
    """The task of a config, as ``treelax train`` and the folders of runs name it.

    Args:
        config: of a run.

    Returns:
        "listops", or the kind of a text task.

    Example:
        >>> task_of(preset("gold"))
        'listops'
    """
    return "listops" if isinstance(config, ListOpsConfig) else config.kind


def open_or_create(path: Path, config: ListOpsConfig | TextConfig) -> Run:
    """The run in a folder: new, or one with the same settings, or one of which nothing was trained.

    Args:
        path: the folder.
        config: the settings.

    Returns:
        The run.

    Raises:
        InputError: the folder holds a run with other settings.
    """
    if not (path / "config.toml").exists():
        return Run.create(path, config, task=task_of(config))
    run = Run.open(path)
    _refuse_other_task(run, task_of(config))
    trained = run.last_checkpoint.exists() or epochs_of(path) or result_of(run) is not None
    if not trained and run.config(type(config)) != config:
        with run.lock():  # a run that failed before it began keeps nobody from the right settings
            run.config_file.unlink()
        return Run.create(path, config, task=task_of(config))
    check_same(run, config, OTHER_SETTINGS)
    return run


def settings_of(run: Run) -> ListOpsConfig:
    """The config that a run of ListOps was started with.

    Args:
        run: the run.

    Returns:
        Its config.

    Raises:
        InputError: the run is one of another task, or its config does not fit.
    """
    _refuse_other_task(run, "listops")
    return run.config(ListOpsConfig)


def check_same(
    run: Run,
    wanted: ListOpsConfig | TextConfig,
    advice: str = "resume it without them or give another --out",
) -> None:
    """Refuse to go on with other settings than a run was started with.

    Args:
        run: the run.
        wanted: the settings to go on with.
        advice: what to do about others.

    Raises:
        InputError: a setting differs, or the run is one of another task.
    """
    _refuse_other_task(run, task_of(wanted))
    refuse_changes(run, run.config(type(wanted)), wanted, advice)


def sweep(
    configs: Sequence[ListOpsConfig | TextConfig],
    folder: Path,
    *,
    device: str,
    jobs: int,
    report: Report | None = None,
) -> list[Run]:
    """Train and test all configs, ``jobs`` at a time; runs that have ended are left alone.

    Args:
        configs: what to run.
        folder: holds a folder for each run, ``PRESET-SEED``.
        device: where to, as torch names it.
        jobs: processes at a time.
        report: called when a run has come further.

    Returns:
        The runs, in the order of the configs.

    Raises:
        InputError: a folder holds a run with other settings.
        TrainingError: some runs failed; the others have gone to their ends.
    """
    runs = [open_or_create(folder / name(config), config) for config in configs]
    waiting = [run for run in runs if result_of(run) is None]
    going: dict[Path, tuple[Run, subprocess.Popen[bytes]]] = {}
    epochs = {run.path: epochs_of(run.path) for run in runs}
    failed: list[str] = []
    with end_when_told():  # so that its runs do not outlive it
        try:
            while waiting or going:
                while waiting and len(going) < jobs:
                    run = waiting.pop(0)
                    going[run.path] = (run, _start(run, device, jobs))
                time.sleep(POLL)
                for path, (run, process) in list(going.items()):
                    ended = process.poll() is not None
                    done = epochs_of(path)
                    if done > epochs[path]:
                        epochs[path] = done
                        if report is not None:
                            row = read_metrics(run.metrics_file)[done - 1]
                            report(run, row, sum(epochs.values()))
                    if ended:
                        _close(process)
                        del going[path]
                        if process.returncode != 0:
                            failed.append(f"{run.path.name} ({_last_line(run)})")
        finally:
            for _, process in going.values():  # interrupted: they go on with the next sweep
                process.terminate()
            for _, process in going.values():
                process.wait()
                _close(process)
    if failed:
        raise TrainingError(
            f"{len(failed)} of {len(runs)} runs failed: {'; '.join(failed[:3])}; the same command "
            "goes on with them"
        )
    return runs


def name(config: ListOpsConfig | TextConfig) -> str:
    """A run's folder in a sweep.

    Args:
        config: of the run.

    Returns:
        ``PRESET-SEED``.

    Example:
        >>> name(preset("gold"))
        'gold-0'
    """
    return f"{config.preset}-{config.seed}"


def epochs_of(path: Path) -> int:
    """How many epochs of a run are done: whole lines of its metrics.

    Args:
        path: the folder, which need not be there yet.

    Returns:
        The number.

    Example:
        >>> epochs_of(Path("nowhere"))
        0
    """
    file = Run(path, "").metrics_file
    return file.read_bytes().count(b"\n") if file.exists() else 0


def result_of(run: Run) -> dict[str, Any] | None:
    """The result of a run of any task, or None if it has not ended.

    Args:
        run: the run.

    Returns:
        What is in its ``test.json``.

    Raises:
        DataError: the file is damaged.
    """
    return read_result(run) if run.task == "listops" else read_text_result(run)


def _refuse_other_task(run: Run, task: str) -> None:
    if run.task != task:
        raise InputError(
            f"{run.path}: is a run of {run.task!r}; expected one of {task!r}: give another --out"
        )


def _start(run: Run, device: str, jobs: int) -> subprocess.Popen[bytes]:
    threads = max(1, (os.cpu_count() or 1) // jobs)
    command = [sys.executable, "-m", "treelax", "train", run.task, "--resume"]
    with (run.path / LOG).open("ab") as log:
        return subprocess.Popen(
            [*command, "--out", str(run.path), "--device", device],
            stdin=subprocess.PIPE,  # which closes when the sweep ends, however it ends
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ
            | {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE", PARENT: "stdin"},
        )


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()


def _last_line(run: Run) -> str:
    lines = (run.path / LOG).read_text(encoding="utf-8", errors="replace").split("\n")
    said = [line.strip() for line in lines if line.strip()] or ["no output"]
    # another process may write there too, of the same run
    errors = [line for line in said if line.startswith(ERROR)]
    return (errors or said)[-1].removeprefix(ERROR)
