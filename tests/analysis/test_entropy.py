"""The entropy of trees: against the enumeration of all trees, and summed up by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracle import all_trees, indicators

from treelax.lab.analysis.entropy import TreeEntropy, entropy_summary, tree_entropies
from treelax.structures import Heads, Projective


@pytest.mark.parametrize("single_root", [False, True])
@given(n=st.integers(1, 5), seed=st.integers(0, 9), scale=st.sampled_from([0.0, 1.0, 10.0]))
def test_of_projective_trees(single_root: bool, n: int, seed: int, scale: float) -> None:
    """As a sum over all trees; padding changes nothing."""
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(2, n + 3, n + 3, generator=generator)
    computed, _ = tree_entropies(scores, torch.tensor([n, n + 2]), Projective(single_root))
    heads, trees = all_trees(n, single_root), indicators(n, single_root)
    shares = (trees * scores[0, : n + 1, : n + 1]).sum((-2, -1)).softmax(-1)
    assert computed.vertices == n
    entropy = float(-torch.special.xlogy(shares, shares).sum())
    assert computed.entropy == pytest.approx(entropy, abs=1e-9)
    assert computed.greatest == pytest.approx(math.log(len(heads)))
    best = heads[int(shares.argmax())]
    if shares.max() > shares.sort().values[-2:][0]:  # or any of the best would do
        arcs = (heads == best).double().T @ shares
        assert computed.best_arcs == pytest.approx(100 * float(arcs.mean()))


def test_of_heads_that_words_choose_alone() -> None:
    """Word 1 takes the root or word 2 with equal chance, word 2 the root with chance 3 of 4."""
    scores = torch.zeros(1, 3, 3)
    scores[0, 0, 2] = math.log(3.0)
    [two] = tree_entropies(scores, torch.tensor([2]), Heads())
    second = 0.75 * math.log(4 / 3) + 0.25 * math.log(4)
    assert two.entropy == pytest.approx(math.log(2) + second, rel=1e-6)
    assert two.greatest == pytest.approx(2 * math.log(2))
    assert two.best_arcs == pytest.approx(100 * (0.5 + 0.75) / 2, rel=1e-6)
    [one] = tree_entropies(torch.zeros(1, 2, 2), torch.tensor([1]), Heads())
    assert (str(one.entropy), one.greatest) == ("0.0", 0)  # and not -0.0


def test_totals_by_hand() -> None:
    """Every word counts the same, in all figures."""
    total = entropy_summary([TreeEntropy(4, 2.0, 4.0, 50.0), TreeEntropy(1, 0.0, 0.0, 100.0)])
    assert (total.entropy, total.per_word, total.relative) == (1, 0.4, 50)
    assert total.best_arcs == pytest.approx((4 * 50 + 100) / 5)
    assert entropy_summary([TreeEntropy(1, 0.0, 0.0, 100.0)]).relative is None
