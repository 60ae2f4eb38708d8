"""What drawings for the terminal are made of: lines, arrows, and words that do no harm."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

__all__ = ["ASCII", "UNICODE", "Symbols", "columns", "cut", "named", "shown"]


@dataclass(frozen=True)
class Symbols:
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


def shown(word: str, symbols: Symbols) -> str:
    """A word as it can be printed: nothing in it that moves the cursor or has an unsure width.

    Example:
        >>> shown("a\\tb", ASCII)
        'a?b'
    """
    kept = []
    for character in unicodedata.normalize("NFC", word):
        category = unicodedata.category(character)
        if category in ("Cc", "Cs", "Zl", "Zp"):
            kept.append(symbols.unknown)
        elif category != "Cf" and character not in "\ufe0e\ufe0f":  # a wish for text or emoji
            kept.append(character)
    text = "".join(kept) or "_"
    return text if symbols is UNICODE else text.encode("ascii", "backslashreplace").decode()


def columns(text: str) -> int:
    """The columns that a text takes in a terminal.

    Example:
        >>> columns("été"), columns("詞")
        (3, 2)
    """
    return sum(
        0
        if unicodedata.category(character) in ("Mn", "Me")
        else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )


def cut(text: str, width: int, symbols: Symbols) -> str:
    """A text, cut to a width with a sign that it was cut.

    Example:
        >>> cut("a long word", 6, UNICODE)
        'a lon…'
    """
    if columns(text) <= width:
        return text
    mark = symbols.cut[:width]
    room = width - len(mark)
    for i, character in enumerate(text):
        room -= columns(character)
        if room < 0:
            return text[:i] + mark
    return text


def named(words: list[str], position: int) -> str:
    """A word with its position, 0 the root.

    Example:
        >>> named(["Dogs", "bark"], 2)
        'bark (2)'
    """
    return f"{words[position - 1] if position else 'root'} ({position})"
