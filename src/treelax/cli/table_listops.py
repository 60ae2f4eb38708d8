"""``treelax table listops``: the paper's table 1 and appendix C."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelax.cli.console import table
from treelax.cli.options import Device
from treelax.cli.sweeps import (
    Jobs,
    Report,
    Rows,
    Settings,
    every_seed,
    finished,
    named_rows,
    write_results,
)
from treelax.cli.table_settings import (
    command_line,
    common_settings,
    differing,
    refuse_settings,
)
from treelax.cli.train import describe

if TYPE_CHECKING:
    from treelax.tasks.listops.config import ListOpsConfig
    from treelax.training.run import Run

__all__ = ["listops"]

LISTOPS_HELP = """Train all rows of the paper's table 1 over several seeds.

Writes table.md with the paper's figures beside ours, runs.csv, curves.csv,
and appendix C's plots.

Examples:
  treelax table listops --seeds 5 --device cuda
  treelax table listops --rows balanced-mc,gold --seeds 2 --results /tmp/try
  treelax table listops --report
"""
# settings that rows are labelled by; other settings in which rows differ belong to their recipes
ROWS_ARE = frozenset(
    {"model.trees", "model.relaxation", "model.noise", "model.straight_through", "train.loss"}
)
RUNS_FOLDER, RESULTS_FOLDER = Path("runs/table-listops"), Path("results/listops")
CELLS = {
    "zero": "G = 0, forward relaxed",
    "mc": "MC, forward relaxed",
    "zero-st": "G = 0, straight-through",
    "mc-st": "MC, straight-through",
}


def listops(
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds: 0 to N-1.")] = 5,
    rows: Rows = None,
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = RUNS_FOLDER,
    results: Annotated[Path, typer.Option(help="Where the table goes.")] = RESULTS_FOLDER,
    settings: Settings = None,
    device: Device = "auto",
    jobs: Jobs = None,
    report: Report = False,
) -> None:
    """Repeat table 1; see LISTOPS_HELP."""
    from treelax.analysis.listops_table import ROWS
    from treelax.analysis.run_folders import configure
    from treelax.tasks.listops.config import FILES, preset

    presets = [row.preset for row in ROWS] if rows is None else named_rows(rows)
    changes = settings or []
    fixed = differing([preset(row) for row in presets], ROWS_ARE)
    refuse_settings(changes, fixed, "listops")
    configs = every_seed(presets, seeds, changes, configure)
    done, failure = finished(
        configs,
        runs,
        results,
        device=device,
        jobs=jobs,
        report=report,
        describe=lambda row: describe(row["dev"]),
        said=changes,
    )
    folders = {"runs": (runs, RUNS_FOLDER), "results": (results, RESULTS_FOLDER)}
    shown = common_settings(done, preset, files=FILES, fixed=fixed)
    command = command_line("listops", seeds, rows, shown, folders)
    _publish(done, results, command, whole=rows is None)
    if failure is not None:
        raise failure


def _publish(
    ended: Sequence[tuple[Run, dict[str, Any]]], results: Path, command: str, *, whole: bool
) -> None:
    """Print the table and write it, the runs and the curves."""
    from treelax.analysis.listops_table import (
        COLUMNS,
        HEADINGS,
        ON_SCREEN,
        curves,
        not_run,
        record,
        table_rows,
    )
    from treelax.analysis.tables import RUNS, TABLE, to_csv

    runs = [run for run, _ in ended]
    found = curves(runs)
    records = [record(result, found[result["preset"]][result["seed"]]) for _, result in ended]
    rows = table_rows(records)
    table(
        [HEADINGS[i] for i in ON_SCREEN],
        [[row[i] for i in ON_SCREEN] for row in rows],
        title="ListOps valency tagging, test set, percent",
        note=f"every seed and more columns in {results / TABLE}",
    )
    missing = not_run(line["preset"] for line in records) if whole else []
    write_results(
        results,
        {
            RUNS: to_csv(COLUMNS, records),
            TABLE: _markdown(rows, missing, command, ended),
            "curves.csv": _curves(found),
        },
    )
    for recipe in ("paper", "balanced"):
        cells = {cell: found.get(f"{recipe}-{cell}") for cell in CELLS}
        chosen = {cell: logs for cell, logs in cells.items() if logs}
        if chosen:
            _plot(chosen, results / f"curves-{recipe}.svg")


def _markdown(
    rows: list[list[str]],
    missing: list[str],
    command: str,
    ended: Sequence[tuple[Run, dict[str, Any]]],
) -> str:
    from treelax.analysis.listops_table import HEADINGS, TURN
    from treelax.analysis.run_folders import settings_of
    from treelax.analysis.tables import to_markdown, where

    data = dict.fromkeys(_describe_data(settings_of(run)) for run, _ in ended)
    lines = [
        "# ListOps valency tagging",
        "",
        "Test accuracy over operators and attachment over all tokens, in percent, with discrete "
        f"trees; {'; '.join(data)}. Mean ± standard deviation over seeds; the turn is the first epoch "
        f"with a dev accuracy of {TURN:.0f}. `{command}` on {where(result for _, result in ended)}.",
        "",
        to_markdown(HEADINGS, rows),
        "",
        *([f"No runs of: {'; '.join(missing)}.", ""] if missing else []),
    ]
    return "\n".join(lines)


def _describe_data(config: ListOpsConfig) -> str:
    data = config.data
    what = f"expressions of at most {data.max_length} tokens of"
    if data.folder is not None:
        return f"{what} {data.folder}"
    name = "distribution of Paulus et al. (2020)" if data.variant == "paulus" else "distribution"
    original = "original " if data.variant == "original" else ""
    return f"{what} the {original}{name}, generated (data.seed {data.seed})"


def _curves(found: dict[str, dict[int, list[dict[str, Any]]]]) -> str:
    """All epochs of all runs as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = ("operator_accuracy", "attachment", "soft_operator_accuracy")
    writer.writerow(["preset", "run", "epoch", "loss", *columns])
    for preset, logs in found.items():
        for seed, log in logs.items():
            for row in log:
                # older runs say nothing of soft trees
                dev = [row["dev"].get(column) for column in columns]
                figures = ("" if x is None else f"{x:.4f}" for x in (row["loss"], *dev))
                writer.writerow([preset, seed, row["epoch"], *figures])
    return out.getvalue()


def _plot(cells: dict[str, dict[int, list[dict[str, Any]]]], path: Path) -> None:
    """Appendix C: accuracy and attachment by epoch; a cell looks the same in every plot."""
    from treelax.pictures import Curve, Panel, draw_panels

    panels = []
    for key, title in (("operator_accuracy", "accuracy"), ("attachment", "attachment score")):
        lines = []
        for look, (cell, label) in enumerate(CELLS.items()):
            if cell in cells:
                runs = {
                    seed: {row["epoch"]: row["dev"][key] for row in log}
                    for seed, log in cells[cell].items()
                }
                lines.append(Curve.of_runs(label, runs, look=look))
        panels.append(Panel(lines, "epoch", f"dev {title}, %", title.capitalize(), (0, 100)))
    draw_panels(panels).save(path)
