"""SparseMAP: the nearest point of the polytope of structures."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.errors import InputError
from treelax.estimators.base import Soft, check_noise, check_samples
from treelax.noise import Noise
from treelax.ops.backend import inner
from treelax.ops.call import precise
from treelax.ops.checks import check_temperature


@dataclass(frozen=True)
class SparseMAP(Soft):
    r"""The structure nearest to the scores, a mean of few discrete ones.

    .. math:: z = \mathrm{argmin}_{z \in \mathcal P} \frac12 \| z - W/\tau \|^2

    over the polytope :math:`\mathcal P` of all means of structures, with its exact gradient. Most
    structures have weight 0; `Structure.sparsemap` gives those that do not. It costs as many best
    structures as there are in the mean, and more.

    Args:
        temperature: the scores are divided by it; lower is sparser and faster.
        max_iterations: structures to add to the best one at most; None to go on until the point is
            optimal.
        noise: added to the scores, or None for none.
        samples: structures that `expect` looks at, which differ if there is noise.

    Example:
        >>> from treelax import Projective
        >>> trees = Projective()(torch.tensor([[0.0, 0.9, 0.4], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
        >>> SparseMAP().sample(trees)
        tensor([[0.0000, 0.9500, 0.7000],
                [0.0000, 0.0000, 0.3000],
                [0.0000, 0.0500, 0.0000]])

    Reference:
        Niculae, Martins, Blondel & Cardie (2018), SparseMAP: differentiable sparse structured
        inference, ICML.
    """

    temperature: float = 1.0
    max_iterations: int | None = None
    noise: Noise | None = None
    samples: int = 1

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        most = self.max_iterations
        if most is not None and (not isinstance(most, int) or most < 1):
            raise InputError(f"max_iterations is {most!r}; expected a whole number of at least 1.")
        check_noise(self.noise)
        check_samples(self.samples)

    def made(
        self, distribution: StructureDistribution, scores: Tensor, lengths: Tensor, share: float = 1
    ) -> Tensor:
        scores, most = scores / self.temperature, self.max_iterations
        nearest = distribution.structure.sparsemap
        return nearest(scores, lengths, max_iterations=most, **distribution.options).tree

    def conjugate(
        self, distribution: StructureDistribution, generator: torch.Generator | None = None
    ) -> Tensor:
        r"""``⟨z, W⟩ - τ½‖z‖²``, whose gradient is ``z``; see `fenchel_young_loss`."""
        scores, dims = precise(distribution.scores), distribution.structure.event_dim
        near = self.made(distribution, scores, distribution.lengths).detach()
        squared = near.double().square().flatten(-dims).sum(-1)
        return inner(near, scores, dims) - self.temperature / 2 * squared
