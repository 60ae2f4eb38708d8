"""torch.func.grad, vjp, vmap and jacrev of every structure's operations, against loops and autograd."""

import pytest
import torch
from matrix import draw
from torch.func import grad, jacrev, vjp, vmap

import treelax as tx
from treelax.errors import ForwardModeError, SecondDerivativeError

STRUCTURES = [
    tx.Projective(),
    tx.NonProjective(single_root=True),
    tx.Heads(),
    tx.Binary(),
    tx.Labelled(tx.Projective(single_root=True)),
]
OPERATIONS = {
    "argmax": lambda s, x, n: s.argmax(x, n),
    "log_partition": lambda s, x, n: s.log_partition(x, n),
    "marginals": lambda s, x, n: s.marginals(x, n)[0],
    "relaxed": lambda s, x, n: s.relaxed(
        x, n, relaxation=s.relaxations[0], temperature=torch.tensor(0.5)
    ),
    "max_marginals": lambda s, x, n: s.max_marginals(x, n).clamp(min=-100),
    "sparsemap": lambda s, x, n: s.sparsemap(x, n).tree,
    "entropy": lambda s, x, n: s(x, n).entropy(),
}
LENGTHS = torch.tensor([3, 1])
every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=str)
every_operation = pytest.mark.parametrize("operation", OPERATIONS)


def problem(structure, operation, mapped=3):
    """Scores of some batches, and a function of one of them and its lengths."""
    scores = draw(structure, mapped, 2, n=3)
    return scores, lambda x, n=LENGTHS: OPERATIONS[operation](structure, x, n)


def slope(function, scores):
    """The gradient of a sum of squares, by autograd."""
    leaf = scores.clone().requires_grad_()
    value = function(leaf)
    if not value.requires_grad:
        return torch.zeros_like(scores)
    return torch.autograd.grad(value.square().sum(), leaf)[0]


@every_structure
@every_operation
def test_vmap(structure, operation):
    scores, function = problem(structure, operation)
    expected = torch.stack([function(x) for x in scores])
    assert torch.equal(vmap(function)(scores), expected)
    assert torch.equal(vmap(function, in_dims=1)(scores.transpose(0, 1)), expected)
    lengths = torch.tensor([[3, 1], [2, 2]])
    expected = torch.stack([function(scores[0], n) for n in lengths])
    assert torch.equal(vmap(function, (None, 0))(scores[0], lengths), expected)
    # torch's own gradient outside of the map
    outside = slope(vmap(function), scores)
    assert torch.equal(outside, torch.stack([slope(function, x) for x in scores]))
    # single sentences; what is the same for all that is mapped comes with a stride of 0
    for x, n in ((scores[:, 0], None), (scores[:, 1], LENGTHS[1])):
        expected = torch.stack([slope(lambda y, n=n: function(y, n), y) for y in x])
        torch.testing.assert_close(slope(vmap(lambda y, n=n: function(y, n)), x), expected)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch's own
@every_structure
@every_operation
def test_gradients_and_jacobians(structure, operation):
    scores, function = problem(structure, operation, mapped=2)
    square = grad(lambda x: function(x).square().sum())
    expected = torch.stack([slope(function, x) for x in scores])
    assert torch.equal(square(scores[0]), expected[0])
    assert torch.equal(vmap(square)(scores), expected)
    assert torch.equal(grad(lambda x: vmap(function)(x).square().sum())(scores), expected)
    value, pull = vjp(function, scores[0])
    assert torch.equal(pull(2 * value)[0], expected[0])
    rows = [torch.autograd.functional.jacobian(function, x, strict=False) for x in scores]
    assert torch.equal(vmap(jacrev(function))(scores), torch.stack(rows))
    at_once = torch.autograd.functional.jacobian(function, scores[0], vectorize=True)
    torch.testing.assert_close(at_once, rows[0])


@every_structure
def test_samples(structure):
    scores, _ = problem(structure, "argmax")
    sample = vmap(lambda x: structure.sample(x, LENGTHS, sample_shape=(4,)), randomness="different")
    trees = sample(scores)
    assert trees.shape == (3, 4, *scores.shape[1:])
    assert structure.contains(trees, LENGTHS).all()


def test_temperatures_can_be_mapped():
    scores, temperatures = torch.randn(4, 4), torch.tensor([0.5, 2.0])
    got = vmap(lambda t: tx.ops.soft_tree(scores, temperature=t))(temperatures)
    expected = [tx.ops.soft_tree(scores, temperature=t) for t in temperatures]
    assert torch.equal(got, torch.stack(expected))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, in jvp
def test_forward_mode_and_second_derivatives_are_refused():
    scores = torch.randn(2, 4, 4)
    with pytest.raises(ForwardModeError, match="reverse mode only"):
        torch.func.jvp(vmap(tx.ops.soft_tree), (scores,), (scores,))
    with pytest.raises(SecondDerivativeError):
        jacrev(grad(tx.ops.log_partition))(scores[0])


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own
@pytest.mark.parametrize("structure", [STRUCTURES[1], STRUCTURES[-1]], ids=str)
def test_transforms_within_transforms_in_compiled_functions(structure):
    scores, function = problem(structure, "marginals", mapped=1)

    def compiled(f):
        torch._dynamo.reset()
        return torch.compile(f, fullgraph=True, backend="aot_eager")(scores[0])

    got = compiled(grad(lambda x: vjp(function, x)[0].square().sum()))
    torch.testing.assert_close(got, slope(function, scores[0]))
    with pytest.raises(RuntimeError, match="second derivative was asked for"):
        compiled(grad(lambda x: grad(lambda y: function(y).square().sum())(x).square().sum()))


ESTIMATORS = [
    tx.SPIGOT(projection="polytope"),
    tx.SPIGOT(form="ce", noise=tx.Gaussian()),
    tx.SPIGOT(form="eg"),
    tx.IMLE(samples=2),
    tx.Perturbed(2),
    tx.StraightThrough(gradient="identity"),
    tx.StraightThrough(),
    tx.SparseMAP(),
    tx.RLOO(2),
    tx.Relaxed(),
    tx.Exact(),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_estimators(estimator):
    """What lies in a rule for the gradient belongs to the transform too."""
    scores = torch.randn(2, 3, 4, 4, dtype=torch.float64)
    weight = torch.randn(4, 4, dtype=torch.float64)

    def loss(x):
        torch.manual_seed(2)
        trees = tx.Projective()(x, torch.tensor([3, 1, 2]))
        return estimator.expect(trees, lambda t: (t * weight).sum((-2, -1)).square()).sum()

    leaf = scores[0].clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss(leaf), leaf)
    value, pull = vjp(loss, scores[0])
    mapped = vmap(grad(loss), randomness="same")(scores)
    assert mapped.shape == scores.shape
    for got in (grad(loss)(scores[0]), pull(torch.ones_like(value))[0], mapped[0]):
        torch.testing.assert_close(got, expected)
