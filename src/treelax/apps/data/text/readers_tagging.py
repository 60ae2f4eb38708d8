"""Reader of files with a word a line, its tag beside it, and a blank line between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from itertools import chain, groupby
from typing import Unpack

from treelax.apps.data.conllu import COLUMNS, TOKEN_ID
from treelax.apps.data.input_files import PathLike, Source, one_file
from treelax.apps.data.text.ptb import one_word
from treelax.apps.data.text.readers_table import Row, check_columns, note_ragged
from treelax.apps.data.text.records import CheckOptions, Record, Records, Report
from treelax.errors import DataError, InputError, counted, short
from treelax.files import Line

__all__ = ["column_of", "read_tagging"]

Column = int | str | None
NO_TAGS = "no tags"
DOCUMENT = "-DOCSTART-"
NO_TAG = "_"
# in CoNLL-U: sent_id and text for example, and where a document or a paragraph begins
NAMED_VALUE = re.compile(r"# (?:[^\s=]+ = .*|new(?:doc|par)\b.*)")
# what files with a word a line are usually called
WORD_SUFFIXES = (".conllu", ".conllup", ".conll", ".bio", ".iob", ".tsv", ".tab")


def read_tagging(
    path: PathLike,
    word: Column = None,
    tag: Column = None,
    *,
    need_tags: bool = True,
    **checks: Unpack[CheckOptions],
) -> Records:
    r"""Read sentences with a word a line and its tag beside it, as in the CoNLL tasks.

    Columns are separated by tabs if the first row has any, else by spaces. Comments (``# ...``) and
    documents' beginnings (``-DOCSTART-``) are skipped. CoNLL-U is recognised by the name of the
    file or by its ten columns; there multiword tokens (``1-2``) and empty nodes (``1.1``) are
    skipped too, and a sentence without tags (``_``) is skipped and counted.

    Args:
        path: the file, also compressed (``.gz``, ``.xz``, ``.bz2``) or in a ``.zip``, in which it is
            alone or the only one with a usual suffix, for example ``.conllu``, ``.conll``, ``.bio``.
        word: the column of words: its place counted from 0, negative from the end, or in CoNLL-U
            its name; the first by default, FORM in CoNLL-U.
        tag: the column of tags, likewise; the last by default, UPOS in CoNLL-U.
        need_tags: if False, sentences without tags are kept, without a label.
        checks: see `treelax.apps.data.text.records.CheckOptions`.

    Returns:
        A record for each sentence, whose label has a tag for each word, read lazily. A space inside
        a word becomes a no-break space.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "tags.txt")
        ...     count = file.write_text("Dogs NOUN\nbark VERB\n\nHi INTJ\n")
        ...     [(r.texts[0], r.label) for r in read_tagging(file)]
        [('Dogs bark', ('NOUN', 'VERB')), ('Hi', ('INTJ',))]
    """
    if word is not None and word == tag:
        raise InputError(f"word and tag: received {word!r} for both; expected two columns")
    source = one_file(path, preferred=WORD_SUFFIXES, expected="a file with a word a line")

    def read(report: Report) -> Iterator[Record]:
        lines = source.lines()
        start: list[Line] = []  # the first row decides which of these lines are comments
        for number, text in lines:
            start.append((number, text))
            if text.strip() and text[0] != "#":
                file = _File(source, (number, text), word, tag, need_tags)
                # to the end of the file
                for is_blank, block in groupby(
                    chain(start, lines), lambda line: not line[1].strip()
                ):
                    if not is_blank and (record := file.record(block, report)):
                        yield record

    return Records(source.name, read, expected="at least one sentence", file=source.file, **checks)


class _File:
    """The layout of a file, which its first row tells, and its sentences."""

    def __init__(
        self, source: Source, first: Line, word: Column, tag: Column, need_tags: bool
    ) -> None:
        number, row = first
        self.name, self.where, self.tabs = source.name, f"{source.name}, line {number}", "\t" in row
        self.need_tags = need_tags
        cells = self.cells(row)
        self.width = len(cells)
        looks_so = self.tabs and self.width == len(COLUMNS) and TOKEN_ID.fullmatch(cells[0])
        self.conllu = source.suffix == ".conllu" or bool(looks_so)
        if self.conllu and self.width != len(COLUMNS):
            received = counted(self.width, "column")
            raise DataError(f"{self.where}: received {received}; expected 10 with tabs between")
        self.word_place = self._place(word, "FORM", 0)
        self.tag_place: int | None = None
        with nullcontext() if need_tags else suppress(DataError):
            place = self._place(tag, "UPOS", -1)
            if place == self.word_place:
                raise DataError(
                    f"{self.where}: received one column for words and tags; expected two"
                )
            self.tag_place = place

    def cells(self, text: str) -> list[str]:
        """The cells of a row, between tabs or between spaces, but not other white space."""
        if self.tabs:
            return text.split("\t")
        return [cell for cell in text.replace("\t", " ").split(" ") if cell]

    def _place(self, column: Column, usual: str, place: int) -> int:
        if column is None:
            column = usual if self.conllu else place
        if isinstance(column, str):
            if not self.conllu:
                raise DataError(f"{self.where}: no column {column!r}; expected a number here")
            check_columns(COLUMNS, [column], self.where)
            return COLUMNS.index(column)
        if not -self.width <= column < self.width:
            least, received = max(column + 1, -column), counted(self.width, "column")
            raise DataError(f"{self.where}: received {received}; expected at least {least}")
        return column % self.width

    def record(self, block: Iterable[Line], report: Report) -> Record | None:
        """The sentence in these lines; None if there is none or it is skipped, which is noted."""
        rows: list[Row] = []
        for number, text in block:
            cells = self.cells(text)
            has_width = len(cells) == self.width and not self.conllu
            is_word = has_width and (rows or not NAMED_VALUE.fullmatch(text))
            if (text[0] != "#" or is_word) and cells[self.word_place :][:1] != [DOCUMENT]:
                rows.append((number, cells))
        if not rows:
            return None
        for number, cells in rows:
            if len(cells) != self.width:  # one row less would shift the tags after it
                note_ragged(report, number, len(cells), self.width)
                return None
        words, tags = [], []
        for number, cells in rows:
            if self.conllu and not cells[0].isdecimal():
                if TOKEN_ID.fullmatch(cells[0]):
                    continue
                received = f"received id {short(cells[0])}; expected for example 3, 3-4 or 3.1"
                raise DataError(f"{self.name}, line {number}: {received}")
            word = cells[self.word_place].strip()
            tag = NO_TAG if self.tag_place is None else cells[self.tag_place].strip()
            if not word or not (tag or not self.need_tags):
                what = "tag" if word else "word"
                raise DataError(f"{self.name}, line {number}: received no {what}; expected one")
            words.append(one_word(word))
            tags.append(tag or NO_TAG)
        # a universal part of speech of _ is a missing one; other columns may have it as a value
        is_universal = self.conllu and self.tag_place == COLUMNS.index("UPOS")
        untagged = NO_TAG in tags if is_universal else set(tags) == {NO_TAG}
        if untagged and self.need_tags and self.conllu:
            report.drop(NO_TAGS, rows[0][0])
            return None
        label = None if untagged and not self.need_tags else tuple(tags)
        return Record((" ".join(words),), label, rows[0][0], tokens=True)


def column_of(text: str) -> int | str:
    """A column as a command's option names it, for `read_tagging`: a number from 1, or a name."""
    if re.fullmatch("0*[1-9][0-9]{0,8}", text):
        return int(text) - 1
    if not text.strip() or text.isdecimal():
        raise InputError(f"column is {short(text)}; expected its number, from 1, or its name")
    return text
