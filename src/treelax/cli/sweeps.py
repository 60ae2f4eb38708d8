"""What the tables share: their options, the sweep with its progress bar, the runs so far."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from treelax.cli.console import console, error_console
from treelax.cli.progress import progress
from treelax.errors import InputError, TrainingError

if TYPE_CHECKING:
    from treelax.tasks.listops.config import ListOpsConfig
    from treelax.tasks.text.config import TextConfig
    from treelax.training.run import Run

Config = TypeVar("Config", "ListOpsConfig", "TextConfig")
Rows = Annotated[
    str | None, typer.Option(help="Presets, with commas between; all rows by default.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting of all runs: KEY=VALUE.")
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Runs at a time; 10 on a GPU, one a core on a CPU.")
]
Report = Annotated[
    bool,
    typer.Option("--report", help="Train nothing; show and write what has ended so far."),
]


def named_rows(rows: str) -> list[str]:
    """The presets that ``--rows`` names."""
    names = [name for row in rows.split(",") if (name := row.strip())]
    if not names:
        raise InputError(f"--rows is {rows!r}; expected presets with commas between them")
    return names


def every_seed(
    presets: Sequence[str],
    seeds: int,
    settings: Sequence[str],
    configure: Callable[[str, list[str]], Config],
) -> list[Config]:
    """The config of every run of a table."""
    given = [setting for setting in settings if setting.partition("=")[0].strip() == "seed"]
    if given:
        raise InputError(
            f"seed: received the setting {given[0]}; expected --seeds N for 0 to N - 1"
        )
    return [
        configure(preset, [*settings, f"seed={seed}"])
        for preset in dict.fromkeys(presets)
        for seed in range(seeds)
    ]


def finished(
    configs: Sequence[ListOpsConfig] | Sequence[TextConfig],
    folder: Path,
    results: Path,
    *,
    device: str,
    jobs: int | None,
    report: bool,
    describe: Callable[[dict[str, Any]], str],
    said: Sequence[str] = (),
) -> tuple[list[tuple[Run, dict[str, Any]]], TrainingError | None]:
    """Train what has not been trained, unless only a report is wanted."""
    from treelax.analysis.run_folders import name, result_of
    from treelax.analysis.tables import refuse_to_shrink
    from treelax.training.devices import find_device
    from treelax.training.run import Run

    refuse_a_file(results)
    refuse_to_shrink(results, [(config.preset, config.seed) for config in configs])
    failure: TrainingError | None = None
    if report:
        runs = _so_far(configs, folder, said)
    else:
        place = find_device(device)
        at_once = jobs or (10 if place.type == "cuda" else os.cpu_count() or 1)
        number = "1 run" if len(configs) == 1 else f"{len(configs)} runs"
        error_console.print(f"{number}, {at_once} at a time, on {place}")
        try:
            runs = _sweep(configs, folder, str(place), at_once, describe)
        except TrainingError as error:
            failure = error
            runs = [Run.open(folder / name(config)) for config in configs]
    ended = [(run, result) for run in runs if (result := result_of(run)) is not None]
    if not ended:
        if failure is not None:
            raise failure
        raise InputError("no run has ended yet; expected at least one: train without --report")
    try:
        refuse_to_shrink(results, [(result["preset"], result["seed"]) for _, result in ended])
    except InputError:
        if failure is not None:  # which is why runs are missing
            raise failure from None
        raise
    there = {run.path for run, _ in ended}
    if missing := [name(config) for config in configs if folder / name(config) not in there]:
        error_console.print(f"not ended yet: {', '.join(missing)}")
    return ended, failure


def refuse_other_data(ended: Sequence[tuple[Run, dict[str, Any]]], now: str | None = None) -> None:
    """Refuse a table of runs that were trained or tested on other data than each other."""
    told = [(run, result["data"]) for run, result in ended if result.get("data")]
    if not told:
        return
    first, data = told[0]
    for run, other in told:
        if other != data:
            raise InputError(
                f"{run.path}: was trained or tested on other data than {first.path}; expected the "
                "same for all rows of a table: train them anew with another --runs"
            )
    if now is not None and now != data:
        raise InputError(
            f"{first.path}: was trained or tested on other data than are there now; expected the "
            "same for all rows of a table: restore the files, or give another --runs"
        )


def refuse_a_file(results: Path) -> None:
    """Refuse a file where the folder of a table is to be, before anything is trained."""
    if results.exists() and not results.is_dir():
        raise InputError(f"--results: {results} is a file; expected a folder, or a new name")


def write_results(folder: Path, files: dict[str, str]) -> None:
    """Write the files of a table, each whole or not at all, and say where they are."""
    from treelax.files import atomic_write

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        with atomic_write(folder / name, "w") as file:
            file.write(text)
    console.print(f"written to {folder}")


def _so_far(
    configs: Sequence[ListOpsConfig] | Sequence[TextConfig], folder: Path, said: Sequence[str]
) -> list[Run]:
    from treelax.analysis.run_folders import OTHER_SETTINGS, check_same, name
    from treelax.training.config import override
    from treelax.training.run import Run

    found = []
    for config in configs:
        if (folder / name(config) / "config.toml").exists():
            run = Run.open(folder / name(config))
            wanted = override(run.config(type(config)), said, list_all="--list shows all settings")
            check_same(run, wanted, OTHER_SETTINGS)
            found.append(run)
    return found


def _sweep(
    configs: Sequence[ListOpsConfig] | Sequence[TextConfig],
    folder: Path,
    device: str,
    jobs: int,
    describe: Callable[[dict[str, Any]], str],
) -> list[Run]:
    from treelax.analysis.run_folders import epochs_of, name
    from treelax.analysis.sweep import sweep

    total = sum(config.train.epochs for config in configs)
    done = sum(map(epochs_of, (folder / name(config) for config in configs)))
    with progress("sweep", total, start=done, unit="epoch") as bar:

        def tell(run: Run, row: dict[str, Any], epochs: int) -> None:
            bar.update(epochs, f"{run.path.name} epoch {row['epoch']} {describe(row)}")

        return sweep(configs, folder, device=device, jobs=jobs, report=tell)
