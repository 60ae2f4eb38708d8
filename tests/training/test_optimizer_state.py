"""The state of an optimiser: training goes on from it to the bit, in place and on any device."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from treelax.errors import CheckpointError
from treelax.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.training.optimizer_state import flatten_optimizer, restore_optimizer

Make = Callable[[list[Tensor]], torch.optim.Optimizer]
OPTIMIZERS: dict[str, Make] = {
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, betas=(0.8, 0.95)),
    "fused": lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
    "foreach": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
    "tensor": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.01), foreach=False),
    "groups": lambda p: torch.optim.Adam([{"params": p[:1]}, {"params": p[1:], "lr": 0.1}]),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, dampening=0.5),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
}


def new_model() -> nn.Module:
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))
    model.register_parameter("unused", nn.Parameter(torch.ones(3)))  # never has a gradient
    return model


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        loss = model(torch.randn(6, 5, generator=generator)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:  # as a schedule does
            group["lr"] *= 0.75 if step % 2 else 1.25
        optimizer.step()


def bits(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {**model.state_dict(), **flatten_optimizer(optimizer)[0]}


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert tensor.dtype == other[name].dtype, name
        assert torch.equal(tensor, other[name]), name


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("trained_before", [False, True], ids=["fresh", "trained"])
def test_training_goes_on_to_the_bit(tmp_path: Path, name: str, trained_before: bool) -> None:
    make, path = OPTIMIZERS[name], tmp_path / "x.safetensors"
    model = new_model()
    optimizer = make(list(model.parameters()))
    train(model, optimizer, range(4))
    tensors, state = flatten_optimizer(optimizer)
    save_checkpoint(path, model.state_dict() | tensors, kind="x", state={"optimizer": state})
    train(model, optimizer, range(4, 8))

    resumed = new_model()
    again = make(list(resumed.parameters()))
    if trained_before:
        train(resumed, again, range(100, 103))
    loaded = load_checkpoint(path)
    resumed.load_state_dict({key: loaded.tensors[key] for key in resumed.state_dict()})
    restore_optimizer(again, loaded.tensors, loaded.state["optimizer"])
    for group, other in zip(again.param_groups, optimizer.param_groups, strict=True):
        assert {k: type(v) for k, v in group.items()} == {k: type(v) for k, v in other.items()}
    assert_same(flatten_optimizer(again)[0], tensors)
    train(resumed, again, range(4, 8))
    assert_same(bits(resumed, again), bits(model, optimizer))
    assert [g["lr"] for g in again.param_groups] == [g["lr"] for g in optimizer.param_groups]


def test_the_test_above_can_fail() -> None:
    model, other = new_model(), new_model()
    optimizer, fresh = (OPTIMIZERS["adam"](list(m.parameters())) for m in (model, other))
    train(model, optimizer, range(4))
    other.load_state_dict(model.state_dict())
    train(model, optimizer, range(4, 5))
    train(other, fresh, range(4, 5))
    assert not torch.equal(model.state_dict()["0.weight"], other.state_dict()["0.weight"])


@pytest.mark.parametrize("name", ["adam", "amsgrad", "adamw", "fused", "tensor"])
@pytest.mark.parametrize("steps", [0, 3])
def test_tensors_keep_their_addresses(name: str, steps: int) -> None:
    model = new_model()
    optimizer = OPTIMIZERS[name](list(model.parameters()))
    train(model, optimizer, range(steps))
    before, weights = flatten_optimizer(optimizer), copy_of(model.state_dict())
    train(model, optimizer, range(100, 102))

    def addresses() -> list[int]:
        held = [value for state in optimizer.state.values() for value in state.values()]
        held += [v for group in optimizer.param_groups for v in group.values()]
        return [value.data_ptr() for value in held if isinstance(value, Tensor)]

    warm = addresses()
    restore_optimizer(optimizer, *before)
    model.load_state_dict(weights)
    assert addresses() == warm
    assert len(warm) >= 12
    train(model, optimizer, range(steps, 6))

    straight = new_model()
    other = OPTIMIZERS[name](list(straight.parameters()))
    train(straight, other, range(6))
    assert_same(bits(model, optimizer), bits(straight, other))


def copy_of(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def test_what_was_flattened_does_not_change_with_training() -> None:
    model = new_model()
    optimizer = OPTIMIZERS["adam"](list(model.parameters()))
    train(model, optimizer, range(2))
    tensors, state = flatten_optimizer(optimizer)
    kept, text = copy_of(tensors), json.dumps(state)
    train(model, optimizer, range(2, 4))
    assert_same(tensors, kept)
    assert json.dumps(state) == text


def test_restored_tensors_are_not_shared_with_the_checkpoint() -> None:
    model = new_model()
    optimizer = OPTIMIZERS["adam"](list(model.parameters()))
    train(model, optimizer, range(2))
    tensors, state = flatten_optimizer(optimizer)
    kept, again = copy_of(tensors), OPTIMIZERS["adam"](list(model.parameters()))
    restore_optimizer(again, tensors, state)
    train(model, again, range(2, 4))
    assert_same(tensors, kept)


def test_how_to_run_is_for_the_optimiser_at_hand() -> None:
    model = new_model()
    fused, tensor_rate = (
        OPTIMIZERS[name](list(model.parameters())) for name in ("fused", "tensor")
    )
    train(model, fused, range(2))
    restore_optimizer(tensor_rate, *flatten_optimizer(fused))
    group = tensor_rate.param_groups[0]
    assert isinstance(group["lr"], Tensor)
    assert group["lr"].item() == pytest.approx(fused.param_groups[0]["lr"])
    assert (group["fused"], group["foreach"]) == (None, False)
    restore_optimizer(fused, *flatten_optimizer(tensor_rate))
    assert type(fused.param_groups[0]["lr"]) is float
    assert fused.param_groups[0]["fused"] is True


def test_keys_that_a_schedule_adds() -> None:
    model = new_model()
    one, other = (OPTIMIZERS["adam"](list(model.parameters())) for _ in range(2))
    one.param_groups[0]["initial_lr"] = 0.25
    restore_optimizer(other, *flatten_optimizer(one))
    assert other.param_groups[0]["initial_lr"] == 0.25


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(2, 3), (4,)], r"groups with numbers of parameters \[1\]; expected \[2\]: resume"),
        ([(3, 2)], r"a parameter of shape \[2, 3\]; expected \[3, 2\]: resume with the config"),
    ],
)
def test_the_optimiser_of_another_model(shapes: list[tuple[int, ...]], message: str) -> None:
    one = torch.optim.Adam([nn.Parameter(torch.ones(2, 3))], lr=0.5)
    other = torch.optim.Adam([nn.Parameter(torch.ones(shape)) for shape in shapes], lr=0.1)
    with pytest.raises(CheckpointError, match=f"^optimizer: .*{message}"):
        restore_optimizer(other, *flatten_optimizer(one))
    assert other.param_groups[0]["lr"] == 0.1
    assert not other.state


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_captured_step_goes_on_from_what_is_restored(tmp_path: Path) -> None:
    def setting() -> tuple[nn.Parameter, torch.optim.Optimizer]:
        weight = nn.Parameter(torch.linspace(-1, 1, 8, device="cuda"))
        return weight, torch.optim.Adam(
            [weight], lr=torch.tensor(0.1, device="cuda"), capturable=True
        )

    def step(weight: nn.Parameter, optimizer: torch.optim.Optimizer) -> None:
        weight.grad = 2 * weight.detach()
        optimizer.step()

    straight, plain = setting()
    for _ in range(5):
        step(straight, plain)
    middle = flatten_optimizer(plain)
    path = tmp_path / "x.safetensors"
    save_checkpoint(path, {"w": straight} | middle[0], kind="x", state=middle[1])
    for _ in range(5):
        step(straight, plain)

    weight, optimizer = setting()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step(weight, optimizer)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(weight, optimizer)
    loaded = load_checkpoint(path)
    with torch.no_grad():
        weight.copy_(loaded.tensors["w"])
    restore_optimizer(optimizer, loaded.tensors, loaded.state)
    for _ in range(5):
        graph.replay()
    assert torch.equal(weight, straight)
    assert optimizer.state[weight]["step"].is_cuda
