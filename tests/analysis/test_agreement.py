"""Agreement of trees: by hand, by enumeration of all trees, and what holds for any trees."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracle import all_trees

from treelax.errors import InputError
from treelax.lab.analysis.agreement import agreement, by_tag, pairwise_agreement
from treelax.lab.analysis.baselines import chain_trees, random_agreement, random_trees

GOLD = (2, 3, 0, 3)


def drawn(lengths: list[int], seed: int = 0, single_root: bool = False) -> list[tuple[int, ...]]:
    generator = torch.Generator().manual_seed(seed)
    return random_trees(lengths, generator=generator, single_root=single_root)


def test_attachment_by_hand() -> None:
    """Of the first sentence word 2 is right, and its edge is the only one that is found."""
    some = agreement([(0, 3, 1, 1), (0,)], [GOLD, (0,)])
    assert (some.words, some.right, some.uas, some.exact_trees) == (5, 2, 40, 50)
    assert (some.edges, some.found) == (3, 1)  # of (1, 2), (2, 3) and (3, 4) the second
    assert some.uuas == pytest.approx(100 / 3)
    # undirected attachment forgets the direction
    chains = agreement(chain_trees([4]), chain_trees([4], "right-to-left"))
    assert (chains.uas, chains.uuas) == (0, 100)
    # without word 4 the head of word 1 is wrong; the edge of word 4 is not asked for
    chosen = agreement([(3, 3, 0, 1)], [GOLD], keep=[[True, True, True, False]])
    assert (chosen.words, chosen.right, chosen.edges, chosen.found) == (3, 2, 2, 1)
    nothing = agreement([(0,)], [(0,)], keep=[[False]])
    assert (nothing.uas, nothing.uuas, nothing.exact_trees) == (None, None, None)


def test_by_tag_by_hand() -> None:
    tags = [("DET", "NOUN", "VERB", "NOUN")]
    tagged = by_tag(partial(agreement, [(2, 3, 0, 2)], [GOLD]), tags)
    assert [(tag, one.uas) for tag, one in tagged.items()] == [
        *(("NOUN", 50), ("DET", 100), ("VERB", 100))
    ]
    assert (tagged["VERB"].edges, tagged["VERB"].uuas) == (0, None)


def test_pairs_by_hand() -> None:
    """Two edges and one that both have: 2 · 1 of 3."""
    runs = {"a": [(0, 1, 2)], "b": [(0, 1, 0)], "c": [(0, 1, 2)]}
    pairs = pairwise_agreement(runs)
    assert [(pair.first, pair.second) for pair in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [pair.uas for pair in pairs] == [pytest.approx(200 / 3), 100, pytest.approx(200 / 3)]
    assert pairs[0].undirected == pytest.approx(200 / 3)
    assert [pair.exact for pair in pairs] == [0, 100, 0]
    assert pairwise_agreement({"a": [(0,)]}) == []


@pytest.mark.parametrize("gold", [[(0,), (0,)], [(0, 1)], [(2,)]])
def test_trees_that_cannot_be_compared(gold: list[tuple[int, ...]]) -> None:
    with pytest.raises(InputError):
        agreement([(0,)], gold)


@pytest.mark.parametrize("single_root", [False, True])
@given(n=st.integers(1, 5), seed=st.integers(0, 20), chosen=st.integers(1, 31))
def test_random_agreement_is_the_mean_over_all_trees(
    single_root: bool, n: int, seed: int, chosen: int
) -> None:
    """With some of the words, whichever they are."""
    gold = drawn([n], seed)
    keep = [[bool(chosen >> i & 1) for i in range(n)]]
    expected = random_agreement(gold, keep=keep, single_root=single_root)
    trees = [tuple(heads) for heads in all_trees(n, single_root).tolist()]
    alone = [agreement([tree], gold, keep=keep) for tree in trees]
    assert (expected.words, expected.edges) == (alone[0].words, alone[0].edges)
    assert expected.right == pytest.approx(sum(one.right for one in alone) / len(trees))
    assert expected.found == pytest.approx(sum(one.found for one in alone) / len(trees))
    if all(keep[0]):
        assert expected.exact == pytest.approx(sum(one.exact for one in alone) / len(trees))


@pytest.mark.parametrize("single_root", [False, True])
def test_random_trees_are_all_trees_and_equally_likely(single_root: bool) -> None:
    trees = drawn([3] * 3000 + [1], single_root=single_root)
    expected = {tuple(heads) for heads in all_trees(3, single_root).tolist()}
    assert set(trees[:-1]) == expected
    assert trees[-1] == (0,)
    share = 1 / len(expected)
    for tree in expected:
        # five standard deviations
        assert abs(trees.count(tree) / 3000 - share) < 5 * math.sqrt(share * (1 - share) / 3000)
