"""Rows of TSV, CSV and JSON-lines files, and columns found by name."""

from __future__ import annotations

import csv
import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from treelax.data.text.records import Report
from treelax.errors import DataError, counted, short
from treelax.files import LONGEST_LINE, Line

Row = tuple[int, list[str]]  # number of its first line, cells
Fields = tuple[int, dict[str, Any] | None]  # number of its line, cells by column; None if blank
RAGGED = "wrong number of columns"
COLUMNS_SHOWN = 40
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
    first = 1
    try:
        for cells in rows:
            yield first, cells or [""]
            first = rows.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{where}, line {first}: not a valid row ({error}); expected cells separated by "
            f'{SEPARATORS[separator]}, and "" for a quote inside quotes'
        ) from error


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
            raise DataError(
                f"{where}, line {number}: received {short(value)}; expected an object in {{}}"
            )
        yield number, value


def check_columns(columns: Sequence[str], names: Iterable[str], where: str) -> None:
    """Raise unless every name is that of one column."""
    for name in names:
        if name not in columns:
            raise missing_column(columns, name, where)
        if columns.count(name) > 1:
            raise DataError(f"{where}: received several columns {name!r}; expected one")


class MissingColumnError(DataError):
    """A file lacks a column; `advised` if the message says what to do about the file."""

    def __init__(self, message: str, column: str, *, advised: bool = False) -> None:
        super().__init__(message)
        self.column = column
        self.advised = advised


def missing_column(columns: Iterable[str], name: str, where: str) -> MissingColumnError:
    """The error for a missing column.

    Example:
        >>> print(missing_column(["id", "lable"], "label", "a.tsv, line 1"))
        a.tsv, line 1: no column 'label'; did you mean 'lable'? It has: id, lable
    """
    columns = list(columns)
    # quoted if one could be taken for two
    shown = [short(c) if "," in c or len(c) > COLUMNS_SHOWN else c for c in columns]
    names = ", ".join(shown[:COLUMNS_SHOWN] + ["…"] * (len(columns) > COLUMNS_SHOWN)) or "none"
    near, hint = difflib.get_close_matches(name, columns, n=1), ""
    if f'"{name}"' in columns:
        hint = (
            "; cells in quotes need --set data.quoted=true, in Python quoted=True, or a file in CSV"
        )
    elif len(columns) == 1 and (other := next(filter(columns[0].count, SEPARATORS), None)):
        looks = f"the columns look separated by {SEPARATORS[other]}"
        near, hint = [], f"; {looks}; expected commas in .csv, tabs in .tsv"
    start = f"did you mean {short(near[0])}? It has" if near else "it has"
    message = f"{where}: no column {name!r}; {start}: {names}{hint}"
    return MissingColumnError(message, name, advised=bool(hint))


def note_ragged(report: Report, line: int, received: int, expected: int | str) -> None:
    """Skip a line with the wrong number of columns and note it, or raise, as asked."""
    message = f"received {counted(received, 'column')}; expected {expected}: mend it or take it out"
    report.refuse(RAGGED, line, message)
