"""Latent trees for PyTorch: learn projective dependency trees end to end from the task alone."""

from treelax import ops
from treelax.errors import TreelaxError

__all__ = ["TreelaxError", "ops"]
__version__ = "0.1.0"
