"""Training and evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode for a while, as a context manager.

    Args:
        module: which is in the mode that it was in afterwards.

    Example:
        >>> layer = nn.Dropout(0.5)
        >>> with evaluating(layer):
        ...     layer.training
        False
        >>> layer.training
        True
    """
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)
