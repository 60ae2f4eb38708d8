"""How the commands begin a run, go on with one, and end when they are told to."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from treelax.cli.console import error_console
from treelax.cli.progress import progress
from treelax.errors import CheckpointError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from treelax.training.loop import Training
    from treelax.training.run import Run

Parameters = ParamSpec("Parameters")
Prepared = TypeVar("Prepared")


def find_run(folder: Path, *, resume: bool) -> Run | None:
    """The run to go on with, or None where one is to be started."""
    from treelax.training.run import Run

    if resume and (folder / "config.toml").exists():
        run = Run.open(folder)
        _refuse_damage(run)
        return run
    left = Run(folder, "").metrics_file
    if resume and left.exists():
        raise CheckpointError(
            f"{folder}: has {left.name} but no config.toml; expected all of a run: put it back, or "
            "train anew with another --out"
        )
    Run(folder, "").refuse_to_start()  # now, before any data are read
    return None


def in_processes(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """A command that joins the processes that torchrun or accelerate started, if there are any."""

    @wraps(command)
    def together(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        from treelax.training.processes import joined

        with joined():
            command(*args, **kwargs)

    return together


@contextmanager
def in_run(
    run: Run | None,
    folder: Path,
    config: DataclassInstance,
    *,
    task: str,
    prepare: Callable[[], Prepared],
) -> Iterator[tuple[Run, Prepared]]:
    """Hold the lock of a run, new or old, as a context manager.

    The folder of a new one is made when all is prepared, so that what fails before leaves no run
    that never began. A plain ``kill`` ends the run as Ctrl-C does, with a line on how to go on.
    """
    from treelax.training.run import Run
    from treelax.training.signals import end_when_told

    with ExitStack() as stack:
        stack.enter_context(end_when_told())
        _end_with_parent()
        if run is not None:
            stack.enter_context(run.lock())
            _refuse_lost_checkpoint(run)
        prepared = prepare()
        if run is None:
            run = stack.enter_context(Run.start(folder, config, task=task))
        yield run, prepared


def follow(training: Training, describe: Callable[[dict[str, float]], str]) -> None:
    """Train to the end, with a progress bar."""
    from treelax.analysis.result_file import FILE
    from treelax.training.distributed import current

    if current().first:
        if training.epoch < training.epochs:  # the result is no longer that of the run
            (training.run.path / FILE).unlink(missing_ok=True)
        training.run.keep_config(training.experiment.config)
    total, done = training.epochs * training.updates, training.epoch * training.updates
    with progress("training", total, start=done, unit="update") as bar:
        for step in training.steps():
            note, row = None, step.metrics
            if row is not None:
                note = (
                    f"epoch {row['epoch']}/{training.epochs} loss {row['loss']:.3f} "
                    f"dev {describe(row['dev'])}"
                )
            bar.update((step.epoch - 1) * training.updates + step.update, note)


def _refuse_damage(run: Run) -> None:
    """Refuse to go on with less than a run has had."""
    from treelax.training.checkpoint import load_checkpoint, read_checkpoint_state
    from treelax.training.metrics import RESTORE, check_metrics

    if not run.last_checkpoint.exists():
        return
    # before the rows: another process may be training here, which adds them first
    epoch = read_checkpoint_state(run.last_checkpoint).get("epoch")
    rows = check_metrics(run.metrics_file)
    if isinstance(epoch, int) and rows < epoch:
        raise CheckpointError(
            f"{run.metrics_file}, line {rows + 1}: is missing or cut off, and the checkpoint is of "
            f"epoch {epoch}; expected a row for each epoch: {RESTORE}"
        )
    try:
        if run.best_model.exists():
            load_checkpoint(run.best_model)
    except CheckpointError as error:
        told = str(error).rpartition("; ")[0]
        raise CheckpointError(
            f"{told}; remove it and use --resume again, which writes it anew"
        ) from error


def is_done(run: Run, result: dict[str, Any], epochs: int) -> bool:
    """Whether a run has nothing left to do."""
    kept = run.best_model.exists() or not run.last_checkpoint.exists()
    return kept and result["epochs"] >= epochs


def _refuse_lost_checkpoint(run: Run) -> None:
    """Refuse to go on with a run that would start again at epoch 1 without a word.

    The row of an epoch is written before its checkpoint, so a run that was killed in its first epoch
    may have one row and no checkpoint; it starts again.
    """
    from treelax.training.metrics import read_metrics

    if run.last_checkpoint.exists() or not run.metrics_file.exists():
        return
    epoch = max((row["epoch"] for row in read_metrics(run.metrics_file)), default=0)
    if epoch > 1:
        raise CheckpointError(
            f"{run.last_checkpoint}: does not exist, but {run.metrics_file.name} has {epoch} epochs; "
            "expected what to go on from: put it back, or train anew with another --out"
        )
    if epoch:
        error_console.print(f"{run.path}: has no checkpoint yet; starting again at epoch 1")


def _end_with_parent() -> None:
    """End this process like SIGTERM when the sweep that started it is gone, even by kill -9."""
    from treelax.analysis.sweep import PARENT

    if os.environ.get(PARENT) != "stdin":
        return

    def wait() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
