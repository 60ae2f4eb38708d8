"""The oracle itself: counts known in closed form, and cases worked out by hand."""

from __future__ import annotations

import math

import oracle
import pytest
import torch


@pytest.mark.parametrize(
    ("single_root", "counts"),
    [(False, [1, 3, 12, 55, 273, 1428]), (True, [1, 2, 7, 30, 143, 728])],
)
def test_number_of_trees(single_root: bool, counts: list[int]) -> None:
    for n, count in enumerate(counts, 1):
        trees = oracle.all_trees(n, single_root)
        assert trees.shape == (count, n)
        assert len(trees.unique(dim=0)) == count


@pytest.mark.parametrize(
    ("heads", "tree", "projective"),
    [
        ((2, 0, 2), True, True),
        ((2, 1, 0), False, False),  # a cycle 1 → 2 → 1, spanned by the arc to 3
        ((1,), False, True),  # its own head
        ((3, 0, 2), True, False),  # 3 → 1 spans 2, the head of 3
        ((0, 4, 4, 0), True, True),
        ((0, 4, 0, 3), True, False),  # 4 → 2 spans 3, the head of 4
        ((3, 0, 0), True, False),  # 3 → 1 spans 2, which hangs off the root
    ],
)
def test_naive_definitions(heads: tuple[int, ...], tree: bool, projective: bool) -> None:
    assert oracle.is_tree(heads) is tree
    assert oracle.is_projective(heads) is projective


def test_two_words_by_hand() -> None:
    scores = torch.zeros(3, 3)
    scores[0, 1], scores[0, 2], scores[1, 2], scores[2, 1] = 1.0, 2.0, 3.0, 4.0
    weights = [math.exp(1 + 2), math.exp(1 + 3), math.exp(4 + 2)]
    total = sum(weights)
    assert oracle.log_partition(scores).item() == pytest.approx(math.log(total), rel=1e-12)
    assert oracle.probabilities(scores).tolist() == pytest.approx([w / total for w in weights])
    arcs = oracle.marginals(scores)
    assert arcs[0, 1].item() == pytest.approx((weights[0] + weights[1]) / total, rel=1e-12)
    assert arcs[2, 1].item() == pytest.approx(weights[2] / total, rel=1e-12)
    tree, value = oracle.best(scores)
    assert value.item() == 6
    assert tree.nonzero().tolist() == [[0, 2], [2, 1]]


@pytest.mark.parametrize("single_root", [False, True])
def test_marginals_are_the_gradient_of_the_log_partition(single_root: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 3, 5, 5, dtype=torch.float64, generator=generator, requires_grad=True)
    (gradient,) = torch.autograd.grad(oracle.log_partition(scores, single_root).sum(), scores)
    arcs = oracle.marginals(scores, single_root)
    torch.testing.assert_close(arcs, gradient, rtol=0, atol=1e-12)
    torch.testing.assert_close(arcs.sum(-2)[..., 1:], torch.ones(2, 3, 4, dtype=torch.float64))


def test_a_short_sentence_reads_nothing_beyond_its_length() -> None:
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    short = scores[:3, :3]
    scores[3:], scores[:, 3:] = math.nan, math.nan
    assert oracle.log_partition(scores, length=2) == oracle.log_partition(short)
    assert torch.equal(oracle.marginals(scores, length=2)[:3, :3], oracle.marginals(short))
    tree, _ = oracle.best(scores, length=2)
    assert tree.shape == (5, 5)
    assert tree.sum() == 2
