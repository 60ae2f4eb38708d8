"""Writer of records as a table with named columns."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from treelax.data.text.delimited import counted, short
from treelax.data.text.records import Record
from treelax.errors import DataError
from treelax.files import atomic_write, compressed

__all__ = ["write_table"]

NONE = "-"  # no label, no value
_BREAK = re.compile(r"[\t\n\r]")


def write_table(
    path: str | os.PathLike[str],
    records: Iterable[Record],
    text: Sequence[str] = ("sentence",),
    *,
    extra: Sequence[str] = (),
) -> int:
    r"""Write records as TSV whose first line names the columns: label, texts, extra ones.

    It is compressed if the name ends in ``.gz``, ``.xz`` or ``.bz2``, and appears whole or not at
    all. `treelax.data.text.readers_table.read_table` reads it, for the columns premise and
    hypothesis the readers of SNLI and MultiNLI, and for the column sentence that of SST.

    Args:
        path: the file, replaced if it exists; its folder must exist.
        records: what to write; ``-`` stands for no label and for an extra value that is not there.
        text: the names of the columns with texts.
        extra: what to write of ``record.extra``.

    Returns:
        The number of records written.

    Raises:
        DataError: a record has another number of texts, a tag for each word, or a tab or line
            break in a cell; or the file cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     count = write_table(Path(folder, "a.tsv"), [Record(("Hi !",), "greeting", 1)])
        ...     Path(folder, "a.tsv").read_text()
        'label\tsentence\ngreeting\tHi !\n'
    """
    file = Path(path)
    count = 0
    with atomic_write(file) as raw, compressed(raw, file, "wb") as out:
        out.write(("\t".join(["label", *text, *extra]) + "\n").encode())
        for count, record in enumerate(records, 1):
            if isinstance(record.label, tuple) or len(record.texts) != len(text):
                raise DataError(
                    f"{file}, record {count}: received {counted(len(record.texts), 'text')} with "
                    f"the label {short(record.label)}; expected {len(text)} and a class"
                )
            label = NONE if record.label is None else record.label
            cells = [label, *record.texts, *(record.extra.get(name, NONE) for name in extra)]
            line = "\t".join(cells)
            if line.count("\t") >= len(cells) or "\n" in line or "\r" in line:
                bad = next(cell for cell in cells if _BREAK.search(cell))
                raise DataError(
                    f"{file}, record {count}: received {short(bad)}; expected text without tabs "
                    "and line breaks"
                )
            out.write((line + "\n").encode())
    return count
