"""Optimisation steps on the CPU: those of plain PyTorch. For a GPU see test_steps_cuda.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from test_steps_cuda import batch, new_stepper, weights
from torch import nn

from treelax.apps.training.checkpoint import load_checkpoint, save_checkpoint


def test_steps_are_those_of_adam_with_clipping() -> None:
    stepper, plain = new_stepper("cpu"), new_stepper("cpu")
    stepper.set_rate(0.1)
    for number in range(5):
        stepper.step(6, batch(number))

    parameters = list(plain.model.parameters())
    optimizer = torch.optim.Adam(
        [{"params": parameters[:2]}, {"params": parameters[2:], "lr": 0.05}], lr=0.1, fused=True
    )
    losses, clipped = [], 0
    for number in range(5):
        optimizer.zero_grad()
        value = plain.loss(6, batch(number), plain.generator)
        value.backward()
        clipped += bool(nn.utils.clip_grad_norm_(parameters, 0.5) > 0.5)
        optimizer.step()
        losses.append(value.item())
    assert clipped > 0
    assert all(map(torch.equal, weights(stepper), weights(plain)))
    assert stepper.mean_loss(5) == pytest.approx(sum(losses) / 5)


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_steps_continue_from_their_state_to_the_bit(tmp_path: Path, average: float) -> None:
    straight, resumed = (new_stepper("cpu", average=average) for _ in range(2))
    straight.set_rate(0.1)
    for number in range(4):
        straight.step(8, batch(number))
    tensors = straight.state() | straight.model.state_dict()
    save_checkpoint(tmp_path / "x.safetensors", tensors, kind="x", state={})
    noise = straight.generator.get_state()
    for number in range(4, 8):
        straight.step(8, batch(number))

    saved = load_checkpoint(tmp_path / "x.safetensors").tensors
    resumed.restore(saved)
    assert resumed.state().keys() == straight.state().keys()
    resumed.model.load_state_dict({key: saved[key] for key in resumed.model.state_dict()})
    resumed.generator.set_state(noise)
    resumed.set_rate(0.1)
    for number in range(4, 8):
        resumed.step(8, batch(number))
    assert all(map(torch.equal, weights(resumed), weights(straight)))
    for name, value in straight.state().items():
        assert torch.equal(resumed.state()[name], value), name
