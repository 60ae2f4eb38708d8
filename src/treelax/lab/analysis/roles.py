"""The roles of words or tags in trees: heads or leaves, and of what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from treelax.lab.analysis.shapes import Heads

ROOT = "root"


@dataclass(frozen=True)
class Role:
    """The role of a word or a tag in some trees; shares are in percent of its occurrences."""

    name: str
    times: int  # occurrences
    modifiers: int  # of all occurrences
    heads: float  # share with modifiers
    roots: float  # share under the root
    left_heads: float  # share with the head to the left
    usual_head: str  # most frequent head: a word, a tag or "root"
    usual: float  # share with that head
    leaves: float  # share without modifiers
    mean_modifiers: float  # per occurrence


def roles(
    names: Sequence[Sequence[str]], trees: Sequence[Heads], *, most: int | None = None
) -> list[Role]:
    """The role of each word or tag, those with the most modifiers first."""
    times, modifiers, heads, lefts = (Counter[str]() for _ in range(4))
    above: dict[str, Counter[str]] = {}
    for words, tree in zip(names, trees, strict=True):
        times.update(words)
        heads.update(words[head - 1] for head in set(tree) if head)
        for word, head in enumerate(tree, 1):
            name = words[word - 1]
            # "" is the root: "root" may be a word
            above.setdefault(name, Counter())[words[head - 1] if head else ""] += 1
            if head:
                modifiers[words[head - 1]] += 1
                lefts[name] += head < word
    ordered = sorted(times, key=lambda name: (-modifiers[name], -times[name], name))
    rows = []
    for name in ordered[:most]:
        usual, count = min(above[name].items(), key=lambda item: (-item[1], item[0]))
        rows.append(
            Role(
                name=name,
                times=times[name],
                modifiers=modifiers[name],
                heads=100 * heads[name] / times[name],
                roots=100 * above[name][""] / times[name],
                left_heads=100 * lefts[name] / times[name],
                usual_head=usual or ROOT,
                usual=100 * count / times[name],
                leaves=100 - 100 * heads[name] / times[name],
                mean_modifiers=modifiers[name] / times[name],
            )
        )
    return rows
