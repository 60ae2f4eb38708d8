"""Statistics of trees: two sentences counted by hand, and what holds for any trees."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import is_tree

from treelax.errors import InputError
from treelax.lab.analysis.grammar import grammar
from treelax.lab.analysis.roles import roles
from treelax.lab.analysis.shapes import depths, subtrees

PLAIN = (2, 3, 0, 3)  # the dog barks loudly
CROSSING = (0, 1, 1, 2)  # the arc from 2 to 4 crosses that from 1 to 3
CIRCLE = (2, 1, 0)
Heads = tuple[int, ...]


@st.composite
def any_heads(draw: st.DrawFn) -> Heads:
    """Heads in range, which need not form a tree."""
    n = draw(st.integers(1, 6))
    return tuple(draw(st.integers(0, n).filter(lambda h, w=w: h != w)) for w in range(1, n + 1))


@given(any_heads())
def test_a_tree_has_depths_and_no_other_heads_have(heads: Heads) -> None:
    depth = depths(heads)
    assert (depth is not None) == is_tree(heads)
    if depth is not None:
        for word, head in enumerate(heads, 1):
            assert depth[word - 1] == (depth[head - 1] + 1 if head else 1)


def test_subtrees_by_hand() -> None:
    spans = subtrees(CROSSING)
    assert spans is not None
    assert [(span.size, span.first, span.last, span.contiguous) for span in spans] == [
        *((4, 1, 4, True), (2, 2, 4, False), (1, 3, 3, True), (1, 4, 4, True))
    ]
    assert subtrees(CIRCLE) is None


@pytest.mark.parametrize(
    ("trees", "what"),
    [
        ([], "trees: received none; expected at least one"),
        ([()], "trees: sentence 1: received no words; expected at least one"),
        ([(0,), (1,)], "sentence 2, word 1: received head 1; expected 0 to 1, not 1 itself"),
    ],
)
def test_heads_that_are_refused(trees: list[Heads], what: str) -> None:
    with pytest.raises(InputError, match=what):
        grammar(trees)


def test_two_sentences_counted_by_hand() -> None:
    assert asdict(grammar([PLAIN, CROSSING])) == {
        **{"sentences": 2, "words": 8, "arcs": 6, "tree_share": 100, "projective": 50},
        **{"left_to_right": 400 / 6, "previous": 25, "next": 25},
        **{"mean_arc_length": 8 / 6, "median_arc_length": 1, "arc_lengths": {1: 4, 2: 2}},
        **{"mean_depth": 3, "depths": {3: 2}},
        **{"mean_roots": 1, "single_root": 100, "root_counts": {1: 2}},
        **{"leaves": 50, "mean_modifiers": 1.5, "one_modifier": 50, "both_sides": 25},
        **{"modifiers": {0: 4, 1: 2, 2: 2}, "left_modifiers": {0: 6, 1: 2}},
        "right_modifiers": {0: 5, 1: 2, 2: 1},
        **{"mean_subtree_size": 3, "contiguous": 75, "initial": 50, "final": 25},
        "subtree_sizes": {1: 4, 2: 2, 4: 2},
        **{"mean_runs": 3, "mean_run_length": 8 / 6, "run_lengths": {1: 4, 2: 2}},
    }


def test_heads_that_go_round_have_no_depth() -> None:
    circle = grammar([CIRCLE, (0,)])
    assert (circle.tree_share, circle.projective) == (50, 50)
    assert (circle.depths, circle.subtree_sizes) == ({1: 1}, {1: 1})
    assert (circle.arcs, circle.left_to_right, circle.contiguous) == (2, 50, None)


def test_roles_by_hand() -> None:
    words = [("the", "dog", "barks", "loudly"), ("the", "cat", "the", "end")]
    rows = {role.name: role for role in roles(words, [PLAIN, CROSSING])}
    assert list(rows) == ["the", "barks", "cat", "dog", "end", "loudly"]
    the, barks, cat = (rows[name] for name in ("the", "barks", "cat"))
    assert (the.times, the.modifiers, the.mean_modifiers) == (3, 2, pytest.approx(2 / 3))
    third = pytest.approx(100 / 3)
    # to the left the head of the third word of the second sentence
    assert (the.heads, 100 - the.leaves, the.roots, the.left_heads) == (third,) * 4
    assert (barks.modifiers, barks.heads, barks.roots) == (2, 100, 100)
    assert (barks.usual_head, barks.usual) == ("root", 100)
    assert (cat.usual_head, cat.usual, cat.left_heads) == ("the", 100, 100)
