"""Training and evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode; it is restored to its previous mode on exit."""
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)
