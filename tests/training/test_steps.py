"""Optimisation steps on the CPU: those of plain PyTorch. For a GPU see test_steps_cuda.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from treelax.training.checkpoint import load_checkpoint, save_checkpoint
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


def new_stepper(clip: float = 0.5, average: float = 0.0) -> Stepper:
    model = new_model()
    parameters = [*model.parameters(), nn.Parameter(torch.ones(3))]  # the last has no gradient
    groups = [{"params": parameters[:2], "rate": 1.0}, {"params": parameters[2:], "rate": 0.5}]
    generator = torch.Generator().manual_seed(0)
    return Stepper(model, new_loss(model), groups, generator, clip, CPU, average=average)


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
    for name, expected in model.state_dict().items():
        assert torch.equal(stepper.model.state_dict()[name], expected)
    assert stepper.mean_loss(5) == pytest.approx(sum(losses) / 5)


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_steps_go_on_from_their_state_to_the_bit(tmp_path: Path, average: float) -> None:
    path = tmp_path / "x.safetensors"
    straight, resumed = new_stepper(average=average), new_stepper(average=average)
    straight.set_rate(0.1)
    for number in range(4):
        straight.step(8, batch(number))
    tensors = straight.state() | straight.model.state_dict()
    save_checkpoint(path, tensors, kind="x", state={})
    noise = straight.generator.get_state()
    for number in range(4, 8):
        straight.step(8, batch(number))

    saved = load_checkpoint(path).tensors
    old = {"optimizer.group.0.lr": torch.tensor(7.0)}  # as older files have it
    resumed.restore(saved | old)
    assert resumed.state().keys() == straight.state().keys()
    resumed.model.load_state_dict({key: saved[key] for key in resumed.model.state_dict()})
    resumed.generator.set_state(noise)
    resumed.set_rate(0.1)
    for number in range(4, 8):
        resumed.step(8, batch(number))
    assert all(map(torch.equal, weights(resumed), weights(straight)))
    for name, value in straight.state().items():
        assert torch.equal(resumed.state()[name], value), name
