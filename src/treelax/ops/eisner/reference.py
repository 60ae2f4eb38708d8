"""Eisner's algorithm and its relaxations as loops over items: slow, and the ground truth.

Read it beside the paper (Corro & Titov 2019, algorithms 1 and 2). Every item is a tensor of shape
``(B,)`` in a dictionary keyed by its span, so that the loops are those of the paper and the batch
costs nothing to read. Gradients come from PyTorch's autograd through the loops: nothing here shares
a derivation with the hand-written backward passes of the other backends.

A *chooser* decides what a cell does with the scores ``s`` of its splits: it returns the weights
``b`` of the splits and the value passed up. Best tree, both relaxations and sampling differ in
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from treelax.ops.backend import FORBIDDEN, bounded
from treelax.ops.checks import arc_mask

Span = tuple[int, int]
Chooser = Callable[[Tensor], tuple[Tensor, Tensor]]


def softmax_choice(s: Tensor) -> tuple[Tensor, Tensor]:
    """The paper's relaxation: ``b = softmax(s)``, ``v = b·s``."""
    b = s.softmax(-1)
    # v = c + b·(s - c) for any constant c; b_k is 0 where the clamp acts, and a forbidden split would
    # otherwise meet it in the gradient as 0 · inf
    c = s.detach().amax(-1)
    return b, c + (b * (s - c[..., None]).clamp(min=-1e4)).sum(-1)


def entropy_choice(s: Tensor) -> tuple[Tensor, Tensor]:
    """The entropy-regularised relaxation: ``b = softmax(s)``, ``v = logsumexp(s)``."""
    return s.softmax(-1), s.logsumexp(-1)


def argmax_choice(s: Tensor) -> tuple[Tensor, Tensor]:
    """The exact algorithm: ``b`` one-hot at the first maximum, ``v = max(s)``."""
    v, k = s.max(-1)
    k = (s == v[..., None]).to(torch.uint8).argmax(-1)
    return torch.nn.functional.one_hot(k, s.shape[-1]).to(s.dtype), v


CHOICES: dict[str, Chooser] = {"softmax": softmax_choice, "entropy": entropy_choice}


class Chart:
    """The four tables of items of a batch of sentences, filled bottom-up.

    ``complete_right[i, j]`` is ``C→(i, j)``, ``incomplete_left[i, j]`` is ``I←(i, j)`` and so on.
    The ``splits_*`` tables keep the weights ``b`` of each cell.
    """

    def __init__(self, scores: Tensor, lengths: Tensor, choose: Chooser, single_root: bool) -> None:
        w = bounded(scores, arc_mask(lengths, scores.shape[-1]))
        self.lengths = lengths
        zero = w.new_zeros(w.shape[0])
        self.size = size = w.shape[-1]
        self.single_root = single_root
        self.complete_right: dict[Span, Tensor] = {(i, i): zero for i in range(size)}
        self.complete_left: dict[Span, Tensor] = {(i, i): zero for i in range(size)}
        self.incomplete_right: dict[Span, Tensor] = {}
        self.incomplete_left: dict[Span, Tensor] = {}
        self.splits_incomplete: dict[Span, Tensor] = {}
        self.splits_right: dict[Span, Tensor] = {}
        self.splits_left: dict[Span, Tensor] = {}

        def cell(antecedents: list[Tensor]) -> tuple[Tensor, Tensor]:
            b, v = choose(torch.stack(antecedents, -1))
            return b, v.clamp(min=FORBIDDEN)

        for width in range(1, size):
            for i in range(size - width):
                j = i + width
                # U(i,j) = <C→(i,k), C←(k+1,j)>, i ≤ k < j; one choice serves both directions
                b, v = cell(
                    [
                        self.complete_right[i, k] + self.complete_left[k + 1, j]
                        for k in self.inner_splits(i, j)
                    ]
                )
                self.splits_incomplete[i, j] = b
                # I→(i,j) = U(i,j) + W[i,j];  I←(i,j) = U(i,j) + W[j,i]
                self.incomplete_right[i, j] = v + w[:, i, j]
                self.incomplete_left[i, j] = v + w[:, j, i]
                # C→(i,j) = <I→(i,k), C→(k,j)>, i < k ≤ j
                self.splits_right[i, j], self.complete_right[i, j] = cell(
                    [
                        self.incomplete_right[i, k] + self.complete_right[k, j]
                        for k in range(i + 1, j + 1)
                    ]
                )
                if i == 0:  # nothing stands left of the root
                    continue
                # C←(i,j) = <C←(i,k), I←(k,j)>, i ≤ k < j
                self.splits_left[i, j], self.complete_left[i, j] = cell(
                    [self.complete_left[i, k] + self.incomplete_left[k, j] for k in range(i, j)]
                )

    def inner_splits(self, i: int, j: int) -> range:
        """Splits of ``U(i, j)``; under a single root only ``k = 0`` for ``i = 0``."""
        return range(i, i + 1) if self.single_root and i == 0 else range(i, j)

    def value(self) -> Tensor:
        """``C→(0, length)`` of every sentence, shape ``(B,)``."""
        goals = torch.stack([self.complete_right[0, j] for j in range(self.size)], -1)
        return goals.gather(-1, self.lengths[:, None])[:, 0]

    def tree(self) -> Tensor:
        """Contributions pushed down from ``C→(0, length)``: the tree, shape ``(B, N, N)``."""
        size = self.size
        like = self.complete_right[0, 0]
        nothing = torch.zeros_like(like)
        complete_right: dict[Span, Tensor] = {}
        complete_left: dict[Span, Tensor] = {}
        incomplete_right: dict[Span, Tensor] = {}
        incomplete_left: dict[Span, Tensor] = {}

        def give(table: dict[Span, Tensor], span: Span, contribution: Tensor) -> None:
            table[span] = table.get(span, nothing) + contribution

        for j in range(1, size):
            give(complete_right, (0, j), (self.lengths == j).to(like.dtype))
        for width in range(size - 1, 0, -1):
            for i in range(size - width):
                j = i + width
                handed = self.splits_right[i, j] * complete_right.get((i, j), nothing)[:, None]
                for k, share in zip(range(i + 1, j + 1), handed.unbind(-1), strict=True):
                    give(incomplete_right, (i, k), share)
                    give(complete_right, (k, j), share)
                if i > 0:
                    handed = self.splits_left[i, j] * complete_left.get((i, j), nothing)[:, None]
                    for k, share in zip(range(i, j), handed.unbind(-1), strict=True):
                        give(complete_left, (i, k), share)
                        give(incomplete_left, (k, j), share)
                arc = incomplete_right[i, j] + incomplete_left.get((i, j), nothing)
                handed = self.splits_incomplete[i, j] * arc[:, None]
                for k, share in zip(self.inner_splits(i, j), handed.unbind(-1), strict=True):
                    give(complete_right, (i, k), share)
                    give(complete_left, (k + 1, j), share)

        return torch.stack(
            [
                torch.stack(
                    [
                        incomplete_right.get((h, m), nothing)
                        if h < m
                        else incomplete_left.get((m, h), nothing)
                        for m in range(size)
                    ],
                    -1,
                )
                for h in range(size)
            ],
            -2,
        )


def saved_shape(batch: int, size: int, dtype: torch.dtype) -> tuple[int, ...]:
    """The scores are kept; the backward pass runs the loops again under autograd."""
    return (batch, size, size)


def soft_tree(
    scores: Tensor, lengths: Tensor, relaxation: str, single_root: bool, save: bool
) -> tuple[Tensor, Tensor, Tensor]:
    chart = Chart(scores, lengths, CHOICES[relaxation], single_root)
    saved = scores.clone() if save else scores.new_empty(0)
    return chart.tree(), chart.value(), saved


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
        chart = Chart(scores, lengths.cpu(), CHOICES[relaxation], single_root)
        outputs = (chart.tree(), chart.value())
        (grad,) = torch.autograd.grad(outputs, scores, (grad_tree.cpu(), grad_value.cpu()))
        return grad

    # A custom operation runs with autograd switched off in its thread; another thread has it on. On
    # the CPU, because autograd's thread for a GPU is the very one that would wait here.
    with ThreadPoolExecutor(1) as fresh:
        return fresh.submit(differentiate).result().to(saved.device)


def log_partition(scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    return Chart(scores, lengths, entropy_choice, single_root).value()


def best_tree(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    chart = Chart(scores, lengths, argmax_choice, single_root)
    return chart.tree(), chart.value()


def sample_tree(
    scores: Tensor, lengths: Tensor, uniforms: Tensor, single_root: bool
) -> tuple[Tensor, Tensor]:
    chart = Chart(scores, lengths, entropy_choice, single_root)
    trees = scores.new_zeros((uniforms.shape[0], *scores.shape))

    def draw(weights: Tensor, uniform: float) -> int:
        above = weights.cumsum(0) > uniform
        # a cumulative sum that ends a rounding error below 1 must not fall off the end:
        # the last split that has any weight takes the rest
        above[int(weights.nonzero()[-1, 0])] = True
        return int(above.to(torch.uint8).argmax())

    for sample, b in ((s, b) for s in range(trees.shape[0]) for b in range(trees.shape[1])):
        decisions = iter(uniforms[sample, b].tolist())
        stack: list[tuple[str, int, int]] = [("C→", 0, int(lengths[b]))]
        while stack:
            item, i, j = stack.pop()
            if i == j:
                continue
            if item == "C→":
                k = i + 1 + draw(chart.splits_right[i, j][b], next(decisions))
                left, right = ("I→", i, k), ("C→", k, j)
            elif item == "C←":
                k = i + draw(chart.splits_left[i, j][b], next(decisions))
                left, right = ("C←", i, k), ("I←", k, j)
            else:
                head, modifier = (i, j) if item == "I→" else (j, i)
                trees[sample, b, head, modifier] = 1
                k = i + draw(chart.splits_incomplete[i, j][b], next(decisions))
                left, right = ("C→", i, k), ("C←", k + 1, j)
            stack += [right, left]  # the left antecedent is taken first
    return trees, chart.value()
