"""Readers of text without labels: a text a line, or a pair of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import IO, Unpack

from treelax.data.input_files import PathLike, one_file
from treelax.data.text.ptb import spaced_words
from treelax.data.text.records import CheckOptions, Record, Records, Report
from treelax.data.text.rows import note_ragged
from treelax.files import decoded_lines

__all__ = ["read_lines_of_text"]

STREAM = "standard input"


def read_lines_of_text(
    path: PathLike | IO[bytes],
    *,
    texts: int = 1,
    tokens: bool = False,
    **checks: Unpack[CheckOptions],
) -> Records:
    r"""Read a file with a text on every line, or two with a tab between.

    Args:
        path: the file, also compressed (``.gz``, ``.xz``, ``.bz2``) or in a ``.zip``; or an open
            file such as standard input, which can be read once.
        texts: how many a line has, 1 or 2.
        tokens: the texts are tokenised already: words with spaces between.
        checks: see `treelax.data.text.records.CheckOptions`.

    Returns:
        A record without a label for each line, read lazily; where a line is one text, tabs are
        white space.

    Example:
        >>> import io
        >>> file = io.BytesIO(b"Dogs bark.\tCats do not.\n")
        >>> [record.texts for record in read_lines_of_text(file, texts=2)]
        [('Dogs bark.', 'Cats do not.')]
    """
    name, file = STREAM, None
    if isinstance(path, str | os.PathLike):
        source = one_file(path, expected="a file of text")
        name, file, lines = source.name, source.file, source.lines
    else:
        lines = partial(decoded_lines, nullcontext(path), STREAM)

    def read(report: Report) -> Iterator[Record]:
        for number, text in lines():
            parts = [text] if texts == 1 else text.split("\t")
            if len(parts) != texts and text.strip():
                note_ragged(report, number, len(parts), f"{texts} texts with a tab between")
            else:
                words = map(spaced_words, parts) if tokens else parts
                yield Record(tuple(words), None, number, tokens)

    return Records(name, read, expected="at least one line of text", file=file, **checks)
