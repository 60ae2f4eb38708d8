"""The dynamic program as one vectorised step per span width; runs wherever PyTorch runs.

Every item lives in one or two planes ``(B, N, N)`` that make all splits of all spans of a width a
plain slice. Anchored left, ``XL[i, o] = X(i, i+o)``; anchored right, ``XR[j, N-1-p] = X(j-p, j)``.
With ``w = j - i`` and ``R = N - w`` spans of that width:

    U(i,j):   CrL[0:R, 0:w]   + ClR[w:N, N-w:N]          k = i … j-1
    C→(i,j):  IrL[0:R, 1:w+1] + CrR[w:N, N-w:N]          k = i+1 … j
    C←(i,j):  ClL[0:R, 0:w]   + IlR[w:N, N-1-w:N-1]      k = i … j-1

The four sweeps and their derivation are in the README of this folder. Memory is O(n²) a sentence:
the weights ``b`` of the splits are recomputed in every sweep.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from treelax.ops.checks import arc_mask
from treelax.ops.eisner.common import FORBIDDEN, NO_TREE, bounded

#: Score of a split that does not exist (single root); below every sum of two forbidden items.
EXCLUDED = -3e38

# Planes of a chart, in the order in which they are kept for the backward pass.
RIGHT_L, RIGHT_R, LEFT_L, LEFT_R, INC_RIGHT, INC_LEFT, GIVEN_RIGHT, GIVEN_LEFT, ARC_RIGHT, ARC_LEFT = range(10)  # noqa: E501
PLANES = 10

Weigh = Callable[[Tensor], Tensor]


class Sweep:
    """Slices of a stack of planes ``(planes, B, N, N)`` by width."""

    def __init__(self, planes: Tensor, single_root: bool) -> None:
        self.planes = planes
        self.size = planes.shape[-1]
        self.single_root = single_root

    def left(self, plane: int, width: int, first: int = 0) -> Tensor:
        """Operands anchored left: offsets ``first … first + width - 1`` of every span."""
        return self.planes[plane, :, : self.size - width, first : first + width]

    def right(self, plane: int, width: int, shift: int = 0) -> Tensor:
        """Operands anchored right, ``shift`` positions further from the right end."""
        stop = self.size - shift
        return self.planes[plane, :, width:, stop - width : stop]

    def at_left(self, plane: int, width: int) -> Tensor:
        """The items of this width in a plane anchored left, ``(B, R)``."""
        return self.planes[plane, :, : self.size - width, width]

    def at_right(self, plane: int, width: int) -> Tensor:
        """The items of this width in a plane anchored right, ``(B, R)``."""
        return self.planes[plane, :, width:, self.size - 1 - width]

    def inner(self, width: int) -> Tensor:
        """Scores of the splits of ``U``: ``C→(i,k) + C←(k+1,j)``."""
        s = self.left(RIGHT_L, width) + self.right(LEFT_R, width)
        if self.single_root:
            s[:, 0, 1:] = EXCLUDED
        return s

    def complete_right(self, width: int) -> Tensor:
        """Scores of the splits of ``C→``: ``I→(i,k) + C→(k,j)``."""
        return self.left(INC_RIGHT, width, 1) + self.right(RIGHT_R, width)

    def complete_left(self, width: int) -> Tensor:
        """Scores of the splits of ``C←``: ``C←(i,k) + I←(k,j)``."""
        return self.left(LEFT_L, width) + self.right(INC_LEFT, width, 1)


def softmax_value(s: Tensor) -> Tensor:
    """``b·s`` with ``b = softmax(s)``, summed below the maximum so that large scores cancel."""
    top = s.amax(-1)
    d = s - top[..., None]
    return top + (d.softmax(-1) * d).sum(-1)


VALUES: dict[str, Weigh] = {
    "softmax": softmax_value,
    "entropy": lambda s: s.logsumexp(-1),
    "best": lambda s: s.amax(-1),
}


def softmax_weights(s: Tensor) -> Tensor:
    return s.softmax(-1)


def best_weights(s: Tensor) -> Tensor:
    """One-hot at the first maximum."""
    return torch.nn.functional.one_hot(s.argmax(-1), s.shape[-1]).to(s.dtype)


def inside(scores: Tensor, lengths: Tensor, value: Weigh, single_root: bool) -> Sweep:
    """Sweep 1, bottom-up: the values of all items."""
    weights = bounded(scores, lengths)
    chart = Sweep(weights.new_zeros((PLANES, *weights.shape)), single_root)
    for width in range(1, chart.size):
        u = value(chart.inner(width)).clamp_(min=FORBIDDEN)
        chart.at_left(INC_RIGHT, width).copy_(u + weights.diagonal(width, 1, 2))
        chart.at_right(INC_LEFT, width).copy_(u + weights.diagonal(-width, 1, 2))
        right = value(chart.complete_right(width)).clamp_(min=FORBIDDEN)
        chart.at_left(RIGHT_L, width).copy_(right)
        chart.at_right(RIGHT_R, width).copy_(right)
        left = value(chart.complete_left(width)).clamp_(min=FORBIDDEN)
        chart.at_left(LEFT_L, width).copy_(left)
        chart.at_right(LEFT_R, width).copy_(left)
    return chart


def goal(planes: Tensor, lengths: Tensor) -> Tensor:
    """``C→(0, length)`` of every sentence."""
    return planes[RIGHT_L, :, 0].gather(-1, lengths[:, None])[:, 0]


def outside(chart: Sweep, lengths: Tensor, weigh: Weigh) -> Tensor:
    """Sweep 2, top-down: contributions; returns the tree ``(B, N, N)``.

    Contributions of complete items gather in two planes each, from ``U`` anchored left and from
    their own kind anchored right; the total is left in the chart.
    """
    size, planes = chart.size, chart.planes
    given = Sweep(torch.zeros_like(planes[:4]), chart.single_root)
    from_inner_right, from_right, from_left, from_inner_left = range(4)
    given.planes[from_inner_right, :, 0].scatter_(-1, lengths[:, None], 1)
    tree = torch.zeros_like(planes[0])
    for width in range(size - 1, 0, -1):
        right = given.at_left(from_inner_right, width) + given.at_right(from_right, width)
        chart.at_left(GIVEN_RIGHT, width).copy_(right)
        share = weigh(chart.complete_right(width)).mul_(right[..., None])
        chart.left(ARC_RIGHT, width, 1).add_(share)
        given.right(from_right, width).add_(share)

        left = given.at_left(from_left, width) + given.at_right(from_inner_left, width)
        chart.at_left(GIVEN_LEFT, width).copy_(left)
        share = weigh(chart.complete_left(width)).mul_(left[..., None])
        given.left(from_left, width).add_(share)
        chart.right(ARC_LEFT, width, 1).add_(share)

        arc_right, arc_left = chart.at_left(ARC_RIGHT, width), chart.at_right(ARC_LEFT, width)
        tree.diagonal(width, 1, 2).copy_(arc_right)
        tree.diagonal(-width, 1, 2).copy_(arc_left)
        share = weigh(chart.inner(width)).mul_((arc_right + arc_left)[..., None])
        given.left(from_inner_right, width).add_(share)
        given.right(from_inner_left, width).add_(share)
    return tree


def up(chart: Sweep, grad_tree: Tensor) -> Sweep:
    """Sweep 3, bottom-up: the adjoints of all contributions, ``ḡ = Σ b_k g_k``.

    Same planes as the values; ``GIVEN_RIGHT`` holds ``ḡ`` of ``U``.
    """
    grad = Sweep(torch.zeros_like(chart.planes[:7]), False)
    for width in range(1, chart.size):
        u = (softmax_weights(chart.inner(width)) * grad.inner(width)).sum(-1)
        grad.at_left(GIVEN_RIGHT, width).copy_(u)
        grad.at_left(INC_RIGHT, width).copy_(u + grad_tree.diagonal(width, 1, 2))
        grad.at_right(INC_LEFT, width).copy_(u + grad_tree.diagonal(-width, 1, 2))
        right = softmax_weights(chart.complete_right(width)).mul_(grad.complete_right(width)).sum(-1)
        grad.at_left(RIGHT_L, width).copy_(right)
        grad.at_right(RIGHT_R, width).copy_(right)
        left = softmax_weights(chart.complete_left(width)).mul_(grad.complete_left(width)).sum(-1)
        grad.at_left(LEFT_L, width).copy_(left)
        grad.at_right(LEFT_R, width).copy_(left)
    return grad


def down(chart: Sweep, grad: Sweep, grad_value: Tensor, lengths: Tensor, entropy: bool) -> Tensor:
    """Sweep 4, top-down: the adjoints of all values; returns the gradient of the scores."""
    size = chart.size
    given = Sweep(torch.zeros_like(chart.planes[:6]), False)
    from_inner_right, from_right, from_left, from_inner_left, to_right, to_left = range(6)
    given.planes[from_inner_right, :, 0].scatter_(-1, lengths[:, None], grad_value[:, None])
    grad_scores = torch.zeros_like(chart.planes[0])

    def adjoint(s: Tensor, contribution: Tensor, g: Tensor, g_mean: Tensor, gv: Tensor) -> Tensor:
        """``ds_k = b_k [ gv (1 + (s_k - v)) + a (g_k - ḡ) ]``, without ``s_k - v`` for entropy."""
        bracket = contribution[..., None] * (g - g_mean[..., None])
        if entropy:
            bracket += gv[..., None]
        else:
            # b_k is 0 long before the clamp, which keeps 0 · inf out
            distance = (s - softmax_value(s)[..., None]).clamp_(min=-1e4)
            bracket += gv[..., None] * distance.add_(1)
        return softmax_weights(s).mul_(bracket)

    for width in range(size - 1, 0, -1):
        gv = given.at_left(from_inner_right, width) + given.at_right(from_right, width)
        ds = adjoint(
            chart.complete_right(width),
            chart.at_left(GIVEN_RIGHT, width),
            grad.complete_right(width),
            grad.at_left(RIGHT_L, width),
            gv,
        )
        given.left(to_right, width, 1).add_(ds)
        given.right(from_right, width).add_(ds)

        gv = given.at_left(from_left, width) + given.at_right(from_inner_left, width)
        ds = adjoint(
            chart.complete_left(width),
            chart.at_left(GIVEN_LEFT, width),
            grad.complete_left(width),
            grad.at_left(LEFT_L, width),
            gv,
        )
        given.left(from_left, width).add_(ds)
        given.right(to_left, width, 1).add_(ds)

        gv_right, gv_left = given.at_left(to_right, width), given.at_right(to_left, width)
        grad_scores.diagonal(width, 1, 2).copy_(gv_right)
        grad_scores.diagonal(-width, 1, 2).copy_(gv_left)
        ds = adjoint(
            chart.inner(width),
            chart.at_left(ARC_RIGHT, width) + chart.at_right(ARC_LEFT, width),
            grad.inner(width),
            grad.at_left(GIVEN_RIGHT, width),
            gv_right + gv_left,
        )
        given.left(from_inner_right, width).add_(ds)
        given.right(from_inner_left, width).add_(ds)
    return grad_scores


#: The size of chart values from which float32 loses too much in their differences.
CENTRE_ABOVE = 256.0


def centred(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """Scores whose best tree scores 0, where that is worth it, and the score taken off.

    A constant added to a column changes no tree, soft or discrete. Chart values grow with the length
    and the scores, and with them the rounding of the differences that a softmax sees; after the shift
    the items on the best derivation are 0 and their rivals small. float64 has digits to spare.
    """
    nothing = scores.new_zeros(scores.shape[0])
    if scores.dtype != torch.float32 or scores.numel() == 0:
        return scores, nothing
    weights = bounded(scores, lengths)
    arcs = arc_mask(lengths, scores.shape[-1])
    size = weights.masked_fill(~arcs, FORBIDDEN).amax(1).abs()
    needed = size.masked_fill(~arcs.any(1), 0).sum(-1) > CENTRE_ABOVE
    if not scores.is_cuda and not bool(needed.any()):  # reading it would make a GPU wait
        return scores, nothing
    tree, value = best_tree(scores, lengths, single_root)
    needed &= value > NO_TREE
    shift = (tree * weights).sum(1) * needed[:, None]
    return scores - shift[:, None, :], shift.sum(-1)


def saved_shape(batch: int, size: int, dtype: torch.dtype) -> tuple[int, ...]:
    return (PLANES, batch, size, size)


def soft_tree(
    scores: Tensor, lengths: Tensor, relaxation: str, single_root: bool, save: bool
) -> tuple[Tensor, Tensor, Tensor]:
    scores, offset = centred(scores, lengths, single_root)
    chart = inside(scores, lengths, VALUES[relaxation], single_root)
    tree = outside(chart, lengths, softmax_weights)
    saved = chart.planes if save else scores.new_empty(0)
    return tree, goal(chart.planes, lengths) + offset, saved


def soft_tree_backward(
    grad_tree: Tensor,
    grad_value: Tensor,
    saved: Tensor,
    lengths: Tensor,
    relaxation: str,
    single_root: bool,
) -> Tensor:
    chart = Sweep(saved, single_root)
    grad = up(chart, grad_tree)
    return down(chart, grad, grad_value, lengths, relaxation == "entropy")


def log_partition(scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    scores, offset = centred(scores, lengths, single_root)
    return goal(inside(scores, lengths, VALUES["entropy"], single_root).planes, lengths) + offset


def best_tree(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    chart = inside(scores, lengths, VALUES["best"], single_root)
    return outside(chart, lengths, best_weights), goal(chart.planes, lengths)


def sample_tree(
    scores: Tensor, lengths: Tensor, uniforms: Tensor, single_root: bool
) -> tuple[Tensor, Tensor]:
    """All samples of all sentences take their decisions side by side, one per step."""
    scores, taken_off = centred(scores, lengths, single_root)
    chart = inside(scores, lengths, VALUES["entropy"], single_root)
    samples, (batch, size, _) = uniforms.shape[0], scores.shape
    device = scores.device
    position = torch.arange(size, device=device)

    # back to [i, j], one more column so that C←(k+1, j) can be read at k = n
    offset = position[None, :] - position[:, None]
    left_index = offset.clamp(min=0).expand(batch, -1, -1)
    right_index = (size - 1 - offset.clamp(min=0)).expand(batch, -1, -1)
    by_start = {p: chart.planes[p].gather(2, left_index) for p in (RIGHT_L, LEFT_L, INC_RIGHT)}
    by_end = chart.planes[INC_LEFT].transpose(1, 2).gather(1, right_index)  # [i, j] = XR[j, N-1-(j-i)]
    complete_right, complete_left, inc_right = by_start[RIGHT_L], by_start[LEFT_L], by_start[INC_RIGHT]
    shifted_left = torch.cat((complete_left[:, 1:], torch.zeros_like(complete_left[:, :1])), 1)
    # item kinds: 0 = C→, 1 = C←, 2 = I→, 3 = I←
    first = torch.stack((inc_right, complete_left, complete_right, complete_right))
    second = torch.stack((complete_right, by_end, shifted_left, shifted_left))
    first_kind = torch.tensor([2, 1, 0, 0], device=device)
    second_kind = torch.tensor([0, 3, 1, 1], device=device)

    count = samples * batch
    run = torch.arange(count, device=device)
    sentence = run % batch
    stack = torch.zeros((3, count, 2 * size + 2), dtype=torch.long, device=device)  # kind, i, j
    stack[2, :, 0] = lengths[sentence]
    depth = torch.ones(count, dtype=torch.long, device=device)
    trees = scores.new_zeros((count, size, size))
    flat_uniforms = uniforms.reshape(count, -1)

    for step in range(2 * (size - 1)):
        live = depth > 0
        depth = (depth - 1).clamp(min=0)
        kind, i, j = stack[:, run, depth]
        arc = live & (kind >= 2)
        trees[run, torch.where(kind == 2, i, j), torch.where(kind == 2, j, i)] += arc.to(trees)

        low = i + (kind == 0)
        high = torch.where(kind == 0, j, j - 1)
        if single_root:
            high = torch.where((kind >= 2) & (i == 0), i, high)
        inside_span = (position >= low[:, None]) & (position <= high[:, None])
        s = first[kind, sentence, i] + second[kind, sentence, :, j]
        weights = s.masked_fill(~inside_span, -torch.inf).softmax(-1)
        # the last split with any weight takes what rounding leaves over
        last = ((weights > 0) * (position + 1)).argmax(-1, keepdim=True)
        above = (weights.cumsum(-1) > flat_uniforms[:, step, None]) | (position == last)
        k = above.to(torch.uint8).argmax(-1)

        # push the right antecedent, then the left one; complete items of width 0 need no decision
        for new_kind, new_i, new_j in (
            (second_kind[kind], k + (kind >= 2), j),
            (first_kind[kind], i, k),
        ):
            push = live & ~((new_kind <= 1) & (new_i == new_j))
            item = torch.stack((new_kind, new_i, new_j))
            stack[:, run, depth] = torch.where(push, item, stack[:, run, depth])
            depth = depth + push.long()
    trees = trees.reshape(samples, batch, size, size)
    return trees, goal(chart.planes, lengths) + taken_off
