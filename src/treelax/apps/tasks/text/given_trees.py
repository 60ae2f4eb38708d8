"""Given trees: heads from CoNLL-U files, beside the words that they belong to."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise, takewhile
from operator import eq

import torch
from torch import Tensor

from treelax.apps.data.conllu import read_conllu
from treelax.apps.data.text.encoding import EncodedText
from treelax.apps.data.text.ptb import one_word, plain_word
from treelax.apps.data.text.vocabulary import Vocabulary
from treelax.apps.tasks.sentences.inputs import check_tree
from treelax.errors import DataError, counted, short

ROOT = 0


@dataclass(frozen=True, eq=False, slots=True)
class TreedText(EncodedText):
    """Encoded text with a tree for each sentence."""

    heads: Tensor = field(kw_only=True)  # (W,), int32: counted from 1 in the sentence, 0 the root

    def padded_heads(self, indices: Tensor, which: int, length: int) -> Tensor:
        """Gather the heads of one sentence of some examples, as `padded` gathers its words."""
        return self._gathered(self.heads, indices, which, length, ROOT)


def with_trees(data: EncodedText, path: str | os.PathLike[str]) -> TreedText:
    """Put the trees of a CoNLL-U file beside the sentences of a split.

    Trees and sentences come in the same order and are matched by their words; escapes of the Penn
    Treebank, quotes and, if the split is lowercased, capitals make no difference. Trees of examples
    that the split skipped, such as the neutral ones of SST, are skipped too.
    """
    heads = array("i", _matched_heads(data, path))
    values = {part.name: getattr(data, part.name) for part in fields(EncodedText)}
    return TreedText(**values, heads=torch.frombuffer(heads, dtype=torch.int32))


def _matched_heads(data: EncodedText, path: str | os.PathLike[str]) -> list[int]:
    vocabulary = data.table
    assert isinstance(vocabulary, Vocabulary)
    lower, complete = vocabulary.lower, not data.notes
    plain = ["", *(_plain(word, lower) for word in vocabulary)]
    ids = data.ids.tolist()
    trees, read = read_conllu(path), 0
    heads: list[int] = []
    for sentence, (begin, end) in enumerate(pairwise(data.offsets.tolist())):
        words = [plain[number] for number in ids[begin:end]]
        first, tree = read + 1, None  # the tree that should be it
        for block in trees:
            read += 1
            forms = [_plain(word, lower) for word in block.words]
            tree = tree or (block, forms)
            if forms == words or complete:  # then there is no tree to skip
                break
        if tree is None or forms != words:
            line = "" if tree is None else f", line {tree[0].line}"
            received = "the end of the file" if tree is None else _words(tree[1], words)
            raise DataError(
                f"{path}{line}, sentence {first}: received {received}; expected "
                f"{_words(words, tree[1] if tree else ())} of {data.where(sentence // data.texts)}: "
                "give trees of the same words in the same order"
            )
        heads.extend(check_tree(block, f"{path}, line {block.line}, sentence {read}"))
    if complete and (more := next(trees, None)) is not None:
        raise DataError(
            f"{path}, line {more.line}, sentence {read + 1}: is one too many; expected "
            f"{counted(read, 'sentence')}, as many as {data.source} has"
        )
    return heads


def _plain(word: str, lower: bool) -> str:
    """A word as it is compared: parsers differ in brackets, quotes and spaces."""
    word = plain_word(one_word(word))
    return word.lower() if lower else word


def _words(words: Sequence[str], others: Sequence[str]) -> str:
    """Words for a message, from the first that differs."""
    same = len(list(takewhile(bool, map(eq, words, others))))
    place = f" from word {same + 1}" if same else ""
    return f"{short(' '.join(words[same:]))}{place}"
