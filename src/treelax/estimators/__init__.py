"""How a distribution over structures becomes a training signal."""

from treelax.estimators.base import Estimator
from treelax.estimators.exact import Exact
from treelax.estimators.fenchel_young import fenchel_young_loss
from treelax.estimators.imle import IMLE
from treelax.estimators.marginals import Marginals
from treelax.estimators.perturbed import Perturbed
from treelax.estimators.relaxed import Relaxed
from treelax.estimators.score import REINFORCE, RLOO
from treelax.estimators.sparsemap import SparseMAP
from treelax.estimators.spigot import SPIGOT
from treelax.estimators.straight_through import StraightThrough

__all__ = [
    "IMLE",
    "REINFORCE",
    "RLOO",
    "SPIGOT",
    "Estimator",
    "Exact",
    "Marginals",
    "Perturbed",
    "Relaxed",
    "SparseMAP",
    "StraightThrough",
    "fenchel_young_loss",
]
