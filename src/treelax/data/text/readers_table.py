"""Reader and writer of tables with named columns: TSV, CSV and JSON lines."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

from treelax.data.input_files import PathLike, Source, one_file
from treelax.data.text.ptb import one_word, spaced_words
from treelax.data.text.records import CheckOptions, Checks, Record, Records, Report
from treelax.data.text.rows import (
    MissingColumnError,
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
    table = _Table(
        source=source,
        format=format or SUFFIXES[source.suffix],
        texts=texts,
        label=label,
        extra=tuple(extra),
        tokens=tokens,
        quoted=quoted,
        checks=Checks(**checks),
    )
    return Records(source.name, table.read, checks=table.checks, file=source.file)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table and what is wanted of it."""

    source: Source
    format: Format
    texts: tuple[str, ...]
    label: str | None
    extra: tuple[str, ...]
    tokens: bool
    quoted: bool | None
    checks: Checks

    def read(self, report: Report) -> Iterator[Record]:
        for record in self._objects() if self.format == "jsonl" else self._rows(report):
            if record.label == "" and self.label is not None:
                report.drop(NO_LABEL, record.line)
            else:
                yield record

    def _rows(self, report: Report) -> Iterator[Record]:
        where, lines = self.source.name, self.source.lines()
        separator = "\t" if self.format == "tsv" else ","
        if self.quoted or (self.quoted is None and self.format == "csv"):
            rows = quoted_rows(lines, where, separator)
        else:
            rows = split_rows(lines, separator)
        header, columns = next(rows, (0, []))
        if not header:
            return
        extra = [name for name in self.extra if name in columns]
        wanted = [*self.texts, *extra, *([] if self.label is None else [self.label])]
        _refuse_quotes(columns, wanted, f"{where}, line {header}")
        found = column_places(columns, wanted, f"{where}, line {header}", separator)
        places = dict(zip(wanted, found, strict=True))
        text_places = [places[name] for name in self.texts]
        for number, cells in rows:
            if cells == [""]:
                yield Record(("",), None, number)
            elif len(cells) != len(columns):
                note_ragged(self.checks, report, where, number, len(cells), len(columns))
            else:
                yield Record(
                    tuple([self._prepared(cells[place]) for place in text_places]),
                    None if self.label is None else cells[places[self.label]].strip(),
                    number,
                    self.tokens,
                    {name: cells[places[name]] for name in extra},
                )

    def _objects(self) -> Iterator[Record]:
        for number, fields in json_objects(self.source.lines(), self.source.name):
            if fields is None:
                yield Record(("",), None, number)
                continue
            where = f"{self.source.name}, line {number}"
            needed = self.texts if self.label is None else (*self.texts, self.label)
            for name in needed:
                if name not in fields:
                    raise missing_column(fields, name, where)
            tokens = any(isinstance(fields[name], list) for name in self.texts)
            read = _words if tokens else self._text
            texts = tuple([read(fields[name], name, where) for name in self.texts])
            label = None if self.label is None else _value(fields[self.label], self.label, where)
            extra = {n: _value(fields[n], n, where) for n in self.extra if n in fields}
            yield Record(texts, label, number, tokens or self.tokens, extra)

    def _text(self, text: Any, name: str, where: str) -> str:
        if text is not None and not isinstance(text, str):
            raise DataError(
                f"{where}: received {short(text)} as {name!r}; expected text or a list of words"
            )
        return self._prepared(text or "")

    def _prepared(self, text: str) -> str:
        return spaced_words(text) if self.tokens else text


def _refuse_quotes(columns: Sequence[str], wanted: Sequence[str], where: str) -> None:
    """Say what to do about a header in quotes where quotes are ordinary characters."""
    for name in wanted:
        if name not in columns and f'"{name}"' in columns:
            raise MissingColumnError(
                f"{where}: no column {name!r}; did you mean '\"{name}\"', in quotes? Cells in quotes "
                "need --set data.quoted=true in training, quoted=True in Python, or a file in CSV",
                name,
                advised=True,
            )


def _words(words: Any, name: str, where: str) -> str:
    """A list of words as a `Record` has them."""
    if words is not None and not isinstance(words, list):
        raise DataError(
            f"{where}: received {short(words)} as {name!r}, and the other text is a list; expected "
            "two lists of words, or two texts"
        )
    for word in words or []:
        if not isinstance(word, str) or not word.strip():
            raise DataError(f"{where}: received {short(word)} as a word of {name!r}; expected text")
    return " ".join(map(one_word, words or []))


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
