"""Words and their numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Protocol

from treelax.errors import InputError

__all__ = ["PADDING", "Vocabulary", "WordTable"]

PADDING = 0  # the id that no word has


class WordTable(Protocol):
    """What gives words their ids: a `Vocabulary`, or `treelax.apps.data.text.vectors.Vectors`."""

    def ids(self, words: Iterable[str], /) -> list[int]:
        """The ids of some words, none of them 0."""
        ...


class Vocabulary:
    """Words numbered from 1 in the order in which they come; 0 is padding.

    It is built from the data it encodes: `ids` gives a new word the next number. Iterating over it
    gives the words in order, and ``Vocabulary(list(old), lower=old.lower)`` restores an old one;
    `lower` puts every word into lower case.

    Example:
        >>> vocabulary = Vocabulary(lower=True)
        >>> vocabulary.ids(["The", "dog", "saw", "the", "cat"])
        [1, 2, 3, 1, 4]
        >>> len(vocabulary), vocabulary.word(2)
        (4, 'dog')
    """

    def __init__(self, words: Iterable[str] = (), *, lower: bool = False) -> None:
        self.lower = lower
        self._ids = defaultdict[str, int](count(1).__next__)  # a new word gets the next number
        self._words: list[str] = []
        self.ids(list(words))

    def ids(self, words: Iterable[str], /) -> list[int]:
        """The ids of some words, 1 or more; a new word gets the next one."""
        if isinstance(words, str):
            raise InputError(f"words: received the string {words!r}; expected several: [{words!r}]")
        if self.lower:
            words = map(str.lower, words)
        return list(map(self._ids.__getitem__, words))

    def word(self, number: int) -> str:
        """The word of an id."""
        if len(self._words) < len(self):  # it has grown since the last question
            self._words = list(self._ids)
        return self._words[number - 1]

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)
