"""What the layers check: sizes when built; shapes, types and devices when called.

Values are never read, so no check waits for the GPU.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from treelax.errors import InputError
from treelax.ops import checks


def check_size(**sizes: Any) -> None:
    """Raise unless all sizes are whole numbers of at least 1."""
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} is {value!r}; expected a whole number of at least 1.")


def check_dropout(value: Any) -> None:
    """Raise unless ``value`` is a probability below 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise InputError(f"dropout is {value!r}; expected a probability of at least 0 and below 1.")


def check_vectors(name: str, vectors: Any, *shape: int | str) -> None:
    """Raise unless ``vectors`` is a floating-point tensor of a shape: numbers, words for any size, and
    ``"..."`` in front for more dimensions."""
    expected = f"({', '.join(map(str, shape))})"
    if not isinstance(vectors, Tensor):
        raise InputError(f"{name} is a {type(vectors).__name__}; expected a tensor {expected}.")
    open_front = shape[0] == "..."
    last = shape[1:] if open_front else shape
    received = tuple(vectors.shape)
    fits = len(received) >= len(last) if open_front else len(received) == len(last)
    if not fits or any(
        isinstance(wanted, int) and wanted != got
        for wanted, got in zip(last, received[-len(last) :], strict=True)
    ):
        raise InputError(f"{name} has shape {received}; expected {expected}.")
    if not vectors.is_floating_point():
        raise InputError(
            f"{name} has dtype {vectors.dtype}; expected a floating-point type: look up the vectors "
            "of token numbers with torch.nn.Embedding first."
        )


def check_lengths(lengths: Any, vectors: Tensor) -> None:
    """Raise unless ``lengths`` is None, or fits the vectors ``(..., n, d)``."""
    if lengths is not None:
        checks.check_lengths(lengths, vectors.shape[:-2], vectors.device)
