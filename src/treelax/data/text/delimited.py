"""Rows of TSV and CSV files, columns found by name, and what messages about them share."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterable, Iterator, Sequence

from treelax.data.text.records import Checks, Report, without_it
from treelax.errors import DataError
from treelax.files import LONGEST_LINE, Line

__all__ = [
    "MOST_DIGITS",
    "MissingColumnError",
    "Row",
    "column_places",
    "counted",
    "missing_column",
    "note_ragged",
    "quoted_rows",
    "short",
    "tab_rows",
]

Row = tuple[int, list[str]]  # number of its first line, cells
RAGGED = "wrong number of columns"
SHOWN = 40  # characters of a cell, columns of a file in a message
MOST_DIGITS = 19  # of a number of words or columns; Python reads no number of thousands of digits
SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas"}


def tab_rows(lines: Iterable[Line]) -> Iterator[Row]:
    """Lines split at tabs; quotes are ordinary characters."""
    return ((number, text.split("\t")) for number, text in lines)


def quoted_rows(lines: Iterable[Line], where: str, separator: str = ",") -> Iterator[Row]:
    r"""Rows as in RFC 4180: a cell in quotes may hold any character, a quote inside is doubled.

    Example:
        >>> list(quoted_rows([(1, 'a,"b, ""c""'), (2, 'd"')], "a.csv"))
        [(1, ['a', 'b, "c"\nd'])]
    """
    # the limit is the csv module's own, for the whole process; an unclosed quote meets it
    csv.field_size_limit(max(LONGEST_LINE, csv.field_size_limit()))
    rows = csv.reader((text + "\n" for _, text in lines), delimiter=separator, strict=True)
    while True:
        first = rows.line_num + 1
        try:
            cells = next(rows, None)
        except csv.Error as error:
            lines_read = (
                f"line {first}" if rows.line_num <= first else f"lines {first} to {rows.line_num}"
            )
            raise DataError(
                f"{where}, {lines_read}: not a valid row ({error}); expected cells separated by "
                f'{SEPARATORS[separator]}, and "" for a quote inside quotes'
            ) from error
        if cells is None:
            return
        yield first, cells or [""]


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
    """The error for a missing column; a header `separator` did not split gets a hint.

    Example:
        >>> print(missing_column(["id", "lable"], "label", "a.tsv, line 1"))
        a.tsv, line 1: no column 'label'; did you mean 'lable'? It has: id, lable
    """
    columns = list(columns)
    names = ", ".join(map(_listed, columns[:SHOWN])) or "none"
    more = ", …" if len(columns) > SHOWN else ""
    if separator and len(columns) == 1:
        for other, called in SEPARATORS.items():
            if other in columns[0]:
                return MissingColumnError(
                    f"{where}: no column {name!r}; it has: {names}; the columns look separated by "
                    f"{called}; expected commas in .csv, tabs in .tsv",
                    name,
                    advised=True,
                )
    near = difflib.get_close_matches(name, columns, n=1)
    meant = f"; did you mean {short(near[0])}? It has: " if near else "; it has: "
    return MissingColumnError(f"{where}: no column {name!r}{meant}{names}{more}", name)


def _listed(column: str) -> str:
    """The name of a column in a list: quoted if it could be taken for two."""
    if "," in column:
        return short(column)
    return column if len(column) <= SHOWN else f"{column[:SHOWN]}…"


def note_ragged(
    checks: Checks, report: Report, where: str, line: int, received: int, expected: int | str
) -> None:
    """Skip a line with the wrong number of columns and note it, or raise, as `checks` asks."""
    if checks.ragged == "error":
        raise DataError(
            f"{where}, line {line}: received {counted(received, 'column')}; expected {expected}: "
            f"mend it or take it out{without_it('ragged', checks.advice)}"
        )
    report.drop(RAGGED, line)


def counted(count: int, noun: str) -> str:
    """``1 column``, ``1,200 columns``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short(text: object) -> str:
    """The repr of a value from a file, truncated."""
    if isinstance(text, str):
        return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")
    written = repr(text)
    return written if len(written) <= SHOWN else f"{written[:SHOWN]}…"
