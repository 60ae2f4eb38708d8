"""A short text that tells data apart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from torch import Tensor

__all__ = ["fingerprint"]


def fingerprint(facts: object, tensors: Iterable[Tensor]) -> str:
    """A short text that is another if a fact or a number is.

    Args:
        facts: that are written the same in every process: texts, numbers, lists of them.
        tensors: the numbers, on any device.

    Returns:
        Thirty-two letters and digits.

    Example:
        >>> import torch
        >>> one, other = (fingerprint("a", [torch.tensor(value)]) for value in (1, 2))
        >>> one == fingerprint("a", [torch.tensor(1)]), one == other
        (True, False)
    """
    made = hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass"))
    for tensor in tensors:
        made.update(repr((tensor.dtype, tuple(tensor.shape))).encode())
        made.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return made.hexdigest()[:32]
