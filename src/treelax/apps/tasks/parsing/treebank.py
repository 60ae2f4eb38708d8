"""Treebanks: read and checked, and encoded for training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from treelax.apps.data.conllu import Sentence, read_conllu
from treelax.apps.data.input_files import one_file
from treelax.apps.data.text.records import MAX_WORDS
from treelax.apps.data.text.vocabulary import WordTable
from treelax.apps.tasks.parsing.lexicon import Forms, Lexicon, tags_of
from treelax.apps.tasks.sentences.inputs import CONLLU, too_long
from treelax.errors import DataError
from treelax.trees import is_tree


def read_treebank(path: str, *, single_root: bool, any_length: bool = False) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file, each with a labelled tree."""
    name, empty = one_file(path, preferred=(CONLLU,), expected="a CoNLL-U file").name, True
    for sentence in read_conllu(path):
        check_tree(sentence, name, single_root=single_root)
        if len(sentence) > MAX_WORDS and not any_length:
            raise DataError(f"{name}, line {sentence.line}: {too_long(sentence)}")
        empty = False
        yield sentence
    if empty:
        raise DataError(f"{name}: received nothing; expected at least one sentence")


def check_tree(sentence: Sentence, file: str, *, single_root: bool) -> None:
    """Refuse a sentence without a labelled tree, by the line of a word that is wrong."""

    def refuse(word: int, what: str) -> DataError:
        return DataError(f"{file}, line {sentence.line_of(word)}: {what}")

    heads, labels = sentence.heads, sentence.labels
    assert heads is not None  # which the reader sees to
    if labels is None or "_" in labels:
        word = 1 if labels is None else labels.index("_") + 1
        raise refuse(word, "received no label (_); expected one in DEPREL for every word")
    if not bool(is_tree(torch.tensor(heads))):
        word = _on_cycle(heads)
        raise refuse(word, f"received head {heads[word - 1]}, part of a cycle; expected a tree")
    if single_root and heads.count(0) > 1:
        second = heads.index(0, heads.index(0) + 1) + 1
        raise refuse(
            second,
            "received head 0 for a second word; expected one root, or a parser trained with --set "
            "model.single_root=false",
        )


def _on_cycle(heads: Sequence[int]) -> int:
    """The first word that is an ancestor of itself."""
    for word in range(1, len(heads) + 1):
        above = heads[word - 1]
        for _ in heads:
            if above in (0, word):
                break
            above = heads[above - 1]
        if above == word:
            return word
    raise AssertionError("no cycle")


class Batch(NamedTuple):
    """Padded sentences; 0 in the padding, -1 where a label is not known."""

    lengths: Tensor  # (batch,)
    forms: Tensor  # (batch, n): rows of `Forms`
    tags: Tensor
    heads: Tensor
    labels: Tensor
    universal: Tensor  # as in `Lexicon.universal`
    subwords: int | None = None  # padded ones; None to count them, which waits for the device


@dataclass(frozen=True)
class EncodedTreebank:
    """Sentences as numbers, one after the other."""

    columns: Tensor  # (words, 5): as in `Batch`
    offsets: Tensor  # (sentences + 1,)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Tensor:
        """Words of each sentence."""
        return self.offsets.diff()

    def to(self, device: torch.device) -> EncodedTreebank:
        return EncodedTreebank(self.columns.to(device), self.offsets.to(device))

    def batch(self, indices: Tensor, length: int, subwords: int | None = None) -> Batch:
        """Some sentences, padded to a length; without waiting for the device."""
        start, end = self.offsets[indices], self.offsets[indices + 1]
        place = start[:, None] + torch.arange(length, device=start.device)
        inside = (place < end[:, None])[..., None]
        columns = self.columns[place.clamp(max=len(self.columns) - 1)].masked_fill(~inside, 0)
        forms, tags, heads, labels, universal = columns.unbind(-1)
        return Batch(end - start, forms, tags, heads, labels, universal, subwords)


def encode(
    sentences: Sequence[Sentence], lexicon: Lexicon, tags: str, forms: Iterable[int]
) -> EncodedTreebank:
    """Sentences as numbers, those of all their words given, whether or not they have trees."""
    rows: list[tuple[int, ...]] = []
    remaining = iter(forms)
    for sentence in sentences:
        none = [0] * len(sentence)
        labels = sentence.labels or ("_",) * len(sentence)
        tag_ids = lexicon.tag_ids(tags_of(sentence, tags)) or none
        label_ids = [lexicon.label_ids.get(label, -1) for label in labels]
        universal = map(lexicon.universal_id, labels)
        own_forms = islice(remaining, len(sentence))
        rows += zip(own_forms, tag_ids, sentence.heads or none, label_ids, universal, strict=True)
    lengths = torch.tensor([0, *map(len, sentences)])
    return EncodedTreebank(torch.tensor(rows), lengths.cumsum(0))


def encode_words(
    sentences: Sequence[Sentence],
    lexicon: Lexicon,
    tags: str,
    subwords: WordTable | None = None,
) -> tuple[Forms, EncodedTreebank]:
    """The different words of sentences as a trained parser reads them, and these as numbers, without
    trees and labels.
    """
    ids: dict[str, int] = {}
    forms = [ids.setdefault(word, len(ids) + 1) for s in sentences for word in as_read(s, lexicon)]
    columns = torch.zeros(len(forms), 5, dtype=torch.int64)
    columns[:, 0] = torch.tensor(forms)
    if tags != "none":
        own_tags = (tag for s in sentences for tag in tags_of(s, tags))
        columns[:, 1] = torch.tensor(lexicon.tag_ids(own_tags))
    offsets = torch.tensor([0, *map(len, sentences)]).cumsum(0)
    return lexicon.forms(list(ids), subwords), EncodedTreebank(columns, offsets)


def as_read(sentence: Sentence, lexicon: Lexicon) -> list[str]:
    """The words of a sentence as a trained parser reads them, also to choose its best epoch.

    A sentence all in capitals is read in lower case: its capitals tell nothing.
    """
    shouted = " ".join(sentence.words).isupper()
    return [lexicon.usual(word.lower() if shouted else word) for word in sentence.words]
