"""SPIGOT: the loss moves the structure, a projection brings it back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.errors import InputError
from treelax.estimators.base import (
    FiniteStep,
    check_noise,
    check_positive,
    check_samples,
    with_gradient,
)
from treelax.interface import StructureInterface
from treelax.noise import Noise
from treelax.ops.checks import one_of

Projection = Literal["simplex", "polytope"]
Form = Literal["spigot", "ce", "eg"]


@dataclass(frozen=True)
class SPIGOT(FiniteStep):
    r"""The best structure; its gradient is how far a step along the loss moves it.

    .. math:: z = T(W), \qquad \frac{\partial L}{\partial W} =
        \begin{cases}
        z - \mathrm{Proj}(z - \eta g) & \text{SPIGOT} \\
        \mu - \mathrm{Proj}(\mu - \eta g) & \text{SPIGOT-CE} \\
        \mu(W) - \mu(W - \eta g) & \text{SPIGOT-EG}
        \end{cases}
        \qquad g = \frac{\partial L}{\partial z},\quad \mu = \mu(W)

    The projection is that on the simplex of each word's heads (Peng et al.), or on the polytope of all
    structures (Mihaylova et al.), by SparseMAP from :math:`z`. It costs a best structure, and a
    projection or marginals.

    Args:
        step: :math:`\eta`. It multiplies the gradient of the loss that is differentiated: with a mean
            over a batch of 64 sentences, a step of 64 does what 1 does for one sentence.
        projection: "simplex", for dependency trees, or "polytope".
        form: "spigot", "ce" (cross-entropy) or "eg" (exponentiated gradient, which needs no
            projection).
        noise: added to the scores, or None for none.
        samples: structures that `expect` looks at.

    Example:
        >>> import torch
        >>> from treelax import Projective
        >>> trees = Projective()(torch.randn(2, 5, 5, requires_grad=True))
        >>> SPIGOT(step=0.5).sample(trees).unique()
        tensor([0., 1.], grad_fn=<Unique2Backward0>)

    Reference:
        Peng, Thomson & Smith (2018), Backpropagating through structured argmax using a SPIGOT, ACL;
        Mihaylova, Niculae & Martins (2020), Understanding the mechanics of SPIGOT, EMNLP.
    """

    step: float = 1.0
    projection: Projection = "simplex"
    form: Form = "spigot"
    noise: Noise | None = None
    samples: int = 1

    def __post_init__(self) -> None:
        check_positive("step", self.step)
        one_of("projection", self.projection, get_args(Projection))
        one_of("form", self.form, get_args(Form))
        check_noise(self.noise)
        check_samples(self.samples)

    def check_structure(self, structure: StructureInterface) -> None:
        if self.projection == "simplex" and self.form != "eg" and structure.unconstrained is None:
            raise InputError(
                f'projection is "simplex" with {structure}; expected "polytope": the simplex is that of '
                "a word's heads, without labels."
            )

    def made(
        self, distribution: StructureDistribution, scores: Tensor, lengths: Tensor, share: float = 1
    ) -> Tensor:
        structure, options = distribution.structure, distribution.options
        self.check_structure(structure)
        space = structure.unconstrained if self.projection == "simplex" else structure
        hard = structure.argmax(scores, lengths, **options)
        step = self.step / share

        def rule(grad: Tensor, hard: Tensor, fixed: Tensor, lengths: Tensor) -> Tensor:
            point = hard
            if self.form != "spigot":
                point = structure.marginals(fixed, lengths, **options)[0]
            if self.form == "eg":
                moved = structure.marginals(fixed - step * grad, lengths, **options)[0]
            else:
                target = (point - step * grad).masked_fill(fixed == -math.inf, -math.inf)
                assert space is not None
                moved = space.sparsemap(target, lengths, start=hard, **options).tree
            gradient = share * (point - moved)
            self.warn_if_zero(distribution, grad, gradient)
            return gradient

        return with_gradient(hard, scores, rule, scores.detach(), lengths)
