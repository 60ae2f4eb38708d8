"""The perceptron and the root's vector."""

import math

import pytest
import torch
from torch import nn

from treelax.nn import MLP, Root
from treelax.nn.mlp import linear


def test_against_the_formula():
    torch.manual_seed(0)
    mlp = MLP(3, 4, 5, activate_last=False).double()
    for parameter in mlp.parameters():
        nn.init.normal_(parameter)
    first, _, last = mlp
    x = torch.randn(2, 6, 3, dtype=torch.float64)
    hidden = torch.clamp(x @ first.weight.T + first.bias, min=0)
    torch.testing.assert_close(mlp(x), hidden @ last.weight.T + last.bias)
    assert (mlp(x) < 0).any()  # no activation at the end


def test_initial_weights_are_glorots():
    torch.manual_seed(0)
    layer = linear(300, 100)
    bound = math.sqrt(6 / 400)
    assert torch.count_nonzero(layer.bias) == 0
    assert 0.99 * bound < layer.weight.abs().max() <= bound
    assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)


@pytest.mark.parametrize("shape", [(2, 4, 3, 5), (2, 0, 5)])
def test_the_root_comes_first_and_learns(shape):
    torch.manual_seed(0)
    root = Root(5)
    words = torch.randn(shape)
    vectors = root(words)
    assert torch.equal(vectors[..., 1:, :], words)
    assert torch.equal(vectors[..., 0, :], root.vector.expand(*shape[:-2], 5))
    vectors.sum().backward()
    assert torch.equal(root.vector.grad, torch.full((5,), float(math.prod(shape[:-2]))))
    assert root(words.bfloat16()).dtype == torch.bfloat16


def test_layers_that_were_put_in_are_used():
    mlp = MLP(4, 4, dropout=0.5).eval()
    inputs = torch.randn(3, 4)
    mlp[2] = nn.Tanh()
    assert torch.equal(mlp(inputs), mlp[0](inputs).tanh())
