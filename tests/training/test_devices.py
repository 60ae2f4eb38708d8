"""Which device a name means, and what is said of one that is not here."""

from __future__ import annotations

import pytest
import torch

from treelax.apps.training import devices
from treelax.apps.training.devices import find_device
from treelax.apps.training.distributed import World
from treelax.errors import InputError
from treelax.ops.checks import MOST_THREADS


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[torch.device]:
    """Two GPUs, as far as torch says; and those that were set."""
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    return chosen


@pytest.mark.usefixtures("chosen")
def test_names_where_there_are_gpus() -> None:
    assert find_device("auto") == find_device("cuda") == torch.device("cuda")
    assert find_device("cuda:1") == torch.device("cuda:1")
    assert find_device("cpu") == find_device("cpu:0") == torch.device("cpu")
    with pytest.raises(InputError, match=r"^device is 'cuda:2' but 2 GPUs are here; expected"):
        find_device("cuda:2")


def test_each_process_has_its_gpu(
    chosen: list[torch.device], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "current", lambda: World(3, 4, 1, 2))
    assert find_device("cuda") == find_device("auto") == torch.device("cuda:1") == chosen[-1]
    assert find_device("cpu") == torch.device("cpu")
    with pytest.raises(InputError, match=r"^device is 'cuda:0' for 2 processes on this machine"):
        find_device("cuda:0")
    monkeypatch.setattr(devices, "current", lambda: World(0, 3, 0, 3))
    with pytest.raises(InputError, match=r"3 processes on this machine with 2 GPUs; .* at most 2"):
        find_device("auto")


def test_names_of_what_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert find_device("auto") == torch.device("cpu")
    for name in ("cuda", "gpu", "", "cpu:7", "mps"):
        with pytest.raises(InputError, match=rf"^device is '{name}'.*; expected cpu"):
            find_device(name)


def test_threads() -> None:
    find_device("cpu", threads=2)
    assert torch.get_num_threads() == 2
    with pytest.raises(InputError, match=r"threads is 1025; expected at most 1,024"):
        find_device("cpu", threads=MOST_THREADS + 1)
