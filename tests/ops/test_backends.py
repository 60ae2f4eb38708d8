"""Every backend against the reference: values and every gradient.

The reference has its gradients from autograd through plain loops, so it shares no derivation with the
hand-written backward passes.
"""

import functools

import pytest
import torch
from tolerances import gradient_tolerance, largest_error, value_tolerance

from treelax import ops
from treelax.ops import native
from treelax.ops.eisner import reference

SIZES = (1, 2, 3, 5, 17, 33)
RELAXATIONS = ("softmax", "entropy")
CASES = [(n, r, s) for n in SIZES if n <= 17 for r in RELAXATIONS for s in (False, True)]
# the loops take seconds here, so each relaxation meets one root rule
CASES += [
    (n, r, s) for n in SIZES if n > 17 for r, s in zip(RELAXATIONS, (False, True), strict=True)
]
# each instruction set of the C++ kernel that this processor runs counts as a backend
FAST = ["diagonal", *(f"native-{variant}" for variant in native.supported())]

every_case = pytest.mark.parametrize(("n", "relaxation", "single_root"), CASES)
every_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


@pytest.fixture(params=FAST)
def backend(request, monkeypatch):
    """A fast backend."""
    name, _, variant = request.param.partition("-")
    monkeypatch.setenv("TREELAX_NATIVE", variant)
    native.forget()
    yield name
    native.forget()


class Problem:
    """A batch with ragged lengths and upstream gradients, with the reference's answers."""

    def __init__(self, n: int, relaxation: str, single_root: bool) -> None:
        generator = torch.Generator().manual_seed(n)
        batch = 19 if n <= 5 else 5 if n <= 17 else 2  # 19: more than one group of lanes
        shape = (batch, n + 1, n + 1)
        self.scores = 2 * torch.randn(shape, dtype=torch.float64, generator=generator)
        self.lengths = torch.randint(1, n + 1, (batch,), generator=generator)
        self.lengths[0] = n
        self.grad_tree = torch.randn(shape, dtype=torch.float64, generator=generator)
        self.grad_value = torch.randn(batch, dtype=torch.float64, generator=generator)
        options = (self.lengths, relaxation, single_root)
        self.tree, self.value, saved = reference.soft_tree(self.scores, *options, True)
        self.grad = reference.soft_tree_backward(self.grad_tree, self.grad_value, saved, *options)


problem = functools.cache(Problem)


@functools.cache
def best(n: int, single_root: bool) -> tuple[Problem, torch.Tensor]:
    p = problem(n, "softmax", single_root and n <= 17)
    return p, reference.best_tree(p.scores, p.lengths, single_root)[0]


@every_dtype
@every_case
def test_soft_tree_and_gradient(n, relaxation, single_root, dtype, backend):
    p = problem(n, relaxation, single_root)
    scores = p.scores.to(dtype).requires_grad_()
    tree, value, _ = torch.ops.treelax.soft_tree(
        scores, p.lengths, "eisner", relaxation, single_root, backend, True, True
    )
    assert tree.dtype == dtype
    assert largest_error(tree.detach(), p.tree) < value_tolerance(dtype)
    assert largest_error(value.detach(), p.value) < value_tolerance(dtype)
    (grad,) = torch.autograd.grad(
        (tree, value), scores, (p.grad_tree.to(dtype), p.grad_value.to(dtype))
    )
    assert largest_error(grad, p.grad) < gradient_tolerance(dtype)
    outside = p.tree == 0
    assert torch.all(grad[outside & (p.grad == 0)] == 0)
    assert torch.all(tree[outside] == 0)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("single_root", [False, True])
def test_best_tree(n, single_root, backend):
    p, expected = best(n, single_root)
    got = ops.best_tree(p.scores, p.lengths, single_root=single_root, backend=backend)
    assert torch.equal(got, expected)


@pytest.mark.parametrize("n", [1, 2, 5, 17])
@pytest.mark.parametrize("single_root", [False, True])
def test_samples_for_the_same_uniforms(n, single_root, backend, generator):
    p = problem(n, "entropy", single_root)
    uniforms = torch.rand(4, len(p.lengths), 2 * n, dtype=torch.float64, generator=generator)
    uniforms[0] = 1 - 1e-16  # rounding may leave it above every cumulative sum
    uniforms[1] = 0
    expected, _ = reference.sample_tree(p.scores, p.lengths, uniforms, single_root)
    options = (uniforms, "eisner", "entropy", single_root, backend, True)
    got = torch.ops.treelax.sample_tree(p.scores, p.lengths, *options)
    assert torch.equal(got, expected)


@pytest.mark.parametrize("n", [1, 5, 17, 33])
def test_log_partition_and_gradient(n, backend):
    p = problem(n, "entropy", n > 17)
    scores = p.scores.clone().requires_grad_()
    value = ops.log_partition(scores, p.lengths, single_root=n > 17, backend=backend)
    assert largest_error(value.detach(), p.value) < value_tolerance(torch.float64)
    (grad,) = torch.autograd.grad(value, scores, p.grad_value)
    assert largest_error(grad, p.grad_value[:, None, None] * p.tree) < value_tolerance(
        torch.float64
    )
    with torch.no_grad():
        again = ops.log_partition(scores, p.lengths, single_root=n > 17, backend=backend)
    assert largest_error(again, value.detach()) < 1e-14


@functools.cache
def ties(single_root: bool) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Whole numbers, so that every sum is exact and many trees score the same; all of them at last."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for n, low, high in ((3, -2, 3), (7, -2, 3), (7, 2_000_000, 2_000_004), (17, 0, 1)):
        scores = torch.randint(low, high, (200, n + 1, n + 1), generator=generator).float()
        lengths = torch.full((200,), n)
        found.append((scores, reference.best_tree(scores, lengths, single_root)[0]))
    return found


@pytest.mark.parametrize("single_root", [False, True])
def test_ties_go_to_the_smallest_split(single_root, backend):
    for scores, expected in ties(single_root):
        got = ops.best_tree(scores, single_root=single_root, backend=backend)
        assert torch.equal(got, expected)
