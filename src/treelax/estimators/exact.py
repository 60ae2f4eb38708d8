"""The expected loss itself, by enumeration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.estimators.base import ExpectedLoss, Loss, checked_losses
from treelax.interface import StructureInterface
from treelax.ops import checks
from treelax.ops.backend import inner
from treelax.ops.call import value_type


@dataclass(frozen=True)
class Exact(ExpectedLoss):
    r"""The expected loss :math:`\sum_T p(T) f(T)` over all structures, for short sentences.

    Its gradient is exact: the judge of all other estimators. Every structure goes through ``f``:
    7,752 projective trees over 7 words, 262,144 non-projective ones.

    Raises:
        InputError: there are more than a million structures to try, or they have labels.

    Example:
        >>> from treelax import Projective
        >>> trees = Projective()(torch.zeros(2, 4, 4, requires_grad=True))
        >>> Exact().expect(trees, lambda tree: tree[..., 0, 1])
        tensor([0.5833, 0.5833], grad_fn=<SumBackward1>)
    """

    def check_structure(self, structure: StructureInterface) -> None:
        """Raise unless its structures can be listed."""
        structure.enumerate(0)

    def expect(
        self,
        distribution: StructureDistribution,
        f: Loss,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The sum over all structures, ``(...)``; ``f`` takes them at once."""
        structure, scores = distribution.structure, distribution.scores
        distribution.log_partition  # noqa: B018  checks the scores
        size = scores.shape[-structure.event_dim]
        longest = size - structure.rooted
        if checks.readable(distribution.lengths) and distribution.lengths.numel():
            longest = int(distribution.lengths.max())
        table, counts = all_structures(structure, longest, size, scores.device)
        # (structures, ..., n+1, n+1); sentences with fewer repeat their first one with weight 0
        trees = table[:, distribution.lengths].to(scores.dtype)
        rank = torch.arange(len(table), device=scores.device)
        none = rank.reshape(-1, *(1,) * distribution.lengths.dim()) >= counts[distribution.lengths]
        losses = checked_losses(f(trees), trees, structure.event_dim)
        log_weights = inner(trees, distribution.scores, structure.event_dim)
        shares = log_weights.masked_fill(none, float("-inf")).softmax(0)
        return (shares.to(losses.dtype) * losses).sum(0).to(value_type(scores))


@lru_cache(maxsize=4)
def all_structures(
    structure: StructureInterface, longest: int, size: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Structures of each length, ``(structures, lengths, size, size)``, and how many of each."""
    # the longest first: they may be too many
    per_length = [structure.enumerate(n) for n in range(longest, -1, -1)][::-1]
    table = torch.zeros(max(map(len, per_length)), len(per_length), size, size, dtype=torch.bool)
    for n, trees in enumerate(per_length):
        width = trees.shape[-1]
        table[:, n, :width, :width] = trees[0] != 0
        table[: len(trees), n, :width, :width] = trees != 0
    return table.to(device), torch.tensor([len(trees) for trees in per_length], device=device)
