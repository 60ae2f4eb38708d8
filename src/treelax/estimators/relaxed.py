"""Perturb and parse: the paper's estimator."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.estimators.base import Soft, check_noise, check_samples
from treelax.interface import StructureInterface
from treelax.noise import Gumbel, Noise
from treelax.ops.backend import RELAXATIONS, Relaxation
from treelax.ops.checks import check_temperature, one_of


@dataclass(frozen=True)
class Relaxed(Soft):
    r"""The relaxed structure of perturbed scores, :math:`\mathrm{soft}((W + G)/\tau)`.

    Approximate samples: the noise is added to parts, not to whole structures (section 3.2 of the
    paper). The gradient is exact for the relaxation. One relaxed structure a sample.

    Args:
        relaxation: "softmax" (the paper's) or "entropy" (marginals of the perturbed scores).
        temperature: of the relaxation; the noise is added before.
        noise: `treelax.Gumbel`, `treelax.Gaussian` or `treelax.SumOfGamma`, or None (the paper's G = 0).
        samples: structures that `expect` looks at.

    Example:
        >>> import torch
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
        check_noise(self.noise)
        check_samples(self.samples)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Relaxed) and self._settings() == other._settings()

    def __hash__(self) -> int:
        return hash(self._settings())

    def _settings(self) -> tuple[object, ...]:
        heat: object = self.temperature
        if isinstance(heat, Tensor):  # comparing tensors gives a tensor
            heat = (heat.shape, *heat.flatten().tolist())
        return self.relaxation, heat, self.noise, self.samples

    def check_structure(self, structure: StructureInterface) -> None:
        structure.check_relaxation(self.relaxation)

    def made(
        self, distribution: StructureDistribution, scores: Tensor, lengths: Tensor, share: float = 1
    ) -> Tensor:
        return distribution.structure.relaxed(
            scores,
            lengths,
            relaxation=self.relaxation,
            temperature=self.temperature,
            **distribution.options,
        )

    def relax(self, distribution: StructureDistribution, scores: Tensor, lengths: Tensor) -> Tensor:
        """The relaxed structure of scores, without noise."""
        return self.made(distribution, scores, lengths)
