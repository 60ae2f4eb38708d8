"""Files of texts, as ``treelax predict`` and others read them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack, get_args

from treelax.cli.options import Form
from treelax.data.input_files import Source, one_file
from treelax.data.text.readers_plain import read_lines_of_text, read_stream
from treelax.data.text.readers_table import SUFFIXES, read_table
from treelax.data.text.readers_tagging import WORD_SUFFIXES, column_of, read_tagging
from treelax.data.text.records import CheckOptions, Record, Records
from treelax.data.text.tokenizer import words_of
from treelax.errors import InputError
from treelax.tasks.text.prediction import SentenceSettings

PLAIN = ("", ".txt", ".text")
STREAM = "-"
DATA_SUFFIXES = (*WORD_SUFFIXES, *SUFFIXES)


def input_records(
    file: str,
    settings: SentenceSettings,
    *,
    form: str | None = None,
    columns: Sequence[str] = (),
    tokens: bool = False,
    **checks: Unpack[CheckOptions],
) -> Records:
    """The reader for a file of texts, by its name and what the model takes."""
    if file == STREAM:
        if form not in (None, "text"):
            raise InputError(
                f"--input: received {form!r} for standard input; expected text, a line each: put "
                "other formats into a file"
            )
        form = "text"
    form = form or _form_of(file, settings)
    tokens = tokens or settings.tokens
    usual: CheckOptions = {
        "unusable": settings.unusable,
        "advice": "",
    }
    checks = {**usual, **checks}
    if form == "conll":
        return _words_records(file, settings, columns, checks)
    if form == "text":
        if columns:
            raise InputError(
                f"--text: received {columns[0]!r}, a column, and {file} is read as {form}, which has "
                "none; leave it out, or give --input tsv, csv or jsonl"
            )
        if file == STREAM:
            return read_stream(sys.stdin.buffer, texts=settings.texts, tokens=tokens, **checks)
        return read_lines_of_text(file, texts=settings.texts, tokens=tokens, **checks)
    names = tuple(columns) or settings.text
    _check_count(names, settings)
    labels = [] if settings.label is None or settings.kind == "tag" else [settings.label]
    return read_table(
        file,
        names,
        None,
        format=form,  # type: ignore[arg-type]
        tokens=tokens,
        quoted=settings.quoted,
        extra=labels,
        **checks,
    )


def _check_count(names: Sequence[str], settings: SentenceSettings) -> None:
    if len(names) != settings.texts:
        noun = "column" if settings.texts == 1 else "columns"
        raise InputError(
            f"--text: received {' '.join(names)}; expected {settings.texts} {noun}, for the model "
            f"is of kind {settings.kind}"
        )


def _words_records(
    file: str, settings: SentenceSettings, columns: Sequence[str], checks: CheckOptions
) -> Records:
    if settings.texts != 1:
        raise InputError(
            f"--input: received 'conll', a word a line, for a model of pairs; expected {file} to be "
            "a table, or text with a tab between two texts"
        )
    if columns:
        _check_count(columns, settings)
    word = columns[0] if columns else settings.word
    tag = settings.label if settings.kind == "tag" else None
    places = (None if name is None else column_of(name) for name in (word, tag))
    return read_tagging(file, *places, need_tags=False, **checks)


def _form_of(file: str, settings: SentenceSettings) -> str:
    suffix = source_of(file, None).suffix
    if suffix == ".conllu":
        return "conll"
    found = SUFFIXES.get(suffix)
    if settings.kind == "tag" and found in (None, "tsv"):
        if suffix in PLAIN:  # a wrong guess would go unnoticed
            raise InputError(
                f"{file}: its name does not say what is on a line; expected --input conll, a word, "
                "or --input text, a sentence"
            )
        return "conll"  # as the files that taggers are trained on
    if found is None and suffix not in PLAIN:
        raise InputError(
            f"{file}: received a file in {suffix!r}; expected {', '.join([*SUFFIXES, '.txt'])}, or "
            f"--input with one of {', '.join(get_args(Form))}"
        )
    return found or "text"


def source_of(
    file: str | os.PathLike[str],
    form: str | None,
    *,
    expected: str = "a file of texts, or - for standard input",
) -> Source:
    """The file of texts that a name means, which in an archive may have a README beside it."""
    # the form that is found by a name may be any, so no other file may have such a name
    preferred = WORD_SUFFIXES if form == "conll" else DATA_SUFFIXES
    return one_file(file, preferred=preferred, expected=expected)


def is_treebank(
    file: str | os.PathLike[str] | Source, settings: SentenceSettings, form: str | None
) -> bool:
    """Whether a file is read as CoNLL-U, whose sentences have lines and names of their own."""
    source = file if isinstance(file, Source) else Source(Path(file))
    return source.suffix == ".conllu" and form in (None, "conll") and settings.texts == 1


def words(record: Record, texts: int) -> list[list[str]]:
    """The words of each text of an example."""
    if len(record.texts) != texts:
        return [[] for _ in range(texts)]
    return [words_of(record, i) for i in range(texts)]
