"""Latent trees for PyTorch: learn projective dependency trees end to end from the task alone."""

from treelax import nn, noise, ops, trees
from treelax.distributions import ProjectiveTrees
from treelax.errors import TreelaxError

__all__ = ["ProjectiveTrees", "TreelaxError", "nn", "noise", "ops", "trees"]
__version__ = "0.1.0"
