"""Every backend against the enumeration of all trees, n ≤ 5: nothing shared but the definition."""

import oracle
import pytest
import torch
from tolerances import EXACT, largest_error

from treelax import ops
from treelax.ops.dispatch import BACKENDS

CPU_BACKENDS = [b for b in BACKENDS if b != "triton"]  # Triton: test_triton.py
COUNTS = {False: (1, 3, 12, 55, 273), True: (1, 2, 7, 30, 143)}

every_backend = pytest.mark.parametrize("backend", CPU_BACKENDS)
both_roots = pytest.mark.parametrize("single_root", [False, True])
every_length = pytest.mark.parametrize("n", range(1, 6))


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
    assert (
        largest_error(
            ops.log_partition(scores, **options), oracle.log_partition(scores, single_root)
        )
        < EXACT
    )
    assert (
        largest_error(
            ops.soft_tree(scores, relaxation="entropy", **options),
            oracle.marginals(scores, single_root),
        )
        < EXACT
    )


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
