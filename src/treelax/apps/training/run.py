"""Runs: a run is a folder that holds everything about one training.

.. code-block:: text

    config.toml                   the whole config and the task
    metrics.jsonl                 one line per epoch
    checkpoint/last.safetensors   what --resume needs
    best/model.safetensors        the best model so far
    tensorboard/                  the numbers of metrics.jsonl for TensorBoard
    .lock                         which process trains here
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import tomllib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import treelax
from treelax.apps.training.config import changes, flatten, from_table, to_toml, value_to_toml
from treelax.apps.training.metrics import check_metrics
from treelax.errors import DataError, InputError, RunInUseError, Terminated
from treelax.files import atomic_write, try_lock

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Config = TypeVar("Config", bound="DataclassInstance")
CONFIG = "config.toml"
EPOCHS = "train.epochs"


class Run:
    """A training run in its folder; make one with `Run.create`, or `Run.open` an existing one."""

    def __init__(self, path: Path, task: str) -> None:
        self.path = path
        self.task = task
        self.config_file = path / CONFIG
        self.metrics_file = path / "metrics.jsonl"
        self.last_checkpoint = path / "checkpoint" / "last.safetensors"
        self.best_model = path / "best" / "model.safetensors"
        self.lock_file = path / ".lock"

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
        """Make a run as `Run.create` does and hold its lock."""
        run = cls(Path(path), task)
        run.refuse_to_start()
        try:
            run.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{run.path}: cannot be made: {error.strerror}; give a folder that can be written"
            ) from error
        with run.lock():
            run._refuse_another()  # whose process may have been quicker
            run._write_config(f"# A run of {task} by treelax {treelax.__version__}", config)
            yield run

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Run:
        """Open the folder of an existing run."""
        run = cls(Path(path), "")
        if not run.config_file.is_file():
            what = f"holds no {CONFIG}" if run.path.exists() else "does not exist"
            inside = sorted(file.parent for file in run.path.glob(f"*/{CONFIG}"))
            raise InputError(
                f"{run.path}: {what}; expected the folder of a run"
                + (f", such as {inside[0]}" if inside else "")
            )
        run.task = run._table().get("task", "")
        if not isinstance(run.task, str) or not run.task:
            raise DataError(f'{run.config_file}: names no task; expected task = "..." in it')
        check_metrics(run.metrics_file)
        return run

    def config(self, kind: type[Config]) -> Config:
        """Read the run's config."""
        table = {key: value for key, value in self._table().items() if key != "task"}
        return from_table(kind, table, str(self.config_file))

    def keep_config(self, config: DataclassInstance) -> None:
        """Update the config, where files have moved or the run is extended."""
        if self.config(type(config)) != config:
            title, _, _ = self.config_file.read_text(encoding="utf-8").partition("\n")
            self._write_config(title, config)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from training in this folder."""
        try:
            file = self.lock_file.open("ab+", buffering=0)
        except OSError as error:
            raise InputError(
                f"{self.path}: cannot be locked: {error.strerror}; give a folder that can be written"
            ) from error
        with file:
            if not try_lock(file.fileno()):
                file.seek(0)
                holder = file.read(1000).decode(errors="replace").strip()
                raise RunInUseError(
                    f"{self.path}: is in use by {holder or 'another process'}; wait until it ends, or "
                    "give another --out"
                )
            file.truncate(0)
            name = f"process {os.getpid()} on {socket.gethostname()}\n"
            with suppress(OSError):  # a full disk: the lock holds all the same
                os.write(file.fileno(), name.encode())
            try:
                yield
            finally:
                file.truncate(0)

    def refuse_to_start(self) -> None:
        """Raise an error if no run can be started in this folder; nothing is written."""
        if self.path.is_file():
            raise InputError(f"{self.path}: is a file; expected a folder: give another --out")
        if self.lock_file.exists():
            with suppress(InputError), self.lock():  # raises an error if it is in use
                pass
        self._refuse_another()

    def _refuse_another(self) -> None:
        for part in (self.config_file, self.metrics_file, self.last_checkpoint, self.best_model):
            if part.exists():
                raise InputError(
                    f"{self.path}: already holds a run ({part.relative_to(self.path)}); continue "
                    "it with --resume or give another --out"
                )

    def _table(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.config_file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{self.config_file}: cannot be read as TOML: {error}") from error

    def _write_config(self, title: str, config: DataclassInstance) -> None:
        text = f"{title}\ntask = {value_to_toml(self.task)}\n\n{to_toml(config)}"
        with atomic_write(self.config_file, "w") as out:
            out.write(text)


def refuse_changes(
    run: Run,
    config: DataclassInstance,
    wanted: DataclassInstance,
    advice: str = "resume it without them or give another --out",
    *,
    free: Collection[str] = (),
) -> None:
    """Refuse to go on with other settings than a run was started with."""
    now = flatten(wanted)
    if changed := changes(flatten(config) | {key: now[key] for key in free}, now):
        raise InputError(f"{run.path}: was started with other settings ({changed}); {advice}")
    if EPOCHS in free and now[EPOCHS] < (done := check_metrics(run.metrics_file)):
        least = f"expected at least {done}, the epochs that {run.path} has done"
        raise InputError(f"{EPOCHS}: received {now[EPOCHS]}; {least}")


def best_model(path: Path) -> Path:
    """The file of the model in a run's folder; a file stands for itself."""
    if path.is_file():
        return path
    run = Run.open(path)
    if not run.best_model.exists():
        raise InputError(
            f"{path}: holds no model yet; expected an epoch: continue it with --resume"
        )
    return run.best_model


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end what is inside as Ctrl-C does: after all that is open has been closed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return

    def terminate(number: int, frame: object) -> None:
        raise Terminated

    handler = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
