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
    "labelled": lambda s, n: tx.Labelled(tx.Binary()).marginals(
        s[..., None].expand(*s.shape, 2), n
    )[0],
    "SparseMAP": lambda s, n: tx.Projective().sparsemap(s, n).tree,
}


@pytest.mark.parametrize("dynamic", [False, True])
def test_operations(dynamic):
    """The same values and gradients; shapes fixed and dynamic."""

    def everything(scores, lengths):
        pairs = zip(OPERATIONS.values(), scores, strict=True)
        return tuple(operation(x, lengths) for operation, x in pairs)

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


def quantities(d):
    """Of two distributions, in one tensor."""
    q = d.structure(2 * d.scores, d.lengths)
    values = d.log_partition, d.entropy(), d.log_prob(d.mode), kl_divergence(d, q)
    return torch.stack(values), d.marginals, d.top_k(2).log_probs, d.max_marginals


def loss_of(estimator):
    return lambda d: estimator.expect(d, lambda trees: trees.square().flatten(2).sum(-1))


LABELLED = tx.Labelled(tx.Projective())
TRAINED = [
    tx.Relaxed(noise=tx.SumOfGamma()),
    tx.SPIGOT(projection="polytope"),
    tx.RLOO(2),
]
#: Structure, an operation on its distribution, and whether graphs must be whole: where they may break,
#: the compiler looks at whatever Python a graph calls, too.
AT_TWO_SHAPES = {
    **{
        f"samples of {structure}": (structure, lambda d: d.sample((5,)), True)
        for structure in (tx.Projective(), tx.NonProjective(True), tx.Heads(), LABELLED)
    },
    **{
        f"SparseMAP of {structure}": (structure, tx.SparseMAP(noise=tx.Gumbel()).sample, whole)
        for structure, whole in ((tx.Binary(), True), (tx.Heads(), True), (LABELLED, False))
    },
    "quantities": (tx.Projective(), quantities, True),
    **{repr(estimator): (tx.Projective(), loss_of(estimator), True) for estimator in TRAINED},
}


@pytest.mark.parametrize("name", AT_TWO_SHAPES)
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # torch's own
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # so is this
def test_two_shapes(name):
    """The same values and gradients, with the random numbers that torch draws outside; at the second
    shape torch makes sizes dynamic."""
    structure, operation, fullgraph = AT_TWO_SHAPES[name]
    trained = name in map(repr, TRAINED)  # a training step leaves validation out

    def run(scores, lengths):
        value = operation(structure(scores, lengths, validate_args=not trained))
        return value if isinstance(value, tuple) else (value,)

    # the gradients of estimators are traced as well
    backend = "aot_eager" if trained else "eager"
    compiled = torch.compile(run, fullgraph=fullgraph, backend=backend)
    for batch, n in [(3, 2), (4, 3)]:
        scores = draw(structure, batch, n=n, seed=8).float().requires_grad_()
        results = []
        for function in (run, compiled):
            torch.manual_seed(5)
            values = function(scores, torch.arange(batch) % n + 1)
            results.append([*values])
            if values[0].requires_grad:
                loss = sum(value.square().sum() for value in values if value.requires_grad)
                results[-1] += torch.autograd.grad(loss, scores)
        for expected, got in zip(*results, strict=True):
            torch.testing.assert_close(got, expected)


def test_bad_values_are_still_refused():
    scores = torch.zeros(2, 3, 3)
    scores[1, 1, 2] = float("nan")
    with pytest.raises(ValueError, match=r"scores\[1, 1, 2\]"):
        whole(lambda s: ops.soft_tree(s))(scores)


# torch's own look at a tensor behind the break warns, and it means to hide that
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_the_layer():
    """The same numbers; the noise is torch's own. A generator cannot enter the graph, which breaks."""
    torch.manual_seed(11)
    layer = LatentTree(ArcScorer(4, 6), noise="gumbel", straight_through=True).double()
    compiled = whole(layer)
    lengths, vectors = torch.tensor([5, 1, 3]), torch.randn(3, 6, 4).double().requires_grad_()
    weight = torch.randn(3, 6, 6, dtype=torch.float64)
    results = []
    for function in (layer, compiled):
        torch.manual_seed(5)
        tree = function(vectors, lengths)
        grads = torch.autograd.grad(tree, [vectors, *layer.parameters()], weight)
        results.append([x.detach() for x in (tree, *grads)])
    for expected, got in zip(*results, strict=True):
        assert largest_error(got, expected) < EXACT
    got = torch.compile(layer, backend="aot_eager")(vectors, generator=seeded(1)).detach()
    assert largest_error(got, layer(vectors, generator=seeded(1)).detach()) < EXACT
    layer.eval()
    assert torch.equal(compiled(vectors, lengths), layer(vectors, lengths))
