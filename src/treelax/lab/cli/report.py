"""``treelax report``: one HTML file with all that is known of some runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from treelax.apps.cli.commands import (
    Data,
    Device,
    Input,
    Label,
    Limit,
    MaxLength,
    Split,
    Text,
    Tokens,
    command,
)
from treelax.apps.cli.console import console, error_console
from treelax.apps.cli.output import refuse_output
from treelax.apps.cli.progress import progress
from treelax.errors import InputError

if TYPE_CHECKING:
    import torch

    from treelax.lab.cli.analyse import Sentences
    from treelax.lab.report import Report, RunRecord

HELP = """Write a report about runs: one self-contained HTML file.

It says what was learned in three sentences, and has results beside the
paper's, training curves, statistics of the trees, the agreement of the runs,
examples with their trees, and settings. RUN is the folder of a run, finished
or not; several runs are compared.

The trees are those of the dev set of the runs, or of --data, which is read as
by treelax analyse. The report lists what is missing, such as a dev set that
has moved. It is written to RUN/report.html; for several runs, to report.html.

Examples:
  treelax report runs/small
  treelax report runs/sst-0 runs/sst-1 --out sst.html --data dev.conllu
"""
NAME = "report.html"
EXAMPLES, FEWEST, PICTURES = 60, 12, 120  # of a gallery: with one run, with many, of all runs


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run folders.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Output file; default: RUN/report.html, or report.html for several."),
    ] = None,
    data: Data = None,
    split: Split = "dev",
    limit: Limit = None,
    max_length: MaxLength = None,
    gallery: Annotated[
        int | None,
        typer.Option(min=0, help="Most examples in the gallery; default: 60, fewer for many runs."),
    ] = None,
    text: Text = None,
    label: Label = None,
    given: Input = None,
    tokens: Tokens = False,
    device: Device = "auto",
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that is not a report.")
    ] = False,
) -> None:
    """Write a report; see HELP."""
    from treelax.apps.training.devices import find_device
    from treelax.lab.cli.analyse import Sentences, run_names, source_of
    from treelax.lab.report import is_report, read_run

    # the name of one run is that of its folder, also where that is called "."
    names = [None] if len(runs) == 1 else run_names(runs)
    records = [read_run(run, name) for run, name in zip(runs, names, strict=True)]
    sentences = Sentences(source_of(data, text, label, given, tokens), split, limit, max_length)
    file = out or (Path(NAME) if len(runs) > 1 else Path(runs[0], NAME))
    refuse_output(file, data)
    if file.exists() and not force and not is_report(file):
        advice = "give another --out, or --force to replace it"
        raise InputError(f"{file}: was not written by treelax report; {advice}")
    size = max(FEWEST, min(EXAMPLES, PICTURES // len(runs))) if gallery is None else gallery
    made = _report(records, sentences, find_device(device), size)
    for note in made.notes:
        error_console.print(note)
    with progress("writing", transient=True):
        made.save(file)
    console.print(f"written: {file} ({file.stat().st_size / 1e3:,.0f} kB)")


def _report(
    runs: Sequence[RunRecord], sentences: Sentences, device: torch.device, gallery: int
) -> Report:
    """Parse the sentences with all runs that can; one model is in memory at a time."""
    from treelax.apps.tasks import load
    from treelax.errors import DataError
    from treelax.lab.analysis.study import study
    from treelax.lab.report import Gallery, Report, Selection, ask

    corpus = selection = parser = None
    parses, results, missing = [], {}, []
    source, split, longest = sentences.source, sentences.split, sentences.max_length
    named = source is not None or longest is not None or split != "dev"
    for run in runs:
        try:
            model = load(run.path, device=device, called=run.name)
            parses.append(sentences.parse(model))
        except (InputError, DataError) as error:
            if named and run.has_model:  # sentences that were asked for must not go unheard
                raise
            missing.append((run.name, f"the trees are missing: {error}."))
            continue
        parser, corpus = model, sentences.corpus
        assert corpus is not None
        selection = selection or Selection.of(corpus, gallery, runs=len(runs))
        results[run.name] = ask(parser, corpus, parses[-1], selection)
    if corpus is None or selection is None or parser is None:
        return Report(runs, missing=missing)
    with progress("comparing", transient=True):
        comparison = study(corpus, parses)
    if gallery and not selection.asked:
        missing.append((corpus.name, "all sentences are too long to draw."))
    texts = parser.text if len(parser.text) == corpus.texts else ("text",)
    shown = Gallery(corpus, selection, results, texts, parser.is_tagger)
    return Report(runs, comparison, shown if selection.asked else None, missing)


register = command("report", HELP, report)
