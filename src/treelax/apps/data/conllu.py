"""Reading and writing CoNLL-U, the format of Universal Dependencies.

A `Sentence` keeps its lines, so that multiword tokens (``1-2``), empty nodes (``1.1``) and the other
columns are written back as they were read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from treelax.apps.data.input_files import one_file
from treelax.errors import DataError, InputError, counted, short
from treelax.files import Line, atomic_write, compressed

__all__ = ["Sentence", "read_conllu", "write_conllu"]

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
TOKEN_ID = re.compile(r"[0-9]+(?:[-.][0-9]+)?")


@dataclass(frozen=True)
class Sentence:
    """A sentence and, where it is annotated, its dependency tree.

    Columns that are not annotated are None.

    Attributes:
        heads: ``heads[m - 1]`` is that of word ``m``, 0 the root.
        tags: universal parts of speech.
        labels: of the dependencies.
        metadata: the comments, ``# key = value``; the value is empty for ``# key`` alone.
        xpos: parts of speech of the language or treebank.
        lines: of the file it was read from.
        line: the number of the first of them, counted from 1.

    Example:
        >>> Sentence(("Dogs", "bark"), (2, 0), metadata={"sent_id": "s1"}).id
        's1'
    """

    words: tuple[str, ...]
    heads: tuple[int, ...] | None = None
    tags: tuple[str, ...] | None = None
    labels: tuple[str, ...] | None = None
    metadata: dict[str, str] = field(default_factory=dict, hash=False)
    xpos: tuple[str, ...] | None = None
    lines: tuple[str, ...] = field(default=(), repr=False, compare=False)
    line: int = field(default=0, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.words:
            raise InputError("words: received none; expected at least one")
        columns = {name: getattr(self, name) for name in ("heads", "tags", "labels", "xpos")}
        self._check_counts({name: len(c) for name, c in columns.items() if c is not None})

    def __len__(self) -> int:
        return len(self.words)

    @property
    def id(self) -> str | None:
        """The sentence's name in its treebank, if it has one."""
        return self.metadata.get("sent_id")

    @property
    def text(self) -> str:
        """The raw text if the file has it, else the words with spaces between."""
        return self.metadata.get("text") or " ".join(self.words)

    def line_of(self, word: int) -> int:
        """The line of a word, counted from 1, in the file that the sentence was read from."""
        ids = (text.partition("\t")[0] for text in self.lines)
        return next(n for n, number in enumerate(ids, self.line) if number.lstrip("0") == str(word))

    def with_tree(
        self,
        heads: Sequence[int] | None,
        *,
        columns: Mapping[str, Sequence[str]] | None = None,
        misc: Mapping[str, Sequence[str]] | None = None,
        comments: Mapping[str, str] | None = None,
    ) -> list[str]:
        """The lines of the file with another tree, and DEPREL ``_``; heads None leaves both.

        `columns` has n values by name of a column, `misc` n values by name to put into MISC, and
        `comments` are added after those of the file, or replace one of their name.
        """
        tree = {}
        if heads is not None:
            tree = {"HEAD": list(map(str, heads)), "DEPREL": ["_"] * len(heads)}
        metadata = _metadata(self.lines) | dict(comments or {})
        return _filled(self, {**tree, **(columns or {})}, metadata, misc or {})

    def _check_counts(self, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            if count != len(self):
                expected = f"one for each of the {len(self)} words"
                raise InputError(f"{name}: received {count}; expected {expected}")


def read_conllu(
    path: str | os.PathLike[str], *, require_heads: bool = True, partial: bool = False
) -> Iterator[Sentence]:
    """Read the sentences of a CoNLL-U file one by one.

    Args:
        path: the file, UTF-8, also compressed (``.gz``, ``.xz``, ``.bz2``) or in a ``.zip``, alone or
            as the only ``.conllu``.
        require_heads: raise on sentences without heads; else their ``heads`` are None. Heads need not
            form a tree: see `treelax.trees.is_tree` and `treelax.trees.is_projective`.
        partial: a head may be ``_``, not known, which becomes -1.

    Raises:
        DataError: the file cannot be read, or a line is not CoNLL-U. The message names file and line.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "two.conllu.gz")
        ...     count = write_conllu(path, [Sentence(("Dogs", "bark"), (2, 0))])
        ...     [(s.words, s.heads) for s in read_conllu(path)]
        [(('Dogs', 'bark'), (2, 0))]
    """
    source = one_file(path, preferred=(".conllu",), expected="a CoNLL-U file")
    blocks = groupby(source.lines(), key=lambda line: bool(line[1].strip()))
    return (
        _sentence(source.name, list(block), require_heads, partial)
        for text, block in blocks
        if text
    )


def write_conllu(path: str | os.PathLike[str], sentences: Iterable[Sentence]) -> int:
    """Write sentences as CoNLL-U, compressed if the name ends in ``.gz``, ``.xz`` or ``.bz2``.

    What `read_conllu` read is written as it was, line by line, but for what has been changed with
    ``dataclasses.replace``: heads, for example. Its ``lines=()`` writes the other fields alone.

    The file appears whole or not at all; its folder must exist. The sentences may be an iterator, even
    one that reads the same file. Returns their number.

    Raises:
        DataError: a value does not fit into a column of CoNLL-U, or the file cannot be written. The
            message names the sentence, counted from 1.
    """
    file, count = Path(path), 0
    with atomic_write(file) as raw, compressed(raw, file, "wb") as out:
        for count, sentence in enumerate(sentences, 1):
            out.write(_text(sentence, f"{file}, sentence {count}"))
    return count


def _sentence(file: str, block: list[Line], require: bool, partial: bool) -> Sentence:
    """The sentence in the lines of a block."""
    rows: list[list[str]] = []
    places: list[str] = []
    for number, text in block:
        if text.startswith("#"):
            continue
        cells, where = text.split("\t"), f"{file}, line {number}"
        if len(cells) != len(COLUMNS):
            received = counted(len(cells), "column")
            raise DataError(f"{where}: received {received}; expected 10 with tabs between")
        if "" in cells or not TOKEN_ID.fullmatch(cells[0]):
            expected = "an id such as 3, 3-4 or 3.1, and _ for what is empty"
            raise DataError(f"{where}: received {short(text)}; expected {expected}")
        if cells[0].isdigit():
            rows.append(cells)
            places.append(where)
            if cells[0].lstrip("0") != str(len(rows)):
                raise DataError(f"{where}: received word id {cells[0]}; expected {len(rows)}")
    if not rows:
        raise DataError(f"{file}, line {block[0][0]}: received no word; expected at least one")
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    given = {name: None if set(values) == {"_"} else values for name, values in columns.items()}
    if require or given["HEAD"]:
        for m, (where, head) in enumerate(zip(places, columns["HEAD"], strict=True), 1):
            if not (partial and head == "_"):
                _check_head(head, m, len(rows), where)
    lines = tuple(text for _, text in block)
    return Sentence(
        words=columns["FORM"],
        heads=given["HEAD"] and tuple(-1 if head == "_" else int(head) for head in given["HEAD"]),
        tags=given["UPOS"],
        labels=given["DEPREL"],
        metadata=_metadata(lines),
        xpos=given["XPOS"],
        lines=lines,
        line=block[0][0],
    )


def _metadata(lines: Iterable[str]) -> dict[str, str]:
    comments = (text[1:].partition("=") for text in lines if text.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in comments}


def _check_head(head: str, m: int, n: int, where: str) -> None:
    if not re.fullmatch("[0-9]{1,9}", head) or int(head) > n or int(head) == m:
        received = "no head (_)" if head == "_" else f"head {head:.40}"
        raise DataError(f"{where}: received {received}; expected 0 to {n}, not {m} itself")


def _text(sentence: Sentence, where: str) -> bytes:
    """A sentence as CoNLL-U, with the blank line after it."""
    n, heads = len(sentence), tuple(map(str, sentence.heads or ()))
    columns = {"FORM": sentence.words, "UPOS": sentence.tags, "XPOS": sentence.xpos}
    columns |= {"HEAD": heads, "DEPREL": sentence.labels}
    filled = {name: values or ("_",) * n for name, values in columns.items()}
    for name, values in filled.items():
        for m, value in enumerate(values, 1):
            if not value or re.search(r"[\t\n\r]", value):
                received = f"{name} of word {m} is {value!r}"
                raise DataError(f"{where}: {received}; expected text without tabs and line breaks")
    for m, head in enumerate(heads, 1):
        _check_head(head, m, n, where)
    for key, value in sentence.metadata.items():
        if "=" in key or re.search(r"[\n\r]", key + value):
            received = f"comment {key!r} = {value!r}"
            raise DataError(f"{where}: {received}; expected no line break, no = in the key")
    try:
        lines = _filled(sentence, filled, sentence.metadata, {})
        return "".join(f"{line}\n" for line in [*lines, ""]).encode()
    except (InputError, UnicodeEncodeError) as error:
        raise DataError(f"{where}: cannot be written: {error}") from error


def _filled(
    sentence: Sentence,
    columns: Mapping[str, Sequence[str]],
    metadata: Mapping[str, str],
    misc: Mapping[str, Sequence[str]],
) -> list[str]:
    """The lines of a sentence with these values, and with these comments, in them."""
    lines = sentence.lines or ["\t".join([str(m + 1), *"_" * 9]) for m in range(len(sentence))]
    words = sum(text.partition("\t")[0].isdigit() for text in lines)
    counts = {name: len(values) for name, values in {**columns, **misc}.items()}
    sentence._check_counts({**counts, "lines (to write other words, give lines=())": words})
    old, new = _metadata(lines), dict(metadata)
    comments: list[str] = []
    rows: list[str] = []
    m = 0
    for text in lines:
        if text.startswith("#"):
            (key,) = _metadata([text])
            unchanged = metadata.get(key) == old[key]
            if unchanged or key in new:
                (rows or comments).append(text if unchanged else _written(key, new[key]))
            new.pop(key, None)
            continue
        cells = text.split("\t")
        if cells[0].isdigit():
            for name, values in columns.items():
                cells[COLUMNS.index(name)] = values[m]
            for name, values in misc.items():
                others = [f for f in cells[-1].split("|") if f != "_" and f.split("=")[0] != name]
                cells[-1] = "|".join([*others, f"{name}={values[m]}"])
            m += 1
        rows.append("\t".join(cells))
    return [*comments, *(_written(key, value) for key, value in new.items()), *rows]


def _written(key: str, value: str) -> str:
    return f"# {key} = {value}" if value else f"# {key}"
