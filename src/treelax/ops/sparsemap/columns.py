"""SparseMAP where every word chooses its head on its own: sparsemax, column by column."""

from __future__ import annotations

import torch
from torch import Tensor

from treelax.ops import checks
from treelax.ops.sparsemap.plain import prepared


def project(scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Every column of scores ``(B, N, N)`` on the simplex (Martins & Astudillo 2016), and the gap.

    Sorted, a column keeps the largest ``k`` scores for which the k-th is more than what is left over
    when the first k sum to 1; that ``τ`` is taken off all of them. The tree has a gradient.
    """
    size = scores.shape[-1]
    arcs = checks.arc_mask(lengths, size)
    fixed = prepared(scores, arcs, rooted=True)
    allowed = arcs & (fixed > float("-inf"))
    ordered = fixed.masked_fill(~allowed, float("-inf")).sort(1, descending=True).values
    ordered = ordered.masked_fill(ordered == float("-inf"), -1e300)
    rank = torch.arange(1, size + 1, device=scores.device)[:, None]
    kept = (ordered * rank > ordered.cumsum(1) - 1).sum(1, keepdim=True).clamp(min=1)
    least = ordered.gather(1, kept - 1)
    support = allowed & (fixed >= least)
    # the same with a gradient: of what is kept, less its mean
    count = support.sum(1, keepdim=True).clamp(min=1)
    own = torch.where(support, scores.to(fixed.dtype) - scores.detach().to(fixed.dtype) + fixed, 0)
    tree = torch.where(support, own - (own.sum(1, keepdim=True) - 1) / count, 0).clamp(min=0)
    point = tree.detach()
    rest = torch.where(allowed, fixed - point, float("-inf"))
    words = arcs.any(1)
    best = rest.amax(1).where(words, 0) if size else rest.sum(1)
    gap = (best - (point * torch.where(allowed, rest, 0)).sum(1)).sum(1).clamp(min=0)
    # NaN in the whole sentence where a score is, and a factor of NaN, so that the gradient has it too
    wrong = (scores.detach().isnan() & arcs).flatten(1).any(1)
    factor = torch.ones_like(scores).masked_fill(wrong[:, None, None] & arcs, float("nan"))
    tree = torch.where(wrong[:, None, None] & arcs, scores * factor, tree.to(scores.dtype))
    return tree, gap.masked_fill(wrong, float("nan")).to(scores.dtype)


def mixture(point: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """A few choices of heads that mix to ``point``, as indices ``(B, S, n)`` and weights ``(B, S)``.

    All words read their distribution functions at the same uniform variable: its interval falls into as
    many pieces as there are different values of them, one choice each.
    """
    batch, size, _ = point.shape
    words = checks.arc_mask(lengths, size).any(1)
    below = point.double().cumsum(1)
    below = below / below[:, -1:].clamp(min=1e-300)  # to 1, exactly
    cuts = torch.where(words[:, None], below, 1).flatten(1).sort(1).values
    cuts = torch.cat([cuts.new_zeros(batch, 1), cuts, cuts.new_ones(batch, 1)], 1)
    weights = cuts.diff(dim=1)
    # pieces of rounding's size would be choices of their own
    real = weights > 1e-12
    order = torch.where(real, 1, 0).argsort(dim=1, descending=True, stable=True)
    if checks.readable(point):
        order = order[:, : int(real.sum(1).amax()) if batch else 0]
    real = real.gather(1, order)
    weights = torch.where(real, weights.gather(1, order), 0)
    middle = (cuts[:, :-1] + cuts[:, 1:]).gather(1, order) / 2
    head = torch.searchsorted(
        below.transpose(1, 2)[:, 1:].contiguous(),
        middle[:, None].expand(-1, max(size - 1, 0), -1).contiguous(),
    ).clamp(max=max(size - 1, 0))
    word = torch.arange(1, size, device=point.device)[:, None]
    indices = torch.where(real[:, None] & words[:, 1:, None], head * size + word, size * size)
    return indices.transpose(1, 2), weights / weights.sum(1, keepdim=True).clamp(min=1e-300)
