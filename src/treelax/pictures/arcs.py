"""Dependency trees as arcs over their words, as SVG: discrete ones, soft ones, right and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from treelax.errors import InputError
from treelax.pictures.arc_drawing import FAINTEST, READABLE, ArcDrawing, LegendItem, new_arc
from treelax.pictures.arc_layout import Arc, Kind
from treelax.pictures.characters import named
from treelax.pictures.svg import Picture
from treelax.pictures.svg_text import is_right_to_left
from treelax.pictures.words import checked_heads, checked_matrix, checked_texts, checked_words

__all__ = ["draw_arcs"]

SCALE = (0.1, 0.4, 0.7, 1.0)  # weights that the legend of a soft tree shows
NEARLY = 1e-3  # by which rounding may take a weight out of its range

Heads = list[int]
Matrix = list[list[float]]


def draw_arcs(
    words: Sequence[str],
    heads: Sequence[int] | Tensor | None = None,
    *,
    weights: Sequence[Sequence[float]] | Tensor | None = None,
    gold: Sequence[int] | Tensor | None = None,
    labels: Sequence[str | None] | None = None,
    tags: Sequence[str | None] | None = None,
    title: str | None = None,
    least: float = 0.05,
    right_to_left: bool | None = None,
) -> Picture:
    """Draw a dependency tree as arcs above its words, each with its arrow at the modifier.

    A modifier of the root has an arrow from the top. With weights all arcs that weigh enough are
    drawn, strong and wide as they weigh; with heads besides, those are never faint, and arcs of other
    heads are dashed. With
    gold heads the wrong arcs are dashed, and those that should stand in their place are dotted and
    below the words. The heads need not form a tree: arcs may cross, and a cycle is drawn as it is.

    Args:
        words: the n words; those of more than 32 characters are cut.
        heads: the n heads, ``heads[m - 1]`` that of word ``m``, 0 the root.
        weights: ``(n + 1, n + 1)``, from 0 to 1, ``weights[h, m]`` that of the arc from ``h`` to
            ``m``: a soft tree, or marginals.
        gold: the n right heads.
        labels: a text for the arc of each word, None or empty for none; with heads only.
        tags: a text below each word.
        title: stands above the drawing.
        least: the smallest weight to draw.
        right_to_left: put the first word on the right; by default where most words run that way.

    Returns:
        The picture.

    Raises:
        InputError: there are no words, neither heads nor weights, or something does not fit them.

    Example:
        >>> picture = draw_arcs(["Dogs", "bark"], [2, 0], title="A tree")
        >>> picture.title, picture.description
        ('A tree', 'Dogs (1): head bark (2). bark (2): head root (0).')
        >>> picture.save("tree.svg")  # doctest: +SKIP
    """
    words = checked_words(words)
    n = len(words)
    found = None if heads is None else checked_heads(heads, "heads", n)
    right = None if gold is None else checked_heads(gold, "gold", n)
    soft = None if weights is None else _checked_weights(weights, n)
    if found is None and soft is None:
        raise InputError("heads: received neither heads nor weights; expected one of them")
    if labels is not None and found is None:
        raise InputError("labels: received some without heads; expected the heads of their arcs")
    if not 0 < least <= 1:
        raise InputError(f"least: received {least}; expected more than 0 and at most 1")
    named_arcs, below = checked_texts(labels, "labels", n), checked_texts(tags, "tags", n)
    above, missed = _arcs(found, soft, right, named_arcs, least)
    if right_to_left is None:
        right_to_left = 2 * sum(map(is_right_to_left, words)) > n
    # a tree that was chosen is to be read, however little its arcs weigh
    floor = FAINTEST if found is None else READABLE
    drawing = ArcDrawing(words, below, above, missed, right_to_left, floor)
    return drawing.picture(
        title,
        _legend([*above, *missed], found, soft, right),
        _description(words, found, soft, right, below, least),
    )


def _checked_weights(weights: Any, n: int) -> Matrix:
    matrix = checked_matrix(weights, "weights", n)
    for h, row in enumerate(matrix):
        for m in range(1, n + 1):
            if m != h and not -NEARLY <= row[m] <= 1 + NEARLY:
                raise InputError(
                    f"weights: the arc from {h} to {m} has {row[m]}; expected 0 to 1, as a soft "
                    "tree or marginals have (for scores take draw_heat_map)"
                )
    return matrix


def _arcs(
    heads: Heads | None, weights: Matrix | None, gold: Heads | None, labels: list[str], least: float
) -> tuple[list[Arc], list[Arc]]:
    """The arcs to draw above the words, and below them those that are missing."""
    above, below = [], []
    for m, label in enumerate(labels, 1):
        own = set() if heads is None else {heads[m - 1]}
        heavy = _heavy(weights, m, least)
        right = None if gold is None else gold[m - 1]
        for h in sorted(own | heavy.keys()):
            kind: Kind = "tree"
            if own and h not in own:
                kind = "other"
            elif right is not None:
                kind = "right" if h == right else "wrong"
            weight = 1.0 if weights is None else min(max(weights[h][m], 0.0), 1.0)
            above.append(new_arc(h, m, kind, weight, label if h in own else ""))
        if right is not None and right not in (own or heavy):
            below.append(new_arc(right, m, "missed"))
    return above, below


def _heavy(weights: Matrix | None, m: int, least: float) -> dict[int, float]:
    """The heads of a word that weigh enough, the heaviest first."""
    if weights is None:
        return {}
    found = {h: row[m] for h, row in enumerate(weights) if h != m and row[m] >= least}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _legend(
    arcs: list[Arc], heads: Heads | None, weights: Matrix | None, gold: Heads | None
) -> list[list[LegendItem]]:
    """What has to be explained; nothing for a tree alone."""
    kinds = {arc.kind for arc in arcs}
    groups: list[list[LegendItem]] = [[]]
    if gold is not None:
        if heads is not None:
            score = sum(h == g for h, g in zip(heads, gold, strict=True))
            groups[0].append((None, 1.0, f"{score} of {len(gold)} arcs right"))
        told: tuple[Kind, ...] = ("right", "wrong", "missed")
        groups[0] += [(kind, 1.0, kind) for kind in told if kind in kinds]
    elif "other" in kinds:
        groups[0].append(("tree", 1.0, "tree"))
    if "other" in kinds:
        groups[0].append(("other", 1.0, "other heads"))
    if weights is not None:
        scale: list[LegendItem] = [("tree", weight, f"{weight:g}") for weight in SCALE]
        groups.append([(None, 1.0, "weight"), *scale])
    return [group for group in groups if group]


def _description(
    words: list[str],
    heads: Heads | None,
    weights: Matrix | None,
    gold: Heads | None,
    tags: list[str],
    least: float,
) -> str:
    """The tree in words."""
    sentences = []
    for m, tag in enumerate(tags, 1):
        told = [tag] if tag else []
        if heads is not None:
            told.append(f"head {named(words, heads[m - 1])}")
        if gold is not None and heads is not None:
            if heads[m - 1] == gold[m - 1]:
                told.append("right")
            else:
                told.append(f"wrong, should be {named(words, gold[m - 1])}")
        elif gold is not None:
            told.append(f"should be {named(words, gold[m - 1])}")
        if weights is not None:
            heavy = _heavy(weights, m, least)
            told += [f"{named(words, h)} weighs {weight:.2f}" for h, weight in heavy.items()]
        sentences.append(f"{named(words, m)}: {', '.join(told)}.")
    return " ".join(sentences)
