"""Scores with small chart values, where float32 needs them.

Chart values grow with the length and the scores, and with them the rounding of the differences that a
softmax sees. A `Shift` moves all trees of a sentence by the same amount, so that none changes, soft or
discrete. The READMEs of `treelax.ops.eisner` and `treelax.ops.cky` derive theirs.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from treelax.ops.backend import FORBIDDEN, NO_TREE

#: The size of chart values from which float32 loses too much in their differences.
CENTRE_ABOVE = 256.0

#: Scores, best trees and their values to shifted scores and what was taken off every tree.
Shift = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def needs_centring(weights: Tensor, parts: Tensor) -> Tensor:
    """``(B,)``: whether ``Σ_j |w(j,j)| + |max_{i≠j} w(i,j)|`` over parts exceeds the limit."""
    if weights.dim() > 3:  # the best label of every part
        weights, parts = weights.amax(-1), parts.any(-1)
    others = parts & ~torch.eye(parts.shape[-1], dtype=torch.bool, device=parts.device)
    largest = weights.masked_fill(~others, FORBIDDEN).amax(1)
    words = weights.diagonal(0, 1, 2)
    magnitude = words.abs() + largest.abs().masked_fill(largest < NO_TREE, 0)
    return magnitude.sum(-1) > CENTRE_ABOVE


def shift_columns(weights: Tensor, tree: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Arcs: the arc of the best tree off every column."""
    heads_and_labels = (1, *range(3, weights.dim()))
    shift = (tree * weights).sum(heads_and_labels, keepdim=True)
    return weights - shift, shift.flatten(1).sum(-1)


def shift_spans(weights: Tensor, tree: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Spans: ``w'(i,j) = w(i,j) - c``, ``w'(k,k) = c - β_k``, 0 for the last word."""
    size = weights.shape[-1]
    # a span of the best tree is the left antecedent of the next one in its row
    column = torch.arange(size, device=weights.device)
    following = torch.where(tree == 0, size, column).flip(-1).cummin(-1).values.flip(-1)
    following = pad(following[..., 1:], (0, 1), value=size)
    split = (tree > 0) & (following < size)
    by_split = weights.gather(-1, following.clamp(max=size - 1)).where(split, 0).sum(1)  # β
    is_split = split.any(1)
    rank = by_split.abs().masked_fill(~is_split, torch.inf)
    least = by_split.gather(1, rank.argmin(1, keepdim=True))  # c
    moved = weights - least[:, :, None]
    moved.diagonal(0, 1, 2).copy_((least - by_split).where(is_split, 0))
    return moved, value
