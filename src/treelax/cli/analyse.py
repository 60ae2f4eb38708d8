"""``treelax analyse``: what the trees of trained models look like and how far they agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from treelax.cli.commands import command
from treelax.cli.console import console, table
from treelax.cli.options import (
    CorpusInput,
    Data,
    Device,
    Label,
    Limit,
    MaxLength,
    Split,
    Text,
    Tokens,
    Vectors,
)
from treelax.cli.progress import progress
from treelax.errors import InputError

if TYPE_CHECKING:
    from treelax.analysis.corpora import Corpus
    from treelax.analysis.parses import Parses
    from treelax.analysis.study import Study
    from treelax.cli.analyse_data import Wanted

HELP = """Study the trees of trained models: their grammar and how far they agree.

RUN is the folder of a run or of a saved sentence model, or listops for the
model that comes with treelax; several runs are compared on the same
sentences, without --data those of the dev set of the runs. --data takes a
CoNLL-U treebank, also compressed or in a .zip, whose heads are compared with
those of the runs and whose words are taken as they stand; a ListOps file; or
a table or text as treelax predict reads. With the --vectors of their training
the runs look up words that they do not know, as for treelax predict; runs
that were trained without such files go without.

Shows statistics of arcs, branching and spans, agreement of the runs with each
other, with baselines and with the treebank, the entropy of the trees, and
labels with discrete and with soft trees. --out writes them as CSV and SVG.

Examples:
  treelax analyse listops --data data/listops/test.tsv --limit 1000
  treelax analyse runs/sst-0 runs/sst-1 runs/sst-2 --out analysis
  treelax analyse runs/sst-0 --data en_ewt-ud-dev.conllu --json
"""


def analyse(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs, saved models, or listops.")
    ],
    data: Data = None,
    split: Split = "dev",
    out: Annotated[
        Path | None, typer.Option(file_okay=False, help="Folder for CSV files and pictures.")
    ] = None,
    limit: Limit = None,
    max_length: MaxLength = None,
    text: Text = None,
    label: Label = None,
    given: CorpusInput = None,
    vectors: Vectors = None,
    tokens: Tokens = False,
    device: Device = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Study the trees of some runs; see HELP."""
    import json

    from treelax.analysis.study import study
    from treelax.cli.analyse_data import Wanted

    wanted = Wanted(data, split, limit, max_length, tuple(text or ()), label, given, tokens)
    corpus, parses = _parse(runs, wanted, device, vectors)
    with progress("comparing", transient=True):
        found = study(corpus, parses)
    if out is not None:
        _write(found, out)
    if as_json:
        typer.echo(json.dumps(found.record()))
    else:
        _show(found, out)


def _show(found: Study, out: Path | None) -> None:
    from treelax.analysis.study_tables import study_tables

    words = sum(map(len, found.corpus.sentences))
    console.print(
        f"{found.corpus.name}: {len(found.corpus.sentences):,} sentences, {words:,} words"
    )
    for each in study_tables(found):
        console.print()
        table(each.columns, each.rows, title=each.title, note=each.note)
    if out is not None:
        console.print()
        console.print(f"written: {out}")


def _write(found: Study, folder: Path) -> None:
    from treelax.analysis.study_files import write_csv_files
    from treelax.analysis.study_plots import draw_study

    with progress("writing", transient=True):
        write_csv_files(found, folder)
        for name, drawing in draw_study(found).items():
            drawing.save(folder / f"{name}.svg")


def run_names(runs: Sequence[str]) -> list[str]:
    """The shortest ends of the paths that tell the runs apart."""
    paths = [Path(run).parts for run in runs]
    for i, path in enumerate(paths):
        if path in paths[:i]:
            raise InputError(f"RUN: received {runs[i]} twice; expected different runs")
    for parts in range(1, max(map(len, paths)) + 1):
        names = [str(Path(*path[-parts:])) for path in paths]
        if len(set(names)) == len(names):
            return names
    return list(runs)


def _parse(
    runs: Sequence[str], wanted: Wanted, device: str, vectors: Sequence[Path] | None
) -> tuple[Corpus, list[Parses]]:
    """The sentences and what each run says of them; one model is in memory at a time."""
    from treelax.analysis.subjects import load_subject
    from treelax.cli.analyse_data import (
        all_listops,
        check_options,
        parsed,
        shared_corpus,
        vectors_of_runs,
    )
    from treelax.training.devices import find_device
    from treelax.training.models import is_listops

    place = find_device(device)
    names = run_names(runs)
    listops = all_listops({run: is_listops(run) for run in runs})
    check_options(wanted, listops=listops)
    files = vectors_of_runs(runs, vectors, listops=listops)
    corpus: Corpus | None = None
    parses = []
    for run, name, own_files in zip(runs, names, files, strict=True):
        subject = load_subject(run, name=name, device=place, vectors=own_files)
        corpus = shared_corpus(subject, wanted, corpus)
        parses.append(parsed(subject, corpus))
    assert corpus is not None  # there is at least one run
    return corpus, parses


register = command("analyse", HELP, analyse)
