"""Losses for known structures."""

from __future__ import annotations

import torch
from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.errors import InputError
from treelax.estimators.marginals import Marginals
from treelax.estimators.perturbed import Perturbed
from treelax.estimators.sparsemap import SparseMAP
from treelax.ops.backend import inner
from treelax.ops.call import precise, value_type


def fenchel_young_loss(
    distribution: StructureDistribution,
    gold: Tensor,
    estimator: Perturbed | Marginals | SparseMAP | None = None,
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Loss of scores beside a known structure ``y``, whose gradient is a mean structure less ``y``.

    .. math:: F(W) - \langle W, y \rangle, \qquad \nabla_W = y_F(W) - y, \quad y_F = \nabla F

    With `Perturbed`, F is the mean score of best structures under noise and the gradient their mean less
    ``y``: no marginals are needed, only best structures. With `Marginals`, :math:`F = \log Z` and the
    loss is the negative log-likelihood; with `SparseMAP`, the SparseMAP loss, 0 once ``y`` leads by a
    margin.

    Args:
        distribution: of structures, with the scores.
        gold: structures 0/1, of the shape of the scores.
        estimator: which F; `Perturbed` with 8 samples by default, whose losses lack a constant and
            may be below 0.
        generator: source of randomness.

    Example:
        >>> from treelax import Projective
        >>> trees = Projective()(torch.randn(2, 5, 5))
        >>> fenchel_young_loss(trees, trees.mode, Marginals()).allclose(-trees.log_prob(trees.mode))
        True

    Reference:
        Blondel, Martins & Niculae (2020), Learning with Fenchel-Young losses, JMLR 21; Berthet et al.
        (2020), section 4.
    """
    estimator = Perturbed() if estimator is None else estimator
    if not isinstance(estimator, Perturbed | Marginals | SparseMAP):
        raise InputError(
            f"estimator is {estimator!r}; expected treelax.Perturbed, treelax.Marginals or "
            "treelax.SparseMAP."
        )
    expected = tuple(distribution.batch_shape + distribution.event_shape)
    if not isinstance(gold, Tensor) or tuple(gold.shape) != expected:
        received = tuple(gold.shape) if isinstance(gold, Tensor) else type(gold).__name__
        raise InputError(f"gold is {received}; expected a structure for each sentence, {expected}.")
    dims = distribution.structure.event_dim
    loss = estimator.conjugate(distribution, generator)
    loss = loss - inner(gold, precise(distribution.scores), dims)
    if isinstance(estimator, SparseMAP):
        loss = loss + estimator.temperature / 2 * gold.double().square().flatten(-dims).sum(-1)
    return loss.to(value_type(distribution.scores))
