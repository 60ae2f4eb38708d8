"""``treelax table``: the paper's tables with our runs beside them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelax.apps.cli.commands import (
    Device,
    Settings,
    command,
    group,
    option_settings,
    with_options,
)
from treelax.apps.cli.console import console, error_console
from treelax.errors import InputError, TrainingError
from treelax.lab.cli import estimators, gradients
from treelax.lab.cli.sweeps import Jobs, check_data, show_columns, train_runs
from treelax.lab.tables.commands import TABLES, TableCommand

if TYPE_CHECKING:
    from treelax.apps.tasks.task import Task
    from treelax.apps.training.run import Run
    from treelax.lab.tables.paper import PaperTable

    Ended = list[tuple[Run, dict[str, Any]]]

HELP = """Reproduce a table of the paper: train all runs, then write the table.

Every table has its own --help. Finished runs are not repeated and interrupted
ones are resumed, so the same command continues a sweep. On a GPU, runs
overlap if NVIDIA's multi-process service is on (nvidia-cuda-mps-control -d).

The tables of parsers and of gradients are not the paper's; the latter trains
nothing: it holds all estimators against exact gradients.

Examples:
  treelax table listops --seeds 10 --device cuda
  treelax table sst --from trainDevTestTrees_PTB.zip \\
      --vectors glove.840B.300d.zip
"""


def make_table(
    spec: TableCommand,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds: 0 to N-1.")] = 1,
    recipe: Annotated[str, typer.Option(help="Training settings.")] = "",
    rows: Annotated[
        str | None, typer.Option(help="Presets, separated by commas; default: all rows.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path(),
    results: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Folder for the table; default: results/TABLE."),
    ] = None,
    settings: Settings = None,
    device: Device = "auto",
    jobs: Jobs = None,
    report: Annotated[
        bool, typer.Option("--report", help="Train nothing; show and write the results so far.")
    ] = False,
    **options: Any,
) -> None:
    """Train all rows of a table over several seeds, and write it."""
    from treelax.apps.tasks import task_named
    from treelax.lab.analysis.sweep import ended_runs, run_name
    from treelax.lab.analysis.tables import choose_rows, refuse_to_shrink
    from treelax.lab.tables.by_task import TABLES as BY_TASK

    task = task_named(spec.task)
    other = recipe not in ("", *spec.recipes[:1])
    key = f"{spec.name}-{recipe}" if other else spec.name
    chosen, place = BY_TASK[spec.task][key], results or Path("results", key)
    presets = list(chosen.figures) if rows is None else choose_rows(rows, chosen.labels)
    changes = list(settings or [])
    _refuse_settings(task, chosen, presets, changes)
    files = option_settings(spec.options, options)
    rows_of_seeds = (
        chosen.row_config(task.configured(preset, [*files, *changes, f"seed={seed}"]))
        for preset in presets
        for seed in range(seeds)
    )
    configs = {runs / run_name(config): config for config in rows_of_seeds}
    refuse_to_shrink(place, [(config.preset, config.seed) for config in configs.values()])
    failure = None if report else _train(task, configs, device, jobs)
    ended = ended_runs(task, configs)
    try:
        if not ended:
            raise InputError("no run has ended yet; expected at least one: train without --report")
        _refuse_other_data(ended)
        refuse_to_shrink(place, [(result["preset"], result["seed"]) for _, result in ended])
    except InputError as error:
        raise failure or error from None  # why runs are missing
    there = {run.path for run, _ in ended}
    if missing := [path.name for path in configs if path not in there]:
        error_console.print(f"not ended yet: {', '.join(missing)}")
    words = ["--recipe", recipe] if other else []
    words += ["--seeds", str(seeds)]
    for option in spec.options:  # files by their names alone
        value = options[option.parameter] or []
        for path in value if isinstance(value, list) else [value]:
            words += [option.name, PurePath(path).name]
    words += ["--rows", rows] if rows is not None else []
    for setting in changes:
        value = setting.partition("=")[2].strip()
        is_file = _key(setting) in task.files
        words += ["--set", f"{_key(setting)}={PurePath(value).name}" if is_file else setting]
    words += ["--runs", str(runs)] if runs != Path("runs", spec.runs) else []
    words += ["--results", str(place)] if place != Path("results", key) else []
    _publish(task, chosen, ended, place, f"treelax table {spec.name} {shlex.join(words)}", missing)
    if failure is not None:
        raise failure


def _key(setting: str) -> str:
    return setting.partition("=")[0].strip()


def _refuse_settings(
    task: Task, chosen: PaperTable, presets: Sequence[str], changes: Sequence[str]
) -> None:
    """Refuse to change what makes the rows of a table different."""
    from treelax.apps.training.config import flatten

    configs = [flatten(task.preset(preset)) for preset in presets]
    for setting in changes:
        key = _key(setting)
        if key == "seed":
            raise InputError(f"seed: received the setting {setting}; expected --seeds N")
        if key in chosen.named_after and any(row[key] != configs[0][key] for row in configs):
            advice = "choose rows with --rows, or train one model with treelax train"
            raise InputError(f"--set: {setting} is where the rows of the table differ; {advice}")


def _refuse_other_data(ended: Ended, now: str | None = None) -> None:
    """Refuse a table of runs that were trained or tested on other data than each other."""
    used = [(run, result["data"]) for run, result in ended if result.get("data")]
    for run, other in used:
        first, data = used[0]
        if other != data or now not in (None, other):
            than = first.path if other != data else "are there now"
            problem = f"was trained or tested on other data than {than}"
            raise InputError(f"{run.path}: {problem}; restore the files, or give another --runs")


def _train(
    task: Task, configs: Mapping[Path, Any], device: str, jobs: int | None
) -> TrainingError | None:
    """Train what has not been trained; returns what was wrong with runs that failed."""
    from treelax.apps.training.devices import find_device
    from treelax.lab.analysis.sweep import ended_runs

    place, ended = find_device(device), ended_runs(task, configs)
    if len(ended) < len(configs):
        for data in check_data(task, list(configs.values())):
            _refuse_other_data(ended, data)
    return train_runs(task, configs, place, jobs)


def _publish(
    task: Task,
    chosen: PaperTable,
    ended: Ended,
    results: Path,
    command: str,
    missing: Sequence[str],
) -> None:
    """Print the table and write it, the runs and the curves."""
    from treelax.apps.training.metrics import read_metrics
    from treelax.lab.analysis import tables

    recorded = [(run.config(task.config_type), result) for run, result in ended]
    chosen = chosen.adapted(recorded[0][0])
    logs: dict[str, dict[int, list[dict[str, Any]]]] = {}
    records = []
    for run, result in ended:
        log = read_metrics(run.metrics_file) if chosen.curves else []
        logs.setdefault(result["preset"], {})[result["seed"]] = log
        records.append(chosen.record(result, log))
    rows, headings = tables.table_rows(chosen, records), tables.headings(chosen)
    shown = [*headings[: -len(chosen.columns)], *chosen.shown]
    note = f"every seed and more columns in {results / tables.TABLE}"
    show_columns(headings, rows, shown, f"{chosen.title}, %", note)
    where = tables.where(result for _, result in ended)
    lines = [
        *(f"# {chosen.title}", "", f"{chosen.about(recorded)} `{command}` on {where}.", ""),
        *(tables.to_markdown(headings, rows), ""),
        *([f"Runs that have not ended: {', '.join(missing)}.", ""] if missing else []),
    ]
    files = {tables.RUNS: tables.to_csv(chosen.keys, records), tables.TABLE: "\n".join(lines)}
    if chosen.curves:
        files[tables.CURVES] = tables.curves_csv(chosen, logs)
    tables.write_files(results, files)
    tables.plot_curves(chosen, logs, results)
    console.print(f"written to {results}")


register = group(
    "table",
    HELP,
    *(
        command(
            spec.name,
            spec.help,
            with_options(
                make_table,
                spec,
                choices={"recipe": spec.recipes},
                seeds=spec.seeds,
                runs=Path("runs", spec.runs),
            ),
        )
        for spec in TABLES
    ),
    estimators.register,
    gradients.register,
)
