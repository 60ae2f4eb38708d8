"""``treelax analyse``: what the trees of trained models look like and how far they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from treelax.apps.cli.commands import (
    AsJson,
    Data,
    Device,
    Input,
    Label,
    Limit,
    MaxLength,
    Split,
    Text,
    Tokens,
    Vectors,
    command,
)
from treelax.apps.cli.console import console, error_console, is_terminal, show
from treelax.apps.cli.output import warn_of_long
from treelax.apps.cli.progress import progress
from treelax.errors import InputError

if TYPE_CHECKING:
    from treelax.apps.tasks.base import Source, TrainedParser
    from treelax.lab.analysis.corpora import Corpus
    from treelax.lab.analysis.parses import Parses

HELP = """Analyse the trees of trained models: their grammar and their agreement.

RUN is the folder of a run or of a saved model, or listops for the model that
comes with treelax. Several runs are compared on the same sentences; without
--data, on their dev set. --data takes a CoNLL-U treebank (which may be
compressed or in a .zip), whose heads are compared with those of the runs and
whose tokenisation is kept; a ListOps file; or a table or text, as treelax
predict does. --vectors, as for treelax predict, looks up unknown words; runs
trained without vectors ignore it.

Says what was learned in three sentences, then shows labels with discrete and
with soft trees, agreement with the treebank, other runs and simple trees,
entropy, and statistics of arcs, branching, spans, words and tags. --out
writes them as CSV and SVG.

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
    given: Input = None,
    vectors: Vectors = None,
    tokens: Tokens = False,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Study the trees of some runs; see HELP."""
    import json

    from treelax.lab.analysis.study import study
    from treelax.lab.analysis.study_files import write_csv_files
    from treelax.lab.analysis.study_plots import draw_study
    from treelax.lab.analysis.study_tables import study_tables
    from treelax.lab.analysis.summary import summary

    sentences = Sentences(source_of(data, text, label, given, tokens), split, limit, max_length)
    parses = _parse(runs, sentences, device, vectors)
    corpus = sentences.corpus
    assert corpus is not None  # there is at least one run
    with progress("comparing", transient=True):
        comparison = study(corpus, parses)
    if out is not None:
        with progress("writing", transient=True):
            write_csv_files(comparison, out)
            for name, drawing in draw_study(comparison).items():
                drawing.save(out / f"{name}.svg")
    if as_json:
        typer.echo(json.dumps(comparison.record()))
        return
    words = sum(map(len, corpus.sentences))
    console.print(f"{corpus.name}: {len(corpus.sentences):,} sentences, {words:,} words\n")
    for sentence in summary(comparison):
        console.print(f"{sentence}\n", soft_wrap=not is_terminal())
    show(study_tables(comparison))
    if out is not None:
        console.print(f"written: {out}")


def run_names(runs: Sequence[str]) -> list[str]:
    """The shortest ends of the paths that tell the runs apart."""
    paths = [Path(run).parts for run in runs]
    for parts in range(1, max(map(len, paths)) + 1):
        names = [str(Path(*path[-parts:])) for path in paths]
        if len(set(names)) == len(names):
            return names
    twice = next(run for i, run in enumerate(runs) if paths[i] in paths[:i])
    raise InputError(f"RUN: received {twice} twice; expected different runs")


def source_of(
    data: str | None,
    text: Sequence[str] | None,
    label: str | None,
    form: str | None,
    tokens: bool,
) -> Source | None:
    """The file that is named; None for the data of the runs."""
    from treelax.apps.tasks.base import Source

    if data is None:
        options = {"--text": text, "--label": label, "--input": form, "--tokens": tokens}
        for option, value in options.items():
            if value:
                raise InputError(f"{option}: received it without --data; expected both, or neither")
        return None
    return Source(file=data, form=form, columns=tuple(text or ()), label=label, tokens=tokens)


@dataclass
class Sentences:
    """What is studied: the sentences of a file, or of a split of the runs' data."""

    source: Source | None
    split: str
    limit: int | None
    max_length: int | None
    corpus: Corpus | None = None  # once a run has read them

    def parse(self, parser: TrainedParser) -> Parses:
        """What a run says of all sentences, with a progress bar."""
        from treelax.lab.analysis.parses import parse_corpus

        corpus = self._read(parser)
        words = sum(map(len, corpus.sentences))
        with progress(f"parsing with {parser.name}", words, unit="words", transient=True) as bar:
            return parse_corpus(parser, corpus, progress=bar.update)

    def _read(self, parser: TrainedParser) -> Corpus:
        """The sentences, which are those of all runs; a file that was named is read once."""
        from treelax.lab.analysis.corpora import Corpus, check_same_sentences

        if self.corpus is not None and self.source is not None:
            return self.corpus
        with progress("preparing the data", transient=True):
            if self.source is not None:
                examples = parser.read(self.source)
            else:
                limit = self.limit if self.max_length is None else None
                examples = parser.own_examples(self.split, limit=limit)
            corpus = Corpus.of(examples, limit=self.limit, max_length=self.max_length)
        for note in examples.notes():
            error_console.print(f"{corpus.name}: {note}")
        if self.corpus is not None:
            check_same_sentences(self.corpus, corpus)
            return self.corpus
        number, longest = max(enumerate(corpus.sentences, 1), key=lambda pair: len(pair[1]))
        warn_of_long(corpus.name, f"sentence {number}", len(longest), "words")
        self.corpus = corpus
        return corpus


def _parse(
    runs: Sequence[str], sentences: Sentences, device: str, vectors: Sequence[Path] | None
) -> list[Parses]:
    """What each run says of the sentences; one model is in memory at a time."""
    from treelax.apps.tasks import load
    from treelax.apps.training.devices import find_device

    place, names = find_device(device), run_names(runs)
    takers = set(runs)
    if vectors:  # asked of all runs before the first is at work, which may take long
        takers = {run for run in runs if load(run).takes_vectors} or takers
    parses = []
    for run, name in zip(runs, names, strict=True):
        if run not in takers:
            error_console.print(f"{run}: takes no files of word vectors; the other runs do")
        files = vectors if run in takers else None
        parses.append(sentences.parse(load(run, device=place, vectors=files, called=name)))
    return parses


register = command("analyse", HELP, analyse)
