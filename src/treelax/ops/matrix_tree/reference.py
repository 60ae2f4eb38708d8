"""Non-projective trees in plain loops, one sentence at a time: slow, and the ground truth.

Marginals eliminate all other words for each word, in the log domain of float64: O(n⁴) and no
subtraction. The best tree is Edmonds's contraction in rational numbers. Samples draw one head after
another from its marginal. Gradients come from PyTorch's autograd through the loops: nothing here
shares a derivation with the other backends.
"""

from __future__ import annotations

import math
from fractions import Fraction

import torch
from torch import Tensor

from treelax.ops.backend import FORBIDDEN, NO_TREE, Batch, bounded
from treelax.ops.chart.reference import gradient_of_loops
from treelax.ops.checks import arc_mask

Arc = tuple[int, int]  # head, modifier
Key = tuple[int, Fraction]  # minus the arcs to avoid, score: compared in this order


def chains(scores: Tensor, lengths: Tensor) -> list[Tensor]:
    """The walk of each sentence from a word to its heads, ``(n, 1 + n)``: log-weights of the steps,
    row ``m - 1`` those of word ``m``, column 0 the root."""
    arcs = arc_mask(lengths, scores.shape[-1])
    weights = bounded(scores, arcs).cpu().double().masked_fill(~arcs.cpu(), FORBIDDEN).mT
    return [w[1 : n + 1, : n + 1] for w, n in zip(weights, lengths.tolist(), strict=True)]


def reach_root(walk: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """Log-probability that the walk reaches the root before word ``m``, from every word ``(n,)``;
    and the log-partition.

    Words are eliminated one by one: whoever stepped to ``k`` now steps where ``k`` steps to.
    """
    n = len(walk)
    word = torch.arange(n)
    log_partition = walk.new_zeros(())
    for k in [k for k in range(n) if k != m]:
        to_k = walk[:, k + 1]
        walk = walk.index_fill(1, torch.tensor(k + 1), FORBIDDEN)
        total = walk[k].logsumexp(0)
        steps = walk[k] - total
        detour = torch.logaddexp(walk, to_k[:, None] + steps)
        walk = torch.where((word == k)[:, None], steps, detour)
        walk = walk.index_fill(1, torch.tensor(k + 1), FORBIDDEN)
        log_partition = log_partition + total
    return walk[:, 0], log_partition + walk[m, 0]


def normalised(walk: Tensor, single_root: bool) -> tuple[Tensor, Tensor, Tensor]:
    """A walk with rows of maximum 0, what was taken off the log-partition, and its lowest value.

    One root is the limit of several with a constant taken off all root scores, large enough that
    a tree of two roots weighs nothing beside any tree of one.
    """
    top = walk.detach().amax(1, keepdim=True)
    walk = walk - top
    allowed = walk.detach().masked_fill(walk <= NO_TREE, 0)
    spread = -allowed.amin(1).sum()
    lowest, taken_off = spread.new_tensor(FORBIDDEN), top.sum()
    if single_root:
        shift = spread + len(walk) * math.log(len(walk) + 1) + 40
        walk = torch.cat((walk[:, :1] - shift, walk[:, 1:]), 1)
        lowest, taken_off = -shift - spread - 20, taken_off + shift
    return walk, taken_off, lowest


def marginals(walk: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """``P(head of m = h)`` at ``[m - 1, h]``, and the log-partition.

    ``w_hm q_h(m) / Σ_h' w_h'm q_h'(m)``, ``q_h(m)`` the probability that the walk from ``h`` reaches
    the root before ``m``.
    """
    if len(walk) == 0:
        return walk, walk.new_zeros(())
    walk, taken_off, lowest = normalised(walk, single_root)
    rows = []
    for m in range(len(walk)):
        reach, value = reach_root(walk, m)
        rows.append((walk[m] + torch.cat((reach.new_zeros(1), reach))).softmax(0))
    value = torch.where(value < lowest, FORBIDDEN, value + taken_off)
    return torch.stack(rows), value


def saved_shape(shape: torch.Size, dtype: torch.dtype) -> tuple[int, ...]:
    """Nothing: the backward pass runs the loops again under autograd."""
    return (0,)


def soft_tree(given: Batch, save: bool) -> tuple[Tensor, Tensor, Tensor]:
    scores = given.scores
    trees, values = [], []
    for walk in chains(scores, given.lengths):
        rows, value = marginals(walk, given.single_root)
        missing = scores.shape[-1] - 1 - len(rows)
        trees.append(torch.nn.functional.pad(rows, (0, missing, 1, missing)).mT)
        values.append(value)
    return torch.stack(trees).to(scores), torch.stack(values).to(scores), scores.new_empty(0)


def soft_tree_backward(
    grad_tree: Tensor, grad_value: Tensor, saved: Tensor, given: Batch
) -> Tensor:
    return gradient_of_loops(soft_tree, given, grad_tree, grad_value)


def log_partition(given: Batch) -> Tensor:
    return soft_tree(given, False)[1]


def find_cycle(heads: dict[int, int]) -> set[int]:
    """The words of some cycle, or nothing."""
    for start in heads:
        path: list[int] = []
        word = start
        while word in heads and word not in path:
            path.append(word)
            word = heads[word]
        if word in path:
            return set(path[path.index(word) :])
    return set()


def best_heads(arcs: dict[Arc, Key]) -> dict[int, int]:
    """Head of every word in the best tree, by contraction (Edmonds 1967).

    Every word takes its best head; a cycle becomes one word, and an arc into it counts by what it
    gains over the arc of the cycle that it replaces.
    """
    heads: dict[int, int] = {}
    for h, m in arcs:
        if m not in heads or arcs[h, m] > arcs[heads[m], m]:
            heads[m] = h
    cycle = find_cycle(heads)
    if not cycle:
        return heads
    contracted = max(heads) + 1
    smaller: dict[Arc, Key] = {}
    origin: dict[Arc, Arc] = {}
    for (h, m), (rank, score) in arcs.items():
        if h in cycle and m in cycle:
            continue
        arc = (contracted if h in cycle else h, contracted if m in cycle else m)
        if m in cycle:
            rank, score = rank - arcs[heads[m], m][0], score - arcs[heads[m], m][1]
        if arc not in smaller or (rank, score) > smaller[arc]:
            smaller[arc], origin[arc] = (rank, score), (h, m)
    chosen = [origin[h, m] for m, h in best_heads(smaller).items()]
    return {m: heads[m] for m in cycle} | {m: h for h, m in chosen}


def best_tree(given: Batch) -> tuple[Tensor, Tensor]:
    scores, lengths, _, single_root = given
    tree = torch.zeros_like(scores)
    for b, walk in enumerate(chains(scores, lengths)):
        arcs = {}
        for m, row in enumerate(walk.tolist(), 1):
            for h, score in enumerate(row):
                forbidden = score <= NO_TREE
                # a second arc from the root is worse than any number of forbidden arcs
                rank = -int(forbidden) - (2 * len(row) if single_root and h == 0 else 0)
                if h != m:
                    arcs[h, m] = (rank, Fraction(0 if forbidden else score))
        for m, h in best_heads(arcs).items():
            tree[b, h, m] = 1
    weights = bounded(scores, arc_mask(lengths, scores.shape[-1]))
    return tree, (tree * weights).sum((1, 2))


def draw(probabilities: Tensor, uniform: float) -> int:
    """The first whose cumulative probability exceeds the uniform; rounding goes to the last."""
    above = probabilities.cumsum(0) > uniform
    above[int(probabilities.nonzero()[-1, 0])] = True
    return int(above.to(torch.uint8).argmax())


def sample_tree(given: Batch, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """One head after another, from its marginal given those already drawn."""
    scores, lengths, _, single_root = given
    trees = scores.new_zeros((uniforms.shape[0], *scores.shape))

    def settle(walk: Tensor, m: int, h: int) -> None:
        """Leave word ``m`` no head but ``h``."""
        others = torch.arange(walk.shape[1]) != h
        walk[m - 1, others] = FORBIDDEN

    for b, original in enumerate(chains(scores, lengths)):
        for tree, uniform in zip(trees[:, b], uniforms[:, b].tolist(), strict=True):
            walk = original.clone()
            if single_root and len(walk):
                child = 1 + draw(marginals(walk, True)[0][:, 0], uniform[0])
                walk[torch.arange(1, len(walk) + 1) != child, 0] = FORBIDDEN
                settle(walk, child, 0)
            for m in range(1, len(walk) + 1):
                h = draw(marginals(walk, False)[0][m - 1], uniform[m])
                settle(walk, m, h)
                tree[h, m] = 1
    return trees, log_partition(given)
