"""``treelax table gradients``: estimators held against the exact gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from treelax.apps.cli.commands import command
from treelax.apps.cli.console import console, show
from treelax.apps.cli.progress import advancing, progress

HELP = """Hold every estimator of gradients against the exact gradient.

The scores of short sentences are random, or trained by exact gradient
descent until the entropy has halved; losses of a structure are linear,
quadratic and a small network. Written to --results: gradients.csv with all
settings, gradients.md with the best ones and gradients.svg.
docs/estimators.md says how to read them. It takes minutes on a CPU.

Example:
  treelax table gradients --structure nonprojective --seeds 5
"""


def gradients(
    structure: Annotated[
        Literal["projective", "nonprojective", "heads", "binary"],
        typer.Option(help="Latent structure."),
    ] = "projective",
    words: Annotated[int, typer.Option(min=3, max=6, help="Words of a sentence.")] = 5,
    draws: Annotated[int, typer.Option(min=2, help="Estimates of each gradient.")] = 1000,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of scores and losses.")] = 5,
    results: Annotated[
        Path | None,
        typer.Option(
            file_okay=False,
            help="Output folder; default: results/gradients, or results/gradients/STRUCTURE for one "
            "that is not projective.",
        ),
    ] = None,
) -> None:
    """Measure all estimators, and write tables and plot; see HELP."""
    place = results or Path("results", "gradients", structure if structure != "projective" else "")
    from treelax.lab.analysis import gradients as measures
    from treelax.lab.analysis.gradient_plots import draw_gradients
    from treelax.lab.analysis.tables import to_csv, write_files

    with progress("gradients", seeds * measures.count(structure), unit="settings") as bar:
        records = measures.measured(structure, words, draws, seeds)
        rows = measures.averaged(advancing(records, bar, every=1))
    show(measures.short_table(rows, scores) for scores in measures.SCORES)
    console.print(measures.SHORT, soft_wrap=False)
    line = f"treelax table gradients --structure {structure} --words {words} --draws {draws}"
    line += f" --seeds {seeds}"
    texts = {"csv": to_csv(list(rows[0]), rows, ".6g"), "md": measures.report(rows, line)}
    write_files(place, {f"gradients.{kind}": text for kind, text in texts.items()})
    draw_gradients(rows).save(place / "gradients.svg")
    console.print(f"written to {place}")


register = command("gradients", HELP, gradients)
