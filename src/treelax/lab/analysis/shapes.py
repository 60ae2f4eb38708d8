"""The shape of one tree: checked heads, depths of words, spans of subtrees.

A tree is the heads of its words in order, counted from 1, 0 the root. Heads that were chosen without
a tree constraint may form a cycle; then there are no depths and no subtrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treelax.errors import InputError

Heads = Sequence[int]


@dataclass(frozen=True, slots=True)
class Subtree:
    """A word and all its descendants."""

    size: int  # words
    first: int  # leftmost word, counted from 1
    last: int
    depth: int  # arcs from the root to its head

    @property
    def contiguous(self) -> bool:
        """Whether no other word interrupts it."""
        return self.last - self.first + 1 == self.size


def check_heads(trees: Sequence[Heads]) -> None:
    """Refuse heads that are not another word of their sentence or the root."""
    if not trees:
        raise InputError("trees: received none; expected at least one")
    for number, heads in enumerate(trees, 1):
        n = len(heads)
        if not n:
            raise InputError(f"trees: sentence {number}: received no words; expected at least one")
        for word, head in enumerate(heads, 1):
            if not 0 <= head <= n or head == word:
                raise InputError(
                    f"trees: sentence {number}, word {word}: received head {head}; expected 0 to "
                    f"{n}, not {word} itself"
                )


def check_same_words(
    name: str, sentences: Sequence[Sequence[object]], trees: Sequence[Sequence[object]]
) -> None:
    """Refuse anything that does not have one item per word of the same sentences."""
    if len(sentences) != len(trees):
        raise InputError(
            f"{name}: received {len(sentences)} sentences; expected {len(trees)}, as many as the trees"
        )
    for number, (items, heads) in enumerate(zip(sentences, trees, strict=True), 1):
        if len(items) != len(heads):
            raise InputError(
                f"{name}: sentence {number}: received {len(items)}; expected {len(heads)}, one for "
                "each word"
            )


def depths(heads: Heads) -> list[int] | None:
    """How many arcs lead from the root to each word."""
    depth = [0] * (len(heads) + 1)
    for start in range(1, len(heads) + 1):
        path: list[int] = []
        word = start
        while word and not depth[word]:
            if len(path) == len(heads):
                return None
            path.append(word)
            word = heads[word - 1]
        for above, below in enumerate(reversed(path), 1):
            depth[below] = depth[word] + above
    return depth[1:]


def subtrees(heads: Heads) -> list[Subtree] | None:
    """The subtree of each word."""
    depth = depths(heads)
    if depth is None:
        return None
    n = len(heads)
    size, first, last = [1] * (n + 1), list(range(n + 1)), list(range(n + 1))
    for word in sorted(range(1, n + 1), key=lambda word: -depth[word - 1]):
        head = heads[word - 1]
        size[head] += size[word]
        first[head] = min(first[head], first[word])
        last[head] = max(last[head], last[word])
    return [Subtree(*row) for row in zip(size[1:], first[1:], last[1:], depth, strict=True)]
