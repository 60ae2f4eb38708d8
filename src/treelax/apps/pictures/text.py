"""What drawings in a terminal are made of: characters, columns, and lines in cells."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple, TextIO

from treelax.apps.pictures.words import checked_words
from treelax.errors import InputError

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8  # where the lines in a cell lead


class Symbols(NamedTuple):
    """What a drawing is made of; ``lines[mask]`` shows a cell whose lines lead where mask says."""

    lines: str
    dashed: str  # across, up and down
    down: str
    up: str
    wrong: str
    unknown: str
    cut: str
    arrow: str


UNICODE = Symbols(" ╵╷│╴╯╮┤╶╰╭├─┴┬┼", "┄┆", "▼", "▲", "✗", "�", "…", "←")
# where two arcs cross, the one across passes behind: a + is always a corner
ASCII = Symbols(" |||-+++-+++-++|", ".:", "v", "^", "x", "?", "..", "<-")


class Canvas:
    """Lines in cells, and texts over them; rows are counted from the words outwards."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], int] = {}
        self.solid: set[tuple[int, int]] = set()
        self.texts: dict[tuple[int, int], str] = {}

    def mark(self, row: int, column: int, mask: int, solid: bool = True) -> None:
        """Add lines to a cell."""
        self.cells[row, column] = self.cells.get((row, column), 0) | mask
        if solid:
            self.solid.add((row, column))

    def stem(self, column: int, bottom: int, top: int, solid: bool = True) -> None:
        """Draw a line from below a row up to the middle of another."""
        for row in range(bottom, top):
            self.mark(row, column, UP | DOWN, solid)
        self.mark(top, column, DOWN, solid)

    def bar(self, row: int, left: int, right: int, solid: bool = True) -> None:
        """Draw a line across."""
        for column in range(left, right):
            self.mark(row, column, RIGHT, solid)
            self.mark(row, column + 1, LEFT, solid)

    def rows(self, symbols: Symbols, lines: str) -> list[str]:
        """Each row as a line of text; lines that are nowhere solid are dashed."""
        shown = {}
        for (row, column), mask in self.cells.items():
            dashed = mask in (LEFT | RIGHT, UP | DOWN) and (row, column) not in self.solid
            shown[row, column] = symbols.dashed[mask == UP | DOWN] if dashed else lines[mask]
        by_row = groupby(sorted((shown | self.texts).items()), key=lambda item: item[0][0])
        return [in_columns((column, text) for (_, column), text in row) for _, row in by_row]


def in_columns(pieces: Iterable[tuple[int, str]]) -> str:
    """A line with texts from these columns on."""
    line, end = "", 0
    for column, text in pieces:
        line += " " * (column - end) + text
        end = max(column, end) + columns(text)
    return line


def first_that_fits(layouts: Iterable[Iterable[str]], width: int) -> list[str] | None:
    """The lines of the first layout that is no wider than this."""
    for layout in layouts:
        lines = [line.rstrip() for line in layout]
        if max(map(columns, lines)) <= width:
            return lines
    return None


def supports_unicode(stream: TextIO) -> bool:
    """Whether a stream, such as `sys.stdout`, can take the drawings of `draw_tree` as they are."""
    try:
        "".join(UNICODE).encode(getattr(stream, "encoding", None) or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def prepared(
    words: Sequence[str], width: int | None, ascii: bool
) -> tuple[Symbols, int, list[str]]:
    """What to draw with, how wide, and the words, each cut to a third of the width."""
    if width is None:
        width = max(shutil.get_terminal_size().columns, 1)
    if width < 1:
        raise InputError(f"width: received {width}; expected a positive number of columns")
    symbols, longest = ASCII if ascii else UNICODE, max(width // 3, 1)
    shown = [cut(printable(word, symbols), longest, symbols) for word in checked_words(words)]
    return symbols, width, shown


def printable(word: str, symbols: Symbols) -> str:
    """A word as it can be printed: nothing in it that moves the cursor or has an unsure width."""
    characters = []
    for character in unicodedata.normalize("NFC", word):
        category = unicodedata.category(character)
        if category in ("Cc", "Cs", "Zl", "Zp"):
            characters.append(symbols.unknown)
        elif category != "Cf" and character not in "\ufe0e\ufe0f":  # a wish for text or emoji
            characters.append(character)
    text = "".join(characters) or "_"
    return text if symbols is UNICODE else text.encode("ascii", "backslashreplace").decode()


def columns(text: str) -> int:
    """The columns that a text takes in a terminal."""
    return sum(
        0
        if unicodedata.category(character) in ("Mn", "Me")
        else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )


def cut(text: str, width: int, symbols: Symbols) -> str:
    """A text, cut to a width with a sign that it was cut."""
    if columns(text) <= width:
        return text
    mark = symbols.cut[:width]
    room = width - len(mark)
    for i, character in enumerate(text):
        room -= columns(character)
        if room < 0:
            return text[:i] + mark
    return text
