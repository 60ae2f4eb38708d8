"""A head for every word, chosen independently: the ablation without the tree constraint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor

from treelax.interface import Options
from treelax.ops import select_heads
from treelax.ops.backend import LIMIT, Relaxation
from treelax.ops.call import draw_uniforms, make_call, precise
from treelax.ops.checks import arc_mask, sample_size
from treelax.ops.heads import ALGORITHM
from treelax.ops.sparsemap import columns
from treelax.ops.sparsemap.function import check_iterations, check_start
from treelax.ops.sparsemap.result import SparseMap
from treelax.structures.arcs import Arcs


@dataclass(frozen=True)
class Heads(Arcs):
    """A head for every word, chosen independently, so that cycles and crossing arcs may come out.

    Parts are arcs as in `Projective`; the distribution is a product over words, everything is O(n²),
    and both relaxations are the softmax over each word's heads.

    Example:
        >>> Heads()(torch.zeros(3, 3)).marginals
        tensor([[0.0000, 0.5000, 0.5000],
                [0.0000, 0.0000, 0.5000],
                [0.0000, 0.5000, 0.0000]])

    Reference:
        Corro & Titov (2019), section 6.3, "latent head selection model".
    """

    name: ClassVar[str] = "heads"

    def argmax(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        return select_heads(scores, lengths, hard=True, validate=options.get("validate", True))

    def log_partition(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        if options.get("validate", True):
            self.argmax(scores.detach(), lengths, **options)
        call = make_call(ALGORITHM, scores, lengths)
        arcs = arc_mask(call.lengths, call.scores.shape[-1])
        words = arcs.any(-2)
        s = call.scores.clamp(-LIMIT, LIMIT)
        s = s.masked_fill(~arcs | (call.scores == -math.inf), -math.inf)
        # columns of the root and the padding have no heads: 0 keeps NaN out of their gradient
        s = s.masked_fill(~words[:, None], 0)
        return call.restore_value(s.logsumexp(-2).where(words, 0).sum(-1))

    def marginals(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> tuple[Tensor, Tensor]:
        shares = self.relaxed(scores, lengths, **options)
        return shares, self.log_partition(scores, lengths, validate=False)

    def sample(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        sample_shape: Any = (),
        generator: torch.Generator | None = None,
        **options: Unpack[Options],
    ) -> Tensor:
        shares = self.relaxed(precise(scores.detach()), lengths, **options)
        shape = (*sample_size(sample_shape), *shares.shape[:-2], 1, shares.shape[-1])
        below = shares.cumsum(-2)
        total = below[..., -1:, :]
        # the first head with more below it than was drawn; never one without probability
        uniforms = draw_uniforms(shape, shares, generator, dims=2)
        head = (below <= uniforms * total).sum(-2, keepdim=True)
        position = torch.arange(shares.shape[-1], device=shares.device)[:, None]
        tree = ((head == position) & (total > 0)).to(scores.dtype)
        return tree.masked_fill(shares.isnan(), math.nan)

    def relaxed(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        relaxation: Relaxation = "softmax",
        temperature: float | Tensor = 1.0,
        **options: Unpack[Options],
    ) -> Tensor:
        validate = options.get("validate", True)
        return select_heads(scores, lengths, temperature=temperature, validate=validate)

    def sparsemap(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        start: Tensor | None = None,
        max_iterations: int | None = None,
        **options: Unpack[Options],
    ) -> SparseMap:
        """The sparsemax over the heads of every word, in one step from wherever one starts."""
        check_iterations(max_iterations)
        if start is not None:
            check_start(start, scores)
        if options.get("validate", True):
            self.argmax(scores.detach(), lengths, **options)
        call = make_call(ALGORITHM, scores, lengths)
        tree, gap = columns.project(call.scores, call.lengths)

        def mixture() -> tuple[Tensor, Tensor]:
            indices, weights = columns.mixture(tree.detach(), call.lengths)
            return indices.reshape(call.batch_shape + indices.shape[1:]), call.restore(weights)

        return SparseMap(call.restore(tree), call.restore(gap), mixture)

    def log_count(self, n: int) -> float:
        return n * math.log(n) if n else 0.0
