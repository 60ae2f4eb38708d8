"""Several pictures: trees of the same words keep their words in place."""

from __future__ import annotations

import pytest
import torch
from drawings import FOX, FOX_HEADS, SVG, root_of

import treelax as tx
from treelax.apps.pictures import Picture, align_pictures, draw_arcs, draw_brackets, stack_pictures
from treelax.trees import heads_to_tree

SOFT = tx.ops.soft_tree(3 * heads_to_tree(torch.tensor(FOX_HEADS)), temperature=3.0)


def places(picture: Picture) -> list[float]:
    """The middle of each word."""
    shown = [e for e in root_of(picture.svg()).iter(f"{SVG}text") if e.text in FOX]
    return [float(e.get("x", "nan")) for e in shown]


@pytest.mark.parametrize("right_to_left", [False, True])
def test_words_of_compared_trees_keep_their_places(right_to_left: bool) -> None:
    way = {"right_to_left": right_to_left}
    pictures = [
        draw_arcs(FOX, FOX_HEADS, labels=["a long label"] * len(FOX), **way),
        draw_arcs(
            FOX, weights=SOFT, title="A title that is much wider than all of the words" * 3, **way
        ),
        draw_arcs(
            FOX, list(range(len(FOX))), gold=FOX_HEADS, tags=["a tag wider than words"] * 9, **way
        ),
        draw_brackets(FOX, [(0, 1, "a label wider than two words")], **way),
    ]
    assert len({tuple(places(picture)) for picture in pictures}) > 1
    aligned = align_pictures(pictures)
    assert len({tuple(places(picture)) for picture in aligned}) == 1
    assert len({picture.width for picture in aligned}) == 1
    assert [picture.title for picture in aligned] == [picture.title for picture in pictures]
    assert places(stack_pictures(pictures)) == 4 * places(aligned[0])


def test_trees_of_other_words_stay_as_they_are() -> None:
    pictures = [draw_arcs(["Hi"], [0]), draw_arcs(FOX, FOX_HEADS), Picture(1, 1, "", "", "")]
    assert align_pictures(pictures) == pictures
