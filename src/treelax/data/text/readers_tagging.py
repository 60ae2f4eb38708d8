"""Reader of tagged words: a word and its tag in each line, a blank line between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Unpack

from treelax.data.conllu import COLUMNS
from treelax.data.sources import PathLike, Source, one_file
from treelax.data.text.delimited import MOST_DIGITS, column_places, counted, note_ragged, short
from treelax.data.text.ptb import NO_BREAK_SPACE, one_word
from treelax.data.text.records import CheckOptions, Checks, Record, Records, Report
from treelax.errors import DataError, InputError
from treelax.files import Line

__all__ = ["column_of", "read_tagging"]

NO_TAGS = "no tags"
DOCUMENT = "-DOCSTART-"
NO_TAG = "_"
GLOBAL_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*(.+)")
# of CoNLL-U: sent_id and text say, and where a document or a paragraph begins
NAMED_VALUE = re.compile(r"# (?:[^\s=]+ = .*|new(?:doc|par)\b.*)")
# what files with a word a line are usually called
WORD_SUFFIXES = (".conllu", ".conllup", ".conll", ".bio", ".iob", ".tsv", ".tab")
TABLES = frozenset({".csv", ".jsonl", ".ndjson"})
TO_TABLES = (
    "that looks like a table; expected a word a line and a blank line between sentences: treelax "
    "train classify reads tables"
)
WORD_ID = re.compile(r"[0-9]+")
TOKEN_ID = re.compile(r"[0-9]+(?:[-.][0-9]+)?")


def read_tagging(
    path: PathLike,
    word: int | str | None = None,
    tag: int | str | None = None,
    *,
    member: str | None = None,
    need_tags: bool = True,
    **checks: Unpack[CheckOptions],
) -> Records:
    r"""Read sentences with a tag for every word, in the manner of the CoNLL tasks.

    Columns stand between tabs if the first row has any, else between spaces. Lines of comments
    (``# ...``) and documents' beginnings (``-DOCSTART-``) are read over. CoNLL-U is known by the
    name of the file or by its ten columns; there multiword tokens (``1-2``) and empty nodes
    (``1.1``) are read over too, and a sentence without tags (``_``) is left out and counted.

    A word may itself begin with ``#``: a line that does is a word if it has as many columns as the
    first row that does not, else a comment. Before the first word of a sentence ``# name = value``,
    ``# newdoc`` and ``# newpar`` are comments of any number of columns; where an ``ID`` comes first,
    all such lines are.

    Args:
        path: the file, also compressed (``.gz``, ``.xz``, ``.bz2``) or in a ``.zip``, in which it is
            alone or the only one with a usual suffix, ``.conllu``, ``.conll``, ``.bio`` or ``.tsv`` say.
        word: the column of words: its place counted from 0, negative from the end, or its name;
            the first by default, FORM in CoNLL-U. CoNLL-U has names, and other files whose
            comment ``# global.columns = ...`` gives them.
        tag: the column of tags, likewise; the last by default, UPOS in CoNLL-U.
        member: which file in a zip archive, if it holds several.
        need_tags: else a sentence may be without tags, or the file without their column; such a
            record has no label and is not left out.
        checks: see `treelax.data.text.records.Checks`.

    Returns:
        A record for each sentence, whose label has a tag for each word, read as they are asked for.
        A space inside a word becomes a no-break space.

    Raises:
        DataError: there is no such file, or, as it is read, it lacks a column or a line has too
            few or too many. The message names file and line.
        InputError: ``word`` and ``tag`` are the same.

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
    source = one_file(
        path, preferred=WORD_SUFFIXES, member=member, expected="a file of tagged words"
    )
    tests = Checks(**checks)

    def read(report: Report) -> Iterator[Record]:
        return _Sentences(source, word, tag, tests, report, need_tags).read()

    return Records(
        source.name, read, checks=tests, expected="at least one sentence", file=source.file
    )


@dataclass(slots=True)
class _Sentences:
    """One reading of a file; what is not known before the first row is learned there."""

    source: Source
    word: int | str | None
    tag: int | str | None
    checks: Checks
    report: Report
    need_tags: bool
    names: Sequence[str] | None = None
    separator: str | None = None
    width: int = 0
    conllu: bool = False
    id_place: int | None = None
    word_place: int = 0
    tag_place: int | None = 0
    # of the sentence that is being read
    first_line: int = 0
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    ragged: tuple[int, int] | None = None  # the first such line, and its columns
    sentences: int = 0  # before it

    def read(self) -> Iterator[Record]:
        for number, text in self._lines():
            if not text or text.isspace():
                yield from self._end()
            elif text[0] != "#" or not self._is_comment(text):
                self._row(number, text)
        yield from self._end(last=True)

    def _lines(self) -> Iterator[Line]:
        """All lines, from the first row on: what stands before it can be judged only by its columns."""
        before: list[Line] = []
        lines = self.source.lines()
        for number, text in lines:
            before.append((number, text))
            if named := GLOBAL_COLUMNS.fullmatch(text.rstrip()):
                self.names = named[1].split()
            elif text and not text.isspace() and text[0] != "#":
                self._learn(number, text)
                yield from before
                yield from lines

    def _is_comment(self, text: str) -> bool:
        """Whether a line that begins with # is none of the rows."""
        if self.id_place == 0 or len(text.split(self.separator)) != self.width:
            return True
        return not self.words and NAMED_VALUE.fullmatch(text) is not None

    def _row(self, number: int, text: str) -> None:
        cells = text.split(self.separator)
        if len(cells) == self.width and cells[self.word_place] == DOCUMENT:
            return
        if not self.first_line:
            self.first_line = number
        if len(cells) != self.width:
            # one row less would put every tag after it at the wrong word
            self.ragged = self.ragged or (number, len(cells))
            if self.checks.ragged == "error":
                if self.source.suffix in TABLES:
                    raise DataError(
                        f"{self.source.name}, line {number}: received {counted(len(cells), 'column')} "
                        f"with spaces between and {self.width} before; {TO_TABLES}"
                    )
                note_ragged(
                    self.checks, self.report, self.source.name, number, len(cells), self.width
                )
            return
        if self.id_place is not None and not WORD_ID.fullmatch(cells[self.id_place]):
            if TOKEN_ID.fullmatch(cells[self.id_place]):
                return
            raise DataError(
                f"{self.source.name}, line {number}: received id {short(cells[self.id_place])}; "
                "expected for example 3, 3-4 or 3.1"
            )
        word = cells[self.word_place].strip()
        tag = NO_TAG if self.tag_place is None else cells[self.tag_place].strip()
        if not tag and not self.need_tags:
            tag = NO_TAG
        if not word or not tag:
            what = "tag" if word else "word"
            raise DataError(f"{self.source.name}, line {number}: received no {what}; expected one")
        self.words.append(one_word(word))
        self.tags.append(tag)

    def _learn(self, number: int, text: str) -> None:
        """Take the shape of the file from its first row."""
        where = f"{self.source.name}, line {number}"
        self.separator = "\t" if "\t" in text else None
        cells = text.split(self.separator)
        self.width = len(cells)
        self.conllu = self.source.suffix == ".conllu" or (
            self.names is None
            and self.separator == "\t"
            and self.width == len(COLUMNS)
            and TOKEN_ID.fullmatch(cells[0]) is not None
        )
        if self.names is None and self.conllu:
            self.names = COLUMNS
        if self.names is not None and self.width != len(self.names):
            raise DataError(
                f"{where}: received {counted(self.width, 'column')}; expected {len(self.names)}: "
                f"{' '.join(self.names)}"
            )
        if self.names is not None and "ID" in self.names:
            self.id_place = self.names.index("ID")
        self.word_place = self._place(self.word, ("FORM", 0), where)
        try:
            self.tag_place = self._place(self.tag, ("UPOS", -1), where)
        except DataError:
            if self.need_tags:
                raise
            self.tag_place = None
        if self.word_place == self.tag_place:
            if self.need_tags:
                what = "the same column" if self.width > 1 else "one column"
                raise DataError(
                    f"{where}: received {what} for words and tags; expected a word and its tag in "
                    "two columns, with a tab or a space between"
                )
            self.tag_place = None

    def _place(self, column: int | str | None, default: tuple[str, int], where: str) -> int:
        if column is None:
            named, place = default
            column = named if self.names is not None and named in self.names else place
        if isinstance(column, str):
            if self.names is None:
                raise DataError(
                    f"{where}: received columns without names; expected {column!r} to be one: give "
                    "its number instead"
                )
            return column_places(self.names, [column], where)[0]
        if not -self.width <= column < self.width:
            raise DataError(
                f"{where}: received {counted(self.width, 'column')}; expected at least "
                f"{column + 1 if column >= 0 else -column}"
            )
        return column % self.width

    def _universal_place(self) -> int | None:
        """Where the universal parts of speech stand, if the file names them."""
        return self.names.index("UPOS") if self.names and "UPOS" in self.names else None

    def _end(self, *, last: bool = False) -> Iterator[Record]:
        """The sentence that ends here, if there is one that is to be kept."""
        line, words, tags, ragged = self.first_line, self.words, self.tags, self.ragged
        if not line:
            return
        if last and not self.sentences:
            self._refuse_table()
        self.first_line, self.words, self.tags, self.ragged = 0, [], [], None
        self.sentences += 1
        if ragged:
            note_ragged(self.checks, self.report, self.source.name, *ragged, self.width)
            return
        # a part of speech of _ is one that nobody told; other columns may have it as a value
        few = self.names is not None and self.tag_place == self._universal_place()
        untold = NO_TAG in tags if few else set(tags) == {NO_TAG}
        is_without = untold and (self.conllu or not self.need_tags)
        if is_without and self.need_tags:
            self.report.drop(NO_TAGS, line)
        else:
            yield Record((" ".join(words),), None if is_without else tuple(tags), line, tokens=True)

    def _refuse_table(self) -> None:
        """Raise if the one sentence of the file is a column of sentences."""
        # words of some languages have a space in them, hardly two
        spaces = sum(word.count(NO_BREAK_SPACE) for word in self.words)
        if self.need_tags and len(self.words) > 1 and spaces >= 2 * len(self.words):
            raise DataError(
                f"{self.source.name}: received no blank line, and {counted(spaces, 'space')} inside of "
                f"{counted(len(self.words), 'word')}; {TO_TABLES}"
            )


def column_of(text: str) -> int | str:
    """A column as a user of the commands tells it, for `read_tagging`.

    Args:
        text: its number, counted from 1, or its name.

    Returns:
        Its place, counted from 0, or the name.

    Raises:
        InputError: it is 0, or nothing, or a number too long for one of a column.

    Example:
        >>> column_of("2"), column_of("XPOS")
        (1, 'XPOS')
    """
    is_number = text.isdecimal()
    if not text.strip() or (is_number and (len(text) > MOST_DIGITS or not int(text))):
        raise InputError(
            f"column: received {short(text)}; expected its number, counted from 1, or its name"
        )
    return int(text) - 1 if is_number else text
