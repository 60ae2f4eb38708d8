"""Readers of tables with named columns (TSV, CSV, JSON lines) and of lines of text."""

from __future__ import annotations

import csv
import difflib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, Unpack, get_args

from treelax.apps.data.input_files import PathLike, one_file
from treelax.apps.data.text.ptb import one_word, spaced_words
from treelax.apps.data.text.records import CheckOptions, Record, Records, Report
from treelax.errors import DataError, InputError, counted, short
from treelax.files import LONGEST_LINE, Line, atomic_write, compressed, decoded_lines
from treelax.ops.checks import one_of

__all__ = ["read_lines_of_text", "read_table"]

NO_LABEL = "no label"
STREAM = "standard input"
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
Row = tuple[int, list[str]]  # number of its first line, cells
Fields = tuple[int, dict[str, Any] | None]  # number of its line, cells by column; None if blank
RAGGED = "wrong number of columns"
COLUMNS_SHOWN = 40
SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas"}


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
    text may also be a list of its words. A record whose label is empty (in JSON also null) is
    skipped and counted.

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
        checks: see `treelax.apps.data.text.records.CheckOptions`.

    Raises:
        DataError: there is no such file; or, as it is read, a line is not what it should be. The
            message names file and line.

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
    preferred = [s for s, named in SUFFIXES.items() if format in (None, named)]
    source = one_file(path, preferred=preferred, expected="a table")
    if format is None and source.suffix not in SUFFIXES:
        raise InputError(
            f"{source.name}: received a file in {source.suffix!r}; expected {', '.join(SUFFIXES)}: "
            "rename it, export it as CSV, or in Python pass format="
        )
    form = format or SUFFIXES[source.suffix]
    wanted = texts if label is None else (*texts, label)

    def named_rows(report: Report) -> Iterator[Fields]:
        lines, separator = source.lines(), "\t" if form == "tsv" else ","
        if form == "jsonl":
            yield from json_objects(lines, source.name)
            return
        if form == "csv" if quoted is None else quoted:
            rows = quoted_rows(lines, source.name, separator)
        else:
            rows = split_rows(lines, separator)
        for header, columns in rows:
            check_columns(columns, wanted, f"{source.name}, line {header}")
            yield from fields_of(rows, columns, len(columns), report)

    def read(report: Report) -> Iterator[Record]:
        for number, fields in named_rows(report):
            if fields is None:
                yield Record(("",), None, number)
                continue
            where = f"{source.name}, line {number}"
            for name in wanted:
                if name not in fields:
                    raise MissingColumnError(fields, name, where)
            is_list = any(isinstance(fields[name], list) for name in texts)
            values = tuple([_text(fields[name], name, where, is_list, tokens) for name in texts])
            kind = None if label is None else _value(fields[label], label, where)
            if kind == "":
                report.drop(NO_LABEL, number)
                continue
            others = {name: _value(fields[name], name, where) for name in extra if name in fields}
            yield Record(values, kind, number, tokens or is_list, others)

    return Records(source.name, read, file=source.file, **checks)


def _text(text: Any, name: str, where: str, is_list: bool, tokens: bool) -> str:
    """A text, or a list of words, as a `Record` has it."""
    if text is None:
        return ""
    if isinstance(text, str) and not is_list:
        return spaced_words(text) if tokens else text
    if not isinstance(text, list) or not all(isinstance(w, str) and w.strip() for w in text):
        expected = "a list of words" if is_list else "text or a list of words"
        raise DataError(f"{where}: received {short(text)} as {name!r}; expected {expected}")
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


def read_lines_of_text(
    path: PathLike | IO[bytes],
    *,
    texts: int = 1,
    tokens: bool = False,
    **checks: Unpack[CheckOptions],
) -> Records:
    r"""Read a file with a text on every line, or two with a tab between.

    Args:
        path: the file, also compressed (``.gz``, ``.xz``, ``.bz2``) or in a ``.zip``; or an open
            file such as standard input, which can be read once.
        texts: how many a line has, 1 or 2.
        tokens: the texts are tokenised already: words with spaces between.
        checks: see `treelax.apps.data.text.records.CheckOptions`.

    Returns:
        A record without a label for each line, read lazily; where a line is one text, tabs are
        white space.

    Example:
        >>> import io
        >>> file = io.BytesIO(b"Dogs bark.\tCats do not.\n")
        >>> [record.texts for record in read_lines_of_text(file, texts=2)]
        [('Dogs bark.', 'Cats do not.')]
    """
    name, file = STREAM, None
    if isinstance(path, str | os.PathLike):
        source = one_file(path, expected="a file of text")
        name, file, lines = source.name, source.file, source.lines
    else:
        lines = partial(decoded_lines, nullcontext(path), STREAM)

    def read(report: Report) -> Iterator[Record]:
        for number, text in lines():
            parts = [text] if texts == 1 else text.split("\t")
            if len(parts) != texts and text.strip():
                note_ragged(report, number, len(parts), f"{texts} texts with a tab between")
            else:
                words = map(spaced_words, parts) if tokens else parts
                yield Record(tuple(words), None, number, tokens)

    return Records(name, read, expected="at least one line of text", file=file, **checks)


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
            for cell in filter(re.compile(r"[\t\n\r]").search, cells):
                message = f"received {short(cell)}; expected text without tabs and line breaks"
                raise DataError(f"{file}, record {count}: {message}")
            out.write(("\t".join(cells) + "\n").encode())


def split_rows(lines: Iterable[Line], separator: str = "\t") -> Iterator[Row]:
    """Lines split at a separator; quotes are ordinary characters."""
    return ((number, text.split(separator)) for number, text in lines)


def quoted_rows(lines: Iterable[Line], where: str, separator: str = ",") -> Iterator[Row]:
    """Rows as in RFC 4180: a cell in quotes may hold any character, a quote inside is doubled."""
    # the limit is the csv module's, for the whole process; an unclosed quote meets it
    csv.field_size_limit(max(LONGEST_LINE, csv.field_size_limit()))
    rows = csv.reader((text + "\n" for _, text in lines), delimiter=separator, strict=True)
    first = 1
    try:
        for cells in rows:
            yield first, cells or [""]
            first = rows.line_num + 1
    except csv.Error as error:
        expected = f'cells separated by {SEPARATORS[separator]}, and "" for a quote inside quotes'
        raise DataError(f"{where}, line {first}: {error}; expected {expected}") from error


def fields_of(
    rows: Iterable[Row], columns: Sequence[str], least: int, out: Report
) -> Iterator[Fields]:
    """Rows by name of column; the columns after the first `least` may be missing."""
    most = len(columns)
    for number, cells in rows:
        if cells == [""]:
            yield number, None
        elif least <= len(cells) <= most:
            yield number, dict(zip(columns, cells, strict=False))
        else:
            note_ragged(out, number, len(cells), f"{least} to {most}" if least < most else most)


def json_objects(lines: Iterable[Line], where: str) -> Iterator[Fields]:
    """The object on each line."""
    for number, text in lines:
        if not text.strip():
            yield number, None
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}, line {number}: is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise DataError(f"{where}, line {number}: received {short(value)}; expected an object")
        yield number, value


def check_columns(columns: Sequence[str], names: Iterable[str], where: str) -> None:
    """Raise unless every name is that of one column."""
    for name in names:
        if name not in columns:
            raise MissingColumnError(columns, name, where)
        if columns.count(name) > 1:
            raise DataError(f"{where}: received several columns {name!r}; expected one")


class MissingColumnError(DataError):
    """A file lacks a column; `advised` if the message says what to do about the file."""

    def __init__(self, columns: Iterable[str], name: str, where: str) -> None:
        columns = list(columns)
        # quoted if one could be taken for two
        shown = [short(c) if "," in c or len(c) > COLUMNS_SHOWN else c for c in columns]
        names = ", ".join(shown[:COLUMNS_SHOWN] + ["…"] * (len(columns) > COLUMNS_SHOWN)) or "none"
        near, hint = difflib.get_close_matches(name, columns, n=1), ""
        if f'"{name}"' in columns:
            hint = "; for cells in quotes use --set data.quoted=true, in Python quoted=True, or CSV"
        elif len(columns) == 1 and (other := next(filter(columns[0].count, SEPARATORS), None)):
            looks = f"the columns look separated by {SEPARATORS[other]}"
            near, hint = [], f"; {looks}; expected commas in .csv, tabs in .tsv"
        start = f"did you mean {short(near[0])}? It has" if near else "it has"
        super().__init__(f"{where}: no column {name!r}; {start}: {names}{hint}")
        self.column, self.advised = name, bool(hint)


def note_ragged(report: Report, line: int, received: int, expected: int | str) -> None:
    """Skip a line with the wrong number of columns and note it, or raise, as asked."""
    message = f"received {counted(received, 'column')}; expected {expected}: fix it or remove it"
    report.refuse(RAGGED, line, message)
