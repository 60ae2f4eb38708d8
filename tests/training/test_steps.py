"""Optimisation steps on the CPU: those of plain PyTorch. For a GPU see test_steps_cuda.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from treelax.training.optimizer_state import flatten_optimizer
from treelax.training.steps import Stepper

CPU = torch.device("cpu")
Loss = Callable[[Any, Tensor, torch.Generator], Tensor]


def new_model() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def new_loss(model: nn.Module) -> Loss:
    """The squared error on points chosen by their indices, with noise; a shape cuts the batch."""
    points = torch.linspace(-1, 1, 80).reshape(20, 4)

    def loss(shape: Any, batch: Tensor, generator: torch.Generator) -> Tensor:
        inputs = points[batch][:shape]
        noise = torch.empty(len(inputs)).normal_(generator=generator)
        return (model(inputs)[:, 0] - inputs.sum(-1) - 0.1 * noise).square().mean()

    return loss


def new_stepper(clip: float = 0.5) -> Stepper:
    model = new_model()
    parameters = list(model.parameters())
    groups = [{"params": parameters[:2], "rate": 1.0}, {"params": parameters[2:], "rate": 0.5}]
    generator = torch.Generator().manual_seed(0)
    return Stepper(model, new_loss(model), groups, generator, clip, CPU)


def batch(number: int, size: int = 8) -> Tensor:
    return torch.randint(20, (size,), generator=torch.Generator().manual_seed(number))


def weights(stepper: Stepper) -> list[Tensor]:
    return [value.clone() for value in stepper.model.state_dict().values()]


def test_steps_are_those_of_adam_with_clipping() -> None:
    stepper = new_stepper(clip=0.5)
    stepper.set_rate(0.1)
    for number in range(5):
        stepper.step(6, batch(number))

    model = new_model()
    loss, generator = new_loss(model), torch.Generator().manual_seed(0)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(
        [{"params": parameters[:2]}, {"params": parameters[2:], "lr": 0.05}], lr=0.1, fused=True
    )
    losses, clipped = [], 0
    for number in range(5):
        optimizer.zero_grad()
        value = loss(6, batch(number), generator)
        value.backward()
        clipped += bool(nn.utils.clip_grad_norm_(parameters, 0.5) > 0.5)
        optimizer.step()
        losses.append(value.item())
    assert clipped > 0
    for received, expected in zip(weights(stepper), model.state_dict().values(), strict=True):
        assert torch.equal(received, expected)
    assert stepper.mean_loss(5) == pytest.approx(sum(losses) / 5)


def test_the_loss_is_counted_from_one_asking_to_the_next() -> None:
    stepper = new_stepper()
    stepper.step(8, batch(0))
    assert stepper.mean_loss(1) > 0
    assert stepper.mean_loss(1) == 0


def test_each_group_has_its_factor_of_the_rate() -> None:
    stepper = new_stepper()
    for rate in (0.2, 0.4):
        stepper.set_rate(rate)
        assert [group["lr"] for group in stepper.optimizer.param_groups] == [rate, rate / 2]
    stepper.set_rate(0.0)
    before = weights(stepper)
    stepper.step(8, batch(0))
    assert all(map(torch.equal, weights(stepper), before))


def test_the_groups_that_are_given_stay_as_they_are() -> None:
    parameter = nn.Parameter(torch.ones(2))
    group = {"params": [parameter], "rate": 1.0}
    generator = torch.Generator()
    Stepper(nn.Module(), lambda *_: parameter.sum(), [group], generator, 1.0, CPU)
    assert group == {"params": [parameter], "rate": 1.0}


def test_on_the_cpu_there_is_nothing_to_prepare() -> None:
    stepper = new_stepper()
    before = weights(stepper)
    stepper.prepare({8: batch(0)})
    assert all(map(torch.equal, weights(stepper), before))
    assert not stepper.graphs
    assert not flatten_optimizer(stepper.optimizer)[0]
