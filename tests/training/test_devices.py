"""Which device a name means, and what is said of one that is not here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch

from treelax.errors import InputError
from treelax.ops.checks import MOST_THREADS
from treelax.tasks.listops import config as listops
from treelax.tasks.text import config as text
from treelax.training.devices import find_device


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Two GPUs, as far as torch says."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    return monkeypatch


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)


@pytest.mark.usefixtures("gpus")
def test_names_where_there_are_gpus() -> None:
    assert find_device("auto") == find_device("cuda") == torch.device("cuda")
    assert find_device("cuda:1") == torch.device("cuda:1")
    assert find_device("cpu") == torch.device("cpu")
    with pytest.raises(InputError, match=r"^device is 'cuda:2' but 2 GPUs are here; expected"):
        find_device("cuda:2")


@pytest.mark.usefixtures("no_gpu")
def test_names_where_there_is_none() -> None:
    assert find_device("auto") == torch.device("cpu")
    for name in ("cuda", "cuda:0"):
        with pytest.raises(
            InputError, match=f"^device is '{name}' but 0 GPUs are here; expected cpu or auto$"
        ):
            find_device(name)


def test_there_is_one_cpu() -> None:
    assert find_device("cpu:0") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "", "cuda:x", "cuda:-1", "cpu:7", "meta", "mps", "Auto"])
def test_names_that_mean_nothing(name: str) -> None:
    with pytest.raises(InputError, match=r"expected cpu, cuda, cuda:N or auto$") as caught:
        find_device(name)
    assert repr(name) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_threads() -> None:
    before = torch.get_num_threads()
    find_device("cpu")
    assert torch.get_num_threads() == before
    find_device("cpu", threads=before + 1)
    assert torch.get_num_threads() == before + 1


@pytest.mark.parametrize(
    "taking", [listops.TrainConfig, text.TrainConfig, partial(find_device, "cpu")]
)
def test_all_refuse_the_same_number_of_threads(taking: Callable[..., object]) -> None:
    before = torch.get_num_threads()
    with pytest.raises(InputError, match=r"threads is 1025; expected .*\b1,024\b"):
        taking(threads=MOST_THREADS + 1)
    assert torch.get_num_threads() == before
