"""Rows of TSV and CSV files, and columns found by name.

The csv module of Python refuses fields beyond a limit that is one for the whole process, and does
not say where a quote was opened; so rows are cut here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

from treelax.data.text.records import Checks, Report, without_it
from treelax.errors import DataError
from treelax.files import Line

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
MOST_LINES = 10_000  # in one quoted field: more is a quote that was never closed
RAGGED = "wrong number of columns"
SHOWN = 40  # characters of a cell, columns of a file in a message
MOST_DIGITS = 19  # of a number of words or columns; Python reads no number of thousands of digits
MOST_WORDS = 4  # in the name of a column: more are a sentence
# what may stand between the columns of a file that was cut elsewhere, and what to do then; tabs come
# first, for names of columns have none
OTHERWISE = {
    "\t": "tabs between columns; expected commas: rename it to .tsv",
    ";": "semicolons between columns; expected commas, or tabs in .tsv: save it so",
    ",": "commas between columns; expected tabs: rename it to .csv",
}


def tab_rows(lines: Iterable[Line]) -> Iterator[Row]:
    r"""Cut lines at tabs; quotes are characters like others.

    Args:
        lines: numbers and texts.

    Returns:
        For each line its number and cells.

    Example:
        >>> list(tab_rows([(1, 'say "hi"\tgreeting')]))
        [(1, ['say "hi"', 'greeting'])]
    """
    return ((number, text.split("\t")) for number, text in lines)


def quoted_rows(lines: Iterable[Line], where: str, separator: str = ",") -> Iterator[Row]:
    r"""Cut lines into cells as RFC 4180 has it: a cell in quotes may hold all characters.

    A quote in a quoted cell is doubled. One inside a cell that does not begin with a quote is a
    character like others, as it is in most programs.

    Args:
        lines: numbers and texts.
        where: the file, for messages.
        separator: what stands between cells, one character.

    Returns:
        For each row the number of its first line, and its cells.

    Raises:
        DataError: a quote is not closed, or something follows the closing quote.

    Example:
        >>> list(quoted_rows([(1, 'a,"b, ""c""'), (2, 'd"')], "a.csv"))
        [(1, ['a', 'b, "c"\nd'])]
    """
    lines = iter(lines)
    for number, text in lines:
        if '"' not in text:
            yield number, text.split(separator)
            continue
        yield number, _quoted_cells(number, text, lines, where, separator)


def _quoted_cells(
    first: int, text: str, lines: Iterator[Line], where: str, separator: str
) -> list[str]:
    """The cells of a row that may run over further lines."""
    cells: list[str] = []
    number, place = first, 0
    while True:
        if not text.startswith('"', place):
            end = text.find(separator, place)
            cells.append(text[place:] if end < 0 else text[place:end])
        else:
            opened, pieces = number, []
            place += 1
            while (end := _closing_quote(text, place)) < 0:
                pieces.append(text[place:])
                number, text = next(lines, (0, ""))
                if not number or number - opened > MOST_LINES:
                    reason = f"in {MOST_LINES:,} lines" if number else "up to the end of the file"
                    raise DataError(
                        f"{where}, line {opened}: a quote is opened and not closed {reason}; "
                        'expected ", with "" for a quote inside'
                    )
                place = 0
            pieces.append(text[place:end])
            cells.append("\n".join(pieces).replace('""', '"'))
            end += 1
            if end == len(text):
                end = -1
            elif text[end] != separator:
                since = "" if opened == number else f", of a cell that was opened on line {opened}"
                told = OTHERWISE.get(text[end]) if number == 1 else None
                raise DataError(
                    f"{where}, line {number}, column {end + 1}: received {text[end]!r} after a "
                    f'closing quote{since}; expected {separator!r}, or "" for a quote inside'
                    f"{f': that looks like {told}' if told else ''}"
                )
        if end < 0:
            return cells
        place = end + 1


def _closing_quote(text: str, place: int) -> int:
    """Where the next quote that is not doubled stands; -1 if there is none."""
    while (place := text.find('"', place)) >= 0 and text.startswith('"', place + 1):
        place += 2
    return place


def column_places(
    columns: Sequence[str], names: Iterable[str], where: str, separator: str = "\t"
) -> list[int]:
    """Where the columns of some names stand.

    Args:
        columns: the names in the first line of a file.
        names: those that are wanted.
        where: file and line, for messages.
        separator: what the line was cut at.

    Returns:
        The place of each, counted from 0.

    Raises:
        DataError: one is not there, or is there twice; the message has those that exist. Where
            they look like data, or as if they were cut at the wrong place, it says so.

    Example:
        >>> column_places(["id", "premise", "label"], ["label", "premise"], "a.tsv, line 1")
        [2, 1]
    """
    places = []
    for name in names:
        if name not in columns:
            raise missing_column(columns, name, where, separator)
        if columns.count(name) > 1:
            raise DataError(f"{where}: received several columns {name!r}; expected one")
        places.append(columns.index(name))
    return places


class MissingColumnError(DataError):
    """A file lacks a column.

    Attributes:
        column: its name.
        advised: the message says what to do about the file.
    """

    def __init__(self, message: str, column: str, *, advised: bool = False) -> None:
        super().__init__(message)
        self.column = column
        self.advised = advised


def missing_column(
    columns: Iterable[str], name: str, where: str, separator: str | None = None
) -> MissingColumnError:
    """The error for a column that is not there, with those that exist and the nearest.

    Args:
        columns: the names that exist.
        name: what was looked for.
        where: file and line.
        separator: what the first line was cut at, if the names are its cells; where they look like
            something else the message says what, and what to do.

    Returns:
        The error, to be raised.

    Example:
        >>> print(missing_column(["id", "lable"], "label", "a.tsv, line 1"))
        a.tsv, line 1: no column 'label'; did you mean 'lable'? It has: id, lable
    """
    columns = list(columns)
    if separator and not any(column.strip() for column in columns):
        return MissingColumnError(
            f"{where}: no column {name!r}: the line is blank; expected names of the columns: take "
            "out what stands before them",
            name,
            advised=True,
        )
    near = difflib.get_close_matches(name, columns, n=1)
    why = _why_missing(columns, name, separator, near=bool(near)) if separator else ""
    # cells of a line that holds no names are not what was meant, however near
    meant = f"; did you mean {short(near[0])}? It has: " if near and not why else "; it has: "
    names = ", ".join(map(_listed, columns[:SHOWN])) or "none"
    more = ", …" if len(columns) > SHOWN else ""
    message = f"{where}: no column {name!r}{meant}{names}{more}{why}"
    return MissingColumnError(message, name, advised=bool(why))


def _listed(column: str) -> str:
    """The name of a column in a list of them: in quotes if it could be taken for two."""
    if "," in column:
        return short(column)
    return column if len(column) <= SHOWN else f"{column[:SHOWN]}…"


def _why_missing(columns: Sequence[str], name: str, separator: str, *, near: bool) -> str:
    """What the first line looks like if not like names of columns, and what to do; or nothing."""
    if columns[0].lower().startswith("sep="):
        return ": that is a note for spreadsheets; expected names of the columns: take out the line"
    for other, told in OTHERWISE.items():
        if other != separator and _cut_by(other, columns, name, separator):
            return f": that looks like {told}"
    if not near and any(map(_is_data, columns)):
        return ": that looks like data; expected names of the columns: put a line of them first"
    return ""


def _cut_by(other: str, columns: Sequence[str], name: str, separator: str) -> bool:
    """Whether something else than the separator stands between the columns of a file."""
    cells = separator.join(columns).split(other)
    if len(cells) == 1 or (separator == "\t" and len(columns) > 1):
        return False  # where there are tabs it is they that stand between columns
    # other marks may be a part of a name, as in "what, when": so two of three signs are asked for
    found = name in (cell.strip(' "') for cell in cells)
    spaced = all(cell.startswith(" ") for cell in cells[1:])
    return sum((len(columns) == 1, found, not spaced)) >= 2


def _is_data(cell: str) -> bool:
    """Whether a cell of the first line is more likely data than the name of a column."""
    return cell.strip().isdecimal() or len(cell.split()) > MOST_WORDS


def note_ragged(
    checks: Checks, report: Report, where: str, line: int, received: int, expected: int | str
) -> None:
    """Leave out a line with too few or too many columns, or raise: as the checks ask.

    Args:
        checks: what is asked.
        report: where it is noted.
        where: the file.
        line: the line.
        received: how many columns it has.
        expected: how many it should have.

    Raises:
        DataError: errors are asked for.

    Example:
        >>> report = Report()
        >>> note_ragged(Checks(ragged="drop"), report, "a.tsv", 7, 2, 3)
        >>> report.lines()
        ['1 line dropped: wrong number of columns (7)']
    """
    if checks.ragged == "error":
        raise DataError(
            f"{where}, line {line}: received {counted(received, 'column')}; expected {expected}: "
            f"mend it or take it out{without_it('ragged', checks.advice)}"
        )
    report.drop(RAGGED, line)


def counted(count: int, noun: str) -> str:
    """A number of things for a message.

    Args:
        count: how many.
        noun: one of them; with an s it is several.

    Returns:
        Both, as people write them.

    Example:
        >>> counted(1, "column"), counted(1200, "word")
        ('1 column', '1,200 words')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short(text: object) -> str:
    """A value from a file for a message, cut if it is long.

    Args:
        text: the value.

    Returns:
        How Python writes it.

    Example:
        >>> short("a" * 50)
        "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'"
    """
    if isinstance(text, str):
        return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")
    written = repr(text)
    return written if len(written) <= SHOWN else f"{written[:SHOWN]}…"
