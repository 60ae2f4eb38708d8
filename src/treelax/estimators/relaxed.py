"""Perturb and parse: the paper's estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.estimators.base import Estimator
from treelax.noise import Gumbel, Noise, SumOfGamma
from treelax.ops.backend import RELAXATIONS, Relaxation
from treelax.ops.canonical import precise
from treelax.ops.checks import check_temperature, one_of, sample_size

if TYPE_CHECKING:
    from treelax.distributions import StructureDistribution


@dataclass(frozen=True)
class Relaxed(Estimator):
    r"""The relaxed structure of perturbed scores, :math:`\mathrm{soft}((W + G)/\tau)`.

    Approximate samples: the noise is added to parts, not to whole structures (section 3.2 of the
    paper). The gradient is exact for the relaxation.

    Args:
        relaxation: "softmax" (the paper's) or "entropy" (marginals of the perturbed scores).
        temperature: of the relaxation; the noise is added before.
        noise: `treelax.Gumbel` or `treelax.SumOfGamma`, or None for none (the paper's G = 0).
        samples: structures that `expect` looks at.

    Raises:
        InputError: a setting that does not exist or is out of range.

    Example:
        >>> from treelax import Projective
        >>> trees = Projective()(torch.zeros(2, 5, 5, requires_grad=True))
        >>> Relaxed(noise=None).sample(trees).shape
        torch.Size([2, 5, 5])
        >>> Relaxed(samples=3).expect(trees, lambda tree: tree[..., 0, 1]).shape
        torch.Size([2])

    Reference:
        Corro & Titov (2019), sections 3 and 4.
    """

    relaxation: Relaxation = "softmax"
    temperature: float | Tensor = 1.0
    noise: Noise | None = Gumbel()  # noqa: RUF009  frozen
    samples: int = 1

    def __post_init__(self) -> None:
        one_of("relaxation", self.relaxation, RELAXATIONS)
        if not isinstance(self.temperature, Tensor):
            check_temperature(self.temperature)
        if not isinstance(self.noise, Gumbel | SumOfGamma | None):
            raise InputError(
                f"noise is {self.noise!r}; expected treelax.Gumbel(), treelax.SumOfGamma() or None."
            )
        if self.samples < 1:
            raise InputError(f"samples is {self.samples}; expected at least 1.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Relaxed) and self._settings() == other._settings()

    def __hash__(self) -> int:
        return hash(self._settings())

    def _settings(self) -> tuple[object, ...]:
        heat: object = self.temperature
        if isinstance(heat, Tensor):  # its own == gives a tensor
            heat = (heat.shape, *heat.flatten().tolist())
        return self.relaxation, heat, self.noise, self.samples

    def sample(
        self,
        distribution: StructureDistribution,
        sample_shape: Any = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Relaxed structures ``(*sample_shape, ..., n+1, n+1)``."""
        noisy, lengths = self.perturbed(distribution, sample_shape, generator)
        return self.relax(distribution, noisy, lengths).to(distribution.scores.dtype)

    def perturbed(
        self,
        distribution: StructureDistribution,
        sample_shape: Any,
        generator: torch.Generator | None,
    ) -> tuple[Tensor, Tensor]:
        """Scores plus noise, and their lengths; in float32 for half types, whose rounding would favour
        some structures."""
        shape = sample_size(sample_shape) + distribution.batch_shape
        scores = precise(distribution.scores.expand(shape + distribution.event_shape))
        lengths = distribution.lengths.expand(shape)
        if self.noise is None:
            return scores, lengths
        structure = distribution.structure
        dims = structure.event_dim
        parts = structure.part_count(lengths)
        parts = parts.reshape(parts.shape + (1,) * dims)
        mask = structure.part_mask(lengths, scores.shape[-dims])
        return scores + self.noise.draw(scores, parts, generator).masked_fill(~mask, 0), lengths

    def relax(self, distribution: StructureDistribution, scores: Tensor, lengths: Tensor) -> Tensor:
        """The relaxed structure of scores, without noise."""
        return distribution.structure.relaxed(
            scores,
            lengths,
            relaxation=self.relaxation,
            temperature=self.temperature,
            **distribution.options,
        )
