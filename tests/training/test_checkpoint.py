"""Checkpoints: whole or not at all, told apart from everything else, and exact to the bit."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from treelax.errors import CheckpointError, InputError
from treelax.training.checkpoint import (
    flatten_optimizer,
    load_checkpoint,
    read_checkpoint_state,
    restore_optimizer,
    save_checkpoint,
)

STATE = {"epoch": 3, "best": {"score": 0.5, "epoch": 2}, "history": [1, None, True, "x"]}


def saved(folder: Path, fill: float = 1.0, name: str = "last.safetensors") -> Path:
    path = folder / "checkpoint" / name
    save_checkpoint(path, {"w": torch.full((300,), fill)}, kind="listops", state=STATE)
    return path


# ------------------------------------------------------------------ saving and loading


DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool]


def test_what_is_saved_is_loaded(tmp_path: Path, generator: torch.Generator) -> None:
    tensors = {str(t): torch.randn(2, 3, generator=generator).to(t) for t in DTYPES}
    tensors |= {"scalar": torch.tensor(2.0), "empty": torch.zeros(0, 4)}
    path = tmp_path / "made" / "too" / "x.safetensors"
    save_checkpoint(path, tensors, kind="nli", state=STATE)
    loaded = load_checkpoint(path, kind="nli")
    assert (loaded.kind, loaded.state) == ("nli", STATE)
    assert loaded.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded.tensors[name].dtype == tensor.dtype
        assert torch.equal(loaded.tensors[name], tensor)
    assert os.listdir(path.parent) == [path.name]
    assert read_checkpoint_state(path) == STATE


def test_any_program_that_knows_the_format_can_read_it(tmp_path: Path) -> None:
    assert torch.equal(load_file(saved(tmp_path))["w"], torch.ones(300))


def test_tensors_with_gaps_shared_memory_and_gradients(tmp_path: Path) -> None:
    base = torch.arange(12.0).reshape(3, 4)
    weight = nn.Parameter(torch.ones(2))
    tensors = {
        "base": base,
        "same": base,
        "transposed": base.T,
        "row": base[1],
        "column": base[:, 1],
        "expanded": torch.tensor([7.0]).expand(5),
        "weight": weight,
        "tied": weight,
    }
    path = tmp_path / "x.safetensors"
    save_checkpoint(path, tensors, kind="x", state={})
    loaded = load_checkpoint(path).tensors
    assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())
    assert not any(tensor.requires_grad for tensor in loaded.values())


def test_numbers_that_json_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_checkpoint(path, {}, kind="x", state={"best": -math.inf, "loss": math.nan})
    state = read_checkpoint_state(path)
    assert state["best"] == -math.inf
    assert math.isnan(state["loss"])


def test_loaded_tensors_are_no_window_on_the_file(tmp_path: Path) -> None:
    path = saved(tmp_path, 1.0)
    tensors = load_checkpoint(path).tensors
    path.write_bytes(bytes(path.stat().st_size))
    assert torch.equal(tensors["w"], torch.ones(300))
    tensors["w"].fill_(2)
    assert path.read_bytes().count(0) == path.stat().st_size


@given(
    st.dictionaries(st.text(), st.none() | st.booleans() | st.floats(allow_nan=False), max_size=3)
)
def test_any_state_comes_back(
    tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("state") / "x.safetensors"
    save_checkpoint(path, {}, kind="x", state=state)
    assert read_checkpoint_state(path) == state


@pytest.mark.parametrize("value", [torch.ones(1), {1, 2}, b"x"])
def test_a_state_that_is_not_json(tmp_path: Path, value: object) -> None:
    path = saved(tmp_path)
    with pytest.raises(InputError, match=r"^state: received what is not JSON \(Object of type"):
        save_checkpoint(path, {}, kind="x", state={"a": value})
    assert read_checkpoint_state(path) == STATE


# ------------------------------------------------------------------ a full disk


def test_a_full_disk_leaves_the_previous_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, 1.0)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError) as caught:
        saved(tmp_path, 2.0)
    assert str(caught.value) == (
        f"{path}: was not saved: No space left on device; the previous checkpoint is intact, free "
        "some space and use --resume"
    )
    with pytest.raises(CheckpointError, match="No space left on device; free some space and start"):
        saved(tmp_path, 2.0, "first.safetensors")
    assert os.listdir(path.parent) == [path.name]
    assert torch.equal(load_checkpoint(path).tensors["w"], torch.ones(300))


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are of POSIX")
def test_a_write_that_the_system_cuts_off(tmp_path: Path) -> None:
    path = saved(tmp_path, 1.0)
    code = (
        "import resource, sys, torch\n"
        "from treelax.errors import CheckpointError\n"
        "from treelax.training.checkpoint import save_checkpoint\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "try:\n"
        "    save_checkpoint(sys.argv[1], {'w': torch.ones(10_000)}, kind='x', state={})\n"
        "except CheckpointError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert "last.safetensors: was not saved: File too large; the previous" in done.stdout
    assert "free some space and use --resume" in done.stdout
    assert torch.equal(load_checkpoint(path).tensors["w"], torch.ones(300))
    assert os.listdir(path.parent) == [path.name]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="was not saved: Not a directory; mend that and"):
        save_checkpoint(tmp_path / "file" / "sub" / "x.safetensors", {}, kind="x", state={})


# ------------------------------------------------------------------ what is no checkpoint


def header_end(path: Path) -> int:
    return 8 + int.from_bytes(path.read_bytes()[:8], "little")


@pytest.mark.parametrize(
    "keep",
    [
        lambda path: 0,
        lambda path: 1,
        lambda path: 7,
        lambda path: 8,
        lambda path: 9,
        lambda path: 60,
        lambda path: header_end(path) - 1,
        lambda path: header_end(path),
        lambda path: header_end(path) + 1,
        lambda path: path.stat().st_size // 2,
        lambda path: path.stat().st_size - 1,
    ],
    ids=["0", "1", "7", "8", "9", "60", "header-1", "header", "header+1", "half", "all-1"],
)
@pytest.mark.parametrize("read", [load_checkpoint, read_checkpoint_state])
def test_a_file_that_is_cut_off(
    tmp_path: Path, keep: Callable[[Path], int], read: Callable[[Path], object]
) -> None:
    path = saved(tmp_path)
    os.truncate(path, keep(path))
    with pytest.raises(CheckpointError, match=r"last.safetensors: is cut off or damaged \(.*; use"):
        read(path)


def test_a_file_that_goes_on_after_its_end(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(CheckpointError, match="is cut off or damaged"):
        load_checkpoint(path)


HEADER = {"format": "treelax", "version": "1", "kind": "x", "state": "{}"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "pt"}, "is a safetensors file of something else; expected a checkpoint that"),
        ({"format": None}, "is a safetensors file of something else"),
        ({"version": "2"}, "is a checkpoint of version 2; expected 1: load it with the treelax"),
        ({"version": None}, "is a checkpoint of version None"),
        ({"kind": None}, "its header is damaged .*'kind'"),
        ({"state": None}, "its header is damaged .*'state'"),
        ({"state": "{"}, "its header is damaged"),
        ({"state": "3"}, "its header is damaged"),
    ],
)
def test_headers_of_something_else(
    tmp_path: Path, change: dict[str, str | None], message: str
) -> None:
    path = tmp_path / "x.safetensors"
    header = {key: value for key, value in (HEADER | change).items() if value is not None}
    save_file({"w": torch.ones(1)}, path, header)
    for read in (load_checkpoint, read_checkpoint_state):
        with pytest.raises(CheckpointError, match=f"x.safetensors: {message}") as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_other_files(tmp_path: Path) -> None:
    bare, text = tmp_path / "bare.safetensors", tmp_path / "text.safetensors"
    save_file({"w": torch.ones(1)}, bare)
    text.write_text("epoch,loss\n1,0.5\n2,0.25\n")
    torch.save({"w": torch.ones(1)}, tmp_path / "pickle.pt")
    for name, message in {
        "bare.safetensors": "is a safetensors file of something else",
        "text.safetensors": "is no safetensors file; expected a checkpoint that treelax saved",
        "pickle.pt": "is no safetensors file",
        "nowhere": "does not exist; expected a checkpoint",
        "": "is a folder; expected a checkpoint",
    }.items():
        with pytest.raises(CheckpointError, match=f"{tmp_path.name}/?{name}: {message}"):
            load_checkpoint(tmp_path / name)


def test_another_kind(tmp_path: Path) -> None:
    path = saved(tmp_path)
    with pytest.raises(
        CheckpointError,
        match="holds a checkpoint of 'listops'; expected one of 'nli': give the checkpoint of",
    ):
        load_checkpoint(path, kind="nli")
    assert load_checkpoint(path, kind="listops").state == STATE


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import safetensors

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(safetensors, "safe_open", refuse)
    with pytest.raises(CheckpointError, match=r"cannot be read: .*Permission denied"):
        load_checkpoint(saved(tmp_path))


# ------------------------------------------------------------------ optimisers


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
        ([(2, 3), (4,)], r"received the state of groups of \[1\] parameters; expected \[2\]"),
        ([(3, 2)], r"a parameter of shape \(2, 3\); expected \(3, 2\): resume with the config"),
    ],
)
def test_the_optimiser_of_another_model(shapes: list[tuple[int, ...]], message: str) -> None:
    one = torch.optim.Adam([nn.Parameter(torch.ones(2, 3))], lr=0.5)
    other = torch.optim.Adam([nn.Parameter(torch.ones(shape)) for shape in shapes], lr=0.1)
    with pytest.raises(CheckpointError, match=f"^optimizer: .*{message}"):
        restore_optimizer(other, *flatten_optimizer(one))
    assert other.param_groups[0]["lr"] == 0.1
    assert not other.state


def test_an_optimiser_that_keeps_lists_of_tensors() -> None:
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.LBFGS([weight])

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"LBFGS: received '[a-z_]+' of type list; expected"):
        flatten_optimizer(optimizer)


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
