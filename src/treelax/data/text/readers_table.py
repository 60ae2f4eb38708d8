"""Reader of one's own data: TSV, CSV and JSON lines with named columns."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

from treelax.data.sources import PathLike, Source, one_file
from treelax.data.text.delimited import (
    MissingColumnError,
    Row,
    column_places,
    missing_column,
    note_ragged,
    quoted_rows,
    short,
)
from treelax.data.text.json_lines import json_objects
from treelax.data.text.ptb import one_word, spaced_words
from treelax.data.text.records import CheckOptions, Checks, Record, Records, Report
from treelax.errors import DataError, InputError
from treelax.files import Line
from treelax.ops.checks import one_of

__all__ = ["read_table"]

NO_LABEL = "no label"
Format = Literal["tsv", "csv", "jsonl"]
FORMATS = get_args(Format)
SUFFIXES: dict[str, Format] = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
# tables of other programs, which no other name makes readable
BINARY = frozenset(
    {".xlsx", ".xls", ".xlsb", ".ods", ".numbers", ".parquet", ".feather", ".arrow", ".pkl"}
)


def read_table(
    path: PathLike,
    text: str | Sequence[str] = ("sentence",),
    label: str | None = "label",
    *,
    format: Format | None = None,
    member: str | None = None,
    extra: Sequence[str] = (),
    optional: Sequence[str] = (),
    tokens: bool = False,
    quoted: bool | None = None,
    **checks: Unpack[CheckOptions],
) -> Records:
    r"""Read a table with named columns: sentences or pairs of them, and their classes.

    In TSV and CSV the first line names the columns; in JSON lines every line is an object, whose
    text may also be a list of its words.
    A record whose label is empty (in JSON also null) is left out and counted.

    Args:
        path: the file, ``.tsv``, ``.csv`` or ``.jsonl``, also compressed (``.gz``, ``.xz``,
            ``.bz2``) or in a ``.zip``.
        text: the columns with the texts, one or two.
        label: the column with the class; None if there is none.
        format: ``"tsv"``, ``"csv"`` or ``"jsonl"``; by the name of the file if it is not given.
        member: which file in a zip archive, if it holds several that could be meant.
        extra: columns to keep in ``record.extra``.
        optional: columns to keep there if the file has them.
        tokens: the texts are tokenised already: words with white space between.
        quoted: cells may stand in quotes, as in CSV, which is the default there; in TSV quotes are
            characters like others unless it is True.
        checks: see `treelax.data.text.records.Checks`.

    Returns:
        The records, read as they are asked for.

    Raises:
        DataError: there is no such file, or, as it is read: it lacks a column, a line has too few
            or too many cells or is no JSON, or a text is no text. The message names file and line.
        InputError: ``text`` names no column or more than two, or the format is not known.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
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
    source = one_file(path, suffixes=suffixes, member=member, expected="a table")
    table = _Table(
        source=source,
        format=format or _format_of(source),
        texts=texts,
        label=label,
        extra=tuple(extra),
        optional=tuple(optional),
        tokens=tokens,
        quoted=quoted,
        checks=Checks(**checks),
    )
    return Records(
        source.name,
        table.read,
        checks=table.checks,
        expected="at least one record",
        file=source.file,
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """A table and what is wanted of it."""

    source: Source
    format: Format
    texts: tuple[str, ...]
    label: str | None
    extra: tuple[str, ...]
    optional: tuple[str, ...]
    tokens: bool
    quoted: bool | None
    checks: Checks

    def read(self, report: Report) -> Iterator[Record]:
        return self._objects(report) if self.format == "jsonl" else self._rows(report)

    def _rows(self, report: Report) -> Iterator[Record]:
        where = self.source.name
        rows = self._cut(self.source.lines())
        header, columns = next(rows, (0, []))
        if not header:
            return
        extra = [*self.extra, *(name for name in self.optional if name in columns)]
        wanted = [*self.texts, *extra, *([] if self.label is None else [self.label])]
        _refuse_quotes(columns, wanted, f"{where}, line {header}")
        found = column_places(columns, wanted, f"{where}, line {header}", self._separator)
        places = dict(zip(wanted, found, strict=True))
        text_places = [places[name] for name in self.texts]
        extra_places = [(name, places[name]) for name in extra]
        label_place = None if self.label is None else places[self.label]
        width = len(columns)
        for number, cells in rows:
            if cells == [""]:
                yield Record(("",), None, number)
            elif len(cells) != width:
                note_ragged(self.checks, report, where, number, len(cells), width)
            else:
                label = None if label_place is None else cells[label_place].strip()
                if label == "":
                    report.drop(NO_LABEL, number)
                    continue
                yield Record(
                    tuple([self._prepared(cells[place]) for place in text_places]),
                    label,
                    number,
                    self.tokens,
                    {name: cells[place] for name, place in extra_places},
                )

    @property
    def _separator(self) -> str:
        return "\t" if self.format == "tsv" else ","

    def _cut(self, lines: Iterator[Line]) -> Iterator[Row]:
        separator = self._separator
        quoted = self.format == "csv" if self.quoted is None else self.quoted
        if quoted:
            return quoted_rows(lines, self.source.name, separator)
        return ((number, text.split(separator)) for number, text in lines)

    def _objects(self, report: Report) -> Iterator[Record]:
        for number, fields in json_objects(self.source.lines(), self.source.name):
            if fields is None:
                yield Record(("",), None, number)
                continue
            where = f"{self.source.name}, line {number}"
            texts, tokens = self._texts(fields, where)
            names = [*self.extra, *(name for name in self.optional if name in fields)]
            extra = {name: _value(fields, name, where) or "" for name in names}
            label = None
            if self.label is not None:
                label = _value(fields, self.label, where)
                if not label:
                    report.drop(NO_LABEL, number)
                    continue
            yield Record(texts, label, number, tokens, extra)

    def _texts(self, fields: dict[str, Any], where: str) -> tuple[tuple[str, ...], bool]:
        """The texts of an object, and whether they are tokenised: told so, or lists of words."""
        values = [_field(fields, name, where) for name in self.texts]
        if not any(isinstance(value, list) for value in values):
            pairs = zip(values, self.texts, strict=True)
            return tuple([self._prepared(_text(*pair, where)) for pair in pairs]), self.tokens
        return tuple([_list(*pair, where) for pair in zip(values, self.texts, strict=True)]), True

    def _prepared(self, text: str) -> str:
        return spaced_words(text) if self.tokens else text


def _format_of(source: Source) -> Format:
    if source.suffix not in SUFFIXES:
        received = f"a file in {source.suffix!r}" if source.suffix else "a name without a suffix"
        to_do = (
            "export it as CSV"
            if source.suffix in BINARY
            else "rename it, or in Python pass format="
        )
        raise InputError(
            f"{source.name}: received {received}; expected {', '.join(SUFFIXES)}: {to_do}"
        )
    return SUFFIXES[source.suffix]


def _refuse_quotes(columns: Sequence[str], wanted: Sequence[str], where: str) -> None:
    """Say what to do about a header in quotes where quotes are characters like others."""
    for name in wanted:
        if name not in columns and f'"{name}"' in columns:
            raise MissingColumnError(
                f"{where}: no column {name!r}; did you mean '\"{name}\"', in quotes? Cells in quotes "
                "need --set data.quoted=true in training, quoted=True in Python, or a file in CSV",
                name,
                advised=True,
            )


def _field(fields: dict[str, Any], name: str, where: str) -> Any:
    if name not in fields:
        raise missing_column(fields, name, where)
    return fields[name]


def _text(text: Any, name: str, where: str) -> str:
    if text is None:
        return ""  # an empty sentence
    if not isinstance(text, str):
        raise DataError(
            f"{where}: received {short(text)} as {name!r}; expected text or a list of words"
        )
    return text


def _list(words: Any, name: str, where: str) -> str:
    """A list of words as a `Record` has them."""
    if words is None:
        return ""
    if not isinstance(words, list):
        raise DataError(
            f"{where}: received {short(words)} as {name!r}, and the other text is a list; expected "
            "two lists of words, or two texts"
        )
    for word in words:
        if not isinstance(word, str) or not word.strip():
            raise DataError(f"{where}: received {short(word)} as a word of {name!r}; expected text")
    return " ".join(map(one_word, words))


def _value(fields: dict[str, Any], name: str, where: str) -> str | None:
    """A text, or a number or truth value as JSON writes it; None for null."""
    value = _field(fields, name, where)
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, float) and not math.isfinite(value):
        return None  # as pandas writes what is missing
    if value is not None and not isinstance(value, bool | int | float):
        raise DataError(f"{where}: received {short(value)} as {name!r}; expected text or a number")
    return None if value is None else json.dumps(value)
