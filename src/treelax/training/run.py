"""Runs: a run is a folder that holds all there is to know of one training.

.. code-block:: text

    config.toml                   the whole config and the task
    metrics.jsonl                 a line an epoch
    checkpoint/last.safetensors   what --resume needs
    best/model.safetensors        the best model so far
    tensorboard/                  the numbers of metrics.jsonl for TensorBoard
    .lock                         which process trains here
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import treelax
from treelax.errors import DataError, InputError
from treelax.files import atomic_write
from treelax.training.config import changes, flatten, from_table, to_toml
from treelax.training.lock import lock
from treelax.training.metrics import check_metrics

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["EPOCHS", "Run", "best_model", "refuse_changes", "runs_in"]

Config = TypeVar("Config", bound="DataclassInstance")
CONFIG = "config.toml"
EPOCHS = "train.epochs"


class Run:
    """A training run in its folder; make one with `Run.create`, or `Run.open` an existing one."""

    def __init__(self, path: Path, task: str) -> None:
        self.path = path
        self.task = task

    @classmethod
    def create(cls, path: str | os.PathLike[str], config: DataclassInstance, *, task: str) -> Run:
        """Make the folder of a new run and write its config."""
        with cls.start(path, config, task=task) as run:
            return run

    @classmethod
    @contextmanager
    def start(
        cls, path: str | os.PathLike[str], config: DataclassInstance, *, task: str
    ) -> Iterator[Run]:
        """Make a run as `Run.create` does and hold its lock, as a context manager.

        There is no moment between the two: of several processes that start a run in one folder the
        first trains, and the others hear that it is in use.
        """
        run = cls(Path(path), task)
        if any(key.partition(".")[0] == "task" for key in flatten(config)):
            raise InputError("config: received a key task; expected none, for the run names it")
        title = f"# A run of {' '.join(task.split())} by treelax {treelax.__version__}"
        text = f"{title}\n{to_toml(_Header(task))}\n{to_toml(config)}"
        run.refuse_to_start()
        with ExitStack() as stack:
            try:
                run.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(run.lock())
                run._refuse_leftovers()  # another process may have been quicker
                with atomic_write(run.config_file, "w") as out:
                    out.write(text)
            except (OSError, DataError) as error:
                reason = error.__cause__ if isinstance(error, DataError) else error
                what = getattr(reason, "strerror", None) or reason
                raise InputError(
                    f"{run.path}: cannot hold a run: {what}; give a folder that can be written"
                ) from error
            yield run

    def keep_config(self, config: DataclassInstance) -> None:
        """Write the config anew where it has changed: files have moved, or the run is extended."""
        title = self.config_file.read_text(encoding="utf-8").partition("\n")[0]
        text = f"{title}\n{to_toml(_Header(self.task))}\n{to_toml(config)}"
        if text != self.config_file.read_text(encoding="utf-8"):
            with atomic_write(self.config_file, "w") as out:
                out.write(text)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Run:
        """Open the folder of an existing run."""
        run = cls(Path(path), "")
        if not run.path.is_dir():
            what = "is a file" if run.path.exists() else "does not exist"
            raise InputError(f"{run.path}: {what}; expected the folder of a run")
        if not run.config_file.is_file():
            inside = sorted(file.parent.name for file in run.path.glob(f"*/{CONFIG}"))
            raise InputError(
                f"{run.path}: holds no {CONFIG}; expected the folder of a run"
                + (f", such as {run.path / inside[0]}" if inside else "")
            )
        task = run._table().get("task")
        if not isinstance(task, str):
            raise DataError(f'{run.config_file}: names no task; expected task = "..." in it')
        run.task = task
        check_metrics(run.metrics_file)
        return run

    def config(self, kind: type[Config]) -> Config:
        """Read the run's config."""
        table = {key: value for key, value in self._table().items() if key != "task"}
        return from_table(kind, table, str(self.config_file))

    @property
    def config_file(self) -> Path:
        """The whole config and the task."""
        return self.path / CONFIG

    @property
    def metrics_file(self) -> Path:
        """A line an epoch."""
        return self.path / "metrics.jsonl"

    @property
    def last_checkpoint(self) -> Path:
        """What resuming needs."""
        return self.path / "checkpoint" / "last.safetensors"

    @property
    def best_model(self) -> Path:
        """The best model so far."""
        return self.path / "best" / "model.safetensors"

    @property
    def lock_file(self) -> Path:
        """Which process is at work here."""
        return self.path / ".lock"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from training in this folder, as a context manager."""
        with lock(self.lock_file):
            yield

    def _table(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.config_file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{self.config_file}: cannot be read as TOML: {error}") from error

    def refuse_to_start(self) -> None:
        """Say why no run can be started in this folder, if so; nothing is written."""
        try:
            self._refuse_leftovers()
        except InputError:
            if self.lock_file.exists():
                with suppress(InputError, OSError), self.lock():  # no lock, no other process
                    pass
            raise

    def _refuse_leftovers(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise InputError(
                f"{self.path}: is a file; expected a folder for the run: give another --out"
            )
        for part in (self.config_file, self.metrics_file, self.last_checkpoint, self.best_model):
            if part.exists():
                raise InputError(
                    f"{self.path}: already holds a run ({part.relative_to(self.path)}); continue "
                    "it with --resume or give another --out"
                )


def refuse_changes(
    run: Run,
    own: DataclassInstance,
    wanted: DataclassInstance,
    advice: str = "resume it without them or give another --out",
    *,
    free: Collection[str] = (),
) -> None:
    """Refuse to go on with other settings than a run was started with."""
    now = flatten(wanted)
    changed = changes(flatten(own) | {key: now[key] for key in free}, now)
    if changed:
        raise InputError(f"{run.path}: was started with other settings ({changed}); {advice}")
    if EPOCHS in free and now[EPOCHS] < (done := check_metrics(run.metrics_file)):
        raise InputError(
            f"{EPOCHS}: received {now[EPOCHS]}; expected at least {done}, the epochs that {run.path} "
            "has done"
        )


def runs_in(folder: str | os.PathLike[str]) -> list[Run]:
    """Find the runs directly in a folder."""
    if not Path(folder).is_dir():
        raise InputError(f"{Path(folder)}: is no folder; expected one that holds runs")
    return [Run.open(file.parent) for file in sorted(Path(folder).glob(f"*/{CONFIG}"))]


def best_model(path: Path) -> Path:
    """The file of the model in a run's folder; a file is its own."""
    if path.is_file():
        return path
    run = Run.open(path)
    if not run.best_model.exists():
        raise InputError(
            f"{path}: holds no model yet; expected a run that has finished its first epoch: continue "
            "it with --resume"
        )
    return run.best_model


@dataclass(frozen=True)
class _Header:
    task: str
