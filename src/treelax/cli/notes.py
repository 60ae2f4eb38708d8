"""Warnings of the library, as the commands show them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["warnings_as_notes"]

OWN = "treelax: "  # what all warnings of this library begin with


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show warnings of the library as one line, ``note: ...``, and those of others as they are."""
    usual = warnings.formatwarning

    def formatted(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        line: str | None = None,
    ) -> str:
        text = str(message)
        if not text.startswith(OWN):
            return usual(message, category, filename, lineno, line)
        return f"note: {' '.join(text.removeprefix(OWN).split())}\n"

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = usual
