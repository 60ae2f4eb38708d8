"""Words and their sub-words, as the tokenizer of a transformer cuts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from treelax.apps.data.text.encoding import EncodedText
from treelax.apps.data.text.ptb import plain_word
from treelax.apps.data.text.vectors import Vectors
from treelax.errors import DataError
from treelax.nn.transformer import SubwordTransformer

MOST_NEW = 100_000  # words that a table remembers beside those it started with
Split = Callable[[Sequence[str]], list[list[int]]]


def whole_words(words: Iterable[str]) -> Vectors:
    """Rows for words that need no vectors, since a transformer makes them."""
    known = {word: row for row, word in enumerate(dict.fromkeys(words), 3)}
    return Vectors(torch.zeros(len(known) + 3, 0), known, unknown=1)


class SubwordTable:
    """Ids of words, whose sub-words a transformer is given; a new word gets the next id."""

    def __init__(self, layer: SubwordTransformer, split: Split, vectors: Vectors) -> None:
        self._layer, self._split, self._started = layer, split, vectors
        self._rows = dict(vectors.known)
        self._sizes = [0] * len(vectors.matrix)  # sub-words of each row, known without the device
        rows: list[list[int]] = [[] for _ in range(len(vectors.matrix))]
        for row, pieces in zip(self._rows.values(), self._cut(list(self._rows)), strict=True):
            rows[row] = pieces
            self._sizes[row] = len(pieces)
        layer.set_pieces(rows)

    def ids(self, words: Iterable[str], /) -> list[int]:
        """The ids of some words."""
        words = list(words)
        new = [word for word in dict.fromkeys(words) if word not in self._rows]
        if new:
            pieces, first = self._cut(new), len(self._layer.starts) - 1
            self._layer.add_pieces(pieces)
            self._sizes.extend(map(len, pieces))
            self._rows.update(zip(new, range(first, first + len(new)), strict=True))
        return [self._rows[word] for word in words]

    def forget(self) -> None:
        """Forget new words if there are many: an endless stream of texts must fit into memory."""
        first = len(self._started.matrix)
        if len(self._sizes) - first > MOST_NEW:
            self._rows = dict(self._started.known)
            del self._sizes[first:]
            self._layer.keep_pieces(first)

    def check_length(self, words: Iterable[str], where: str) -> None:
        """Refuse a text that is too long for the transformer."""
        ids = self.ids(words)
        length = sum(self._sizes[row] for row in ids) + self._layer.around
        if self._layer.limit is not None and length > self._layer.limit:
            raise _too_long(where, len(ids), length, self._layer.limit)

    def _cut(self, words: Sequence[str]) -> list[list[int]]:
        return self._split([plain_word(word) for word in words]) if words else []


def subword_lengths(layer: SubwordTransformer | None, data: EncodedText) -> Tensor:
    """How many sub-words each text has, special tokens counted."""
    if layer is None:
        return torch.empty(len(data), 0, dtype=torch.int64)
    counts = layer.starts.diff().cpu()[data.ids]
    ends = torch.cat((counts.new_zeros(1), counts.cumsum(0)))[data.offsets]
    lengths = ends.diff().view(-1, data.texts) + layer.around
    if layer.limit is None or int(lengths.amax()) <= layer.limit:
        return lengths
    example, which = divmod(int(lengths.argmax()), data.texts)
    words = int(data.lengths[example, which])
    raise _too_long(data.where(example), words, int(lengths.amax()), layer.limit)


def _too_long(where: str, words: int, length: int, limit: int) -> DataError:
    return DataError(
        f"{where}: the text has {words} words, {length} sub-words with special tokens; expected at "
        f"most {limit}, which the transformer takes: shorten, split or remove it (data.max_length "
        "skips long training examples)"
    )
