"""Every backend against the enumeration of all trees, n ≤ 5: nothing shared but the definition."""

import math

import oracle
import pytest
import torch
from tolerances import EXACT, largest_error

from treelax import ops
from treelax.ops.dispatch import BACKENDS

CPU_BACKENDS = [b for b in BACKENDS if b not in ("triton", "cuda")]  # tests of their own
COUNTS = {False: (1, 3, 12, 55, 273), True: (1, 2, 7, 30, 143)}

every_backend = pytest.mark.parametrize("backend", CPU_BACKENDS)
both_roots = pytest.mark.parametrize("single_root", [False, True])
every_length = pytest.mark.parametrize("n", range(1, 6))


# ── the enumeration itself ───────────────────────────────────────────────────────────────────────


@both_roots
def test_number_of_trees(single_root):
    for n, count in enumerate(COUNTS[single_root], 1):
        trees = oracle.all_trees(n, single_root)
        assert trees.shape == trees.unique(dim=0).shape == (count, n)


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
def test_naive_definitions(heads, tree, projective):
    assert oracle.is_tree(heads) is tree
    assert oracle.is_projective(heads) is projective


def test_two_words_by_hand():
    """The third word is padding, which is not read."""
    scores = torch.full((4, 4), torch.nan)
    scores[0, 1], scores[0, 2], scores[1, 2], scores[2, 1] = 1.0, 2.0, 3.0, 4.0
    weights = [math.exp(1 + 2), math.exp(1 + 3), math.exp(4 + 2)]
    total = sum(weights)
    assert oracle.log_partition(scores, length=2).item() == pytest.approx(math.log(total))
    expected = [w / total for w in weights]
    assert oracle.probabilities(scores, length=2).tolist() == pytest.approx(expected)
    arcs = oracle.marginals(scores, length=2)
    assert arcs[0, 1].item() == pytest.approx((weights[0] + weights[1]) / total)
    assert arcs[2, 1].item() == pytest.approx(weights[2] / total)
    tree, value = oracle.best(scores, length=2)
    assert value.item() == 6
    assert tree.nonzero().tolist() == [[0, 2], [2, 1]]


# ── the backends ─────────────────────────────────────────────────────────────────────────────────


def random_scores(n: int, generator: torch.Generator, batch: int = 3) -> torch.Tensor:
    return 2 * torch.randn(batch, n + 1, n + 1, dtype=torch.float64, generator=generator)


@every_backend
@both_roots
@every_length
def test_counts_of_trees(n, single_root, backend):
    zero = torch.zeros(n + 1, n + 1, dtype=torch.float64)
    count = ops.log_partition(zero, single_root=single_root, backend=backend).exp()
    assert float(count) == pytest.approx(COUNTS[single_root][n - 1], abs=1e-9)


@every_backend
@both_roots
@every_length
def test_log_partition_and_marginals(n, single_root, backend, generator):
    scores = random_scores(n, generator)
    options = {"single_root": single_root, "backend": backend}
    value = ops.log_partition(scores, **options)
    assert largest_error(value, oracle.log_partition(scores, single_root)) < EXACT
    marginals = ops.soft_tree(scores, relaxation="entropy", **options)
    assert largest_error(marginals, oracle.marginals(scores, single_root)) < EXACT


@every_backend
@both_roots
@every_length
def test_best_tree(n, single_root, backend, generator):
    scores = random_scores(n, generator, batch=8)
    tree, _ = oracle.best(scores, single_root)
    assert torch.equal(ops.best_tree(scores, single_root=single_root, backend=backend), tree)


@every_backend
@both_roots
@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
def test_cold_relaxations_are_the_best_tree(relaxation, single_root, backend, generator):
    scores = random_scores(5, generator, batch=8)
    tree, _ = oracle.best(scores, single_root)
    soft = ops.soft_tree(
        scores, relaxation=relaxation, temperature=1e-3, single_root=single_root, backend=backend
    )
    assert largest_error(soft, tree) < EXACT


@every_backend
def test_forbidden_arcs_carry_no_weight(backend, generator):
    """With -inf the sums run over the trees without the arc, and its gradient is 0."""
    scores = random_scores(4, generator)
    scores[:, 2, 3] = -torch.inf
    scores[:, 0, 1] = -torch.inf
    scores.requires_grad_()
    marginals = ops.soft_tree(scores, relaxation="entropy", backend=backend)
    (grad,) = torch.autograd.grad(marginals.square().sum(), scores)
    marginals = marginals.detach()
    assert largest_error(marginals, oracle.marginals(scores.detach())) < EXACT
    assert float(marginals[:, 2, 3].sum() + marginals[:, 0, 1].sum()) == 0
    assert torch.isfinite(grad).all()
    assert float(grad[:, 2, 3].abs().sum() + grad[:, 0, 1].abs().sum()) == 0
