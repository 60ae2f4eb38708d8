"""Non-projective trees in vectorised PyTorch; runs wherever PyTorch runs, and never makes a GPU wait.

A *walk* goes from a word to a head of it, from there to a head of that, and stops at the root. Its
weights are ``walk[:, m, h]``: a row for each word, a column for the root and one for each word, the
batch innermost so that PyTorch's loops are long. ``walk[0]`` are the weights; ``walk[1]``, where it is
there, their derivatives in one direction, which is all that the backward pass needs. The README of
this folder has the derivation.

Weights are float64, as they are (`Linear`) or as logarithms (`Log`). Sums over words go through
`fold`, so that a sentence's bits depend neither on its neighbours nor on its padding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from treelax.ops.backend import FORBIDDEN, NO_TREE, Batch, bounded
from treelax.ops.checks import arc_mask
from treelax.ops.matrix_tree.arithmetic import Linear, Log, fold
from treelax.ops.matrix_tree.contraction import best_heads

#: A walk is computed again in logarithms if a normaliser is not within these powers of e: terms lost
#: to underflow would matter.
RANGE = 900 * math.log(2)


def wide(x: Tensor) -> Tensor:
    """In float64, where there is such a thing."""
    return x if x.device.type == "mps" else x.double()


class Elimination:
    """The walks of a batch and what is done with them in one of the two arithmetics.

    Words that a sentence does not have are rows and columns of weight 0 with normaliser 1.
    """

    def __init__(
        self,
        arithmetic: Linear,
        scores: Tensor,
        lengths: Tensor,
        single_root: bool,
        *tangent: Tensor,
    ) -> None:
        self.arithmetic = arithmetic
        self.arcs = arc_mask(lengths, scores.shape[-1])
        scores = wide(bounded(scores, self.arcs)).masked_fill(~self.arcs, FORBIDDEN)
        scores = scores.permute(2, 1, 0)[1:]  # (n, N, B)
        self.real = self.arcs.any(1).mT[1:]  # (n, B)
        # every word has one head: what is taken off a column is taken off every tree
        top = scores.amax(1, keepdim=True)
        logs = torch.where(self.real[:, None], scores - top, FORBIDDEN)
        self.offset = fold(top[:, 0].masked_fill(~self.real, 0))
        self.lowest = torch.full_like(self.offset, -torch.inf)
        # with one root, the root's column is a reward and no part of a word's normaliser ...
        self.first = int(single_root and not isinstance(arithmetic, Log))
        if single_root and not self.first:
            # ... or so much is taken off it that two roots weigh nothing beside one
            spread = fold(-logs.masked_fill(logs < NO_TREE, 0).amin(1))
            shift = spread + lengths * (lengths + 1).log() + 40 * (lengths > 0)
            logs = torch.cat((logs[:, :1] - shift, logs[:, 1:]), 1)
            self.lowest = -shift - spread - 20
            self.offset += shift
        directions = [wide(torch.where(self.arcs, t, 0)).permute(2, 1, 0)[1:] for t in tangent]
        self.walk = arithmetic.of(logs, *directions)  # (1 or 2, n, N, B)
        self.log_partition = torch.zeros_like(self.offset)
        self.extreme = torch.zeros_like(self.offset)

    def fill(self, x: Tensor, where: Tensor | None, weight: float) -> None:
        """Write a constant weight, everywhere or where a mask is true."""
        if where is None:
            x[0].fill_(weight)
            x[1:].zero_()
        else:
            x[0].masked_fill_(where, weight)
            x[1:].masked_fill_(where, 0)

    def nothing(self, like: Tensor) -> Tensor:
        """Weights of 0."""
        empty = torch.empty_like(like)
        self.fill(empty, None, self.arithmetic.zero)
        return empty

    def with_root(self, reach: Tensor) -> Tensor:
        """Weights ``(d, s, ...)`` of arriving from words, after that of being there: 1."""
        root = torch.empty_like(reach[:, :1])
        self.fill(root, None, self.arithmetic.one)
        return torch.cat((root, reach), 1)

    def normaliser(self, weights: Tensor, valid: Tensor) -> Tensor:
        """Sum over dimension 1; 1 where that is not valid."""
        total = self.arithmetic.total(weights)
        self.fill(total, ~valid, self.arithmetic.one)
        size = self.arithmetic.log(total).abs().reshape(-1, self.extreme.shape[0]).amax(0)
        self.extreme = torch.maximum(self.extreme, size)
        return total

    def factor(self, weights: Tensor, valid: Tensor) -> Tensor:
        """A normaliser that is a factor of the partition function, in the first walk of a sentence."""
        total = self.normaliser(weights, valid)
        self.log_partition += self.arithmetic.log(total)[: self.offset.shape[0]]
        return total

    def eliminate(self, walk: Tensor, k: int, valid: Tensor) -> None:
        """Whoever stepped to ``k`` steps where ``k`` steps to; row ``k`` becomes the distribution of the
        first step to a word that remains, or to the root."""
        to_k = walk[:, :, k + 1].clone()
        self.fill(to_k[:, k], None, self.arithmetic.zero)
        self.fill(walk[:, :, k + 1], None, self.arithmetic.zero)
        total = self.factor(walk[:, k, self.first :], valid)
        walk[:, k] = self.arithmetic.over(walk[:, k], total[:, None])
        self.arithmetic.add_product(walk, to_k[:, :, None], walk[:, None, k].clone())

    def reach(self, walk: Tensor, real: Tensor) -> Tensor:
        """``q_x(m)`` at ``[:, x, m]``: the weight of reaching the root from ``x`` before ``m``.

        Two copies of the walk, one without its words at odd positions and one without those at even
        positions, so that all walks of a level are eliminated side by side.
        """
        size = walk.shape[1]
        if size == 1:
            self.factor(walk[:, 0, :1], real[0])
            return self.nothing(walk[:, :, :1])
        if size % 2:
            even = self.nothing(walk.new_empty((len(walk), size + 1, size + 2, walk.shape[-1])))
            even[:, :size, : size + 1] = walk
            return self.reach(even, pad(real, (0, 0, 0, 1)))[:, :size, :size]
        words = swapped(walk[:, :, 1:], 2)
        both = torch.cat((walk, swapped(torch.cat((walk[:, :, :1], words), 2), 1)), -1)
        real = torch.cat((real, swapped(real, 0)), -1)
        kept = real[::2].any(0)
        for k in range(size - 1, 0, -2):
            self.eliminate(both, k, real[k] & kept)
        smaller = torch.cat((both[:, ::2, :1], both[:, ::2, 1::2]), 2)
        reach = self.reach(smaller, real[::2])  # from and before the words kept
        others = both[:, 1::2, :1].repeat(1, 1, size // 2, 1)
        for a in range(size // 2):  # on the way to the root or to word a
            onward = both[:, 1::2, 2 * a + 1, None]
            self.arithmetic.add_product(others, onward, reach[:, None, a])
        first, second = torch.stack((reach, others), 2).flatten(1, 2).chunk(2, -1)
        return torch.stack((first, swapped(second, 1)), 3).flatten(2, 3)

    def marginals(self) -> Tensor:
        """``P(head of m = h) = w_hm q_h(m) / Σ_h' w_h'm q_h'(m)``, and derivatives, ``(d, B, N, N)``."""
        reach = self.with_root(self.reach(self.walk, self.real))
        shares = self.shares(self.walk.transpose(1, 2), reach, self.real)  # (d, N, n, B)
        return torch.where(self.arcs, pad(shares.permute(0, 3, 1, 2), (1, 0)), 0)

    def shares(self, weights: Tensor, reach: Tensor, valid: Tensor) -> Tensor:
        """The distribution over heads, dimension 1, and derivatives, as plain numbers."""
        joint = self.arithmetic.scaled(self.arithmetic.times(weights, reach))
        total = self.normaliser(joint, valid)
        return self.arithmetic.plain(self.arithmetic.over(joint, total[:, None]))

    def value(self) -> Tensor:
        """Log-partition of the scores, from the factors that were counted."""
        missing = self.log_partition < self.lowest  # trees, but none with one root
        return torch.where(missing, FORBIDDEN, self.log_partition + self.offset)

    def sound(self) -> Tensor:
        """Whether nothing came near underflow or overflow, ``(B,)``; false for NaN."""
        return self.extreme < RANGE


def swapped(x: Tensor, dim: int) -> Tensor:
    """Neighbours change places."""
    return x.unflatten(dim, (-1, 2)).flip(dim + 1).flatten(dim, dim + 1)


def carefully(run: Callable[..., Any], *inputs: Tensor) -> list[Tensor]:
    """Results of ``run``: linear, and in logarithms for the sentences that need it, or for all of them
    where finding out would make a GPU wait."""
    if inputs[0].device.type != "cpu":
        return list(run(Log(), *inputs)[:-1])
    *results, sound = run(Linear(), *inputs)
    again = (~sound).nonzero()[:, 0]
    if len(again):
        for result, better in zip(results, run(Log(), *(x[again] for x in inputs)), strict=False):
            result[again] = better
    return results


def run_marginals(
    single_root: bool, arithmetic: Linear, scores: Tensor, lengths: Tensor, *tangent: Tensor
) -> tuple[Tensor, ...]:
    elimination = Elimination(arithmetic, scores, lengths, single_root, *tangent)
    return *elimination.marginals(), elimination.value(), elimination.sound()


def run_partition(
    single_root: bool, arithmetic: Linear, scores: Tensor, lengths: Tensor
) -> tuple[Tensor, ...]:
    elimination = Elimination(arithmetic, scores, lengths, single_root)
    for k in range(len(elimination.real) - 1, 0, -1):
        elimination.eliminate(elimination.walk[:, : k + 1, : k + 2], k, elimination.real[k])
    elimination.factor(elimination.walk[:, 0, :1], elimination.real[0])
    return elimination.value(), elimination.sound()


def saved_shape(shape: torch.Size, dtype: torch.dtype) -> tuple[int, ...]:
    """Nothing: the backward pass is another run, from the scores."""
    return (0,)


def soft_tree(given: Batch, save: bool) -> tuple[Tensor, Tensor, Tensor]:
    scores = given.scores
    tree, value = carefully(partial(run_marginals, given.single_root), scores, given.lengths)
    return tree.to(scores.dtype), value.to(scores.dtype), scores.new_empty(0)


def soft_tree_backward(
    grad_tree: Tensor, grad_value: Tensor, saved: Tensor, given: Batch
) -> Tensor:
    """The Jacobian of the marginals is the Hessian of the log-partition, hence symmetric: its product
    with a gradient is the derivative of the marginals in that direction."""
    run = partial(run_marginals, given.single_root)
    tree, derivative, _ = carefully(run, given.scores, given.lengths, grad_tree)
    return (derivative + grad_value[:, None, None] * tree).to(given.scores.dtype)


def log_partition(given: Batch) -> Tensor:
    run = partial(run_partition, given.single_root)
    return carefully(run, given.scores, given.lengths)[0].to(given.scores.dtype)


def best_tree(given: Batch) -> tuple[Tensor, Tensor]:
    scores, lengths, _, single_root = given
    arcs = arc_mask(lengths, scores.shape[-1])
    weights = bounded(scores, arcs)
    heads = best_heads(wide(weights), arcs, single_root)
    tree = tree_of(heads) & arcs
    return tree.to(scores.dtype), fold((weights * tree).sum(1).mT)


def tree_of(heads: Tensor) -> Tensor:
    """``(..., N, N)``, true at the arc into each position."""
    return heads[..., None, :] == torch.arange(heads.shape[-1], device=heads.device)[:, None]


def draw(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """The first index whose cumulative probability exceeds the uniform; rounding goes to the last."""
    index = torch.arange(len(probabilities), device=uniforms.device)[:, None]
    last = ((probabilities > 0) * index).amax(0)
    above = (probabilities.cumsum(0) > uniforms) | (index == last)
    return above.to(torch.uint8).argmax(0)


class Sampler(Elimination):
    """Draws the heads of words 1 … n in this order, each from its marginal given those before.

    The walks on fewer and fewer words are those of `reach`, visited depth first. A word with a head
    steps nowhere else, in the walk on all words and in those on the path from there.
    """

    def draw_heads(self, uniforms: Tensor) -> Tensor:
        """Heads ``(B, N)`` from uniforms ``(B, N)``, of which the first is not used."""
        self.uniforms, self.heads = uniforms.mT, torch.zeros_like(uniforms.mT, dtype=torch.long)
        self.path: list[tuple[Tensor, int, slice, slice, Tensor]] = []
        self.visit(self.walk.clone(), 0)
        return self.heads.mT

    def visit(self, walk: Tensor, first: int) -> None:
        """Draw the heads of the words of a walk, in order; the lowest of them is ``first``."""
        size = walk.shape[1]
        if size == 1:
            self.settle(first)
            return
        half = 1 << (size - 1).bit_length() - 1  # however long the padding
        for low, kept, gone in (
            (0, slice(0, half), slice(half, size)),
            (half, slice(half, size), slice(0, half)),
        ):
            part = walk.clone()
            for k in reversed(range(size)[gone]):
                self.eliminate(part, k, self.real[first + k])
            part = torch.cat((part[:, :, :1], part[:, :, 1:][:, :, kept]), 2)
            self.path.append((walk, first, kept, gone, part[:, gone]))
            self.visit(part[:, kept], first + low)
            self.path.pop()

    def settle(self, m: int) -> None:
        """Draw the head of a word to which all other words on the path have been eliminated."""
        arithmetic = self.arithmetic
        reach = self.nothing(self.walk[:, :1, 0])
        for _, _, kept, _, onward in reversed(self.path):
            steps = arithmetic.times(onward.transpose(1, 2), self.with_root(reach)[:, :, None])
            both = (reach, arithmetic.total(steps))
            reach = torch.cat(both if kept.start == 0 else both[::-1], 1)
        shares = self.shares(self.walk[:, m], self.with_root(reach), self.real[m])
        head = draw(shares[0], self.uniforms[m + 1])
        self.heads[m + 1] = head
        row = self.nothing(shares)
        index = torch.arange(shares.shape[1], device=head.device)[:, None]
        self.fill(row, (index == head) & self.real[m], arithmetic.one)
        for walk, first, kept, gone, onward in self.path:
            walk[:, m - first] = row
            detour = arithmetic.total(arithmetic.times(onward, row[:, 1:][:, gone, None]))
            direct = torch.cat((row[:, :1], row[:, 1:][:, kept]), 1)
            row = arithmetic.total(torch.stack((direct, detour), 1))


def run_samples(
    arithmetic: Linear, scores: Tensor, lengths: Tensor, uniforms: Tensor
) -> tuple[Tensor, ...]:
    sampler = Sampler(arithmetic, scores, lengths, False)
    return sampler.draw_heads(uniforms), sampler.sound()


def sample_tree(given: Batch, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    scores, lengths, _, single_root = given
    samples, (batch, size, _) = uniforms.shape[0], scores.shape
    flat = uniforms.flatten(0, 1)
    many, lengths_of_many = scores.repeat(samples, 1, 1), lengths.repeat(samples)
    if single_root:
        marginals, value = carefully(partial(run_marginals, True), scores, lengths)
        child = 1 + draw(marginals[:, 0, 1:].mT.repeat(1, samples), flat[:, 0])
        position = torch.arange(size, device=scores.device)
        from_root, to_child = position[:, None] == 0, position == child[:, None, None]
        many = many.masked_fill(from_root ^ to_child, -torch.inf)  # of both or neither, leave
    else:
        value = carefully(partial(run_partition, False), scores, lengths)[0]
    heads = carefully(run_samples, many, lengths_of_many, flat)[0]
    trees = tree_of(heads) & arc_mask(lengths_of_many, size)
    return trees.to(scores.dtype).unflatten(0, (samples, batch)), value.to(scores.dtype)
