"""How ``treelax train`` begins a run, goes on with one, and ends on a signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from treelax.apps.cli.console import error_console
from treelax.errors import CheckpointError

if TYPE_CHECKING:
    from treelax.apps.training.run import Run

Prepared = TypeVar("Prepared")
RESTORE = "put it back, or train anew with another --out"


def find_run(folder: Path, *, resume: bool) -> Run | None:
    """The run to go on with, or None where one is to be started."""
    from treelax.apps.training.run import Run

    new = Run(folder, "")
    if resume and new.config_file.exists():
        run = Run.open(folder)
        _refuse_damage(run)
        return run
    if resume and new.metrics_file.exists():
        raise CheckpointError(f"{folder}: has metrics.jsonl but no config.toml; {RESTORE}")
    new.refuse_to_start()  # now, before any data are read
    return None


@contextmanager
def in_run(
    run: Run | None, folder: Path, config: Any, *, task: str, prepare: Callable[[], Prepared]
) -> Iterator[tuple[Run, Prepared]]:
    """Hold the lock of a run; the folder of a new one is made once all is prepared.

    A plain ``kill`` ends the run as Ctrl-C does, with a line on how to go on.
    """
    from treelax.apps.training.run import Run, exit_on_sigterm

    with ExitStack() as stack:
        stack.enter_context(exit_on_sigterm())
        if run is not None:
            stack.enter_context(run.lock())
            _refuse_lost_checkpoint(run)
        prepared = prepare()
        if run is None:
            run = stack.enter_context(Run.start(folder, config, task=task))
        yield run, prepared


def _refuse_damage(run: Run) -> None:
    """Refuse to go on with less than a run has had."""
    from treelax.apps.training.checkpoint import load_checkpoint, read_checkpoint_header
    from treelax.apps.training.metrics import RESTORE, check_metrics

    if not run.last_checkpoint.exists():
        return
    # before the rows: another process may be training here, which adds them first
    epoch = read_checkpoint_header(run.last_checkpoint)[1].get("epoch")
    rows = check_metrics(run.metrics_file)
    if isinstance(epoch, int) and rows < epoch:
        lost = f"line {rows + 1}: is missing or cut off, and the checkpoint is of epoch {epoch}"
        raise CheckpointError(f"{run.metrics_file}, {lost}; {RESTORE}")
    try:
        if run.best_model.exists():
            load_checkpoint(run.best_model)
    except CheckpointError as error:
        problem = str(error).rpartition("; ")[0]
        advice = "remove it and use --resume again, which writes it anew"
        raise CheckpointError(f"{problem}; {advice}") from error


def _refuse_lost_checkpoint(run: Run) -> None:
    """Refuse to start again at epoch 1; one row is written before the first checkpoint."""
    from treelax.apps.training.metrics import read_metrics

    if run.last_checkpoint.exists() or not run.metrics_file.exists():
        return
    epoch = max((row["epoch"] for row in read_metrics(run.metrics_file)), default=0)
    if epoch > 1:
        rows = f"{run.metrics_file.name} has {epoch} epochs"
        raise CheckpointError(f"{run.last_checkpoint}: does not exist, but {rows}; {RESTORE}")
    if epoch:
        error_console.print(f"{run.path}: has no checkpoint yet; starting again at epoch 1")
