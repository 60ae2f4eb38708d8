"""Chart programs as loops over items: slow, and the ground truth.

Read it beside the paper (Corro & Titov 2019, algorithms 1 and 2) and the table of rules. Every item is a
tensor of shape ``(B,)`` in a dictionary, so that the loops are those of the paper and the batch costs
nothing to read. Gradients come from PyTorch's autograd through the loops: nothing here shares a
derivation with the hand-written backward passes of the other backends.

A *chooser* decides what a cell does with the scores ``s`` of its splits: it returns the weights
``b`` of the splits and the value passed up. Best tree, both relaxations and sampling differ in
nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import product
from typing import Any, ClassVar

import torch
from torch import Tensor

from treelax.ops.backend import FORBIDDEN, Batch, bounded
from treelax.ops.chart.rules import Item, Program, Rule

Chooser = Callable[[Tensor], tuple[Tensor, Tensor]]
#: ``X(i, j)`` as ``(X, i, j)``.
Antecedent = tuple[Item, int, int]


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


def spans(size: int, order: int = 1) -> list[tuple[int, int]]:
    """All spans, the short ones first, or with order -1 the long ones."""
    return [(i, i + width) for width in range(size)[::order] for i in range(size - width)]


class Chart:
    """All items of a batch of sentences, filled bottom-up.

    ``values[X, i, j]`` is ``X(i, j)``; ``weights[rule, i, j]`` are the weights ``b`` of the splits.
    """

    def __init__(self, program: Program, given: Batch, choose: Chooser) -> None:
        scores, lengths, _, self.single_root = given
        self.program = program
        self.last = program.last(lengths)
        self.size = size = scores.shape[1]
        self.shape = scores.shape[1:]
        self.values: dict[Antecedent, Tensor] = {}
        self.weights: dict[tuple[Rule, int, int], Tensor] = {}
        w = bounded(scores, program.parts(lengths, size))
        self.zero = w.new_zeros(w.shape[0])
        forbidden, entries = torch.full_like(self.zero, FORBIDDEN), w.movedim(0, -1)
        for (i, j), rule in product(spans(size), program.rules):
            if i == 0 and not rule.root:
                continue
            v = self.zero
            if i < j:
                # s_k = L(i,k) + R(k+gap,j)
                s = [
                    reduce(torch.add, (self.values[antecedent] for antecedent in split))
                    for split in self.splits(rule, i, j)
                ]
                self.weights[rule, i, j], v = choose(torch.stack(s, -1))
                v = v.clamp(min=FORBIDDEN)
            for item in rule.makes:
                scored = v + entries[item.entry(i, j)] if item.part else v
                self.values[item, i, j] = scored if i < j or item.empty else forbidden

    def splits(self, rule: Rule, i: int, j: int) -> Iterator[tuple[Antecedent, ...]]:
        """The antecedents of all splits: ``i + first <= k < j + first``, or the first one alone."""
        limited = self.single_root and rule.one_root and i == 0
        for pair in rule.operands:
            if pair.right is None:
                yield ((pair.left, i, j),)
                continue
            low = i + pair.first
            for k in range(low, low + 1 if limited else j + pair.first):
                yield (pair.left, i, k), (pair.right, k + pair.gap, j)

    def value(self) -> Tensor:
        """The goal's value for every sentence, 0 for one without positions, shape ``(B,)``."""
        goals = [self.values[self.program.goal, 0, j] for j in range(self.size)]
        return torch.stack([self.zero, *goals], -1).gather(-1, self.last[:, None] + 1)[:, 0]

    def tree(self) -> Tensor:
        """Contributions pushed down from the goal: the tree, of the scores' shape."""
        given: dict[Antecedent, Tensor] = defaultdict(lambda: self.zero)
        for j in range(self.size):
            given[self.program.goal, 0, j] = (self.last == j).to(self.zero)
        for (i, j), rule in product(spans(self.size, -1), self.program.rules[::-1]):
            if (rule, i, j) not in self.weights:
                continue
            # a cell with contribution a hands a·b_k to both antecedents of split k
            first, *others = (given[item, i, j] for item in rule.makes)
            a, b = sum(others, first), self.weights[rule, i, j]
            if self.program.rooted:
                shares = iter((b * a[:, None]).unbind(-1))
            else:  # the same, but autograd adds up the gradient of a in another order
                shares = (b_k * a for b_k in b.unbind(-1))
            for split, share in zip(self.splits(rule, i, j), shares, strict=True):
                for antecedent in split:
                    given[antecedent] = given[antecedent] + share
        parts: dict[tuple[int, ...], Tensor] = {}
        for (item, i, j), a in given.items():
            if item.part:
                entry = item.entry(i, j)
                parts[entry] = parts[entry] + a if entry in parts else a
        entries = product(*map(range, self.shape))
        flat = torch.stack([parts.get(entry, self.zero) for entry in entries], -1)
        return flat.unflatten(-1, self.shape)


def gradient_of_loops(
    soft_tree: Callable[[Batch, bool], tuple[Tensor, ...]],
    given: Batch,
    grad_tree: Tensor,
    grad_value: Tensor,
) -> Tensor:
    """The gradient with respect to the scores, by autograd through the loops, which run again."""

    def differentiate() -> Tensor:
        scores = given.scores.detach().cpu().requires_grad_()
        tree, value, _ = soft_tree(
            given._replace(scores=scores, lengths=given.lengths.cpu()), False
        )
        # a sum, because the binary tree of a single word depends on no score
        loss = (tree * grad_tree.cpu()).sum() + (value * grad_value.cpu()).sum()
        return torch.autograd.grad(loss, scores)[0]

    # A custom operation runs with autograd switched off in its thread; another thread has it on.
    # On the CPU, because autograd's thread for a GPU is the very one that would wait here.
    with ThreadPoolExecutor(1) as fresh:
        return fresh.submit(differentiate).result().to(given.scores.device)


def drawn(weights: Tensor, uniform: float) -> int:
    """The first choice whose cumulative weight exceeds a uniform variable."""
    above = weights.cumsum(0) > uniform
    # a cumulative sum that ends a rounding error below 1 must not fall off the end: the last choice that
    # has any weight takes the rest
    above[int(weights.nonzero()[-1, 0])] = True
    return int(above.to(torch.uint8).argmax())


class ReferenceBackend:
    """The backend `reference` of a chart program."""

    #: What the loops fill: of a program, a batch and a chooser, with ``tree()`` and ``value()``.
    chart: ClassVar[type[Any]] = Chart

    def __init__(self, program: Any) -> None:
        self.program = program

    def saved_shape(self, shape: torch.Size, dtype: torch.dtype) -> tuple[int, ...]:
        """Nothing: the backward pass runs the loops again under autograd."""
        return (0,)

    def soft_tree(self, given: Batch, save: bool) -> tuple[Tensor, Tensor, Tensor]:
        chart = self.chart(self.program, given, CHOICES[given.relaxation])
        return chart.tree(), chart.value(), given.scores.new_empty(0)

    def soft_tree_backward(
        self, grad_tree: Tensor, grad_value: Tensor, saved: Tensor, given: Batch
    ) -> Tensor:
        return gradient_of_loops(self.soft_tree, given, grad_tree, grad_value)

    def log_partition(self, given: Batch) -> Tensor:
        return self.chart(self.program, given, entropy_choice).value()

    def best_tree(self, given: Batch) -> tuple[Tensor, Tensor]:
        chart = self.chart(self.program, given, argmax_choice)
        return chart.tree(), chart.value()

    def sample_tree(self, given: Batch, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        chart = self.chart(self.program, given, entropy_choice)
        rules = {item: rule for rule in self.program.rules for item in rule.makes}
        trees = given.scores.new_zeros((uniforms.shape[0], *given.scores.shape))
        for sample, b in ((s, b) for s in range(trees.shape[0]) for b in range(trees.shape[1])):
            decisions = iter(uniforms[sample, b].tolist())
            last = int(chart.last[b])
            stack = [(self.program.goal, 0, last)] if last >= 0 else []
            while stack:
                item, i, j = stack.pop()
                if item.part:
                    trees[(sample, b, *item.entry(i, j))] = 1
                if i == j:
                    continue
                rule = rules[item]
                weights = chart.weights[rule, i, j][b]
                split = list(chart.splits(rule, i, j))[drawn(weights, next(decisions))]
                stack += reversed(split)  # the left antecedent is taken first
        return trees, chart.value()
