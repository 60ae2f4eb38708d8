"""Given trees: heads from CoNLL-U files, beside the words that they belong to."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor

from treelax.data.conllu import Sentence, read_conllu
from treelax.data.text.encoding import EncodedText
from treelax.data.text.ptb import one_word, plain_word
from treelax.data.text.rows import SHOWN, counted, short
from treelax.data.text.vocabulary import Vocabulary
from treelax.errors import DataError, InputError

__all__ = ["TreedText", "check_tree", "with_trees"]

ROOT = 0


@dataclass(frozen=True, eq=False, slots=True)
class TreedText(EncodedText):
    """Encoded text with a tree for each sentence.

    Attributes:
        heads: ``(W,)``, int32, as ``ids``: the head of each word, counted from 1 in its sentence, 0
            the root.
    """

    heads: Tensor = field(kw_only=True)

    def to(self, device: torch.device | str) -> TreedText:
        """Put all tensors on a device."""
        # super() without arguments does not know the class that slots make
        moved = cast(TreedText, EncodedText.to(self, device))
        return replace(moved, heads=self.heads.to(device))

    def padded_heads(self, indices: Tensor, which: int, length: int) -> Tensor:
        """Gather the heads of one sentence of some examples, as `padded` gathers its words."""
        return self._gathered(self.heads, indices, which, length, ROOT)


def with_trees(data: EncodedText, path: str | os.PathLike[str]) -> TreedText:
    """Put the trees of a CoNLL-U file beside the sentences of a split.

    Trees and sentences come in the same order and are matched by their words, in which escapes of
    the Penn Treebank, quotes and, if the split's words are in lower case, capitals make no
    difference. The file may have trees of examples that were left out of the split, the neutral
    ones of SST for example; these are read over. Trees may be non-projective and may have several
    roots.
    """
    if not isinstance(data.table, Vocabulary):
        raise InputError("table: the ids are those of vectors; expected those of a vocabulary")
    heads = array("i", _matched_heads(data, data.table, path))
    values = {part.name: getattr(data, part.name) for part in fields(EncodedText)}
    return TreedText(**values, heads=torch.frombuffer(heads, dtype=torch.int32))


def _matched_heads(
    data: EncodedText, vocabulary: Vocabulary, path: str | os.PathLike[str]
) -> list[int]:
    """The heads of all words, sentence by sentence."""
    lower, complete = vocabulary.lower, not data.notes
    plain = ["", *(_plain(word, lower) for word in vocabulary)]
    ids = data.ids.tolist()
    trees, read = read_conllu(path), 0
    heads: list[int] = []
    for sentence, (begin, end) in enumerate(pairwise(data.offsets.tolist())):
        words = [plain[number] for number in ids[begin:end]]
        first, other = read + 1, None  # the tree that should be it, if another one is there
        for block in trees:
            read += 1
            if [_plain(word, lower) for word in block.words] == words:
                break
            other = other or block
            if complete:  # so there is no tree to be read over
                raise _mismatch(data, sentence, words, _place(path, first, other), other, lower)
        else:
            raise _mismatch(data, sentence, words, _place(path, first, other), other, lower)
        heads.extend(check_tree(block, _place(path, read, block)))
    if complete and (more := next(trees, None)) is not None:
        raise DataError(
            f"{_place(path, read + 1, more)}: is one too many; expected "
            f"{counted(read, 'sentence')}, as many as {data.source} has"
        )
    return heads


def _place(path: str | os.PathLike[str], number: int, block: Sentence | None) -> str:
    """Where a tree stands, for messages; without a line if the file ends before it."""
    line = "" if block is None else f", line {block.line}"
    return f"{path}{line}, sentence {number}"


def _plain(word: str, lower: bool) -> str:
    """A word as it is compared: parsers write brackets, quotes and spaces in one way or another."""
    word = plain_word(one_word(word))
    return word.lower() if lower else word


def _mismatch(
    data: EncodedText,
    sentence: int,
    words: Sequence[str],
    place: str,
    block: Sentence | None,
    lower: bool,
) -> DataError:
    """The error for a tree of other words: names the first that differs, else how many there are."""
    text = short(" ".join(words))
    if block is None:
        received, expected = "the end of the file", f"{text}, of"
    else:
        found = [_plain(word, lower) for word in block.words]
        pairs = enumerate(zip(found, words, strict=False), 1)
        number = next((i for i, (one, other) in pairs if one != other), None)
        if number is None:
            received = f"{counted(len(found), 'word')}, {short(' '.join(found))}"
            expected = f"{len(words):,}, {text}, of"
        else:
            one, other = _unlike(found[number - 1], words[number - 1])
            received = f"{one} as word {number} of {short(' '.join(found))}"
            expected = f"{other}, as in {text} of"
    return DataError(
        f"{place}: received {received}; expected {expected} {data.where(sentence // data.texts)}: "
        "give trees of the same words in the same order"
    )


def _unlike(one: str, other: str) -> tuple[str, str]:
    """Two words for a message; long ones from a little before the place where they differ."""
    pairs = enumerate(zip(one, other, strict=False))
    differ = next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
    begin = max(differ - SHOWN // 2, 0)
    first, second = (short(f"…{word[begin:]}" if begin else word) for word in (one, other))
    return first, second


def check_tree(tree: Sentence, where: str) -> Sequence[int]:
    """The heads of a sentence, if all its words hang off the root."""
    if tree.heads is None:
        raise DataError(f"{where}: received no heads; expected one for each word")
    heads = tree.heads
    hangs = [True] + [False] * len(heads)
    for start in range(1, len(heads) + 1):
        word, passed = start, set()
        while not hangs[word]:
            if word in passed:
                raise DataError(
                    f"{where}: the heads of word {word} lead back to it; expected a tree, whose "
                    "words all hang off the root"
                )
            passed.add(word)
            word = heads[word - 1]
        for below in passed:
            hangs[below] = True
    return heads
