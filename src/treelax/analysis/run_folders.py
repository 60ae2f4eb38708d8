"""Settings and folders of runs: what a run was started with, how far it has come, how it ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from treelax.analysis.listops_results import read_result
from treelax.analysis.text_results import read_text_result
from treelax.errors import InputError
from treelax.tasks.listops.config import FILES as LISTOPS_FILES
from treelax.tasks.listops.config import ListOpsConfig, preset
from treelax.tasks.text.config import FILES as TEXT_FILES
from treelax.tasks.text.config import TextConfig
from treelax.training.config import override, settings_between
from treelax.training.run import Run, refuse_changes

Config = TypeVar("Config", ListOpsConfig, TextConfig)
OTHER_SETTINGS = "give the --set that it was started with, or another --runs"
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
            f"preset: received the setting preset={new.preset}; expected the name of a preset as an "
            f"option, --preset {new.preset}, where the command has it: leave out the setting"
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


def moved_files(run: Run, config: ListOpsConfig | TextConfig) -> list[str]:
    """What tells a run where its files are now, if that is not where they were.

    Args:
        run: the run.
        config: the same settings with the files as they are named now.

    Returns:
        Settings, each ``key=value``.

    Raises:
        InputError: the run is one of another task, or its config does not fit.
    """
    moved = settings_between(run.config(type(config)), config)
    return [f"{key}={value}" for key, value in moved.items() if key in _files(config)]


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
    *,
    free: Collection[str] = (),
) -> None:
    """Refuse to go on with other settings than a run was started with.

    Files may have moved: what is in them is compared when they are read. Given trees may not, for a
    table does not compare them.

    Args:
        run: the run.
        wanted: the settings to go on with.
        advice: what to do about others.
        free: more settings that may differ, as for `refuse_changes`.

    Raises:
        InputError: a setting differs, or the run is one of another task.
    """
    _refuse_other_task(run, task_of(wanted))
    refuse_changes(run, run.config(type(wanted)), wanted, advice, free=_files(wanted) | set(free))


def _files(config: ListOpsConfig | TextConfig) -> frozenset[str]:
    """The settings of files that may have moved."""
    if isinstance(config, ListOpsConfig):
        return frozenset(LISTOPS_FILES)
    return TEXT_FILES - {"data.trees"}


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
