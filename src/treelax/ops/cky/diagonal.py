"""The dynamic program as one vectorised step per span width; runs wherever PyTorch runs.

Planes ``(N, N, B)`` as in `treelax.ops.eisner.diagonal`: values of spans anchored left,
``VL[i, o] = v(i, i+o)``, and right, ``VR[j, N-1-p] = v(j-p, j)``. With ``w = j - i`` and ``R = N - w``
spans of that width, the scores of all their splits are ``VL[0:R, 0:w] + VR[w:N, N-w:N]``.

The four sweeps and their derivation are in the README of this folder. Memory is O(n²) a sentence:
the weights ``b`` of the splits are recomputed in every sweep.
"""

from __future__ import annotations

import torch
from torch import Tensor

from treelax.ops.backend import FORBIDDEN, NO_TREE, bounded
from treelax.ops.checks import span_mask
from treelax.ops.eisner.diagonal import (
    CENTRE_ABOVE,
    FILLS,
    Fill,
    Sweep,
    Weigh,
    best_weights,
    soft_weights,
)

# Planes of a chart, in the order in which they are kept for the backward pass.
LEFT, RIGHT = 0, 1  # values of spans, anchored left and right
INNER, TOP, SCALE = 2, 3, 4  # value of the choice among the splits; their maximum, 1/normaliser
GIVEN = 5  # contributions
PLANES = 6


def splits(planes: Sweep, width: int) -> Tensor:
    """Sums over both antecedents of every split ``(R, w, B)``: ``v(i,k) + v(k+1,j)``."""
    return planes.left(LEFT, width) + planes.right(RIGHT, width)


def place(planes: Sweep, width: int, values: Tensor) -> None:
    """Write ``(R, B)`` values of the spans of a width, anchored left and right."""
    planes.at_left(LEFT, width).copy_(values)
    planes.at_right(RIGHT, width).copy_(values)


def hand_down(planes: Sweep, width: int, shares: Tensor) -> None:
    """Add ``(R, w, B)`` to both antecedents of every split."""
    planes.left(LEFT, width).add_(shares)
    planes.right(RIGHT, width).add_(shares)


def handed_down(planes: Sweep, width: int) -> Tensor:
    """What the spans of a width have been given as left and as right antecedents ``(R, B)``."""
    return planes.at_left(LEFT, width) + planes.at_right(RIGHT, width)


def start(chart: Sweep, lengths: Tensor, whole: Tensor) -> Sweep:
    """Two planes of zeros for what is handed down, and ``whole`` at whole sentences."""
    given = Sweep(torch.zeros_like(chart.planes[: RIGHT + 1]), False)
    last = torch.arange(chart.size, device=lengths.device)[:, None] == lengths - 1
    given.planes[LEFT, 0] = torch.where(last, whole, 0)
    return given


def inside(scores: Tensor, lengths: Tensor, fill: Fill) -> Sweep:
    """Sweep 1, bottom-up: the values of all spans, with maximum and normaliser of every choice."""
    weights = bounded(scores, span_mask(lengths, scores.shape[-1])).permute(1, 2, 0)
    chart = Sweep(weights.new_zeros((PLANES, *weights.shape)), False)
    place(chart, 0, weights.diagonal().mT)
    for width in range(1, chart.size):
        top, scale, value = fill(splits(chart, width))
        value = value.clamp(min=FORBIDDEN)
        for plane, result in ((TOP, top), (SCALE, scale), (INNER, value)):
            chart.at_left(plane, width).copy_(result)
        place(chart, width, value + weights.diagonal(width).mT)
    return chart


def goal(chart: Sweep, lengths: Tensor) -> Tensor:
    """``v(0, length - 1)`` of every sentence, 0 for an empty one."""
    whole = chart.planes[LEFT, 0].gather(0, (lengths - 1).clamp(min=0)[None])[0]
    return whole.masked_fill(lengths == 0, 0)


def outside(chart: Sweep, lengths: Tensor, weigh: Weigh) -> Tensor:
    """Sweep 2, top-down: contributions, which stay in the chart; returns the tree ``(B, N, N)``."""
    given = start(chart, lengths, chart.planes.new_ones(()))
    tree = chart.planes.new_zeros((lengths.shape[0], chart.size, chart.size))
    for width in range(chart.size - 1, -1, -1):
        contribution = handed_down(given, width)
        chart.at_left(GIVEN, width).copy_(contribution)
        tree.diagonal(width, 1, 2).copy_(contribution.mT)
        if width > 0:
            top, scale = chart.at_left(TOP, width), chart.at_left(SCALE, width)
            b = weigh(splits(chart, width), top, scale)
            hand_down(given, width, b.mul_(contribution[:, None]))
    return tree


def up(chart: Sweep, grad_tree: Tensor) -> Sweep:
    """Sweep 3, bottom-up: the adjoints of all contributions, and ``ḡ = Σ b_k g_k`` in `INNER`."""
    grad = Sweep(torch.zeros_like(chart.planes[: INNER + 1]), False)
    grad_tree = grad_tree.permute(1, 2, 0)
    place(grad, 0, grad_tree.diagonal().mT)
    for width in range(1, chart.size):
        top, scale = chart.at_left(TOP, width), chart.at_left(SCALE, width)
        b = soft_weights(splits(chart, width), top, scale)
        mean = b.mul_(splits(grad, width)).sum(1)
        grad.at_left(INNER, width).copy_(mean)
        place(grad, width, mean + grad_tree.diagonal(width).mT)
    return grad


def down(chart: Sweep, grad: Sweep, grad_value: Tensor, lengths: Tensor, entropy: bool) -> Tensor:
    """Sweep 4, top-down: the adjoints of all values; returns the gradient of the scores."""
    given = start(chart, lengths, grad_value)
    grad_scores = grad_value.new_zeros((lengths.shape[0], chart.size, chart.size))
    for width in range(chart.size - 1, -1, -1):
        gv = handed_down(given, width)
        grad_scores.diagonal(width, 1, 2).copy_(gv.mT)
        if width == 0:
            break
        # ds_k = b_k [ gv (1 + (s_k - v)) + a (g_k - ḡ) ], without s_k - v for entropy
        s, contribution = splits(chart, width), chart.at_left(GIVEN, width)
        offset = gv - contribution * grad.at_left(INNER, width)
        bracket = splits(grad, width).mul_(contribution[:, None]).add_(offset[:, None])
        if not entropy:
            # b_k is 0 long before the clamp, which keeps 0 · inf out
            distance = (s - chart.at_left(INNER, width)[:, None]).clamp_(min=-1e4)
            bracket += distance.mul_(gv[:, None])
        b = soft_weights(s, chart.at_left(TOP, width), chart.at_left(SCALE, width))
        hand_down(given, width, b.mul_(bracket))
    return grad_scores


def centred(scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Scores with small chart values, where that is worth it, and what was taken off every tree.

    The README says why this changes no tree, soft or discrete. float64 has digits to spare.
    """
    nothing = scores.new_zeros(scores.shape[0])
    if scores.dtype != torch.float32:
        return scores, nothing
    batch, size, _ = scores.shape
    spans = span_mask(lengths, size)
    weights = bounded(scores, spans)
    words, longer = weights.diagonal(0, 1, 2), spans.triu(1)
    largest = weights.masked_fill(~longer, FORBIDDEN).amax(1)
    magnitude = words.abs() + largest.abs().masked_fill(largest < NO_TREE, 0)
    needed = magnitude.sum(-1) > CENTRE_ABOVE
    if not scores.is_cuda and not bool(needed.any()):  # reading it would make a GPU wait
        return scores, nothing
    tree, value = best_tree(scores, lengths, False)
    needed &= value > NO_TREE
    # a span of the best tree is the left antecedent of the next one in its row
    column = torch.arange(size, device=scores.device).expand(batch, size, size)
    following = column.masked_fill(tree == 0, size).flip(-1).cummin(-1).values.flip(-1)
    following = torch.nn.functional.pad(following[..., 1:], (0, 1), value=size)
    split = (tree > 0) & (following < size)
    by_split = weights.gather(-1, following.clamp(max=size - 1)).where(split, 0).sum(1)
    rank = by_split.abs().masked_fill(~split.any(1), torch.inf)
    least = by_split.gather(1, rank.argmin(1, keepdim=True)) * needed[:, None]
    moved = (weights - least[:, :, None]).where(longer, weights)
    new_words = (least - by_split).where(split.any(1), 0)
    moved.diagonal(0, 1, 2).copy_(torch.where(needed[:, None], new_words, words))
    moved.masked_fill_(scores == float("-inf"), float("-inf"))
    return moved, value.where(needed, 0)


def saved_shape(batch: int, size: int, dtype: torch.dtype) -> tuple[int, ...]:
    return (PLANES, size, size, batch)


def soft_tree(
    scores: Tensor, lengths: Tensor, relaxation: str, single_root: bool, save: bool
) -> tuple[Tensor, Tensor, Tensor]:
    scores, offset = centred(scores, lengths)
    chart = inside(scores, lengths, FILLS[relaxation])
    tree = outside(chart, lengths, soft_weights)
    return tree, goal(chart, lengths) + offset, chart.planes if save else scores.new_empty(0)


def soft_tree_backward(
    grad_tree: Tensor,
    grad_value: Tensor,
    saved: Tensor,
    lengths: Tensor,
    relaxation: str,
    single_root: bool,
) -> Tensor:
    chart = Sweep(saved, False)
    return down(chart, up(chart, grad_tree), grad_value, lengths, relaxation == "entropy")


def log_partition(scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    scores, offset = centred(scores, lengths)
    return goal(inside(scores, lengths, FILLS["entropy"]), lengths) + offset


def best_tree(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    chart = inside(scores, lengths, FILLS["best"])
    return outside(chart, lengths, best_weights), goal(chart, lengths)


def sample_tree(
    scores: Tensor, lengths: Tensor, uniforms: Tensor, single_root: bool
) -> tuple[Tensor, Tensor]:
    """All samples of all sentences take their decisions side by side, one per step."""
    scores, taken_off = centred(scores, lengths)
    chart = inside(scores, lengths, FILLS["entropy"])
    samples, (batch, size, _) = uniforms.shape[0], scores.shape
    device = scores.device
    position = torch.arange(size, device=device)

    # v(i, k) at [b, i, k], and v(k+1, j) at [b, k, j], whatever for k = j
    offset = (position[None, :] - position[:, None]).clamp(min=0).expand(batch, -1, -1)
    first = chart.planes[LEFT].permute(2, 0, 1).gather(2, offset)
    second = first.roll(-1, 1)

    count = samples * batch
    run = torch.arange(count, device=device)
    sentence = run % batch
    stack = torch.zeros((2, count, size + 1), dtype=torch.long, device=device)  # i, j
    stack[1, :, 0] = lengths[sentence] - 1
    depth = (lengths[sentence] > 1).long()  # a single word has nothing to decide
    trees = torch.diag_embed((position < lengths[:, None]).to(scores)).repeat(samples, 1, 1)
    flat_uniforms = uniforms.reshape(count, -1)

    for step in range(size - 1):
        live = depth > 0
        depth = (depth - 1).clamp(min=0)
        i, j = stack[:, run, depth]
        trees[run, i, j] = torch.where(live, 1, trees[run, i, j])
        inside_span = (position >= i[:, None]) & (position < j[:, None])
        s = first[sentence, i] + second[sentence, :, j]
        weights = s.masked_fill(~inside_span, -torch.inf).softmax(-1)
        # the last split with any weight takes what rounding leaves over
        last = ((weights > 0) * (position + 1)).argmax(-1, keepdim=True)
        above = (weights.cumsum(-1) > flat_uniforms[:, step, None]) | (position == last)
        k = above.to(torch.uint8).argmax(-1)
        # push the right antecedent, then the left one, which is taken first
        for span in (torch.stack((k + 1, j)), torch.stack((i, k))):
            push = live & (span[0] < span[1])
            stack[:, run, depth] = torch.where(push, span, stack[:, run, depth])
            depth = depth + push.long()
    return trees.reshape(samples, batch, size, size), goal(chart, lengths) + taken_off
