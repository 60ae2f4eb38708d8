"""The sentences that ``treelax analyse`` takes: of a file, or of the runs themselves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from treelax.analysis.corpora import Corpus, check_same_sentences
from treelax.analysis.corpus_readers import listops_corpus, read_treebank, text_corpus
from treelax.analysis.parses import Parses
from treelax.analysis.subjects import SentenceSubject, Subject
from treelax.cli.console import error_console
from treelax.cli.output import warn_of_long
from treelax.cli.predict_files import STREAM, input_records, source_of
from treelax.cli.progress import progress
from treelax.data.listops import read_listops
from treelax.data.text.readers_table import FORMATS, SUFFIXES, read_table
from treelax.data.text.records import Records
from treelax.errors import DataError, InputError
from treelax.tasks.text.new_words import vector_files
from treelax.tasks.text.model_files import read_settings

CONLLU = "conllu"
EXPECTED = "a file of sentences, or - for standard input"


@dataclass(frozen=True)
class Wanted:
    """Which sentences are wanted, as the options say.

    Attributes:
        data: the file, or "-"; None for the data of the runs.
        split: of the data of the runs.
        limit: the most examples.
        max_length: the most words of a sentence.
        text: columns of a table with texts; those of training if empty.
        label: column of a table with the label; None for that of training, if it is there.
        form: of the file; None to tell it by its name.
        tokens: texts are words with spaces between.
    """

    data: str | None
    split: str
    limit: int | None
    max_length: int | None
    text: tuple[str, ...]
    label: str | None
    form: str | None
    tokens: bool

    @property
    def reading(self) -> dict[str, object]:
        """The options that say how a file of sentences is to be read."""
        return {
            "--text": self.text,
            "--label": self.label,
            "--input": self.form,
            "--tokens": self.tokens,
        }


def check_options(wanted: Wanted, *, listops: bool) -> None:
    """Refuse options that say how to read a file where there is none, or one of ListOps."""
    for option, value in wanted.reading.items():
        if value and wanted.data is None:
            raise InputError(f"{option}: received it without --data; expected both, or neither")
        if value and listops:
            raise InputError(
                f"{option}: received it for runs of ListOps; expected none: {wanted.data} can only "
                "be a file of expressions"
            )


def corpus_for(subject: Subject, wanted: Wanted) -> Corpus:
    """The sentences for a subject: those of the file, or its own."""
    # what is too long does not count for the limit
    limit = wanted.limit if wanted.max_length is None else None
    if wanted.data is None:
        corpus = subject.own_corpus(wanted.split, limit=limit)
        _tell_unchecked(subject, corpus)
    elif isinstance(subject, SentenceSubject):
        corpus = _file_of_sentences(wanted.data, subject, wanted, limit)
    else:
        expressions = read_listops(wanted.data, max_length=wanted.max_length)
        corpus = listops_corpus(expressions, wanted.data)
    return corpus.part(limit=wanted.limit, max_length=wanted.max_length)


def shared_corpus(subject: Subject, wanted: Wanted, before: Corpus | None) -> Corpus:
    """The sentences that all runs share; a file that was named is read once."""
    if before is not None and wanted.data is not None:
        return before
    with progress("preparing the data", transient=True):
        own = corpus_for(subject, wanted)
    if before is not None:
        check_same_sentences(before, own)
        return before
    number, longest = max(enumerate(own.sentences, 1), key=lambda pair: len(pair[1]))
    warn_of_long(own.name, f"sentence {number}", len(longest), "words")
    return own


def parsed(subject: Subject, corpus: Corpus) -> Parses:
    """What a run says of all sentences, with a progress bar."""
    words = sum(map(len, corpus.sentences))
    with progress(f"parsing with {subject.name}", words, unit="word", transient=True) as bar:
        return subject.parse(corpus, progress=bar.update)


def all_listops(runs: Mapping[str, bool]) -> bool:
    """Whether runs, by their paths, are of ListOps; a mixture is refused."""
    listops = [run for run, is_listops in runs.items() if is_listops]
    others = [run for run in runs if run not in listops]
    if listops and others:
        raise InputError(
            f"RUN: received {listops[0]}, of ListOps, and {others[0]}, of sentences; expected runs "
            "that can parse the same sentences"
        )
    return bool(listops)


def _tell_unchecked(subject: Subject, corpus: Corpus) -> None:
    """Say which file is taken where a run does not say what was in those that it was trained with."""
    if isinstance(subject, SentenceSubject) and not subject.origins:
        error_console.print(
            f"{subject.name}: is an older run, which does not tell what its data were; "
            f"{os.path.abspath(corpus.name)} is taken unchecked"
        )


def _file_of_sentences(
    file: str, subject: SentenceSubject, wanted: Wanted, limit: int | None
) -> Corpus:
    settings = subject.model.settings
    form = wanted.form
    if form is None and file != STREAM:
        suffix = source_of(file, None, expected=EXPECTED).suffix
        form = CONLLU if suffix == f".{CONLLU}" else None
    if form == CONLLU:
        for option, value in wanted.reading.items():
            if value and option != "--input":
                raise InputError(
                    f"{option}: received it for {file}; expected none: CoNLL-U has words as they "
                    "are, and no other columns are read"
                )
        return read_treebank(file, limit=limit)
    records = input_records(file, settings, form=form, columns=wanted.text, tokens=wanted.tokens)
    records = _with_labels(file, subject, wanted) or records
    corpus = text_corpus(records, file, texts=settings.texts, limit=limit)
    for note in records.report.lines():
        error_console.print(f"{file}: {note}")
    return corpus


def _with_labels(file: str, subject: SentenceSubject, wanted: Wanted) -> Records | None:
    """The records of a table with their labels, if it has a column of them."""
    settings, config = subject.model.settings, subject.config
    label = wanted.label or (None if config is None else config.data.label)
    form = wanted.form or (None if file == STREAM else SUFFIXES.get(source_of(file, None).suffix))
    if label is None or form not in FORMATS or settings.kind == "tag":
        if wanted.label is not None:
            raise InputError(
                f"--label: received {wanted.label!r}, a column, and {file} is no table with a class "
                "on each line; leave it out"
            )
        return None
    labelled = read_table(
        file,
        wanted.text or settings.text,
        label,
        format=form,  # type: ignore[arg-type]
        tokens=wanted.tokens or settings.tokens,
        quoted=settings.quoted,
        ragged=settings.unusable,
        too_long=settings.unusable,
        advice="",
    )
    try:
        next(iter(labelled))
    except DataError:
        if wanted.label is not None:
            raise
        return None  # no such column, or no labels in it; sentences have trees all the same
    return labelled


def vectors_of_runs(
    runs: Sequence[str], vectors: Sequence[Path] | None, *, listops: bool
) -> list[Sequence[Path] | None]:
    """The files in which each run looks up words; says which runs have no use for them.

    Where no run has, all get the files: the first one to be loaded refuses them and says why.
    """
    if not vectors or listops:
        return [vectors] * len(runs)
    # all of them before the first one is at work, which may take long
    settings = {run: read_settings(Path(run)) for run in runs}
    takers = [run for run in runs if settings[run].vectors]
    for run in takers:
        vector_files(vectors, settings[run], run)
    if not takers:
        return [vectors] * len(runs)
    for run in runs:
        if run not in takers:
            error_console.print(
                f"{run}: has no word vectors from files, so --vectors are for the other runs alone"
            )
    return [vectors if run in takers else None for run in runs]
