"""Types of the public names, which `__init__.py` imports when they are first used."""

from treelax import nn as nn
from treelax import noise as noise
from treelax import ops as ops
from treelax import trees as trees
from treelax.apps.tasks import load as load
from treelax.errors import TreelaxError as TreelaxError
from treelax.estimators import IMLE as IMLE
from treelax.estimators import REINFORCE as REINFORCE
from treelax.estimators import RLOO as RLOO
from treelax.estimators import SPIGOT as SPIGOT
from treelax.estimators import Exact as Exact
from treelax.estimators import Marginals as Marginals
from treelax.estimators import Perturbed as Perturbed
from treelax.estimators import Relaxed as Relaxed
from treelax.estimators import SparseMAP as SparseMAP
from treelax.estimators import StraightThrough as StraightThrough
from treelax.estimators import fenchel_young_loss as fenchel_young_loss
from treelax.noise import Gaussian as Gaussian
from treelax.noise import Gumbel as Gumbel
from treelax.noise import SumOfGamma as SumOfGamma
from treelax.structures import Alignment as Alignment
from treelax.structures import Binary as Binary
from treelax.structures import Chain as Chain
from treelax.structures import Heads as Heads
from treelax.structures import Labelled as Labelled
from treelax.structures import NonProjective as NonProjective
from treelax.structures import Projective as Projective
from treelax.structures import ProjectiveTrees as ProjectiveTrees
from treelax.structures import Segments as Segments
from treelax.structures import Spanning as Spanning

__version__: str
