"""Errors of too little memory, on the CPU and on a GPU."""

from __future__ import annotations

import sys


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether an error says that memory ran out."""
    torch = sys.modules.get("torch")  # without it, it cannot have raised the error
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)
    )
