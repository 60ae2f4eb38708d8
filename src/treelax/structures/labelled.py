"""Structures whose parts have labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor
from torch.nn import functional as F

from treelax.errors import InputError
from treelax.interface import Options, StructureInterface
from treelax.ops.backend import LIMIT, Relaxation
from treelax.ops.call import draw_uniforms, precise
from treelax.ops.checks import check_lengths, check_scores
from treelax.structures.base import Structure


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
        if not isinstance(self.structure, Structure) or isinstance(self.structure, Labelled):
            raise InputError(
                f"structure is {self.structure!r}; expected one without labels, such as "
                "treelax.Projective()."
            )

    @property
    def part(self) -> str:  # type: ignore[override]
        """As the structure's."""
        return self.structure.part

    @property
    def relaxations(self) -> tuple[Relaxation, ...]:  # type: ignore[override]
        """As the structure's."""
        return self.structure.relaxations

    def argmax(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        """The best structure with the best label of each part."""
        check_scores(scores, self.rooted, labelled=True)
        best, label = scores.detach().max(-1)
        tree = self.structure.argmax(best, lengths, **options)
        # F.one_hot would read the labels, which torch.vmap does not allow
        return torch.zeros_like(scores).scatter(-1, label[..., None], tree[..., None])

    def log_partition(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        """Log of the summed weight of all labelled structures."""
        check_scores(scores, self.rooted, labelled=True)
        return self.structure.log_partition(self._summed(scores, lengths)[0], lengths, **options)

    def marginals(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> tuple[Tensor, Tensor]:
        """Probability of each part with each label."""
        check_scores(scores, self.rooted, labelled=True)
        total, shares = self._summed(scores, lengths)
        marginals, value = self.structure.marginals(total, lengths, **options)
        return marginals[..., None] * shares, value

    def sample(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        sample_shape: Any = (),
        generator: torch.Generator | None = None,
        **options: Unpack[Options],
    ) -> Tensor:
        """Samples of the structure, then of a label for each part."""
        check_scores(scores, self.rooted, labelled=True)
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
        check_scores(scores, self.rooted, labelled=True)
        heat = temperature
        if isinstance(heat, Tensor):
            heat = heat[..., None, None]
            scores = self._cleared(scores, lengths)
        # neither forbidden parts nor the padding may reach the temperature's gradient: 0 · inf
        forbidden = scores == float("-inf")
        finite, none = scores.masked_fill(forbidden, 0), forbidden.all(-1)
        cooled = finite / (heat[..., None] if isinstance(heat, Tensor) else heat)
        total, shares = self._summed(cooled.masked_fill(forbidden, float("-inf")), lengths)
        if relaxation == "softmax":  # the expected score
            part = (shares * finite).sum(-1)
        else:
            part = total.masked_fill(none, 0) * heat
        part = part.masked_fill(none, float("-inf"))
        soft = self.structure.relaxed(
            part, lengths, relaxation=relaxation, temperature=temperature, **options
        )
        return soft[..., None] * shares

    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        """Whether the parts are a structure and have one label each."""
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
        """Whether the structure does, where a part counts as its label that counts most."""
        inner = other.structure if isinstance(other, Labelled) else other
        return self.structure.has_extra_support(inner, counts.amax(-1), lengths, backend=backend)

    def max_marginals(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        """For each part and label the score of the best structure that has them."""
        check_scores(scores, self.rooted, labelled=True)
        wide = self._cleared(precise(scores.detach()), lengths)
        best = wide.amax(-1)
        marginals = self.structure.max_marginals(best, lengths, **options)[..., None]
        bounded = wide.clamp(-LIMIT, LIMIT) - best[..., None].clamp(-LIMIT, LIMIT)
        marginals = (marginals + bounded).masked_fill(wide == float("-inf"), float("-inf"))
        return marginals.to(scores.dtype)

    def part_mask(self, lengths: Tensor, size: int) -> Tensor:
        """True at the entries that are parts, whatever their label: ``(..., size, size, 1)``."""
        return self.structure.part_mask(lengths, size)[..., None]

    def part_count(self, lengths: Tensor) -> Tensor:
        """How many parts a structure has."""
        return self.structure.part_count(lengths)

    def parts_of(self, value: Tensor) -> Tensor:
        """The labelled parts of structures one by one."""
        return self.structure.parts_of(value.sum(-1))[..., None] & (value != 0)

    def compatible_parts(self, parts: Tensor) -> Tensor:
        """True at the parts that go with the given ones, and no other label on these."""
        there = parts.any(-1)
        return self.structure.compatible_parts(there)[..., None] & (parts | ~there[..., None])

    def enumerate(self, n: int) -> Tensor:
        """Not without the number of labels."""
        raise InputError(
            f"{self} cannot be enumerated, as the number of labels is not known to it; expected "
            f"{self.structure}, without labels."
        )

    def log_count(self, n: int) -> float:
        """Of the structures without labels."""
        return self.structure.log_count(n)

    def _summed(self, scores: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """``log Σ_l exp``, ``-inf`` where all labels are forbidden, and each label's share of it."""
        scores = self._cleared(scores, lengths)
        # +inf is an error of the structure's own check; the largest half number is below LIMIT
        scores = scores.clamp(max=min(LIMIT, torch.finfo(scores.dtype).max))
        none = (scores == float("-inf")).all(-1)
        some = scores.masked_fill(none[..., None], 0)
        return some.logsumexp(-1).masked_fill(none, float("-inf")), some.softmax(-1)

    def _cleared(self, scores: Tensor, lengths: Tensor | None) -> Tensor:
        """Scores with 0 where there is no part: NaN there, times 0, would be NaN."""
        size = scores.shape[-2]
        if lengths is None:
            lengths = self.full_lengths(scores)
        else:
            check_lengths(lengths, scores.shape[:-3], scores.device)
        return scores.masked_fill(~self.part_mask(lengths, size), 0)

    @property
    def none_left(self) -> str:
        """What forbidden parts leave where they leave no structure."""
        return self.structure.none_left

    @property
    def rules(self) -> str:
        """What makes a 0/1 tensor such a structure."""
        return f"{self.structure.rules}, one label each"
