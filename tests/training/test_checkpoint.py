"""Checkpoints: whole or not at all, told apart from everything else, and exact to the bit."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save
from torch import nn

from treelax.apps.training.checkpoint import (
    load_checkpoint,
    read_checkpoint_header,
    save_checkpoint,
)
from treelax.errors import CheckpointError

STATE = {"epoch": 3, "best": {"score": -math.inf, "epoch": 2}, "history": [1, None, True, "ä"]}
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool]


def saved(folder: Path, fill: float = 1.0) -> Path:
    path = folder / "checkpoint" / "last.safetensors"
    save_checkpoint(path, {"w": torch.full((300,), fill)}, kind="listops", state=STATE)
    return path


def test_what_is_saved_is_loaded(tmp_path: Path, generator: torch.Generator) -> None:
    tensors = {str(t): torch.randn(2, 3, generator=generator).to(t) for t in DTYPES}
    base, weight = torch.arange(12.0).reshape(3, 4), nn.Parameter(torch.ones(2))
    tensors |= {"scalar": torch.tensor(2.0), "empty": torch.zeros(0, 4)}
    tensors |= {"base": base, "same": base, "transposed": base.T, "column": base[:, 1]}
    tensors |= {"expanded": base[:1].expand(5, 4), "weight": weight, "tied": weight}
    path = tmp_path / "made" / "too" / "x.safetensors"
    save_checkpoint(path, tensors, kind="nli", state=STATE)
    loaded = load_checkpoint(path, kind="nli")
    assert (loaded.kind, loaded.state) == ("nli", STATE)
    assert read_checkpoint_header(path) == ("nli", STATE)
    assert loaded.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded.tensors[name].dtype == tensor.dtype
        assert torch.equal(loaded.tensors[name], tensor)
        assert not loaded.tensors[name].requires_grad
    assert torch.equal(load_file(path)["base"], base)  # by any program that knows the format
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk_leaves_the_previous_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, 1.0)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match=f"^{path}: was not saved: No space left .*is intact"):
        saved(tmp_path, 2.0)
    assert os.listdir(path.parent) == [path.name]
    assert torch.equal(load_checkpoint(path).tensors["w"], torch.ones(300))


HEADER = {"format": "treelax", "version": "1", "kind": "x", "state": "{}"}


def test_damaged_and_other_files(tmp_path: Path) -> None:
    path = saved(tmp_path)
    content = path.read_bytes()
    tensors = {"w": torch.ones(1)}
    for damaged in (
        b"",
        content[:60],  # cut off in the header
        content[:-1],
        content.replace(b"\x80\x3f", b"\x81\x3f"),
        content.replace(rb"\"epoch\": 3", rb"\"epoch\": 4"),
        b"epoch,loss\n1,0.5\n2,0.25\n",
        save(tensors, {"format": "pt"}),
        save(tensors, HEADER | {"state": "{"}),
    ):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"last.safetensors: is cut off or dam") as caught:
            load_checkpoint(path)
        assert "\n" not in str(caught.value)


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    path = saved(tmp_path)
    newer = save({"w": torch.ones(1)}, HEADER | {"version": "2"})
    (tmp_path / "new.safetensors").write_bytes(newer)
    for file, message in {
        tmp_path / "new.safetensors": "is a checkpoint of version 2; expected 1: load it with the",
        tmp_path / "nowhere": "does not exist; expected a checkpoint",
        tmp_path: "is a folder; expected a checkpoint",
        path: "holds a checkpoint of 'listops'; expected one of 'nli'",
    }.items():
        with pytest.raises(CheckpointError, match=f"^{file}: {message}"):
            load_checkpoint(file, kind="nli")
    assert load_checkpoint(path, kind="listops").state == STATE
