"""Distributions over trees."""

from treelax.distributions.projective import ProjectiveTrees

__all__ = ["ProjectiveTrees"]
