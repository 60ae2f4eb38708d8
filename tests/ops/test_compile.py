"""torch.compile takes every operation, the distribution and the layer into one graph.

One file for all of it: the first compilation of a process costs more than all that follow.
"""

import pytest
import torch
from matrix import draw, seeded
from tolerances import EXACT, largest_error
from torch.distributions import kl_divergence

import treelax as tx
from treelax import ops
from treelax.nn import ArcScorer, LatentTree


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


def whole(function, **options):
    return torch.compile(function, fullgraph=True, backend="aot_eager", **options)


OPERATIONS = {
    "soft_tree": lambda s, n: ops.soft_tree(s, n, relaxation="entropy", temperature=0.5),
    "log_partition": lambda s, n: ops.log_partition(s, n),
    "select_heads": lambda s, n: ops.select_heads(s, n),
    "best_tree": lambda s, n: ops.best_tree(s, n) * s,
    "non-projective": lambda s, n: tx.NonProjective().marginals(s, n)[0],
    "best non-projective": lambda s, n: tx.NonProjective().argmax(s, n) * s,
    "binary": lambda s, n: tx.Binary().relaxed(s, n),
    "labelled": lambda s, n: tx.Labelled(tx.Binary()).marginals(
        s[..., None].expand(*s.shape, 2), n
    )[0],
    "SparseMAP": lambda s, n: tx.Projective().sparsemap(s, n).tree,
    "SparseMAP of spans": lambda s, n: tx.Binary().sparsemap(s, n).tree,
}


@pytest.mark.parametrize("dynamic", [False, True])
def test_operations(dynamic):
    """The same values and gradients; shapes fixed and dynamic."""

    def everything(scores, lengths):
        pairs = zip(OPERATIONS.values(), scores, strict=True)
        return tuple(operation(own, lengths) for operation, own in pairs)

    compiled = whole(everything, dynamic=dynamic)
    for batch, n in [(3, 4), (5, 6)] if dynamic else [(3, 4)]:
        scores = torch.randn(batch, n + 1, n + 1, generator=seeded(8))
        scores = [scores.clone().requires_grad_() for _ in OPERATIONS]
        lengths = torch.arange(batch) % n + 1
        results = []
        for function in (everything, compiled):
            values = function(scores, lengths)
            weights = [torch.randn(value.shape, generator=seeded(9)) for value in values]
            results.append((*values, *torch.autograd.grad(values, scores, weights)))
        for expected, got in zip(*results, strict=True):
            assert torch.equal(got, expected)


def squares(trees):
    return trees.square().flatten(2).sum(-1)


LABELLED = tx.Labelled(tx.Projective())
ESTIMATORS = [
    tx.Relaxed(noise=tx.SumOfGamma(), samples=2),
    tx.StraightThrough(),
    tx.StraightThrough(gradient="identity"),
    tx.Marginals(),
    tx.SparseMAP(),
    tx.SPIGOT(),
    tx.SPIGOT(projection="polytope"),
    tx.SPIGOT(form="eg"),
    tx.IMLE(),
    tx.Perturbed(2),
    tx.REINFORCE(2).eval(),
    tx.RLOO(2),
]


def quantities(d):
    """Of two distributions, in one tensor."""
    q = d.structure(2 * d.scores, d.lengths)
    values = d.log_partition, d.entropy(), d.log_prob(d.mode), kl_divergence(d, q)
    return torch.stack(values), d.marginals


# of a distribution; at the second shape torch makes sizes dynamic
AT_TWO_SHAPES = {
    **{
        f"samples of {structure}": (structure, lambda d: d.sample((5,)))
        for structure in (
            tx.Projective(),
            tx.NonProjective(True),
            tx.Heads(),
            tx.Binary(),
            LABELLED,
        )
    },
    **{
        f"SparseMAP of {structure}": (structure, tx.SparseMAP(noise=tx.Gumbel()).sample)
        for structure in (tx.Projective(), tx.NonProjective(), tx.Binary(), tx.Heads(), LABELLED)
    },
    "quantities": (tx.Projective(), quantities),
    "max_marginals": (tx.Projective(), lambda d: d.max_marginals),
    "top_k": (tx.Projective(), lambda d: d.top_k(2).log_probs),
    "renyi_entropy": (tx.Projective(), lambda d: d.renyi_entropy(2)),
    **{
        repr(estimator): (tx.Projective(), lambda d, e=estimator: e.expect(d, squares))
        for estimator in ESTIMATORS
    },
}
#: Where graphs may break, the compiler looks at whatever Python a graph calls, too.
BROKEN = [f"SparseMAP of {structure}" for structure in (tx.NonProjective(), LABELLED)]


@pytest.mark.parametrize(
    ("name", "fullgraph"),
    [*((name, True) for name in AT_TWO_SHAPES), *((x, False) for x in BROKEN)],
)
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # torch's own
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # so is this
def test_two_shapes(name, fullgraph):
    """The same values and gradients, with the random numbers that torch draws outside."""
    structure, operation = AT_TWO_SHAPES[name]
    validate = "(" not in name or "of" in name  # an estimator's training step leaves it out

    def run(scores, lengths):
        value = operation(structure(scores, lengths, validate_args=validate))
        return value if isinstance(value, tuple) else (value,)

    # the gradients of estimators are traced as well
    backend = "eager" if validate else "aot_eager"
    compiled = torch.compile(run, fullgraph=fullgraph, backend=backend)
    for batch, n in [(3, 2), (4, 3)]:
        scores = draw(structure, batch, n=n, seed=8).float().requires_grad_()
        results = []
        for function in (run, compiled):
            torch.manual_seed(5)
            values = function(scores, torch.arange(batch) % n + 1)
            results.append([*values])
            if values[0].requires_grad:
                loss = sum(value.square().sum() for value in values)
                results[-1] += torch.autograd.grad(loss, scores)
        for expected, got in zip(*results, strict=True):
            torch.testing.assert_close(got, expected)


def test_bad_values_are_still_refused():
    scores = torch.zeros(2, 3, 3)
    scores[1, 1, 2] = float("nan")
    with pytest.raises(ValueError, match=r"scores\[1, 1, 2\]"):
        whole(lambda s: ops.soft_tree(s))(scores)


@pytest.mark.parametrize(
    ("structure", "noise", "straight_through"),
    [("projective", "sum-of-gamma", False), ("heads", "gumbel", True)],
)
def test_the_layer(structure, noise, straight_through):
    """The same numbers; the noise is torch's own."""
    torch.manual_seed(11)
    options = {"noise": noise, "straight_through": straight_through}
    layer = LatentTree(ArcScorer(4, 6), structure=structure, **options).double()
    dynamic = structure == "projective"
    compiled = whole(layer, dynamic=dynamic)
    for batch, n in ((3, 5), (4, 7)) if dynamic else ((3, 5),):
        lengths = torch.arange(batch) + 1
        weight = torch.randn(batch, n + 1, n + 1, dtype=torch.float64)
        vectors = torch.randn(batch, n + 1, 4, dtype=torch.float64, requires_grad=True)
        results = []
        for function in (layer, compiled):
            torch.manual_seed(5)
            tree = function(vectors, lengths)
            grads = torch.autograd.grad(tree, [vectors, *layer.parameters()], weight)
            results.append([x.detach() for x in (tree, *grads)])
        for expected, got in zip(*results, strict=True):
            assert largest_error(got, expected) < EXACT
    layer.eval()
    assert torch.equal(compiled(vectors, lengths), layer(vectors, lengths))


# torch's own look at a tensor behind the break warns, and it means to hide that
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_the_layer_around_a_generator():
    """A generator cannot enter the graph: torch breaks it there and the numbers stay."""
    layer, vectors = LatentTree(ArcScorer(4, 6)), torch.randn(3, 6, 4)
    got = torch.compile(layer, backend="aot_eager")(vectors, generator=seeded(1))
    assert largest_error(got.detach(), layer(vectors, generator=seeded(1)).detach()) < 1e-6
