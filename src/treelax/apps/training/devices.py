"""Which device to run on."""

from __future__ import annotations

import torch

from treelax.apps.training.distributed import current
from treelax.errors import InputError
from treelax.ops.checks import MOST_THREADS


def find_device(name: str, *, threads: int = 0) -> torch.device:
    """The device of a name; each of several processes on a machine has one GPU."""
    if threads > MOST_THREADS:
        raise InputError(f"threads is {threads}; expected at most {MOST_THREADS:,}")
    if threads:
        torch.set_num_threads(threads)
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type == "cpu" and not device.index:
        return torch.device("cpu")  # cpu:0 is the same
    if device.type != "cuda":
        raise InputError(f"device is {name!r}; expected cpu, cuda, cuda:N or auto")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if (device.index or 0) >= count:
        raise InputError(f"device is {name!r} but {count} GPUs are here; expected cpu or auto")
    world = current()
    if world.size == 1:
        return device
    if world.local_size > 1 and (device.index is not None or world.local_size > count):
        raise InputError(
            f"device is {name!r} for {world.local_size} processes on this machine with {count} GPUs; "
            f"expected cuda and at most {count} processes, each with a GPU of its own, or cpu"
        )
    place = torch.device("cuda", world.local_rank if device.index is None else device.index)
    torch.cuda.set_device(place)  # which torch then uses wherever none is named
    return place
