"""``treelax table``: the paper's tables with our runs beside them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelax.cli.console import console, error_console, progress, table
from treelax.errors import InputError

if TYPE_CHECKING:
    from treelax.tasks.listops.config import ListOpsConfig
    from treelax.training.run import Run

__all__ = ["register"]

HELP = """Repeat a table of the paper: many runs, then the table.

Every table has its own --help.

Example:
  treelax table listops --seeds 5 --device cuda
"""
LISTOPS_HELP = """Train all rows of the paper's table 1 over several seeds.

Runs that have ended are not repeated and one that was interrupted goes on, so
the same command continues a sweep. On a GPU runs overlap if NVIDIA's
multi-process service is on (nvidia-cuda-mps-control -d). Writes table.md with
the paper's figures beside ours, runs.csv, curves.csv, and appendix C's plots.

Examples:
  treelax table listops --seeds 5 --device cuda
  treelax table listops --rows balanced-mc,gold --seeds 2 --results /tmp/try
  treelax table listops --report
"""
# appendix C: colours and lines are those of the order
CURVES = {
    "zero": "G = 0, forward relaxed",
    "mc": "MC, forward relaxed",
    "zero-st": "G = 0, straight-through",
    "mc-st": "MC, straight-through",
}


def register(app: typer.Typer) -> None:
    """Add the command ``table`` to the program.

    Args:
        app: the program.

    Example:
        >>> app = typer.Typer()
        >>> register(app)
        >>> [group.name for group in app.registered_groups]
        ['table']
    """
    group = typer.Typer(no_args_is_help=True)
    group.command("listops", help=LISTOPS_HELP)(listops)
    app.add_typer(group, name="table", help=HELP)


def listops(
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0 to this, exclusive.")] = 5,
    rows: Annotated[
        str | None, typer.Option(help="Presets, with commas between; all rows by default.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs/table-listops"),
    results: Annotated[Path, typer.Option(help="Where the table goes.")] = Path("results/listops"),
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting of all runs: KEY=VALUE.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")] = "auto",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time; 10 on a GPU, one a core on a CPU.")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Train nothing; show what has ended so far.")
    ] = False,
) -> None:
    """Repeat table 1; see LISTOPS_HELP."""
    from treelax.training.devices import find_device

    configs = _configs(rows, seeds, settings or [])
    if report:
        done = _runs_so_far(configs, runs)
    else:
        place = find_device(device)
        at_once = jobs or (10 if place.type == "cuda" else os.cpu_count() or 1)
        error_console.print(f"{len(configs)} runs, {at_once} at a time, on {place}")
        done = _sweep(configs, runs, str(place), at_once)
    _publish(done, results, settings or [], seeds, rows)


def _configs(rows: str | None, seeds: int, settings: Sequence[str]) -> list[ListOpsConfig]:
    """The config of every run."""
    from treelax.analysis.listops_table import ROWS
    from treelax.analysis.sweep import configure

    given = [setting for setting in settings if setting.partition("=")[0].strip() == "seed"]
    if given:
        raise InputError(
            f"seed: received the setting {given[0]}; expected --seeds N for 0 to N - 1"
        )
    presets = [row.preset for row in ROWS] if rows is None else map(str.strip, rows.split(","))
    return [
        configure(preset, [*settings, f"seed={seed}"])
        for preset in dict.fromkeys(presets)
        for seed in range(seeds)
    ]


def _runs_so_far(configs: Sequence[ListOpsConfig], folder: Path) -> list[Run]:
    from treelax.analysis.sweep import check_same, name
    from treelax.training.run import Run

    found = []
    for config in configs:
        if (folder / name(config) / "config.toml").exists():
            run = Run.open(folder / name(config))
            check_same(run, config)
            found.append(run)
    return found


def _sweep(configs: Sequence[ListOpsConfig], folder: Path, device: str, jobs: int) -> list[Run]:
    from treelax.analysis.sweep import sweep

    with progress("sweep", sum(c.train.epochs for c in configs), unit="epoch") as bar:

        def tell(run: Run, row: dict[str, Any], epochs: int) -> None:
            dev = row["dev"]
            bar.update(
                epochs,
                f"{run.path.name} epoch {row['epoch']} acc {dev['operator_accuracy']:.1f} "
                f"att {dev['attachment']:.1f}",
            )

        return sweep(configs, folder, device=device, jobs=jobs, report=tell)


def _publish(
    runs: Sequence[Run], results: Path, settings: list[str], seeds: int, rows: str | None
) -> None:
    """Print the table and write it, the runs and the curves."""
    from treelax.analysis.listops_table import HEADINGS, not_run, record, table_rows, to_csv
    from treelax.analysis.results import read_result
    from treelax.files import atomic_write

    ended = [(run, result) for run in runs if (result := read_result(run)) is not None]
    if not ended:
        raise InputError("no run has ended yet; expected at least one: train without --report")
    records = [record(result) for _, result in ended]
    table(HEADINGS, table_rows(records), title="ListOps valency tagging, test set, percent")
    results.mkdir(parents=True, exist_ok=True)
    command = " ".join(
        ["treelax table listops", f"--seeds {seeds}"]
        + ([f"--rows {rows}"] if rows else [])
        + [f"--set {setting}" for setting in settings]
    )
    with atomic_write(results / "runs.csv", "w") as file:
        file.write(to_csv(records))
    with atomic_write(results / "table.md", "w") as file:
        # a table of chosen rows lacks nothing
        missing = [] if rows else not_run(line["preset"] for line in records)
        done = [run for run, _ in ended]
        file.write(_markdown(HEADINGS, table_rows(records), missing, command, done))
    _curves([run for run, _ in ended], results)
    console.print(f"written to {results}")


def _markdown(
    headings: Sequence[str],
    rows: list[list[str]],
    missing: list[str],
    command: str,
    runs: Sequence[Run],
) -> str:
    from treelax.analysis.results import read_result
    from treelax.analysis.sweep import settings_of

    data = dict.fromkeys(_describe_data(settings_of(run)) for run in runs)
    devices: dict[str, dict[str, None]] = {}
    for run in runs:
        if (result := read_result(run)) is not None:
            devices.setdefault(result["device"], {})[result["preset"]] = None
    where = ", ".join(devices)
    if len(devices) > 1:  # then which preset ran on which
        where = "; ".join(f"{name} ({', '.join(presets)})" for name, presets in devices.items())
    lines = [
        "# ListOps valency tagging",
        "",
        "Test accuracy over operators and attachment over all tokens, in percent, with discrete "
        f"trees; {'; '.join(data)}. Mean ± standard deviation over seeds. `{command}` on "
        f"{where}.",
        "",
        "| " + " | ".join(headings) + " |",
        "|" + "---|" * len(headings),
        *["| " + " | ".join(row) + " |" for row in rows],
        "",
        *([f"No runs of: {'; '.join(missing)}.", ""] if missing else []),
    ]
    return "\n".join(lines)


def _describe_data(config: ListOpsConfig) -> str:
    data = config.data
    what = f"expressions of at most {data.max_length} tokens of"
    if data.folder is not None:
        return f"{what} {data.folder}"
    return f"{what} the {data.variant} distribution, generated (data.seed {data.seed})"


def _curves(runs: Sequence[Run], results: Path) -> None:
    """Appendix C: accuracy and attachment by epoch, for the paper's recipe and for ours."""
    import csv
    import io

    from treelax.analysis.listops_table import curves
    from treelax.files import atomic_write

    found = curves(runs)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["preset", "run", "epoch", "loss", "operator_accuracy", "attachment"])
    for preset, logs in found.items():
        for seed, log in logs.items():
            for row in log:
                dev = row["dev"]
                figures = (row["loss"], dev["operator_accuracy"], dev["attachment"])
                writer.writerow([preset, seed, row["epoch"], *(f"{x:.4f}" for x in figures)])
    with atomic_write(results / "curves.csv", "w") as file:
        file.write(out.getvalue())
    for recipe in ("paper", "balanced"):
        chosen = {
            label: list(found[f"{recipe}-{cell}"].values())
            for cell, label in CURVES.items()
            if f"{recipe}-{cell}" in found
        }
        if chosen:
            _plot(chosen, results / f"curves-{recipe}.svg")


def _plot(series: dict[str, list[list[dict[str, Any]]]], path: Path) -> None:
    from statistics import mean

    from treelax.pictures import Curve, Panel, draw_panels

    panels = []
    for key, title in (("operator_accuracy", "accuracy"), ("attachment", "attachment score")):
        lines = []
        for label, logs in series.items():
            epochs = [row["epoch"] for row in min(logs, key=len)]
            values = [[row["dev"][key] for row in log[: len(epochs)]] for log in logs]
            means = [mean(column) for column in zip(*values, strict=True)]
            lines.append(Curve(label, epochs, means, values))
        panels.append(Panel(lines, "epoch", f"dev {title}, %", title.capitalize(), (0, 100)))
    draw_panels(panels).save(path)
