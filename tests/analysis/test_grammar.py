"""Statistics of trees: two sentences counted by hand, and what holds for any trees."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracle import is_projective, is_tree

from treelax.analysis.baselines import chain_trees, random_trees
from treelax.analysis.grammar import DISTRIBUTIONS, grammar
from treelax.analysis.roles import roles
from treelax.analysis.shapes import check_heads, check_same_words, depths, subtrees
from treelax.errors import InputError

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


@given(any_heads())
def test_a_tree_is_projective_if_all_its_subtrees_are_contiguous(heads: tuple[int, ...]) -> None:
    spans = subtrees(heads)
    if spans is not None:
        assert all(span.contiguous for span in spans) == is_projective(heads)
        roots = [span.size for span, head in zip(spans, heads, strict=True) if head == 0]
        assert sum(roots) == len(heads)


@pytest.mark.parametrize(
    ("trees", "what"),
    [
        ([], "trees: received none; expected at least one"),
        ([(0,), ()], "trees: sentence 2: received no words; expected at least one"),
        ([(0, 3)], "sentence 1, word 2: received head 3; expected 0 to 2, not 2 itself"),
        ([(0,), (1,)], "sentence 2, word 1: received head 1; expected 0 to 1, not 1 itself"),
        ([(-1,)], "received head -1"),
    ],
)
def test_heads_that_are_refused(trees: list[tuple[int, ...]], what: str) -> None:
    with pytest.raises(InputError, match=what.replace("(", r"\(")):
        check_heads(trees)
    with pytest.raises(InputError):
        grammar(trees)


def test_sentences_that_do_not_match_are_refused() -> None:
    with pytest.raises(InputError, match="tags: received 1 sentences; expected 2"):
        check_same_words("tags", [("a",)], [(0,), (0,)])
    with pytest.raises(InputError, match="tags: sentence 2: received 1; expected 2"):
        check_same_words("tags", [("a",), ("a",)], [(0,), (0, 1)])


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


def test_single_words_have_no_arcs() -> None:
    found = grammar([(0,), (0,)])
    assert found.arcs == 0
    nothing = ("left_to_right", "mean_arc_length", "median_arc_length", "mean_modifiers")
    assert [getattr(found, name) for name in nothing] == [None] * 4
    assert (found.mean_depth, found.leaves, found.mean_runs) == (1, 100, 1)


def test_chains() -> None:
    right, left = (grammar(chain_trees([4, 2], way)) for way in ("left-to-right", "right-to-left"))
    assert (right.left_to_right, left.left_to_right) == (100, 0)
    assert (right.run_lengths, left.run_lengths) == ({2: 1, 4: 1}, {1: 6})
    assert right.depths == left.depths == {2: 1, 4: 1}
    assert (right.initial, left.final) == (100, 100)
    assert (right.previous, left.next) == (pytest.approx(400 / 6), pytest.approx(400 / 6))


@given(st.lists(any_heads(), min_size=1, max_size=5))
def test_what_holds_for_all_heads(trees: list[tuple[int, ...]]) -> None:
    found = grammar(trees)
    assert found.words == found.arcs + sum(k * c for k, c in found.root_counts.items())
    totals = {name: sum(getattr(found, name).values()) for name in DISTRIBUTIONS}
    assert totals["arc_lengths"] == found.arcs
    assert totals["root_counts"] == found.sentences
    for name in ("modifiers", "left_modifiers", "right_modifiers"):
        assert totals[name] == found.words
    assert sum(k * c for k, c in found.modifiers.items()) == found.arcs
    assert sum(k * c for k, c in found.run_lengths.items()) == found.words
    assert totals["depths"] == pytest.approx(found.tree_share * found.sentences / 100)
    assert found.projective <= found.tree_share <= 100


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 9))
def test_turned_round_every_tree_runs_the_other_way(lengths: list[int], seed: int) -> None:
    trees = random_trees(lengths, generator=torch.Generator().manual_seed(seed))
    turned = [
        tuple(len(heads) + 1 - head if head else 0 for head in reversed(heads)) for heads in trees
    ]
    found, other = grammar(trees), grammar(turned)
    assert found.projective == other.projective == 100
    if found.left_to_right is not None:
        assert found.left_to_right + (other.left_to_right or 0) == pytest.approx(100)
    assert (found.left_modifiers, found.depths) == (other.right_modifiers, other.depths)
    assert (found.initial, found.final) == (other.final, other.initial)
    assert (found.previous, found.next) == (
        pytest.approx(other.next),
        pytest.approx(other.previous),
    )


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


def test_roles_are_cut_and_a_word_root_is_a_word() -> None:
    [only] = roles([("root", "of")], [(0, 1)], most=1)
    assert (only.name, only.usual_head) == ("root", "root")
    both = roles([("root", "of")], [(0, 1)])
    assert (both[1].usual_head, both[1].roots) == ("root", 0)


@given(st.lists(any_heads(), min_size=1, max_size=5))
def test_roles_add_up_to_the_grammar(trees: list[tuple[int, ...]]) -> None:
    names = [tuple("ab"[i % 2] for i in range(len(heads))) for heads in trees]
    found, whole = roles(names, trees), grammar(trees)
    assert sum(role.times for role in found) == whole.words
    assert sum(role.modifiers for role in found) == whole.arcs
    leaves = sum(role.leaves * role.times for role in found)
    assert leaves == pytest.approx(whole.leaves * whole.words)
