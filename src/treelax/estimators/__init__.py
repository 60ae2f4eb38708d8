"""How a distribution over structures becomes a training signal."""

from treelax.estimators.base import Estimator
from treelax.estimators.relaxed import Relaxed
from treelax.estimators.straight_through import StraightThrough

__all__ = ["Estimator", "Relaxed", "StraightThrough"]
