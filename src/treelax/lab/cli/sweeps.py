"""Many runs at a time, with one progress bar."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelax.apps.cli.console import error_console, table
from treelax.apps.cli.progress import progress
from treelax.errors import TrainingError, counted

if TYPE_CHECKING:
    import torch

    from treelax.apps.tasks.task import Task

Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Runs at a time; default: 10 on a GPU, one per core on a CPU."),
]


def show_columns(headings: Sequence[str], rows: Any, shown: Sequence[str], *about: str) -> None:
    """Print some columns of a table, with its title and a note."""
    places = [headings.index(name) for name in shown]
    table(shown, [[row[i] for i in places] for row in rows], *about)


def check_data(task: Task, configs: Sequence[Any]) -> list[str]:
    """Read the data of some configs; returns what it is."""
    with progress("reading the data", unit="records", transient=True) as bar:
        return task.check_data(configs, bar.update)


def train_runs(
    task: Task,
    runs: Mapping[Path, Any],
    place: torch.device,
    jobs: int | None,
    *,
    called: str = "sweep",
    parts: int = 1,  # of a folder's path that name a run
) -> TrainingError | None:
    """Train or resume configs by folder; returns what was wrong with runs that failed."""
    from treelax.lab.analysis.sweep import epochs_of, sweep

    at_once = jobs or (10 if place.type == "cuda" else os.cpu_count() or 1)
    error_console.print(f"{counted(len(runs), 'run')}, {at_once} at a time, on {place}")
    service = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"), "control")
    if place.type == "cuda" and min(at_once, len(runs)) > 1 and not service.exists():
        error_console.print(
            "they take turns on the GPU; to let them overlap, start NVIDIA's multi-process service: "
            "nvidia-cuda-mps-control -d"
        )
    total = sum(config.train.epochs for config in runs.values())
    with progress(called, total, start=sum(map(epochs_of, runs)), unit="epochs") as bar:

        def tell(run: Any, row: dict[str, Any], epochs: int) -> None:
            where = " ".join(run.path.parts[-parts:])
            bar.update(epochs, f"{where} epoch {row['epoch']} dev {task.describe(row['dev'])}")

        try:
            sweep(task, runs, device=str(place), jobs=at_once, report=tell)
        except TrainingError as error:
            return error
    return None
