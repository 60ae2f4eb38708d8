"""Dropout: the right share, scaled, independent, from torch's own generator, as torch's elsewhere."""

from __future__ import annotations

import pytest
import torch

from treelax.errors import InputError
from treelax.nn.dropout import TOLERANCE, Dropout


@pytest.mark.parametrize("probability", [0.001, 0.2, 0.9])
def test_the_share_and_the_mean(probability: float) -> None:
    torch.manual_seed(0)
    outputs = Dropout(probability)(torch.ones(1000, 1001, dtype=torch.float64))
    dropped = float((outputs == 0).double().mean())
    assert len(outputs.unique()) == 2  # what is kept is all scaled alike
    error = 5 * (probability * (1 - probability) / outputs.numel()) ** 0.5
    assert abs(dropped - probability) < error + TOLERANCE * probability
    assert abs(float(outputs.mean()) - 1) < error / (1 - probability) + 1e-9


@pytest.mark.parametrize("probability", [0.5, 0.3])
def test_neighbours_are_independent(probability: float) -> None:
    """Eight or four units share a random number but none of its bits."""
    torch.manual_seed(0)
    kept = (Dropout(probability)(torch.ones(20_000, 16)) != 0).double()
    correlation = torch.corrcoef(kept.T) - torch.eye(16)
    assert float(correlation.abs().max()) < 0.04


def test_the_gradient_is_that_of_the_mask_which_comes_from_torchs_seed() -> None:
    layer, inputs = Dropout(0.3), torch.ones(5, 7, requires_grad=True)
    torch.manual_seed(1)
    outputs = layer(inputs)
    outputs.sum().backward()
    assert torch.equal(inputs.grad, outputs.detach())
    assert not torch.equal(layer(inputs), outputs)
    torch.manual_seed(1)
    assert torch.equal(layer(inputs), outputs)
    assert layer.eval()(inputs) is inputs
    assert Dropout(0)(inputs) is inputs


@pytest.mark.parametrize("training", [True, False])
def test_relu_is_that_of_what_is_not_dropped(training: bool) -> None:
    layer = Dropout(0.1).train(training)
    layer.probability = 0.3
    found = []
    for relu in (layer.relu, lambda x: torch.relu(layer(x))):
        inputs = torch.linspace(-3, 3, 70).reshape(7, 10).requires_grad_()
        torch.manual_seed(1)
        outputs = relu(inputs)
        outputs.square().sum().backward()
        found.append((outputs.detach(), inputs.grad))
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))


@pytest.mark.parametrize("probability", [-0.1, 1, float("nan"), "half"])
def test_bad_input(probability: object) -> None:
    with pytest.raises(InputError, match=r"dropout is .*expected a probability"):
        Dropout(probability)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_forward_mode() -> None:
    dropout, inputs = Dropout(0.5), torch.randn(100)
    torch.manual_seed(0)
    value, tangent = torch.func.jvp(dropout.relu, (inputs,), (torch.ones(100),))
    torch.manual_seed(0)
    assert torch.equal(value, dropout.relu(inputs))
    assert torch.equal(tangent, 2.0 * (value > 0))
