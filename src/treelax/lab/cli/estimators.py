"""``treelax table estimators``: estimators compared on whole tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from treelax.apps.cli.commands import Device, Settings, command
from treelax.apps.cli.console import console, error_console
from treelax.errors import InputError, TrainingError
from treelax.lab.cli.sweeps import Jobs, check_data, show_columns, train_runs

HELP = """Compare estimators: each tuned on dev, then trained over several seeds.

Every row is an estimator with one setting, which gets three trials with a
seed of its own; the best value on dev, the smaller one in a tie, is then
trained over the seeds of the table. TASK is listops (the paper's recipe, at
most 50 tokens), longer (the balanced recipe, at most 100), paulus, or sst,
which takes --from and --vectors as treelax table sst does.

Runs on record in results/estimators/TASK/runs.csv are not trained again, and
interrupted ones are resumed: the same command continues. Then an update of
each row is timed alone (speed.csv), and table.md, curves.csv and curves.svg
are written.

Examples:
  treelax table estimators listops --device cuda
  treelax table estimators sst --from sst --vectors glove.zip --rows rloo-4
  treelax table estimators listops --report
"""


def compare(
    task: Annotated[
        Literal["listops", "longer", "paulus", "sst"], typer.Argument(help="What to train on.")
    ],
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds: 0 to N-1.")] = 5,
    rows: Annotated[
        str | None,
        typer.Option(
            help="Estimators to train, separated by commas; default: all, but on long expressions "
            "spigot-polytope."
        ),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="Of SST: folder or archive.")
    ] = None,
    vectors: Annotated[list[Path] | None, typer.Option(help="Of SST: word vectors.")] = None,
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs", "estimators"),
    results: Annotated[Path, typer.Option(file_okay=False, help="Folder for the tables.")] = Path(
        "results", "estimators"
    ),
    settings: Settings = None,
    device: Device = "auto",
    jobs: Jobs = None,
    trials: Annotated[bool, typer.Option("--trials", help="Stop after the trials.")] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Train nothing; show and write what is on record.")
    ] = False,
) -> None:
    """Compare estimators; see HELP."""
    from treelax.apps.cli.commands import option_settings
    from treelax.apps.tasks.commands import VECTORS
    from treelax.apps.tasks.text.commands import CORPUS
    from treelax.apps.training.devices import find_device
    from treelax.lab.analysis.estimators import ROWS, Study
    from treelax.lab.analysis.tables import choose_rows

    given = {CORPUS.parameter: source, VECTORS.parameter: vectors}
    if task != "sst" and (source or vectors):
        name = CORPUS.name if source else VECTORS.name
        raise InputError(f"{name}: received it for {task}; expected it for sst only")
    changes = [*option_settings((CORPUS, VECTORS), given), *(settings or ())]
    chosen = None if rows is None else choose_rows(rows, ROWS)
    study = Study(task, runs, results, chosen, changes)
    failure = None
    if not report:
        place = find_device(device)
        failure = _train(study.tuning, study.tuning.trials(), "trials", place, jobs)
        if not trials:
            failure = failure or _train(study, study.finals(seeds), "runs", place, jobs)
            if failure is None:
                study.measure(place, lambda row: error_console.print(f"timing {row}"))
    files = [f"--from {source.name}"] if source else []
    files += [f"--vectors {file.name}" for file in vectors or ()]
    options = [f"--seeds {seeds}", *files, *(f"--set {setting}" for setting in settings or ())]
    _publish(study, seeds, " ".join(options))
    if failure is not None:
        raise failure


def _train(study: Any, keys: Any, name: str, place: Any, jobs: int | None) -> TrainingError | None:
    """Train what is not on record; returns what was wrong with runs that failed."""
    study.collect(keys)
    missing = study.missing(keys)
    if not missing:
        return None
    check_data(study.task, list(missing.values()))
    try:
        return train_runs(study.task, missing, place, jobs, called=name, parts=2)
    finally:
        study.collect(keys)  # whatever has ended, also if the sweep was interrupted


def _publish(study: Any, seeds: int, options: str) -> None:
    """Print the table and write it."""
    from treelax.lab.analysis.estimators import LAST
    from treelax.lab.analysis.tables import TABLE, to_markdown, write_files

    headings, rows = study.table_rows(seeds)
    if not rows:
        console.print("no row has a run on record that its trials have chosen")
        return
    title = study.comparison.title
    hidden = ("trials, dev", "every seed", LAST)
    shown = [name for name in headings if not name.endswith(hidden)]
    note = f"every seed, the last epoch and the trials in {study.results / TABLE}"
    show_columns(headings, rows, shown, f"{title}, %", note)
    devices = ", ".join(dict.fromkeys(line["device"] for line in study.records.values()))
    other = study.comparison.tuned_by
    where = "" if other is None else f" in the comparison `{other}`"
    about = (
        f"Each estimator has one setting with three trials of one seed{where}, whose best dev accuracy "
        "chose it, the smaller value in a tie; mean ± standard deviation over other seeds, in "
        "percent; failures count. Figures are those of the epoch that training kept, the best on dev; "
        "the last one has its own column. Milliseconds an update and megabytes of one run alone."
    )
    command = f"treelax table estimators {study.results.name} {options}"
    text = f"# {title}\n\n{about} `{command}` on {devices}.\n\n{to_markdown(headings, rows)}\n"
    write_files(study.results, {TABLE: text})
    study.plot(seeds, study.results / "curves.svg")
    console.print(f"written to {study.results}")


register = command("estimators", HELP, compare)
