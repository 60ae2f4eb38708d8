"""Reading and writing CoNLL-U, the format of Universal Dependencies, through the conllu library.

A `Sentence` keeps what a dependency tree needs: words, heads, universal tags, labels and comments.
Multiword tokens (``1-2``), empty nodes (``1.1``) and the other columns are read over.

The conllu library forgives much and does not say where an error is, so the file is cut into
sentences and its columns are checked here, line by line, before the library parses them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from treelax.data.sources import Source, one_file
from treelax.errors import BackendError, DataError, InputError
from treelax.files import Line, atomic_write, compressed

__all__ = ["Sentence", "heads_tensor", "read_conllu", "write_conllu"]

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_ID = re.compile(r"[0-9]+(?:[-.][0-9]+)?")


@dataclass(frozen=True)
class Sentence:
    """A sentence and, where it is annotated, its dependency tree.

    Attributes:
        words: the n word forms.
        heads: the n heads, ``heads[m - 1]`` that of word ``m``, 0 the root; None if not annotated.
        tags: the n universal part-of-speech tags; None if there are none.
        labels: the n dependency labels; None if there are none.
        metadata: the comments, ``# key = value``; the value is empty for ``# key`` alone.
        xpos: the n part-of-speech tags of the language or treebank; None if there are none.

    Raises:
        InputError: there are no words, or a field has another length than the words.

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

    def __post_init__(self) -> None:
        if not self.words:
            raise InputError("words: received none; expected at least one")
        for name in ("heads", "tags", "labels", "xpos"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.words):
                raise InputError(
                    f"{name}: received {len(values)}; expected one for each of the "
                    f"{len(self.words)} words"
                )

    def __len__(self) -> int:
        """The number of words."""
        return len(self.words)

    @property
    def id(self) -> str | None:
        """The sentence's name in its treebank, if it has one."""
        return self.metadata.get("sent_id")

    @property
    def text(self) -> str:
        """The raw text if the file has it, else the words with spaces between."""
        return self.metadata.get("text") or " ".join(self.words)


def read_conllu(path: str | os.PathLike[str], *, require_heads: bool = True) -> Iterator[Sentence]:
    """Read the sentences of a CoNLL-U file one by one.

    The file is UTF-8, plain, compressed (``.gz``, ``.xz``, ``.bz2``) or in a ``.zip``, alone or as the
    only ``.conllu``. Heads need not form a tree: ask `treelax.trees.is_tree` and
    `treelax.trees.is_projective`.

    Args:
        path: the file.
        require_heads: refuse sentences without heads; else their ``heads`` are None.

    Returns:
        An iterator over the sentences, which reads on as it is asked; an empty file has none.

    Raises:
        DataError: the file is missing, cannot be decompressed or is not UTF-8; or a line does not
            have ten columns, breaks the sequence of word ids, or has a head that is missing, no
            integer, out of range or the word itself. Only a missing file is told before the first
            sentence is asked for. The message names the file and the line.
        BackendError: the conllu library is not installed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "two.conllu.gz")
        ...     count = write_conllu(path, [Sentence(("Dogs", "bark"), (2, 0))])
        ...     [(s.words, s.heads) for s in read_conllu(path)]
        [(('Dogs', 'bark'), (2, 0))]
    """
    library, source = load_library(), treebank(path)
    return (
        sentence_of_block(library, source.name, block, require_heads)
        for block in blocks_of_lines(source.lines())
    )


def treebank(path: str | os.PathLike[str]) -> Source:
    """The CoNLL-U file that a path names, or the one in a zip archive."""
    return one_file(path, preferred=(".conllu",), expected="a CoNLL-U file")


def write_conllu(path: str | os.PathLike[str], sentences: Iterable[Sentence]) -> int:
    """Write sentences as CoNLL-U, compressed if the name ends in ``.gz``, ``.xz`` or ``.bz2``.

    The file appears whole or not at all: it is written under a temporary name in the same folder
    and renamed, so an error half-way leaves an older file of that name untouched.

    Args:
        path: the file, replaced if it exists; its folder must exist.
        sentences: what to write; may be an iterator, even one that reads ``path``.

    Returns:
        The number of sentences written.

    Raises:
        DataError: a word, tag, label or comment cannot be written as a column of CoNLL-U (it is
            empty or holds a tab, a line break or two spaces in a row), a head is out of range, or
            the file cannot be written or is a ``.zip``. The message names the sentence, counted from 1.
        BackendError: the conllu library is not installed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     count = write_conllu(Path(folder, "one.conllu"), [Sentence(("Hi",), (0,))])
        ...     Path(folder, "one.conllu").read_text()
        '1\\tHi\\t_\\t_\\t_\\t_\\t0\\t_\\t_\\t_\\n\\n'
    """
    library, file = load_library(), Path(path)
    count = 0
    with atomic_write(file) as raw, compressed(raw, file, "wb") as out:
        for count, sentence in enumerate(sentences, 1):
            out.write(_text(library, sentence, f"{file}, sentence {count}"))
    return count


def heads_tensor(sentences: Iterable[Sentence]) -> tuple[Tensor, Tensor]:
    """Put the heads of some sentences into one tensor, as `treelax.trees` takes them.

    Args:
        sentences: B sentences with heads, the longest of n words.

    Returns:
        Heads ``(B, n)``, padded with -1, and lengths ``(B,)``, both int64.

    Raises:
        InputError: a sentence has no heads.

    Example:
        >>> heads_tensor([Sentence(("Dogs", "bark"), (2, 0)), Sentence(("Hi",), (0,))])
        (tensor([[ 2,  0],
                [ 0, -1]]), tensor([2, 1]))
    """
    sentences = list(sentences)
    lengths = torch.tensor([len(s) for s in sentences], dtype=torch.int64)
    heads = torch.full((len(sentences), max(map(len, sentences), default=0)), -1)
    for i, sentence in enumerate(sentences):
        if sentence.heads is None:
            raise InputError(f"sentence {i}: received no heads; expected {len(sentence)} of them")
        heads[i, : len(sentence)] = torch.tensor(sentence.heads)
    return heads, lengths


def load_library() -> ModuleType:
    """The conllu library, loaded on first use."""
    try:
        import conllu
    except ImportError as error:
        raise BackendError(
            'CoNLL-U needs the conllu library, which is not installed: pip install "treelax[data]"'
        ) from error
    return conllu


def blocks_of_lines(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines of each sentence; blank lines stand between sentences."""
    block: list[Line] = []
    for number, text in lines:
        if text.strip():
            block.append((number, text))
        elif block:
            yield block
            block = []
    if block:
        yield block


def sentence_of_block(library: ModuleType, file: str, block: list[Line], require: bool) -> Sentence:
    """The sentence in the lines of a block."""
    rows = [(number, text) for number, text in block if not text.startswith("#")]
    for number, text in rows:
        _check_columns(text, f"{file}, line {number}")
    tokens = _parse(library, "\n".join(text for _, text in block), file, rows)
    if tokens.metadata.get("global.columns", " ".join(COLUMNS)) != " ".join(COLUMNS):
        raise DataError(
            f"{file}, line {block[0][0]}: received global.columns = "
            f"{tokens.metadata['global.columns']}; expected {' '.join(COLUMNS)}"
        )
    words = [
        (number, token)
        for (number, _), token in zip(rows, tokens, strict=True)
        if isinstance(token["id"], int)  # a tuple for multiword tokens and empty nodes
    ]
    if not words:
        raise DataError(f"{file}, line {block[0][0]}: received no word; expected at least one")
    for expected, (number, token) in enumerate(words, 1):
        where = f"{file}, line {number}"
        _check_word(token["id"], token["head"], expected, len(words), require, where)
        if (token["head"] is None) != (words[0][1]["head"] is None):
            raise DataError(f"{where}: some words have a head and some not; expected all or none")

    def column(name: str) -> tuple[str, ...] | None:
        values = tuple(token[name] or "_" for _, token in words)  # the library has None for some
        return None if set(values) == {"_"} else values

    return Sentence(
        words=tuple(token["form"] for _, token in words),
        heads=None if words[0][1]["head"] is None else tuple(token["head"] for _, token in words),
        tags=column("upos"),
        labels=column("deprel"),
        metadata={key: value or "" for key, value in tokens.metadata.items()},
        xpos=column("xpos"),
    )


def _check_columns(text: str, where: str) -> None:
    cells = text.split("\t")
    if len(cells) != len(COLUMNS):
        raise DataError(
            f"{where}: received {len(cells)} {'column' if len(cells) == 1 else 'columns'}; expected "
            f"{len(COLUMNS)} with tabs between: "
            f"{' '.join(COLUMNS)}"
        )
    for name, cell in zip(COLUMNS, cells, strict=True):
        # the library also splits at two spaces; nothing follows MISC, so there it does no harm
        if not cell or ("  " in cell and name != "MISC"):
            what = f"two spaces in {cell!r}" if cell else "nothing"
            raise DataError(f"{where}: received {what} in column {name}; expected _ or a value")
    if not _ID.fullmatch(cells[0]):
        raise DataError(f"{where}: received id {cells[0]!r}; expected 3, 3-4 or 3.1, say")


def _check_word(
    word: int, head: int | None, expected: int, n: int, require: bool, where: str
) -> None:
    if word != expected:
        raise DataError(f"{where}: received word id {word}; expected {expected}, the next in order")
    if head is None and require:
        raise DataError(
            f"{where}: received no head (_); expected 0 to {n}: give a file in which every word has "
            "a head, 0 for a root"
        )
    if head is not None and not 0 <= head <= n:
        raise DataError(f"{where}: received head {head}; expected 0 to {n}")
    if head == word:
        raise DataError(f"{where}: word {word} is its own head; expected another word or 0")


def _parse(library: ModuleType, text: str, file: str, rows: list[Line]) -> Any:
    """The library's list of tokens; where it fails, each row alone tells which one is at fault."""

    def parse(part: str) -> Any:
        # the fallback keeps comments without a value
        keep = {"__fallback__": lambda key, value: (key, value)}
        return library.parse_token_and_metadata(part, metadata_parsers=keep)

    # ValueError: an integer of thousands of digits
    errors = (library.exceptions.ParseException, ValueError)
    try:
        return parse(text)
    except errors:
        for number, row in rows:
            try:
                parse(row)
            except errors as error:
                raise DataError(f"{file}, line {number}: {error}") from error
        raise


def _text(library: ModuleType, sentence: Sentence, where: str) -> bytes:
    """A sentence as CoNLL-U, with the blank line after it."""
    n = len(sentence)
    nothing = ("_",) * n
    tags, labels = sentence.tags or nothing, sentence.labels or nothing
    native = sentence.xpos or nothing
    heads = sentence.heads or (None,) * n
    columns = {"word": sentence.words, "tag": tags, "label": labels, "xpos": native}
    for name, values in columns.items():
        for m, value in enumerate(values, 1):
            if not value or re.search(r"[\t\n\r]|  ", value):
                raise DataError(
                    f"{where}: {name} {m} is {value!r}; expected text without tabs, line breaks "
                    "and double spaces"
                )
    for m, head in enumerate(heads, 1):
        _check_word(m, head, m, n, False, where)
    for key, value in sentence.metadata.items():
        if "=" in key or re.search(r"[\n\r]", key + value):
            raise DataError(
                f"{where}: comment {key!r} = {value!r}; expected no line break, no = in the key"
            )
    rows = (
        (m, word, None, tag, xpos, None, head, label, None, None)
        for m, (word, tag, xpos, head, label) in enumerate(
            zip(sentence.words, tags, native, heads, labels, strict=True), 1
        )
    )
    tokens = [dict(zip(map(str.lower, COLUMNS), row, strict=True)) for row in rows]
    try:
        return bytes(library.TokenList(tokens, sentence.metadata).serialize(), "utf-8")
    except UnicodeEncodeError as error:
        raise DataError(f"{where}: cannot be written as UTF-8 ({error.reason})") from error
