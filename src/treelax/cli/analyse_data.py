"""The sentences that ``treelax analyse`` takes: of a file, or of the runs themselves."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import get_args

from treelax.analysis.corpora import Corpus
from treelax.analysis.corpus_readers import listops_corpus, read_treebank, text_corpus
from treelax.analysis.subjects import SentenceSubject, Subject
from treelax.cli.console import error_console
from treelax.cli.predict_files import STREAM, Input, input_records, source_of
from treelax.data.listops import read_listops
from treelax.data.text.readers_table import FORMATS, SUFFIXES, read_table
from treelax.data.text.records import Records
from treelax.errors import DataError, InputError
from treelax.ops.checks import one_of

__all__ = ["Wanted", "check_options", "corpus_for"]

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
    if form is not None:
        one_of("--input", form, (CONLLU, *get_args(Input)))
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
