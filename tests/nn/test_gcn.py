"""Graph convolutions against loops over vertices and arcs."""

import pytest
import torch
from layer_checks import drawn, error, some_vectors
from tolerances import EXACT
from torch import nn

from treelax import ops
from treelax.nn import TreeGCN
from treelax.trees import heads_to_tree

HEADS = torch.tensor([[2, 0, 4, 2], [0, 1, -1, -1]])
LENGTHS = torch.tensor([4, 2])


def make(**options) -> TreeGCN:
    return drawn(TreeGCN(3, 4, **options))


def soft(batch=(2,)):
    return ops.soft_tree(some_vectors(*batch, 5, 5))


def by_loops(gcn, vectors, tree):
    """One sentence: every vertex gathers from itself, its heads and its modifiers."""
    size = len(vectors)
    current = list(vectors)
    for own, head, modifier in zip(gcn.own, gcn.head, gcn.modifier, strict=True):
        following = []
        for i in range(size):
            total = own.weight @ current[i] + own.bias
            for j in range(size):
                as_head = head.weight @ current[j] + head.bias
                as_modifier = modifier.weight @ current[j] + modifier.bias
                total = total + tree[j, i] * as_head + tree[i, j] * as_modifier
            output = total.clamp(min=0)
            following.append(torch.cat((current[i], output)) if gcn.dense else output)
        current = following
    return torch.stack(current)


@pytest.mark.parametrize(
    ("layers", "dense", "kind"), [(1, False, "soft"), (3, True, "soft"), (3, False, "discrete")]
)
def test_against_loops(layers, dense, kind):
    gcn = make(layers=layers, dense=dense)
    vectors = some_vectors(2, 5, 3)
    tree = soft() if kind == "soft" else heads_to_tree(HEADS, LENGTHS)
    expected = torch.stack(
        [by_loops(gcn, v, t.double()) for v, t in zip(vectors, tree, strict=True)]
    )
    assert error(gcn(vectors, tree), expected) < EXACT


@pytest.mark.parametrize("layers", [1, 2])
def test_a_vertex_sees_as_far_as_there_are_layers(layers):
    """In a chain of arcs, exactly the vertices within that distance have a gradient."""
    gcn = make(layers=layers)
    with torch.no_grad():  # ReLU would hide vertices
        for parameter in gcn.parameters():
            parameter.abs_()
    vectors = torch.rand(7, 3, dtype=torch.float64, requires_grad=True)
    chain = heads_to_tree(torch.arange(6))
    gcn(vectors, chain)[3].sum().backward()
    seen = vectors.grad.abs().sum(-1) > 0
    assert seen.tolist() == [abs(i - 3) <= layers for i in range(7)]


@pytest.mark.parametrize(("batch", "trees"), [((), (2,)), ((2,), (7, 2)), ((3, 1), (1, 2))])
def test_leading_dimensions_broadcast(batch, trees):
    gcn = make(layers=2, dense=True)
    vectors, tree = some_vectors(*batch, 5, 3), soft(trees)
    got = gcn(vectors, tree)
    common = torch.broadcast_shapes(batch, trees)
    each = gcn(vectors.expand(*common, 5, 3).clone(), tree.expand(*common, 5, 5).clone())
    assert got.shape == (*common, 5, gcn.output_size)
    assert error(got, each) < EXACT


def test_dropout_comes_before_the_activation_while_training_only():
    gcn = TreeGCN(3, 1000, dropout=0.5)
    with torch.no_grad():
        for parameter in gcn.parameters():
            parameter.fill_(1.0)
    torch.manual_seed(0)
    output = gcn(torch.ones(2, 3), torch.zeros(2, 2))
    assert set(output.unique().tolist()) == {0.0, 8.0}  # dropped, or 3 + 1 by twice
    assert gcn.eval()(torch.ones(2, 3), torch.zeros(2, 2)).unique().tolist() == [4.0]


def test_parametrized_layers():
    gcn, vectors, tree = TreeGCN(3, 4), torch.randn(2, 5, 3), torch.rand(2, 5, 5)
    expected = gcn(vectors, tree)
    for part in (gcn.head[0], gcn.modifier[0]):
        nn.utils.parametrizations.weight_norm(part)
    torch.testing.assert_close(gcn(vectors, tree), expected)
