"""Statistics of trees: two sentences counted by hand, and what holds for any trees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import is_tree

from treelax.errors import InputError
from treelax.lab.analysis.grammar import grammar
from treelax.lab.analysis.roles import roles
from treelax.lab.analysis.shapes import check_heads, depths, subtrees

PLAIN = (2, 3, 0, 3)  # the dog barks loudly
CROSSING = (0, 1, 1, 2)  # the arc from 2 to 4 crosses that from 1 to 3
CIRCLE = (2, 1, 0)


@st.composite
def any_heads(draw: st.DrawFn) -> tuple[int, ...]:
    """Heads in range, which need not form a tree."""
    n = draw(st.integers(1, 6))
    heads = [draw(st.integers(0, n).filter(lambda h, w=w: h != w)) for w in range(1, n + 1)]
    return tuple(heads)


# ------------------------------------------------------------------ one tree


def test_depths_and_subtrees_by_hand() -> None:
    assert depths(PLAIN) == [3, 2, 1, 2]
    assert depths(CROSSING) == [1, 2, 2, 3]
    assert depths(CIRCLE) is None
    spans = subtrees(CROSSING)
    assert spans is not None
    assert [(span.size, span.first, span.last) for span in spans] == [
        *((4, 1, 4), (2, 2, 4), (1, 3, 3), (1, 4, 4))
    ]
    assert [span.contiguous for span in spans] == [True, False, True, True]
    assert subtrees(CIRCLE) is None


@given(any_heads())
def test_a_tree_has_depths_and_no_other_heads_have(heads: tuple[int, ...]) -> None:
    found = depths(heads)
    assert (found is not None) == is_tree(heads)
    if found is not None:
        for word, head in enumerate(heads, 1):
            assert found[word - 1] == (found[head - 1] + 1 if head else 1)


@pytest.mark.parametrize(
    ("trees", "what"),
    [
        ([], "trees: received none; expected at least one"),
        ([(0,), (1,)], "sentence 2, word 1: received head 1; expected 0 to 1, not 1 itself"),
    ],
)
def test_heads_that_are_refused(trees: list[tuple[int, ...]], what: str) -> None:
    with pytest.raises(InputError, match=what.replace("(", r"\(")):
        check_heads(trees)
    with pytest.raises(InputError):
        grammar(trees)


# ------------------------------------------------------------------ many trees


def test_two_sentences_counted_by_hand() -> None:
    found = grammar([PLAIN, CROSSING])
    assert (found.sentences, found.words, found.arcs) == (2, 8, 6)
    assert found.left_to_right == pytest.approx(100 * 4 / 6)
    assert (found.previous, found.next) == (25, 25)
    assert found.arc_lengths == {1: 4, 2: 2}
    assert found.mean_arc_length == pytest.approx(8 / 6)
    assert found.median_arc_length == 1
    assert found.depths == {3: 2}
    assert found.mean_depth == 3
    assert found.root_counts == {1: 2}
    assert (found.mean_roots, found.single_root) == (1, 100)
    assert found.modifiers == {0: 4, 1: 2, 2: 2}
    assert found.left_modifiers == {0: 6, 1: 2}
    assert found.right_modifiers == {0: 5, 1: 2, 2: 1}
    assert (found.leaves, found.mean_modifiers, found.one_modifier) == (50, 1.5, 50)
    assert found.both_sides == 25
    assert found.subtree_sizes == {1: 4, 2: 2, 4: 2}
    assert (found.mean_subtree_size, found.contiguous) == (3, 75)
    assert (found.initial, found.final) == (50, 25)
    assert (found.tree_share, found.projective) == (100, 50)
    assert found.run_lengths == {1: 4, 2: 2}
    assert (found.mean_runs, found.mean_run_length) == (3, pytest.approx(8 / 6))


def test_heads_that_go_round_have_no_depth() -> None:
    found = grammar([CIRCLE, (0,)])
    assert (found.tree_share, found.projective) == (50, 50)
    assert found.depths == {1: 1}
    assert found.subtree_sizes == {1: 1}
    assert (found.arcs, found.left_to_right) == (2, 50)
    assert found.contiguous is None


# ------------------------------------------------------------------ words and tags


def test_roles_by_hand() -> None:
    words = [("the", "dog", "barks", "loudly"), ("the", "cat", "the", "end")]
    first, second, *others = roles(words, [PLAIN, CROSSING])
    assert [role.name for role in (first, second, *others)] == [
        *("the", "barks", "cat", "dog", "end", "loudly")
    ]
    assert (first.times, first.modifiers) == (3, 2)
    assert (first.heads, first.leaves) == (pytest.approx(100 / 3), pytest.approx(200 / 3))
    assert first.roots == pytest.approx(100 / 3)
    assert first.left_heads == pytest.approx(100 / 3)  # the third word of the second sentence
    assert first.mean_modifiers == pytest.approx(2 / 3)
    assert (second.modifiers, second.heads, second.roots) == (2, 100, 100)
    assert (second.usual_head, second.usual) == ("root", 100)
    cat = others[0]
    assert (cat.usual_head, cat.usual, cat.left_heads) == ("the", 100, 100)
