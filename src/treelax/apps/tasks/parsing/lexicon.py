"""What a parser knows of words, characters, tags and labels, and words as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

import torch
from torch import Tensor

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.text.tokenizer import typewritten
from treelax.apps.data.text.vectors import Vectors, spellings
from treelax.apps.data.text.vocabulary import WordTable
from treelax.apps.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.errors import CheckpointError

UNKNOWN = 1  # of words, characters and tags; 0 is padding
START, END, FIRST_CHARACTER = 2, 3, 4
MOST_CHARACTERS = 24  # of a word; others do not count
KIND = "parser words"
NAMES = ("words", "characters", "tags", "labels")


@dataclass(frozen=True)
class Forms:
    """Different words as numbers; row 0 is padding."""

    vectors: Tensor  # (forms,): rows of the given vectors, 0 for none
    learned: Tensor  # (forms,): rows of the learned vectors
    characters: Tensor  # (forms, characters), 0 for padding
    subwords: Tensor  # (forms,): rows of a transformer's table of sub-words, 0 without one

    def to(self, device: torch.device) -> Forms:
        return Forms(*(getattr(self, field.name).to(device) for field in fields(self)))


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The words, characters, tags and labels of the training data, and given word vectors."""

    words: tuple[str, ...]  # with a learned vector, in lower case
    characters: tuple[str, ...]
    tags: tuple[str, ...]
    labels: tuple[str, ...]
    vectors: Vectors | None = None

    @classmethod
    def of(
        cls,
        sentences: Sequence[Sentence],
        *,
        tags: str = "none",
        min_count: int = 2,
        vectors: Vectors | None = None,
    ) -> Self:
        """Of training sentences; what is seen too rarely trains what stands for the unknown."""
        words = Counter(word.lower() for s in sentences for word in s.words)
        characters = Counter(c for s in sentences for word in s.words for c in word)
        seen = Counter(tag for s in sentences for tag in tags_of(s, tags))
        labels = {label for s in sentences for label in s.labels or ()}

        def frequent(counts: Counter[str], least: int) -> tuple[str, ...]:
            return tuple(sorted(key for key, count in counts.items() if count >= least))

        return cls(
            frequent(words, min_count),
            frequent(characters, 2),
            frequent(seen, 1),
            tuple(sorted(labels)),
            vectors,
        )

    @cached_property
    def label_ids(self) -> dict[str, int]:
        """Labels by name."""
        return {label: i for i, label in enumerate(self.labels)}

    @cached_property
    def universal_ids(self) -> dict[str, int]:
        """The first label with each universal part."""
        return {universal(label): i for i, label in reversed([*enumerate(self.labels)])}

    @cached_property
    def universal(self) -> Tensor:
        """``(labels,)``: for each label the first one with its universal part."""
        return torch.tensor([self.universal_ids[universal(label)] for label in self.labels])

    @cached_property
    def tag_ids(self) -> dict[str, int]:
        """Tags by name."""
        return {tag: i for i, tag in enumerate(self.tags, UNKNOWN + 1)}

    @cached_property
    def _word_ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words, UNKNOWN + 1)}

    @cached_property
    def _character_ids(self) -> dict[str, int]:
        return {c: i for i, c in enumerate(self.characters, FIRST_CHARACTER)}

    def usual(self, word: str) -> str:
        """A word as the training data have it: as it is, or with a typewriter's quotes (n’t, n't)."""
        return word if word.lower() in self._word_ids else typewritten(word)

    def vector_row(self, word: str) -> int:
        """The row of the given vector of a word, or of its other spelling in capitals or without; 0 for
        none.

        A word that is not known has no vector, as words have none that training drops: random vectors
        mislead a parser more than none.
        """
        known = {} if self.vectors is None else self.vectors.known
        if word in known or not known:
            return known.get(word, 0)
        others = (*spellings(word), word.capitalize(), word.upper())
        return next((known[spelling] for spelling in others if spelling in known), 0)

    def forms(self, words: Sequence[str], subwords: WordTable | None = None) -> Forms:
        """Different words as numbers, the first as number 1."""
        rows = map(self.vector_row, words)
        learned = [self._word_ids.get(word.lower(), UNKNOWN) for word in words]
        ids = self._character_ids
        spelled = [
            [START, *(ids.get(c, UNKNOWN) for c in word[:MOST_CHARACTERS]), END] for word in words
        ]
        longest = max(map(len, spelled), default=1)
        characters = [[0] * longest, *(s + [0] * (longest - len(s)) for s in spelled)]
        pieces = [0] * len(words) if subwords is None else subwords.ids(words)
        return Forms(*map(torch.tensor, ([0, *rows], [0, *learned], characters, [0, *pieces])))

    def save(self, path: Path) -> None:
        state = {name: list(getattr(self, name)) for name in NAMES}
        tensors = {}
        if self.vectors is not None:
            tensors["vectors"] = self.vectors.matrix
            state["known"] = list(self.vectors.known.items())
        save_checkpoint(path, tensors, kind=KIND, state=state)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Load what `save` saved."""
        saved = load_checkpoint(path, kind=KIND)
        state, vectors = saved.state, None
        try:
            if "vectors" in saved.tensors:
                vectors = Vectors(saved.tensors["vectors"], dict(state["known"]))
            return cls(vectors=vectors, **{name: tuple(state[name]) for name in NAMES})
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{path}: its words are damaged ({error!r}); use another run or train again"
            ) from error


def universal(label: str) -> str:
    """A label without its subtype.

    >>> universal("nsubj:pass")
    'nsubj'
    """
    return label.partition(":")[0]


def tags_of(sentence: Sentence, tags: str) -> tuple[str, ...]:
    """The tags that a model reads; `_` where there are none."""
    if tags == "none":
        return ()
    column = sentence.tags if tags == "upos" else sentence.xpos
    return column or ("_",) * len(sentence)


class Batch(NamedTuple):
    """Padded sentences; 0 in the padding, -1 where a label is not known."""

    lengths: Tensor  # (batch,)
    forms: Tensor  # (batch, n): rows of `Forms`
    tags: Tensor
    heads: Tensor
    labels: Tensor
    universal: Tensor  # as in `Lexicon.universal_ids`
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
        columns = (
            [lexicon.tag_ids.get(tag, UNKNOWN) for tag in tags_of(sentence, tags)] or none,
            sentence.heads or none,
            [lexicon.label_ids.get(label, -1) for label in labels],
            [lexicon.universal_ids.get(universal(label), -1) for label in labels],
        )
        rows += zip(islice(remaining, len(sentence)), *columns, strict=True)
    lengths = torch.tensor([0, *map(len, sentences)])
    return EncodedTreebank(torch.tensor(rows), lengths.cumsum(0))


def encode_read(
    sentences: Sequence[Sentence], lexicon: Lexicon, tags: str, subwords: WordTable | None
) -> tuple[Forms, EncodedTreebank]:
    """The different words of sentences as a trained parser reads them, and these as numbers."""
    ids: dict[str, int] = {}
    forms = [ids.setdefault(word, len(ids) + 1) for s in sentences for word in as_read(s, lexicon)]
    return lexicon.forms(list(ids), subwords), encode(sentences, lexicon, tags, forms)


def as_read(sentence: Sentence, lexicon: Lexicon) -> list[str]:
    """The words of a sentence as a trained parser reads them, also to choose its best epoch.

    A sentence all in capitals is read in lower case: its capitals tell nothing.
    """
    shouted = " ".join(sentence.words).isupper()
    return [lexicon.usual(word.lower() if shouted else word) for word in sentence.words]
