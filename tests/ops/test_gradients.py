"""Gradients by finite differences, the contract of torch.library, second derivatives."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.library import opcheck

from treelax import ops
from treelax.errors import ForwardModeError, InputError, SecondDerivativeError
from treelax.ops.dispatch import described

LENGTHS = torch.tensor([4, 2, 1])
every_backend = pytest.mark.parametrize("backend", ["reference", "diagonal", "native"])
fast_backends = pytest.mark.parametrize("backend", ["diagonal", "native"])
both_roots = pytest.mark.parametrize("single_root", [False, True])
both_relaxations = pytest.mark.parametrize("relaxation", ["softmax", "entropy"])


def some_scores(dtype=torch.float64, batch=3, n=4):
    generator = torch.Generator().manual_seed(8)
    return torch.randn(batch, n + 1, n + 1, dtype=dtype, generator=generator).requires_grad_()


@every_backend
@both_roots
@both_relaxations
def test_soft_tree_by_finite_differences(relaxation, single_root, backend):
    """The tree and the value of the chart."""
    n = 3 if backend == "reference" else 4  # the loops are slow
    options = (LENGTHS.clamp(max=n), "eisner", relaxation, single_root, backend, True, True)
    scores = some_scores(n=n)
    assert gradcheck(lambda s: torch.ops.treelax.soft_tree(s / 0.7, *options)[:2], scores)


@every_backend
@both_roots
def test_log_partition_by_finite_differences(single_root, backend):
    options = {"single_root": single_root, "backend": backend}
    assert gradcheck(lambda s: ops.log_partition(s, LENGTHS, **options), some_scores())


def test_select_heads_by_finite_differences():
    assert gradcheck(lambda s: ops.select_heads(s, LENGTHS, temperature=0.7), some_scores())


@both_relaxations
def test_temperature_by_finite_differences(relaxation):
    heat = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(
        lambda s, t: ops.soft_tree(s, LENGTHS, relaxation=relaxation, temperature=t),
        (some_scores(), heat),
    )


@pytest.mark.parametrize("op", [ops.soft_tree, ops.select_heads])
def test_temperature_gradient_with_a_forbidden_arc_and_dirty_padding(op):
    scores = some_scores().detach()
    scores[:, 1, 2] = -torch.inf
    scores[:, :, 3:] = torch.nan
    heat = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    op(scores, torch.tensor([2, 2, 1]), temperature=heat).square().sum().backward()
    assert torch.isfinite(heat.grad)


# ── the contract of torch.library ────────────────────────────────────────────────────────────────

SAMPLES = {
    "soft_tree": lambda a, b: (LENGTHS, a, "entropy", False, b, True, True),
    "log_partition": lambda a, b: (LENGTHS, a, "entropy", False, b, True, True),
    "best_tree": lambda a, b: (LENGTHS, a, "entropy", False, b, True),
    "sample_tree": lambda a, b: (
        *(LENGTHS, torch.full((2, 3, 8), 0.5), a, "entropy", False, b, True),
    ),
}
every_algorithm = pytest.mark.parametrize("algorithm", ["eisner", "matrix_tree", "cky"])


@fast_backends
@every_algorithm
@pytest.mark.parametrize("name", SAMPLES)
def test_opcheck(name, algorithm, backend):
    op = getattr(torch.ops.treelax, name).default
    arguments = SAMPLES[name](algorithm, backend)
    if name == "sample_tree":
        decisions = described(algorithm).decisions(5)
        arguments = (LENGTHS, arguments[1][..., :decisions], *arguments[2:])
    opcheck(op, (some_scores(torch.float32), *arguments))
    if name in ("best_tree", "sample_tree"):
        opcheck(op, (some_scores(torch.float32).detach(), *arguments))


def test_opcheck_of_head_selection():
    opcheck(torch.ops.treelax.select_heads, (some_scores(torch.float32), LENGTHS, False, True))


@fast_backends
@every_algorithm
def test_opcheck_of_the_backward_ops(algorithm, backend):
    scores = some_scores(torch.float32).detach()
    options = (algorithm, "entropy", False, backend, True)
    tree, value, saved = torch.ops.treelax.soft_tree(scores, LENGTHS, *options, True)
    opcheck(
        torch.ops.treelax.soft_tree_backward.default,
        (tree, value, scores, saved, LENGTHS, *options),
    )
    opcheck(torch.ops.treelax.log_partition_backward.default, (value, scores, tree))
    opcheck(torch.ops.treelax.select_heads_backward.default, (tree, tree))


# ── only first derivatives ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "function",
    [
        lambda s: ops.soft_tree(s).square().sum(),
        lambda s: ops.soft_tree(s)[0, 0, 1],  # linear: only the scores tie the graph together
        lambda s: ops.soft_tree(s, relaxation="entropy", backend="diagonal").square().sum(),
        lambda s: ops.soft_tree(s, backend="reference").square().sum(),
        lambda s: ops.log_partition(s).sum(),
        lambda s: ops.select_heads(s).square().sum(),
    ],
    ids=["soft_tree", "one arc", "entropy-diagonal", "reference", "log_partition", "select_heads"],
)
def test_second_derivative_is_an_error(function):
    scores = some_scores()
    (grad,) = torch.autograd.grad(function(scores), scores, create_graph=True)
    with pytest.raises(SecondDerivativeError, match="second derivative"):
        grad.square().sum().backward()


def test_what_has_no_gradient_and_keeps_nothing():
    scores = some_scores()
    assert not ops.best_tree(scores).requires_grad
    assert not ops.sample_tree(scores).requires_grad
    assert not ops.select_heads(scores, hard=True).requires_grad
    with torch.no_grad():
        assert not ops.soft_tree(scores).requires_grad
    options = (LENGTHS, "eisner", "softmax", False, "", True, False)
    assert torch.ops.treelax.soft_tree(scores.detach(), *options)[2].numel() == 0
    with pytest.raises(ValueError, match="save=False"):
        torch.ops.treelax.soft_tree(scores, *options)
    with pytest.raises(ValueError, match="save=False"):
        torch.ops.treelax.log_partition(scores, *options)


# ── other ways to ask ────────────────────────────────────────────────────────────────────────────


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, in jvp
@pytest.mark.parametrize("op", [ops.soft_tree, ops.log_partition, ops.select_heads])
def test_forward_mode_is_an_error(op):
    """Never a zero tangent."""
    scores = some_scores().detach()
    with pytest.raises(ForwardModeError, match="forward mode"):
        torch.func.jvp(op, (scores,), (scores,))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(scores, scores)
        with pytest.raises(ForwardModeError, match="forward mode"):
            op(dual)
        op(scores)  # without a tangent there is nothing to lose


@pytest.mark.parametrize("backend", ["native", "diagonal"])
@pytest.mark.parametrize("layout", ["unaligned", "strided"])
def test_hooks_on_saved_tensors(layout, backend):
    """A hook may bring a tensor back with another layout, as when it was kept elsewhere."""
    scores = some_scores(torch.float32)

    def unpack(tensor):
        if layout == "strided":
            return torch.stack((tensor, tensor), -1)[..., 0]
        room = torch.empty(tensor.numel() + 1, dtype=tensor.dtype)[1:].view(tensor.shape)
        return room.copy_(tensor)

    expected = torch.autograd.grad(ops.soft_tree(scores, backend=backend).square().sum(), scores)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        loss = ops.soft_tree(scores, backend=backend).square().sum()
    assert torch.equal(torch.autograd.grad(loss, scores)[0], expected[0])


@every_backend
@pytest.mark.parametrize("change", [Tensor.half, lambda t: t[..., :-1], Tensor.to_sparse])
@pytest.mark.parametrize("op", [ops.soft_tree, ops.log_partition])
def test_hooks_on_saved_tensors_that_return_something_else(op, change, backend):
    scores = some_scores(torch.float32)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, change):
        result = op(scores, backend=backend)
    with pytest.raises(InputError, match="saved for the backward pass"):
        result.square().sum().backward()


def test_operations_called_directly():
    """They take any strides, and refuse lengths that would read memory that is not ours."""
    rest = ("eisner", "softmax", False, "native", False)
    with pytest.raises(ValueError, match="lengths"):
        torch.ops.treelax.best_tree(torch.zeros(9, 4, 4), LENGTHS, *rest)
    scores = torch.randn(5, 5, 4).permute(2, 0, 1)
    lengths = torch.tensor([4, 9, 3, 9, 2, 9, 1, 9])[::2]
    rest = ("eisner", "softmax", False, "", True, False)
    for got, expected in zip(
        torch.ops.treelax.soft_tree(scores, lengths, *rest),
        torch.ops.treelax.soft_tree(scores.contiguous(), lengths.contiguous(), *rest),
        strict=True,
    ):
        assert torch.equal(got, expected)


def test_a_graph_can_be_walked_twice():
    scores = some_scores()
    loss = ops.soft_tree(scores, LENGTHS).square().sum()
    first, second = (torch.autograd.grad(loss, scores, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
