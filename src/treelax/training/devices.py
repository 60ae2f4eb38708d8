"""Which device to run on."""

from __future__ import annotations

import torch

from treelax.errors import InputError


def find_device(name: str, *, threads: int = 0) -> torch.device:
    """The device of a name.

    Args:
        name: "auto" for a GPU if there is one, else a name that torch knows.
        threads: of torch on the CPU; 0 leaves them.

    Returns:
        The device.

    Raises:
        InputError: torch does not know the name, or there is no such device here.

    Example:
        >>> find_device("cpu")
        device(type='cpu')
    """
    if threads:
        torch.set_num_threads(threads)
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"device is {name!r}; expected cpu, cuda, cuda:N or auto") from error
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device is {name!r}; expected cpu, cuda, cuda:N or auto")
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise InputError(f"device is {name!r} but {count} GPUs are here; expected cpu or auto")
    return device
