"""Readers of text without labels: a text a line, or a pair of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Unpack

from treelax.data.input_files import PathLike, one_file
from treelax.data.text.ptb import spaced_words
from treelax.data.text.records import CheckOptions, Checks, Record, Records, Report
from treelax.data.text.rows import note_ragged
from treelax.files import Line, decoded_lines

__all__ = ["read_lines_of_text", "read_stream"]

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
        A record without a label for each line, read lazily; where a line is one text, tabs are
        white space.

    Raises:
        DataError: there is no such file, or, as it is read: it is not UTF-8, or a line has another
            number of texts. The message names file and line.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "pairs.txt")
        ...     count = file.write_text("Dogs bark.\tCats do not.\n")
        ...     [record.texts for record in read_lines_of_text(file, texts=2)]
        [('Dogs bark.', 'Cats do not.')]
    """
    source = one_file(path, expected="a file of text")
    return _records(source.name, source.lines, texts, tokens, Checks(**checks), source.file)


def read_stream(
    stream: IO[bytes], *, texts: int = 1, tokens: bool = False, **checks: Unpack[CheckOptions]
) -> Records:
    r"""Read an open file, such as standard input, like `read_lines_of_text`, but only once.

    Example:
        >>> import io
        >>> [record.texts for record in read_stream(io.BytesIO(b"Dogs bark.\nCats sleep.\n"))]
        [('Dogs bark.',), ('Cats sleep.',)]
    """
    lines = partial(decoded_lines, nullcontext(stream), STREAM)
    return _records(STREAM, lines, texts, tokens, Checks(**checks), None)


def _records(
    name: str,
    lines: Callable[[], Iterable[Line]],
    texts: int,
    tokens: bool,
    checks: Checks,
    file: Path | None,
) -> Records:
    def read(report: Report) -> Iterator[Record]:
        for number, text in lines():
            parts = [text] if texts == 1 else text.split("\t")
            if len(parts) != texts and text.strip():
                expected = f"{texts} texts with a tab between"
                note_ragged(checks, report, name, number, len(parts), expected)
            else:
                words = map(spaced_words, parts) if tokens else parts
                yield Record(tuple(words), None, number, tokens)

    return Records(name, read, checks=checks, expected="at least one line of text", file=file)
