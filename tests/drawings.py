"""Sentences with their heads, and drawings as they stand in a test."""

from __future__ import annotations

MAX = ["[MAX", "2", "9", "[MIN", "4", "7", "]", "0", "]"]
MAX_GOLD = [0, 1, 1, 1, 4, 4, 4, 1, 1]
MAX_FOUND = [0, 1, 4, 1, 4, 4, 4, 4, 0]
FOX = ["The", "quick", "fox", "that", "I", "saw", "did", "not", "jump"]
FOX_HEADS = [3, 3, 9, 6, 6, 3, 9, 9, 0]
HEARING = ["a", "hearing", "is", "scheduled", "on", "the", "issue", "today"]
HEARING_HEADS = [2, 4, 0, 3, 2, 7, 5, 4]  # arcs cross


def block(text: str) -> str:
    """A drawing as it stands in this file: less the indentation and the lines around it."""
    lines = text.splitlines()[1:-1]
    return "\n".join(line.removeprefix("    ") for line in lines)
