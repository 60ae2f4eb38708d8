"""Readers of text without labels: a sentence a line, or a word a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import IO, Unpack

from treelax.data.sources import PathLike, Source, one_file
from treelax.data.text.delimited import RAGGED, counted
from treelax.data.text.ptb import spaced_words
from treelax.data.text.readers_tagging import DOCUMENT, WORD_SUFFIXES, read_tagging
from treelax.data.text.records import (
    CheckOptions,
    Checks,
    Record,
    Records,
    Report,
    without_it,
)
from treelax.errors import DataError
from treelax.files import Line, decoded_lines

__all__ = ["read_lines_of_text", "read_stream", "read_words"]

STREAM = "standard input"


def read_lines_of_text(
    path: PathLike,
    *,
    texts: int = 1,
    tokens: bool = False,
    **checks: Unpack[CheckOptions],
) -> Records:
    r"""Read a file with a text on every line, or two with a tab between.

    Args:
        path: the file, also compressed (``.gz``, ``.xz``, ``.bz2``) or in a ``.zip``.
        texts: how many a line has, 1 or 2.
        tokens: the texts are tokenised already: words with spaces between.
        checks: see `treelax.data.text.records.Checks`.

    Returns:
        A record without a label for each line, read as they are asked for; of one text, tabs are
        white space like other.

    Raises:
        DataError: there is no such file, or, as it is read: it is not UTF-8, or a line has not so
            many texts. The message names file and line.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "pairs.txt")
        ...     count = file.write_text("Dogs bark.\tCats do not.\n")
        ...     [record.texts for record in read_lines_of_text(file, texts=2)]
        [('Dogs bark.', 'Cats do not.')]
    """
    source = one_file(path, expected="a file of text")
    return _records(source.name, source.lines, texts, tokens, Checks(**checks), source)


def read_stream(
    stream: IO[bytes], *, texts: int = 1, tokens: bool = False, **checks: Unpack[CheckOptions]
) -> Records:
    r"""Read an open file of text as `read_lines_of_text` does; it can be read once.

    Args:
        stream: bytes in UTF-8, standard input for example, which messages call it.
        texts: how many a line has, 1 or 2.
        tokens: the texts are tokenised already: words with spaces between.
        checks: see `treelax.data.text.records.Checks`.

    Returns:
        The records, each as soon as its line is there.

    Raises:
        DataError: as `read_lines_of_text`.

    Example:
        >>> import io
        >>> [record.texts for record in read_stream(io.BytesIO(b"Dogs bark.\nCats sleep.\n"))]
        [('Dogs bark.',), ('Cats sleep.',)]
    """
    lines = partial(decoded_lines, nullcontext(stream), STREAM)
    return _records(STREAM, lines, texts, tokens, Checks(**checks), None)


def read_words(
    path: PathLike,
    word: int | str | None = None,
    tag: int | str | None = None,
    **checks: Unpack[CheckOptions],
) -> Records:
    r"""Read sentences with a word a line and a blank line between them, with or without tags.

    Columns are found as `treelax.data.text.readers_tagging.read_tagging` finds them; there may be
    one only, and tags may be missing.

    Args:
        path: the file, also compressed (``.gz``, ``.xz``, ``.bz2``) or in a ``.zip``.
        word: the column of words, as for `read_tagging`.
        tag: the column of tags, likewise; the file need not have it.
        checks: see `treelax.data.text.records.Checks`.

    Returns:
        A record for each sentence, read as they are asked for; its label are its tags, if it has
        some.

    Raises:
        DataError: as `read_tagging`.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "words.txt")
        ...     count = file.write_text("Dogs\nbark\n\nHi\n")
        ...     [record.texts for record in read_words(file)]
        [('Dogs bark',), ('Hi',)]
    """
    source = one_file(path, preferred=WORD_SUFFIXES, expected="a file with a word a line")
    row = _first_row(source)
    cells = row.split("\t" if "\t" in row else None)
    if len(cells) > 1:
        return read_tagging(path, word, tag, need_tags=False, **checks)
    return Records(
        source.name,
        lambda report: _sentences(source),
        checks=Checks(**checks),
        expected="at least one sentence",
        file=source.file,
    )


def _records(
    name: str,
    lines: Callable[[], Iterable[Line]],
    texts: int,
    tokens: bool,
    checks: Checks,
    source: Source | None,
) -> Records:
    def read(report: Report) -> Iterator[Record]:
        for number, text in lines():
            parts = [text] if texts == 1 else text.split("\t")
            if len(parts) != texts and text.strip():
                if checks.ragged == "error":
                    raise DataError(
                        f"{name}, line {number}: received {counted(len(parts), 'text')}; expected "
                        f"{texts} with a tab between{without_it('ragged', checks.advice)}"
                    )
                report.drop(RAGGED, number)
                continue
            if tokens:
                parts = list(map(spaced_words, parts))
            yield Record(tuple(parts), None, number, tokens)

    file = None if source is None else source.file
    return Records(name, read, checks=checks, expected="at least one line of text", file=file)


def _first_row(source: Source) -> str:
    """The first line that is neither blank nor a comment."""
    return next((t for _, t in source.lines() if t.strip() and not t.startswith("#")), "")


def _sentences(source: Source) -> Iterator[Record]:
    """Sentences of a file with one column."""
    words: list[str] = []
    first = 0
    for number, text in source.lines():
        cells = [cell for cell in text.replace("\t", " ").split(" ") if cell]
        if len(cells) > 1:
            if cells[0].startswith("#"):
                continue  # a comment
            raise DataError(
                f"{source.name}, line {number}: received {len(cells)} columns; expected 1, a word, "
                "as on the first line"
            )
        if cells and cells[0] != DOCUMENT:
            first = first or number
            words += cells
        elif words:
            yield Record((" ".join(words),), None, first, tokens=True)
            words, first = [], 0
    if words:
        yield Record((" ".join(words),), None, first, tokens=True)
