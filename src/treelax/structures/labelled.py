"""Structures whose parts have labels."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor
from torch.nn import functional as F

from treelax.errors import InputError
from treelax.interface import Options, StructureInterface
from treelax.ops.backend import LIMIT, Relaxation
from treelax.ops.call import draw_uniforms, precise, value_type
from treelax.ops.checks import check_lengths, check_scores
from treelax.structures.base import Structure
from treelax.structures.search import check_count


@dataclass(frozen=True)
class Labelled(Structure):
    r"""A structure with a label on each of its parts.

    Scores and values have a last dimension of labels, ``(..., n+1, n+1, L)`` for arcs and
    ``(..., n, n, L)`` for spans. Given the parts, labels are independent: they enter the structure's
    algorithm as :math:`\log \sum_l \exp W_{p,l}` or :math:`\max_l W_{p,l}` and come back as a softmax.

    Args:
        structure: that of the parts, such as `Projective` or `Binary`.

    Example:
        >>> from treelax.structures import Projective
        >>> trees = Labelled(Projective())(torch.zeros(3, 3, 4))
        >>> trees.log_partition.exp().round()  # three trees over two words, four labels on each arc
        tensor(48.)
        >>> trees.mode.shape
        torch.Size([3, 3, 4])
    """

    structure: Structure
    name: ClassVar[str] = "labelled"
    event_dim: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if not isinstance(self.structure, Structure) or self.structure.event_dim != 2:
            raise InputError(
                f"structure is {self.structure!r}; expected one without labels whose parts are arcs or "
                "spans, such as treelax.Projective()."
            )

    @property
    def part(self) -> str:  # type: ignore[override]
        return self.structure.part

    @property
    def relaxations(self) -> tuple[Relaxation, ...]:  # type: ignore[override]
        return self.structure.relaxations

    def check_scores(self, scores: Tensor) -> None:
        check_scores(scores, self.rooted, labelled=True)

    def sizes(self, *shape: int) -> tuple[int, ...]:
        return *self.structure.sizes(*shape[:-1]), shape[-1]

    def argmax(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        self.check_scores(scores)
        best, label = scores.detach().max(-1)
        tree = self.structure.argmax(best, lengths, **options)
        # F.one_hot would read the labels, which torch.vmap does not allow
        return torch.zeros_like(scores).scatter(-1, label[..., None], tree[..., None])

    def log_partition(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        self.check_scores(scores)
        total, _ = self._summed(precise(scores), lengths)
        value = self.structure.log_partition(total, lengths, **options)
        return value.to(value_type(scores))

    def marginals(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> tuple[Tensor, Tensor]:
        self.check_scores(scores)
        total, shares = self._summed(precise(scores), lengths)
        marginals, value = self.structure.marginals(total, lengths, **options)
        return (marginals[..., None] * shares).to(scores.dtype), value.to(value_type(scores))

    def sample(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        sample_shape: Any = (),
        generator: torch.Generator | None = None,
        **options: Unpack[Options],
    ) -> Tensor:
        self.check_scores(scores)
        total, shares = self._summed(precise(scores.detach()), lengths)
        tree = self.structure.sample(
            total, lengths, sample_shape=sample_shape, generator=generator, **options
        )
        uniforms = draw_uniforms((*tree.shape, 1), tree, generator, dims=3)
        below = shares.cumsum(-1)
        label = (below <= uniforms * below[..., -1:]).sum(-1).clamp(max=shares.shape[-1] - 1)
        return (F.one_hot(label, shares.shape[-1]) * tree[..., None]).to(scores.dtype)

    def relaxed(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        relaxation: Relaxation = "softmax",
        temperature: float | Tensor = 1.0,
        **options: Unpack[Options],
    ) -> Tensor:
        """A softmax over the labels of each part inside the relaxed structure of what it passes on."""
        self.check_scores(scores)
        dtype, scores = scores.dtype, precise(scores)
        heat = temperature
        if isinstance(heat, Tensor):
            heat = heat[..., None, None]
            scores = self._cleared(scores, lengths)
        # neither forbidden parts nor the padding may reach the temperature's gradient: 0 · inf
        forbidden = scores == -math.inf
        finite, none = scores.masked_fill(forbidden, 0), forbidden.all(-1)
        cooled = finite / (heat[..., None] if isinstance(heat, Tensor) else heat)
        total, shares = self._summed(cooled.masked_fill(forbidden, -math.inf), lengths)
        if relaxation == "softmax":  # the expected score
            part = (shares * finite).sum(-1)
        else:
            part = total.masked_fill(none, 0) * heat
        part = part.masked_fill(none, -math.inf)
        soft = self.structure.relaxed(
            part, lengths, relaxation=relaxation, temperature=temperature, **options
        )
        return (soft[..., None] * shares).to(dtype)

    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        good = ((value == 0) | (value == 1)).flatten(-3).all(-1)
        return good & self.structure.contains(value.sum(-1), lengths)

    def has_extra_support(
        self,
        other: StructureInterface,
        counts: Tensor,
        lengths: Tensor,
        *,
        backend: str | None = None,
    ) -> Tensor:
        inner = other.structure if isinstance(other, Labelled) else other
        return self.structure.has_extra_support(inner, counts.amax(-1), lengths, backend=backend)

    def shared_score(self, best: Tensor, at_best: Tensor) -> Tensor:
        return self.structure.shared_score(best.any(-1), at_best.sum(-1))[..., None]

    def max_marginals(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        self.check_scores(scores)
        wide = self._cleared(precise(scores.detach()), lengths)
        best = wide.amax(-1)
        marginals = self.structure.max_marginals(best, lengths, **options)[..., None]
        bounded = wide.clamp(-LIMIT, LIMIT) - best[..., None].clamp(-LIMIT, LIMIT)
        marginals = (marginals + bounded).masked_fill(wide == -math.inf, -math.inf)
        return marginals.to(scores.dtype)

    def part_mask(self, lengths: Tensor, *shape: int) -> Tensor:
        return self.structure.part_mask(lengths, *shape[:2])[..., None]

    def part_count(self, lengths: Tensor) -> Tensor:
        return self.structure.part_count(lengths)

    def most_parts(self, *shape: int) -> int:
        return self.structure.most_parts(*shape[:-1])

    def parts_of(self, value: Tensor) -> Tensor:
        return self.structure.parts_of(value.sum(-1))[..., None] & (value != 0)

    def compatible_parts(self, parts: Tensor) -> Tensor:
        there = parts.any(-1)
        return self.structure.compatible_parts(there)[..., None] & (parts | ~there[..., None])

    def force(self, scores: Tensor, parts: Tensor) -> Tensor:
        there = parts.any(-1)
        inner = self.structure.force(torch.zeros_like(scores[..., 0]), there)[..., None]
        excluded = (there[..., None] & ~parts) | (scores == -math.inf)
        return (scores + inner).masked_fill(excluded, -math.inf)

    def enumerate(self, n: int, labels: int) -> Tensor:
        bare = self.structure.enumerate(n)
        count = int(self.part_count(torch.tensor(n)))
        check_count(len(bare) * labels**count, n)
        choices = torch.tensor([*itertools.product(range(labels), repeat=count)], dtype=torch.int64)
        chosen = F.one_hot(choices, labels).to(bare.dtype)
        parts = self.structure.parts_of(bare)[:count].to(bare.dtype)
        return torch.einsum("cpl,pt...->tc...l", chosen, parts).flatten(0, 1)

    def log_count(self, n: int, labels: int = 1) -> float:
        parts = int(self.part_count(torch.tensor(n)))
        return self.structure.log_count(n) + parts * math.log(labels)

    def _summed(self, scores: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """``log Σ_l exp``, ``-inf`` where all labels are forbidden, and each label's share of it."""
        scores = self._cleared(scores, lengths)
        # +inf is an error of the structure's own check; the largest half number is below LIMIT
        scores = scores.clamp(max=min(LIMIT, torch.finfo(scores.dtype).max))
        none = (scores == -math.inf).all(-1)
        some = scores.masked_fill(none[..., None], 0)
        return some.logsumexp(-1).masked_fill(none, -math.inf), some.softmax(-1)

    def _cleared(self, scores: Tensor, lengths: Tensor | None) -> Tensor:
        """Scores with 0 where there is no part: NaN there, times 0, would be NaN."""
        if lengths is None:
            lengths = self.full_lengths(scores)
        else:
            check_lengths(lengths, scores.shape[:-3], scores.device)
        return scores.masked_fill(~self.part_mask(lengths, *scores.shape[-3:]), 0)

    @property
    def none_left(self) -> str:
        return self.structure.none_left

    @property
    def rules(self) -> str:
        return f"{self.structure.rules}, one label each"
