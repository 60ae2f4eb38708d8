"""Checkpoints: whole or not at all, told apart from everything else, and exact to the bit."""

from __future__ import annotations

import errno
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
from torch import nn

from treelax.errors import CheckpointError, InputError
from treelax.training.checkpoint import (
    load_checkpoint,
    read_checkpoint_state,
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
    with pytest.raises(CheckpointError, match="No space left on device; free some space and use"):
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


@pytest.mark.parametrize("place", [-1, -20])
def test_a_flipped_bit_in_the_tensors(tmp_path: Path, place: int) -> None:
    path = saved(tmp_path)
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"last.safetensors: is cut off or damaged \(.*; use"):
        load_checkpoint(path)


def test_a_changed_state(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes().replace(rb"\"epoch\": 3", rb"\"epoch\": 4"))
    with pytest.raises(CheckpointError, match=r"last.safetensors: is cut off or damaged"):
        load_checkpoint(path)


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
        ({"state": "[" * 100_000}, "its header is damaged"),
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
