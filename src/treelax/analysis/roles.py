"""Which part words, or their tags, play in trees: heads or leaves, and of what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from treelax.analysis.shapes import Heads

ROOT = "root"


@dataclass(frozen=True)
class Role:
    """The part that a word or a tag plays in some trees; shares are in percent of its times.

    Attributes:
        name: the word or the tag.
        times: how often it occurs.
        modifiers: of all its occurrences together.
        heads: share of those with a modifier; the others are leaves.
        roots: share of those that hang off the root.
        left_heads: share of those whose head stands to their left.
        usual_head: what it hangs off most often, a word or a tag, or "root".
        usual: share of those that do.
    """

    name: str
    times: int
    modifiers: int
    heads: float
    roots: float
    left_heads: float
    usual_head: str
    usual: float

    @property
    def leaves(self) -> float:
        """Share of occurrences without modifiers."""
        return 100 - self.heads

    @property
    def mean_modifiers(self) -> float:
        """Modifiers of an occurrence."""
        return self.modifiers / self.times


def roles(
    names: Sequence[Sequence[str]], trees: Sequence[Heads], *, most: int | None = None
) -> list[Role]:
    """The part of each word or tag, those with the most modifiers first."""
    times: Counter[str] = Counter()
    modifiers: Counter[str] = Counter()
    heads: Counter[str] = Counter()
    lefts: Counter[str] = Counter()
    above: dict[str, Counter[str]] = {}
    for own, tree in zip(names, trees, strict=True):
        times.update(own)
        heads.update(own[head - 1] for head in set(tree) if head)
        for word, head in enumerate(tree, 1):
            name = own[word - 1]
            # the name of the root may be a word too, so it is not counted as one
            above.setdefault(name, Counter())[own[head - 1] if head else ""] += 1
            if head:
                modifiers[own[head - 1]] += 1
                lefts[name] += head < word
    ordered = sorted(times, key=lambda name: (-modifiers[name], -times[name], name))
    found = []
    for name in ordered[:most]:
        usual, count = min(above[name].items(), key=lambda item: (-item[1], item[0]))
        found.append(
            Role(
                name=name,
                times=times[name],
                modifiers=modifiers[name],
                heads=100 * heads[name] / times[name],
                roots=100 * above[name][""] / times[name],
                left_heads=100 * lefts[name] / times[name],
                usual_head=usual or ROOT,
                usual=100 * count / times[name],
            )
        )
    return found
