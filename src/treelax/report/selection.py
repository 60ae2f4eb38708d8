"""Which examples of a corpus a gallery shows: some from all over it, and some that went wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from treelax.analysis.corpora import Corpus

__all__ = ["Selection"]

Item = TypeVar("Item")
LONGEST = 250  # words; a picture of more is too large to be looked at
ASKED = 5  # examples that are asked about for each one that is shown
MAPS, MAP_WORDS = 8, range(3, 15)  # heat maps in all, and the words of a text that has one


@dataclass(frozen=True)
class Selection:
    """The examples that models are asked about, of which a gallery shows some.

    Attributes:
        size: how many are shown at most.
        asked: their numbers in the corpus, from 0.
        fixed: those of them that are shown whatever the models say.
        mapped: those of these that have a heat map.
        too_long: how many examples were passed over for their length.
    """

    size: int
    asked: tuple[int, ...]
    fixed: tuple[int, ...]
    mapped: tuple[int, ...]
    too_long: int

    @classmethod
    def of(cls, corpus: Corpus, size: int, *, runs: int = 1) -> Selection:
        """Choose the examples to ask about."""
        lengths = [max(map(len, texts)) for texts in corpus.examples]
        short = [i for i, length in enumerate(lengths) if length <= LONGEST]
        asked = _spread(short, ASKED * size)
        fixed = asked if len(asked) <= size else _spread(asked, size - size // 3)
        maps = max(1, MAPS // (runs * corpus.texts))
        mapped = _spread([i for i in fixed if lengths[i] in MAP_WORDS], maps)
        too_long = len(lengths) - len(short)
        return cls(size, tuple(asked), tuple(fixed), tuple(mapped), too_long)

    def shown(self, wrong: Callable[[int], bool]) -> tuple[int, ...]:
        """The examples of the gallery: the fixed ones, some that went wrong, then any others."""
        found = list(self.fixed)
        others = [i for i in self.asked if i not in set(found)]
        for some in ([i for i in others if wrong(i)], others):
            left = [i for i in some if i not in found]
            found += _spread(left, self.size - len(found))
        return tuple(sorted(found))


def _spread(items: Sequence[Item], count: int) -> list[Item]:
    """So many of them, from all over; all if there are no more."""
    if len(items) <= count:
        return list(items)
    return [items[i * len(items) // count] for i in range(count)]
