"""Several pictures: trees of the same words that are compared, one picture above another."""

from __future__ import annotations

from collections.abc import Sequence

from treelax.apps.pictures.svg import Picture, number
from treelax.errors import InputError


def align_pictures(pictures: Sequence[Picture]) -> list[Picture]:
    """Draw trees of the same words anew, with every word at the same place in all; others stay.

    Example:
        >>> from treelax.apps.pictures import draw_arcs, draw_brackets
        >>> words = ["Old", "dogs", "bark"]
        >>> one = draw_arcs(words, [2, 3, 0], labels=["amod", "nsubj", "root"])
        >>> other = draw_brackets(words, [(0, 2, None), (0, 1, None)])
        >>> one.width == other.width, len({picture.width for picture in align_pictures([one, other])})
        (False, 1)
    """
    aligned = list(pictures)
    same: dict[tuple[bool, tuple[str, ...]], list[int]] = {}
    for i, picture in enumerate(aligned):
        if (drawing := picture.drawing) is not None:
            same.setdefault((drawing.right_to_left, tuple(drawing.words)), []).append(i)
    for places in same.values():
        drawings = [drawing for i in places if (drawing := aligned[i].drawing) is not None]
        drawn = [drawing.picture(drawings) for drawing in drawings]
        widest = max(picture.width for picture in drawn)
        for i, drawing in zip(places, drawings, strict=True):
            aligned[i] = drawing.picture(drawings, widest)
    return aligned


def stack_pictures(pictures: Sequence[Picture], *, title: str | None = None) -> Picture:
    """Put pictures above each other, flush left; the title of the whole is not drawn.

    Trees of the same words are aligned, as by `align_pictures`.

    Example:
        >>> one = Picture(20, 10, "", "one", "")
        >>> both = stack_pictures([one, one])
        >>> both.width, both.height, both.title
        (20, 20.0, 'one; one')
    """
    if not pictures:
        raise InputError("pictures: received none; expected at least one")
    if len(pictures) == 1 and title is None:
        return pictures[0]
    pictures = align_pictures(pictures)
    parts, y = [], 0.0
    for picture in pictures:
        parts.append(f'<g transform="translate(0 {number(y)})">\n{picture.body}\n</g>')
        y += picture.height
    return Picture(
        max(picture.width for picture in pictures),
        y,
        "\n".join(parts),
        "; ".join(picture.title for picture in pictures) if title is None else title,
        # with their titles: a screen reader has no other sign of where the next one begins
        " ".join(f"{picture.title}. {picture.description}".strip() for picture in pictures),
    )
