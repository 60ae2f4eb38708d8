"""``treelax figure``: figures of the paper, drawn anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from treelax.apps.cli.commands import command, group
from treelax.apps.cli.output import write_picture

HELP = """Draw a figure of the paper.

Every figure has its own --help.

Examples:
  treelax figure relaxation --out relaxation.svg
  treelax figure listops results/listops/runs.csv --out seeds.svg
"""
RELAXATION_HELP = """Draw argmax against its relaxation (appendix B of the paper).

Both surfaces show the first of three outputs for the input (x1, x2, 0):
argmax is flat except for a jump, the relaxation slopes everywhere.

Example:
  treelax figure relaxation --temperature 0.5 --out relaxation.svg
"""
LISTOPS_HELP = """Draw every seed of table 1 beside the paper's figures.

A strip for each of the four cells, with accuracy on the left and attachment
on the right. RUNS is the runs.csv that treelax table listops writes.

Example:
  treelax figure listops results/listops/runs.csv --out seeds.svg
"""
Out = Annotated[
    Path | None, typer.Option(help="Output file: .svg, .png or .pdf; default: SVG on stdout.")
]


def relaxation(
    out: Out = None,
    temperature: Annotated[
        float, typer.Option(min=0.01, help="Temperature of the relaxation.")
    ] = 1.0,
) -> None:
    """Draw argmax against its relaxation; see RELAXATION_HELP."""
    from treelax.lab.plots import draw_relaxation

    write_picture(draw_relaxation(temperature=temperature), out)


def listops(
    runs: Annotated[Path, typer.Argument(metavar="RUNS", help="CSV of the runs.")],
    out: Out = None,
) -> None:
    """Draw the seeds of table 1; see LISTOPS_HELP."""
    from treelax.lab.analysis.seed_plots import draw_seeds, read_runs

    write_picture(draw_seeds(read_runs(runs)), out)


register = group(
    "figure",
    HELP,
    command("relaxation", RELAXATION_HELP, relaxation),
    command("listops", LISTOPS_HELP, listops),
)
