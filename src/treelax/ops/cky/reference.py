"""The CKY algorithm and its relaxations as loops over spans: slow, and the ground truth.

Every span is a tensor of shape ``(B,)`` in a dictionary, and gradients come from PyTorch's autograd
through the loops: nothing here shares a derivation with the other backends. The choosers, which turn the
scores of splits into weights and a value, are those of Eisner's algorithm.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from treelax.ops.backend import FORBIDDEN, bounded
from treelax.ops.checks import span_mask
from treelax.ops.eisner.reference import CHOICES, Chooser, Span, argmax_choice, entropy_choice


class Chart:
    """Values ``v`` of all spans of a batch of sentences and weights ``b`` of their splits."""

    def __init__(self, scores: Tensor, lengths: Tensor, choose: Chooser) -> None:
        self.size = size = scores.shape[-1]
        self.lengths = lengths
        w = bounded(scores, span_mask(lengths, size))
        # v(i,i) = w(i,i)
        self.values: dict[Span, Tensor] = {(i, i): w[:, i, i] for i in range(size)}
        self.splits: dict[Span, Tensor] = {}
        for width in range(1, size):
            for i in range(size - width):
                j = i + width
                # v(i,j) = w(i,j) + <v(i,k), v(k+1,j)>, i ≤ k < j
                s = [self.values[i, k] + self.values[k + 1, j] for k in range(i, j)]
                self.splits[i, j], v = choose(torch.stack(s, -1))
                self.values[i, j] = v.clamp(min=FORBIDDEN) + w[:, i, j]

    def value(self) -> Tensor:
        """``v(0, length - 1)`` of every sentence, 0 for an empty one, shape ``(B,)``."""
        nothing = torch.zeros_like(self.values[0, 0])
        goals = torch.stack([nothing, *(self.values[0, j] for j in range(self.size))], -1)
        return goals.gather(-1, self.lengths[:, None])[:, 0]

    def tree(self) -> Tensor:
        """Contributions pushed down from the whole sentence: the tree, shape ``(B, N, N)``."""
        nothing = torch.zeros_like(self.values[0, 0])
        given = {span: nothing for span in self.values}
        for j in range(self.size):
            given[0, j] = (self.lengths == j + 1).to(nothing)
        for width in range(self.size - 1, 0, -1):
            for i in range(self.size - width):
                j = i + width
                for k, b in zip(range(i, j), self.splits[i, j].unbind(-1), strict=True):
                    share = b * given[i, j]
                    given[i, k] = given[i, k] + share
                    given[k + 1, j] = given[k + 1, j] + share
        span = range(self.size)
        return torch.stack(
            [torch.stack([given.get((i, j), nothing) for j in span], -1) for i in span], -2
        )


def saved_shape(batch: int, size: int, dtype: torch.dtype) -> tuple[int, ...]:
    """The scores are kept; the backward pass runs the loops again under autograd."""
    return (batch, size, size)


def soft_tree(
    scores: Tensor, lengths: Tensor, relaxation: str, single_root: bool, save: bool
) -> tuple[Tensor, Tensor, Tensor]:
    chart = Chart(scores, lengths, CHOICES[relaxation])
    return chart.tree(), chart.value(), scores.clone() if save else scores.new_empty(0)


def soft_tree_backward(
    grad_tree: Tensor,
    grad_value: Tensor,
    saved: Tensor,
    lengths: Tensor,
    relaxation: str,
    single_root: bool,
) -> Tensor:
    def differentiate() -> Tensor:
        scores = saved.detach().cpu().requires_grad_()
        chart = Chart(scores, lengths.cpu(), CHOICES[relaxation])
        # a sum, because the tree of a single word depends on no score
        loss = (chart.tree() * grad_tree.cpu()).sum() + (chart.value() * grad_value.cpu()).sum()
        return torch.autograd.grad(loss, scores)[0]

    # in another thread and on the CPU for the reasons given in Eisner's reference
    with ThreadPoolExecutor(1) as fresh:
        return fresh.submit(differentiate).result().to(saved.device)


def log_partition(scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    return Chart(scores, lengths, entropy_choice).value()


def best_tree(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    chart = Chart(scores, lengths, argmax_choice)
    return chart.tree(), chart.value()


def sample_tree(
    scores: Tensor, lengths: Tensor, uniforms: Tensor, single_root: bool
) -> tuple[Tensor, Tensor]:
    chart = Chart(scores, lengths, entropy_choice)
    trees = scores.new_zeros((uniforms.shape[0], *scores.shape))
    for sample, b in ((s, b) for s in range(trees.shape[0]) for b in range(trees.shape[1])):
        decisions = iter(uniforms[sample, b].tolist())
        stack = [(0, int(lengths[b]) - 1)] if lengths[b] > 0 else []
        while stack:
            i, j = stack.pop()
            trees[sample, b, i, j] = 1
            if i == j:
                continue
            weights = chart.splits[i, j][b]
            above = weights.cumsum(0) > next(decisions)
            above[int(weights.nonzero()[-1, 0])] = True  # takes what rounding leaves over
            k = i + int(above.to(torch.uint8).argmax())
            stack += [(k + 1, j), (i, k)]  # the left antecedent is taken first
    return trees, chart.value()
