"""The expected loss itself, by enumeration."""

from __future__ import annotations

import itertools
import math
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
    7,752 projective trees over 7 words, 262,144 non-projective ones, and a million at most.

    Example:
        >>> from treelax import Projective
        >>> trees = Projective()(torch.zeros(2, 4, 4, requires_grad=True))
        >>> Exact().expect(trees, lambda tree: tree[..., 0, 1])
        tensor([0.5833, 0.5833], grad_fn=<SumBackward1>)
    """

    def expect(
        self,
        distribution: StructureDistribution,
        f: Loss,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The sum over all structures, ``(...)``; ``f`` takes them at once."""
        structure, scores, lengths = (
            distribution.structure,
            distribution.scores,
            distribution.lengths,
        )
        distribution.log_partition  # noqa: B018  checks the scores
        if structure.length_count == 1:
            lengths = lengths[..., None]
        event = scores.shape[-structure.event_dim :]
        sizes = structure.sizes(*event)
        longest = sizes[: lengths.shape[-1]]
        if checks.readable(lengths) and lengths.numel():
            longest = tuple(lengths.reshape(-1, len(longest)).amax(0).tolist())
        others = sizes[len(longest) :]
        table, counts = all_structures(structure, longest, others, tuple(event), scores.device)
        # (structures, *scores.shape); sentences with fewer repeat their first one with weight 0
        index = lengths.unbind(-1)
        structures = table[(slice(None), *index)].to(scores.dtype)  # type: ignore[index]
        rank = torch.arange(len(table), device=scores.device)
        none = rank.reshape(-1, *(1,) * index[0].dim()) >= counts[index]
        losses = checked_losses(f(structures), structures, distribution)
        log_weights = inner(structures, scores, structure.event_dim)
        shares = log_weights.masked_fill(none, -math.inf).softmax(0)
        return (shares.to(losses.dtype) * losses).sum(0).to(value_type(scores))


@lru_cache(maxsize=4)
def all_structures(
    structure: StructureInterface,
    longest: tuple[int, ...],
    others: tuple[int, ...],
    event: tuple[int, ...],
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Structures of all lengths, ``(structures, *lengths, *event)``, and how many of each."""
    room = [length + 1 for length in longest]
    every = [*itertools.product(*map(range, room))]
    # the longest first: they may be too many
    listed = [structure.enumerate(*lengths, *others) for lengths in reversed(every)][::-1]
    table = torch.zeros(len(every), max(map(len, listed)), *event, dtype=torch.bool)
    for row, found in zip(table, listed, strict=True):
        inside = tuple(slice(size) for size in found.shape[1:])
        row[:, *inside] = (found[:1] != 0).any(0)
        row[: len(found), *inside] = found != 0
    counts = torch.tensor([len(found) for found in listed], device=device)
    return table.unflatten(0, room).movedim(len(room), 0).to(device), counts.view(room)
