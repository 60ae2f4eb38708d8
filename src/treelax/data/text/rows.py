"""Rows of TSV, CSV and JSON-lines files, columns found by name, and what their messages share."""

from __future__ import annotations

import csv
import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from treelax.data.text.records import Checks, Report
from treelax.errors import DataError
from treelax.files import LONGEST_LINE, Line

Row = tuple[int, list[str]]  # number of its first line, cells
RAGGED = "wrong number of columns"
SHOWN = 40  # characters of a cell, columns of a file in a message
MOST_DIGITS = 19  # of a number of words or columns; Python reads no number of thousands of digits
SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas"}


def split_rows(lines: Iterable[Line], separator: str = "\t") -> Iterator[Row]:
    """Lines split at a separator; quotes are ordinary characters."""
    return ((number, text.split(separator)) for number, text in lines)


def quoted_rows(lines: Iterable[Line], where: str, separator: str = ",") -> Iterator[Row]:
    """Rows as in RFC 4180: a cell in quotes may hold any character, a quote inside is doubled."""
    # the limit is the csv module's own, for the whole process; an unclosed quote meets it
    csv.field_size_limit(max(LONGEST_LINE, csv.field_size_limit()))
    rows = csv.reader((text + "\n" for _, text in lines), delimiter=separator, strict=True)
    while True:
        first = rows.line_num + 1
        try:
            cells = next(rows, None)
        except csv.Error as error:
            last = f" to {rows.line_num}" if rows.line_num > first else ""
            raise DataError(
                f"{where}, line {first}{last}: not a valid row ({error}); expected cells separated "
                f'by {SEPARATORS[separator]}, and "" for a quote inside quotes'
            ) from error
        if cells is None:
            return
        yield first, cells or [""]


def json_objects(lines: Iterable[Line], where: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The object on each line; None for a blank line."""
    for number, text in lines:
        if not text.strip():
            yield number, None
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            column = f", column {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
            raise DataError(f"{where}, line {number}{column}: is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise DataError(
                f"{where}, line {number}: received {short(value)}; expected an object in {{}}"
            )
        yield number, value


def column_places(
    columns: Sequence[str], names: Iterable[str], where: str, separator: str = "\t"
) -> list[int]:
    """The places of the named columns, from 0; an error lists those that exist."""
    places = []
    for name in names:
        if name not in columns:
            raise missing_column(columns, name, where, separator)
        if columns.count(name) > 1:
            raise DataError(f"{where}: received several columns {name!r}; expected one")
        places.append(columns.index(name))
    return places


class MissingColumnError(DataError):
    """A file lacks a column; `advised` if the message says what to do about the file."""

    def __init__(self, message: str, column: str, *, advised: bool = False) -> None:
        super().__init__(message)
        self.column = column
        self.advised = advised


def missing_column(
    columns: Iterable[str], name: str, where: str, separator: str | None = None
) -> MissingColumnError:
    """The error for a missing column; a header that `separator` did not split gets a hint.

    Example:
        >>> print(missing_column(["id", "lable"], "label", "a.tsv, line 1"))
        a.tsv, line 1: no column 'label'; did you mean 'lable'? It has: id, lable
    """
    columns = list(columns)
    # quoted if one could be taken for two
    shown = [short(c) if "," in c or len(c) > SHOWN else c for c in columns[:SHOWN]]
    names = ", ".join([*shown, *(["…"] if len(columns) > SHOWN else [])]) or "none"
    other = next((o for o in SEPARATORS if o in columns[0]), None) if len(columns) == 1 else None
    near = difflib.get_close_matches(name, columns, n=1)
    hint, start = "", f"; did you mean {short(near[0])}? It has: " if near else "; it has: "
    if f'"{name}"' in columns:
        hint = (
            "; cells in quotes need --set data.quoted=true in training, quoted=True in Python, or a "
            "file in CSV"
        )
    elif separator and other:
        start = "; it has: "
        hint = (
            f"; the columns look separated by {SEPARATORS[other]}; expected commas in .csv, tabs in "
            ".tsv"
        )
    message = f"{where}: no column {name!r}{start}{names}{hint}"
    return MissingColumnError(message, name, advised=bool(hint))


def note_ragged(
    checks: Checks, report: Report, where: str, line: int, received: int, expected: int | str
) -> None:
    """Skip a line with the wrong number of columns and note it, or raise, as `checks` asks."""
    message = f"received {counted(received, 'column')}; expected {expected}: mend it or take it out"
    checks.refuse(report, RAGGED, where, line, message)


def counted(count: int, noun: str) -> str:
    """``1 column``, ``1,200 columns``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short(text: object) -> str:
    """The repr of a value from a file, truncated."""
    if isinstance(text, str):
        return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")
    written = repr(text)
    return written if len(written) <= SHOWN else f"{written[:SHOWN]}…"
