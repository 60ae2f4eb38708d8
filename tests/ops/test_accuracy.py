"""float32 against float64: the bars of accuracy.

The float64 answers come from the C++ kernel in float64, which test_backends.py holds against the
reference; ``benchmarks/run.py accuracy`` repeats the figures against the reference itself.
"""

import math

import pytest
import torch
from tolerances import GRADIENT_F32, VALUE_F32, largest_error

from treelax import ops


def both(scores, relaxation, backend):
    """Tree and gradient in float64 and in float32 of the given backend."""
    weight = torch.randn(scores.shape, generator=torch.Generator().manual_seed(1))
    results = []
    for dtype, name in ((torch.float64, "native"), (torch.float32, backend)):
        s = scores.to(dtype).requires_grad_()
        tree = ops.soft_tree(s, relaxation=relaxation, backend=name)
        results.append((tree.detach(), torch.autograd.grad(tree, s, weight.to(dtype))[0]))
    return results


@pytest.mark.parametrize("backend", ["native", "diagonal"])
@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
@pytest.mark.parametrize("scale", [1, 10])
@pytest.mark.parametrize("n", [20, 80])
def test_float32(n, scale, relaxation, backend):
    scores = scale * torch.randn(8, n + 1, n + 1, generator=torch.Generator().manual_seed(n))
    (tree, grad), (tree32, grad32) = both(scores, relaxation, backend)
    assert largest_error(tree32, tree) < VALUE_F32
    largest = float(grad.abs().max())
    assert float((grad32 - grad).abs().max()) / largest < GRADIENT_F32


@pytest.mark.parametrize("backend", ["native", "diagonal"])
@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
def test_sums_at_scale_100(relaxation, backend):
    scores = 100 * torch.randn(8, 81, 81, generator=torch.Generator().manual_seed(3))
    tree = ops.soft_tree(scores, relaxation=relaxation, backend=backend)
    assert largest_error(tree.sum(-2)[:, 1:], torch.ones(8, 80)) < 1e-5


@pytest.mark.parametrize("backend", ["native", "diagonal"])
def test_log_partition_in_float32(backend):
    """Relative to the value, which is in the thousands here."""
    scores = 10 * torch.randn(8, 81, 81, generator=torch.Generator().manual_seed(4))
    expected = ops.log_partition(scores.double())
    got = ops.log_partition(scores, backend=backend)
    assert largest_error(got, expected) < 1e-6


@pytest.mark.parametrize("offset", [-20, -1000, -10_000])
def test_a_longer_neighbour_costs_no_digits(offset):
    """Beyond a sentence's own length a lane holds no scores: columns below 0 are centred too."""
    scores = torch.randn(2, 32, 32, generator=torch.Generator().manual_seed(7)) + offset
    scores[1] -= offset
    lengths = torch.tensor([30, 31])
    s, exact = scores.clone().requires_grad_(), scores.double().requires_grad_()
    tree, expected = ops.soft_tree(s, lengths), ops.soft_tree(exact, lengths)
    assert torch.equal(tree[0], ops.soft_tree(s[:1], lengths[:1])[0])
    assert largest_error(tree[0].detach(), expected[0].detach()) < 1e-6
    grads = (torch.autograd.grad(t.square().sum(), x)[0] for t, x in ((tree, s), (expected, exact)))
    assert largest_error(*grads) < 1e-5


@pytest.mark.parametrize("backend", ["reference", "diagonal", "native"])
def test_scores_beyond_the_limit_count_as_the_limit(backend):
    scores = torch.zeros(1, 4, 4)
    scores[0, 0, 1] = 3e38
    assert ops.log_partition(scores, backend=backend).item() == pytest.approx(1e30)
    for large in (1e15, 1e31, 1e300):  # two trees of score 0
        scores = torch.full((3, 3), -large, dtype=torch.float64)
        scores[0, 1] = large
        assert ops.log_partition(scores, backend=backend).item() == pytest.approx(math.log(2))


def test_centring_is_used_where_it_is_needed_only():
    """A lane decides for itself: its bits do not depend on a neighbour that needs centring."""
    calm = torch.randn(1, 21, 21, generator=torch.Generator().manual_seed(5))
    wild = 100 * torch.randn(1, 21, 21, generator=torch.Generator().manual_seed(6))
    for relaxation in ("softmax", "entropy"):
        pair = ops.soft_tree(torch.cat((calm, wild)), relaxation=relaxation)
        assert torch.equal(pair[:1], ops.soft_tree(calm, relaxation=relaxation))
        assert torch.equal(pair[1:], ops.soft_tree(wild, relaxation=relaxation))
