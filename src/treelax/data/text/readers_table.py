"""Reader and writer of tables with named columns: TSV, CSV and JSON lines."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

from treelax.data.input_files import PathLike, Source, one_file
from treelax.data.text.ptb import one_word, spaced_words
from treelax.data.text.records import CheckOptions, Checks, Record, Records, Report
from treelax.data.text.rows import (
    column_places,
    json_objects,
    missing_column,
    note_ragged,
    quoted_rows,
    short,
    split_rows,
)
from treelax.errors import DataError, InputError
from treelax.files import atomic_write, compressed
from treelax.ops.checks import one_of

__all__ = ["read_table"]

NO_LABEL = "no label"
NONE = "-"  # no label, no value
Format = Literal["tsv", "csv", "jsonl"]
FORMATS = get_args(Format)
SUFFIXES: dict[str, Format] = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}


def read_table(
    path: PathLike,
    text: str | Sequence[str] = ("sentence",),
    label: str | None = "label",
    *,
    format: Format | None = None,
    extra: Sequence[str] = (),
    tokens: bool = False,
    quoted: bool | None = None,
    **checks: Unpack[CheckOptions],
) -> Records:
    r"""Read a table with named columns: sentences or pairs of them, and their classes.

    In TSV and CSV the first line names the columns; in JSON lines every line is an object, whose
    text may also be a list of its words.
    A record whose label is empty (in JSON also null) is skipped and counted.

    Args:
        path: the file, ``.tsv``, ``.csv`` or ``.jsonl``, also compressed (``.gz``, ``.xz``,
            ``.bz2``) or in a ``.zip``.
        text: the columns with the texts, one or two.
        label: the column with the class; None if there is none.
        format: ``"tsv"``, ``"csv"`` or ``"jsonl"``; by the name of the file if it is not given.
        extra: columns to keep in ``record.extra`` where the file has them.
        tokens: the texts are tokenised already: words with white space between.
        quoted: cells may stand in quotes: the default in CSV; in TSV quotes are ordinary
            characters unless it is True.
        checks: see `treelax.data.text.records.Checks`.

    Returns:
        The records, read lazily.

    Raises:
        DataError: there is no such file, or, as it is read: it lacks a column, a line has too few
            or too many cells or is no JSON, or a text is no text. The message names file and line.
        InputError: ``text`` names no column or more than two, or the format is not known.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "mail.csv")
        ...     count = file.write_text('subject,kind\n"Hello, you",spam\n')
        ...     [(r.label, r.texts) for r in read_table(file, text="subject", label="kind")]
        [('spam', ('Hello, you',))]
    """
    texts = (text,) if isinstance(text, str) else tuple(text)
    if len(texts) not in (1, 2):
        raise InputError(f"text: received {texts!r}; expected the name of one column, or two")
    if format is not None:
        one_of("format", format, FORMATS)
    suffixes = [s for s, named in SUFFIXES.items() if format in (None, named)]
    source = one_file(path, suffixes=suffixes, expected="a table")
    if format is None and source.suffix not in SUFFIXES:
        raise InputError(
            f"{source.name}: received a file in {source.suffix!r}; expected {', '.join(SUFFIXES)}: "
            "rename it, export it as CSV, or in Python pass format="
        )
    form = format or SUFFIXES[source.suffix]
    made = Checks(**checks)
    wanted = texts if label is None else (*texts, label)

    def read(report: Report) -> Iterator[Record]:
        if form == "jsonl":
            rows = json_objects(source.lines(), source.name)
        else:
            rows = _rows(source, form, quoted, wanted, made, report)
        for number, fields in rows:
            if fields is None:
                yield Record(("",), None, number)
                continue
            where = f"{source.name}, line {number}"
            for name in wanted:
                if name not in fields:
                    raise missing_column(fields, name, where)
            is_list = any(isinstance(fields[name], list) for name in texts)
            found = tuple([_text(fields[name], name, where, is_list, tokens) for name in texts])
            kind = None if label is None else _value(fields[label], label, where)
            if kind == "":
                report.drop(NO_LABEL, number)
                continue
            others = {name: _value(fields[name], name, where) for name in extra if name in fields}
            yield Record(found, kind, number, tokens or is_list, others)

    return Records(source.name, read, checks=made, file=source.file)


def _rows(
    source: Source,
    form: Format,
    quoted: bool | None,
    wanted: Sequence[str],
    checks: Checks,
    report: Report,
) -> Iterator[tuple[int, dict[str, str] | None]]:
    """The rows of TSV or CSV by name of column; None for a blank line."""
    separator = "\t" if form == "tsv" else ","
    if quoted or (quoted is None and form == "csv"):
        rows = quoted_rows(source.lines(), source.name, separator)
    else:
        rows = split_rows(source.lines(), separator)
    for header, columns in rows:
        column_places(columns, wanted, f"{source.name}, line {header}", separator)
        for number, cells in rows:
            if cells == [""]:
                yield number, None
            elif len(cells) != len(columns):
                note_ragged(checks, report, source.name, number, len(cells), len(columns))
            else:
                yield number, dict(zip(columns, cells, strict=True))


def _text(text: Any, name: str, where: str, is_list: bool, tokens: bool) -> str:
    """A text, or a list of words, as a `Record` has it."""
    if text is None:
        return ""
    if isinstance(text, str) and not is_list:
        return spaced_words(text) if tokens else text
    if not isinstance(text, list):
        expected = "a list of words, as the other text" if is_list else "text or a list of words"
        raise DataError(f"{where}: received {short(text)} as {name!r}; expected {expected}")
    for word in text:
        if not isinstance(word, str) or not word.strip():
            raise DataError(f"{where}: received {short(word)} as a word of {name!r}; expected text")
    return " ".join(map(one_word, text))


def _value(value: Any, name: str, where: str) -> str:
    """A text, or a number or truth value as JSON writes it; empty for null and pandas' NaN."""
    if isinstance(value, str):
        return value.strip()
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if not isinstance(value, bool | int | float):
        raise DataError(f"{where}: received {short(value)} as {name!r}; expected text or a number")
    return json.dumps(value)


def write_table(
    path: PathLike, records: Iterable[Record], text: Sequence[str], extra: Sequence[str] = ()
) -> None:
    """Write records as TSV whose first line names the columns: label, texts, extra ones."""
    file = Path(path)
    with atomic_write(file) as raw, compressed(raw, file, "wb") as out:
        out.write(("\t".join(["label", *text, *extra]) + "\n").encode())
        for count, record in enumerate(records, 1):
            label = NONE if record.label is None else str(record.label)
            cells = [label, *record.texts, *(record.extra.get(name, NONE) for name in extra)]
            for cell in cells:
                if re.search(r"[\t\n\r]", cell):
                    raise DataError(
                        f"{file}, record {count}: received {short(cell)}; expected text without tabs "
                        "and line breaks"
                    )
            out.write(("\t".join(cells) + "\n").encode())
