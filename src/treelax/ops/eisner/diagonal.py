"""The dynamic program as one vectorised step per span width; runs wherever PyTorch runs.

Every item lives in one or two planes ``(N, N, B)`` that make all splits of all spans of a width a
plain slice, with the batch innermost so that PyTorch's loops are long. Anchored left,
``XL[i, o] = X(i, i+o)``; anchored right, ``XR[j, N-1-p] = X(j-p, j)``. With ``w = j - i`` and
``R = N - w`` spans of that width:

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

from treelax.ops.backend import FORBIDDEN, NO_TREE, bounded
from treelax.ops.checks import arc_mask

#: Score of a split that does not exist (single root); below every sum of two forbidden items.
EXCLUDED = -3e38

# Planes of a chart, in the order in which they are kept for the backward pass.
RIGHT_L, RIGHT_R, LEFT_L, LEFT_R, INC_RIGHT, INC_LEFT = range(6)  # values of C→, C←, I→, I←
INNER, TOP, SCALE = 6, 7, 10  # value of U; maximum and 1/normaliser of U, C→ and C←, in this order
GIVEN_RIGHT, GIVEN_LEFT, ARC_RIGHT, ARC_LEFT = range(13, 17)  # contributions of C→, C←, I→, I←
PLANES = 17

Fill = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
Weigh = Callable[[Tensor, Tensor, Tensor], Tensor]


class Sweep:
    """Slices of a stack of planes ``(planes, N, N, B)`` by width: ``(R, w, B)`` and ``(R, B)``."""

    def __init__(self, planes: Tensor, single_root: bool) -> None:
        self.planes = planes
        self.size = planes.shape[1]
        self.single_root = single_root

    def left(self, plane: int, width: int, first: int = 0) -> Tensor:
        """Operands anchored left: offsets ``first … first + width - 1`` of every span."""
        return self.planes[plane, : self.size - width, first : first + width]

    def right(self, plane: int, width: int, shift: int = 0) -> Tensor:
        """Operands anchored right, ``shift`` positions further from the right end."""
        stop = self.size - shift
        return self.planes[plane, width:, stop - width : stop]

    def at_left(self, plane: int, width: int) -> Tensor:
        """The items of this width in a plane anchored left, ``(R, B)``."""
        return self.planes[plane, : self.size - width, width]

    def at_right(self, plane: int, width: int) -> Tensor:
        """The items of this width in a plane anchored right, ``(R, B)``."""
        return self.planes[plane, width:, self.size - 1 - width]

    def inner(self, width: int) -> Tensor:
        """Scores of the splits of ``U``: ``C→(i,k) + C←(k+1,j)``."""
        s = self.left(RIGHT_L, width) + self.right(LEFT_R, width)
        if self.single_root:
            s[0, 1:] = EXCLUDED
        return s

    def complete_right(self, width: int) -> Tensor:
        """Scores of the splits of ``C→``: ``I→(i,k) + C→(k,j)``."""
        return self.left(INC_RIGHT, width, 1) + self.right(RIGHT_R, width)

    def complete_left(self, width: int) -> Tensor:
        """Scores of the splits of ``C←``: ``C←(i,k) + I←(k,j)``."""
        return self.left(LEFT_L, width) + self.right(INC_LEFT, width, 1)


def fill_softmax(s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Maximum, ``1/z`` and ``b·s`` with ``b = softmax(s)``, summed below the maximum."""
    top = s.amax(1)
    d = s - top[:, None]
    e = d.exp()
    scale = 1 / e.sum(1)
    return top, scale, top + e.mul_(d).sum(1).mul_(scale)


def fill_entropy(s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Maximum, ``1/z`` and ``logsumexp(s)``."""
    top = s.amax(1)
    total = (s - top[:, None]).exp_().sum(1)
    return top, 1 / total, top + total.log()


def fill_best(s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The maximum; nothing else is needed."""
    top = s.amax(1)
    return top, top, top


FILLS: dict[str, Fill] = {"softmax": fill_softmax, "entropy": fill_entropy, "best": fill_best}


def soft_weights(s: Tensor, top: Tensor, scale: Tensor) -> Tensor:
    """``b = exp(s - top) / z``: faster than torch's softmax over a few splits, and as exact."""
    return (s - top[:, None]).exp_().mul_(scale[:, None])


def best_weights(s: Tensor, top: Tensor, scale: Tensor) -> Tensor:
    """One-hot at the first maximum."""
    return torch.zeros_like(s).scatter_(1, s.argmax(1, keepdim=True), 1)


def inside(scores: Tensor, lengths: Tensor, fill: Fill, single_root: bool) -> Sweep:
    """Sweep 1, bottom-up: the values of all items, with maximum and normaliser of every cell."""
    weights = bounded(scores, arc_mask(lengths, scores.shape[-1])).permute(1, 2, 0)
    chart = Sweep(weights.new_zeros((PLANES, *weights.shape)), single_root)

    def cell(kind: int, width: int, s: Tensor) -> Tensor:
        top, scale, value = fill(s)
        chart.at_left(TOP + kind, width).copy_(top)
        chart.at_left(SCALE + kind, width).copy_(scale)
        return value.clamp(min=FORBIDDEN)

    for width in range(1, chart.size):
        u = cell(0, width, chart.inner(width))
        chart.at_left(INNER, width).copy_(u)
        chart.at_left(INC_RIGHT, width).copy_(u + weights.diagonal(width).mT)
        chart.at_right(INC_LEFT, width).copy_(u + weights.diagonal(-width).mT)
        right = cell(1, width, chart.complete_right(width))
        chart.at_left(RIGHT_L, width).copy_(right)
        chart.at_right(RIGHT_R, width).copy_(right)
        left = cell(2, width, chart.complete_left(width))
        chart.at_left(LEFT_L, width).copy_(left)
        chart.at_right(LEFT_R, width).copy_(left)
    return chart


def goal(planes: Tensor, lengths: Tensor) -> Tensor:
    """``C→(0, length)`` of every sentence."""
    return planes[RIGHT_L, 0].gather(0, lengths[None])[0]


def outside(chart: Sweep, lengths: Tensor, weigh: Weigh) -> Tensor:
    """Sweep 2, top-down: contributions; returns the tree ``(B, N, N)``.

    Contributions of complete items gather in two planes each, from ``U`` anchored left and from
    their own kind anchored right; the total is left in the chart.
    """
    size, planes = chart.size, chart.planes

    def shares(kind: int, width: int, s: Tensor, contribution: Tensor) -> Tensor:
        b = weigh(s, chart.at_left(TOP + kind, width), chart.at_left(SCALE + kind, width))
        return b.mul_(contribution[:, None])

    given = Sweep(torch.zeros_like(planes[:4]), chart.single_root)
    from_inner_right, from_right, from_left, from_inner_left = range(4)
    given.planes[from_inner_right, 0].scatter_(0, lengths[None], 1)
    tree = planes.new_zeros((lengths.shape[0], size, size))
    for width in range(size - 1, 0, -1):
        right = given.at_left(from_inner_right, width) + given.at_right(from_right, width)
        chart.at_left(GIVEN_RIGHT, width).copy_(right)
        share = shares(1, width, chart.complete_right(width), right)
        chart.left(ARC_RIGHT, width, 1).add_(share)
        given.right(from_right, width).add_(share)

        left = given.at_left(from_left, width) + given.at_right(from_inner_left, width)
        chart.at_left(GIVEN_LEFT, width).copy_(left)
        share = shares(2, width, chart.complete_left(width), left)
        given.left(from_left, width).add_(share)
        chart.right(ARC_LEFT, width, 1).add_(share)

        arc_right, arc_left = chart.at_left(ARC_RIGHT, width), chart.at_right(ARC_LEFT, width)
        tree.diagonal(width, 1, 2).copy_(arc_right.mT)
        tree.diagonal(-width, 1, 2).copy_(arc_left.mT)
        share = shares(0, width, chart.inner(width), arc_right + arc_left)
        given.left(from_inner_right, width).add_(share)
        given.right(from_inner_left, width).add_(share)
    return tree


def up(chart: Sweep, grad_tree: Tensor) -> Sweep:
    """Sweep 3, bottom-up: the adjoints of all contributions, ``ḡ = Σ b_k g_k``.

    Same planes as the values.
    """
    grad = Sweep(torch.zeros_like(chart.planes[: INNER + 1]), False)
    grad_tree = grad_tree.permute(1, 2, 0)

    def mean(kind: int, width: int, s: Tensor, g: Tensor) -> Tensor:
        top, scale = chart.at_left(TOP + kind, width), chart.at_left(SCALE + kind, width)
        return soft_weights(s, top, scale).mul_(g).sum(1)

    for width in range(1, chart.size):
        u = mean(0, width, chart.inner(width), grad.inner(width))
        grad.at_left(INNER, width).copy_(u)
        grad.at_left(INC_RIGHT, width).copy_(u + grad_tree.diagonal(width).mT)
        grad.at_right(INC_LEFT, width).copy_(u + grad_tree.diagonal(-width).mT)
        right = mean(1, width, chart.complete_right(width), grad.complete_right(width))
        grad.at_left(RIGHT_L, width).copy_(right)
        grad.at_right(RIGHT_R, width).copy_(right)
        left = mean(2, width, chart.complete_left(width), grad.complete_left(width))
        grad.at_left(LEFT_L, width).copy_(left)
        grad.at_right(LEFT_R, width).copy_(left)
    return grad


def down(chart: Sweep, grad: Sweep, grad_value: Tensor, lengths: Tensor, entropy: bool) -> Tensor:
    """Sweep 4, top-down: the adjoints of all values; returns the gradient of the scores."""
    given = Sweep(torch.zeros_like(chart.planes[:6]), False)
    from_inner_right, from_right, from_left, from_inner_left, to_right, to_left = range(6)
    given.planes[from_inner_right, 0].scatter_(0, lengths[None], grad_value[None])
    grad_scores = grad_value.new_zeros((lengths.shape[0], chart.size, chart.size))

    def adjoint(
        kind: int, width: int, s: Tensor, contribution: Tensor, g: Tensor, gv: Tensor
    ) -> Tensor:
        """``ds_k = b_k [ gv (1 + (s_k - v)) + a (g_k - ḡ) ]``, without ``s_k - v`` for entropy."""
        value = (INNER, RIGHT_L, LEFT_L)[kind]
        top, scale = chart.at_left(TOP + kind, width), chart.at_left(SCALE + kind, width)
        offset = gv - contribution * grad.at_left(value, width)
        bracket = g.mul_(contribution[:, None]).add_(offset[:, None])
        if not entropy:
            # b_k is 0 long before the clamp, which keeps 0 · inf out
            distance = (s - chart.at_left(value, width)[:, None]).clamp_(min=-1e4)
            bracket += distance.mul_(gv[:, None])
        return soft_weights(s, top, scale).mul_(bracket)

    for width in range(chart.size - 1, 0, -1):
        gv = given.at_left(from_inner_right, width) + given.at_right(from_right, width)
        a = chart.at_left(GIVEN_RIGHT, width)
        ds = adjoint(1, width, chart.complete_right(width), a, grad.complete_right(width), gv)
        given.left(to_right, width, 1).add_(ds)
        given.right(from_right, width).add_(ds)

        gv = given.at_left(from_left, width) + given.at_right(from_inner_left, width)
        a = chart.at_left(GIVEN_LEFT, width)
        ds = adjoint(2, width, chart.complete_left(width), a, grad.complete_left(width), gv)
        given.left(from_left, width).add_(ds)
        given.right(to_left, width, 1).add_(ds)

        gv_right, gv_left = given.at_left(to_right, width), given.at_right(to_left, width)
        grad_scores.diagonal(width, 1, 2).copy_(gv_right.mT)
        grad_scores.diagonal(-width, 1, 2).copy_(gv_left.mT)
        a = chart.at_left(ARC_RIGHT, width) + chart.at_right(ARC_LEFT, width)
        ds = adjoint(0, width, chart.inner(width), a, grad.inner(width), gv_right + gv_left)
        given.left(from_inner_right, width).add_(ds)
        given.right(from_inner_left, width).add_(ds)
    return grad_scores


#: The size of chart values from which float32 loses too much in their differences.
CENTRE_ABOVE = 256.0


def centred(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """Scores whose best tree scores 0, where that is worth it, and the score taken off.

    A constant added to a column changes no tree, soft or discrete. Chart values grow with the
    length and the scores, and with them the rounding of the differences that a softmax sees; after
    the shift the items on the best derivation are 0 and their rivals small. float64 has digits to
    spare.
    """
    nothing = scores.new_zeros(scores.shape[0])
    if scores.dtype != torch.float32 or scores.numel() == 0:
        return scores, nothing
    weights = bounded(scores, arc_mask(lengths, scores.shape[-1]))
    arcs = arc_mask(lengths, scores.shape[-1])
    size = weights.masked_fill(~arcs, FORBIDDEN).amax(1).abs()
    needed = size.masked_fill(~arcs.any(1), 0).sum(-1) > CENTRE_ABOVE
    if not scores.is_cuda and not bool(needed.any()):  # reading it would make a GPU wait
        return scores, nothing
    tree, value = best_tree(scores, lengths, single_root)
    needed &= value > NO_TREE
    shift = (tree * weights).sum(1) * needed[:, None]
    banned = scores == float("-inf")
    return (weights - shift[:, None, :]).masked_fill(banned, float("-inf")), shift.sum(-1)


def saved_shape(batch: int, size: int, dtype: torch.dtype) -> tuple[int, ...]:
    return (PLANES, size, size, batch)


def soft_tree(
    scores: Tensor, lengths: Tensor, relaxation: str, single_root: bool, save: bool
) -> tuple[Tensor, Tensor, Tensor]:
    scores, offset = centred(scores, lengths, single_root)
    chart = inside(scores, lengths, FILLS[relaxation], single_root)
    tree = outside(chart, lengths, soft_weights)
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
    return goal(inside(scores, lengths, FILLS["entropy"], single_root).planes, lengths) + offset


def best_tree(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    chart = inside(scores, lengths, FILLS["best"], single_root)
    return outside(chart, lengths, best_weights), goal(chart.planes, lengths)


def sample_tree(
    scores: Tensor, lengths: Tensor, uniforms: Tensor, single_root: bool
) -> tuple[Tensor, Tensor]:
    """All samples of all sentences take their decisions side by side, one per step."""
    scores, taken_off = centred(scores, lengths, single_root)
    chart = inside(scores, lengths, FILLS["entropy"], single_root)
    samples, (batch, size, _) = uniforms.shape[0], scores.shape
    device = scores.device
    position = torch.arange(size, device=device)

    # back to [i, j], one more column so that C←(k+1, j) can be read at k = n
    offset = position[None, :] - position[:, None]
    left_index = offset.clamp(min=0).expand(batch, -1, -1)
    right_index = (size - 1 - offset.clamp(min=0)).expand(batch, -1, -1)
    planes = chart.planes.permute(0, 3, 1, 2)
    by_start = {p: planes[p].gather(2, left_index) for p in (RIGHT_L, LEFT_L, INC_RIGHT)}
    by_end = planes[INC_LEFT].transpose(1, 2).gather(1, right_index)  # [i, j] = XR[j, N-1-(j-i)]
    complete_right, complete_left, inc_right = (
        by_start[RIGHT_L],
        by_start[LEFT_L],
        by_start[INC_RIGHT],
    )
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
    depth = (lengths[sentence] > 0).long()  # an empty sentence has nothing to decide
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
