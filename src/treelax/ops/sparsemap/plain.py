"""SparseMAP of any structure in PyTorch, all sentences of a batch in step; the README has the maths.

A tree is the list of its parts as flat indices. Slots of the support that are free, and parts that a
tree does not have, hold ``E``, one past the last part; every flat tensor has a 0 there. Slot 0 of a
system is the multiplier. Free slots are rows and columns of zeros, in the inverse too, so that no step
need know which they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from treelax.ops import checks
from treelax.ops.backend import LIMIT
from treelax.ops.sparsemap.limits import ROUNDING, TINY, most_trees, usual_iterations, usual_room

#: The best structure of scores ``(count, ...)``, 0/1, of the sentences ``chosen``, or of all if None.
Oracle = Callable[[Tensor, Tensor | None], Tensor]


class Solution(NamedTuple):
    """What every backend returns, in float64."""

    tree: Tensor  # (B, ...)
    gap: Tensor  # (B,)
    indices: Tensor  # (B, S, parts)
    weights: Tensor  # (B, S)
    inverse: Tensor  # (B, S, S)


def prepared(scores: Tensor, parts: Tensor, rooted: bool) -> Tensor:
    """Scores ``(B, N, N)`` or ``(B, N, N, L)`` in float64, within ±`LIMIT`, ``-inf`` where forbidden.

    NaN, and what is no part, becomes 0. From every word's arcs the best one's score is taken off, which
    moves no projection, since a word has one head in all trees: huge scores keep their digits.
    """
    wide = scores.dtype if scores.device.type == "mps" else torch.float64  # MPS has no float64
    work = scores.detach().to(wide)
    forbidden = (work == float("-inf")) & parts
    work = torch.where(parts & ~work.isnan(), work.clamp(-LIMIT, LIMIT), 0)
    work = work.masked_fill(forbidden, float("-inf"))
    if rooted and work.numel():
        heads = (1,) if work.dim() == 3 else (1, 3)
        top = work.masked_fill(~parts, float("-inf")).amax(heads, keepdim=True)
        work = torch.where(parts, work - top.masked_fill(top == float("-inf"), 0), work)
    return work


def spoiled(found: Solution, scores: Tensor, parts: Tensor) -> Solution:
    """NaN in the gap, and in every part of the tree, where a score is."""
    wrong = (scores.isnan() & parts).flatten(1).any(1)
    tree = found.tree.masked_fill(wrong.view(-1, *(1,) * (parts.dim() - 1)) & parts, float("nan"))
    return found._replace(
        tree=tree.to(scores.dtype), gap=found.gap.masked_fill(wrong, float("nan"))
    )


def indices_of(trees: Tensor, most: int) -> Tensor:
    """Flat indices of the parts of 0/1 structures ``(B, ...)``, ``(B, most)``, in rising order."""
    flat = trees.flatten(1)
    count = flat.shape[1]
    key = torch.arange(count, 0, -1, device=flat.device)
    return count - torch.where(flat != 0, key, 0).topk(most, dim=1).values


def spread(indices: Tensor, weights: Tensor, count: int) -> Tensor:
    """``Σ_s weights[s] tree_s`` as flat ``(B, count)``, summed in the same order every time."""
    total = weights.new_zeros(len(weights), count + 1)
    values = weights[..., None].expand(indices.shape).flatten(1)
    if weights.is_cuda:  # sorts; `scatter_add_` would add in any order
        sentence = torch.arange(len(weights), device=weights.device)[:, None].expand_as(values)
        total.index_put_((sentence, indices.flatten(1)), values, accumulate=True)
    else:
        total.scatter_add_(1, indices.flatten(1), values)
    return total[:, :count]


def picked(flat: Tensor, indices: Tensor) -> Tensor:
    """``⟨tree_s, flat⟩`` of every tree ``(B, S, parts)``, from ``(B, E + 1)``."""
    return flat.gather(1, indices.flatten(1)).view(indices.shape).sum(-1)


def backward(grad: Tensor, indices: Tensor, inverse: Tensor) -> Tensor:
    """``Z S Zᵀ g``. ``S 1`` is 0, but for rounding, which must not meet the large mean of ``Zᵀ g``."""
    flat = grad.flatten(1)
    used = (indices < flat.shape[1]).any(2)
    values = centered(picked(pad(flat, (0, 1)), indices), used)
    weights = centered((inverse @ values[..., None])[..., 0], used)
    return spread(indices, weights, flat.shape[1]).view(grad.shape)


def centered(values: Tensor, used: Tensor) -> Tensor:
    """Values of the slots less the mean of those in use; 0 in the others."""
    mean = (values * used).sum(1, keepdim=True) / used.sum(1, keepdim=True).clamp(min=1)
    return (values - mean) * used


class Systems:
    """The supports of a batch: trees, weights, and the linear system of each with its inverse."""

    def __init__(self, flat: Tensor, first: Tensor, room: int) -> None:
        batch, parts = first.shape
        self.flat = flat  # scores (B, E + 1), 0 for what is forbidden
        self.count = flat.shape[1] - 1
        self.sizes = (first < self.count).sum(1).to(flat.dtype)  # parts of the first
        self.indices = first.new_full((batch, room, parts), self.count)
        self.used = torch.zeros(batch, room, dtype=torch.bool, device=flat.device)
        self.weights = flat.new_zeros(batch, room)
        self.system = flat.new_zeros(batch, room + 1, room + 1)
        self.inverse = flat.new_zeros(batch, room + 1, room + 1)
        self.right = flat.new_zeros(batch, room + 1)
        self.indices[:, 0] = first
        self.used[:, 0] = True
        self.weights[:, 0] = 1
        self.system[:, 0, 1] = self.system[:, 1, 0] = 1
        self.system[:, 1, 1] = self.sizes
        self.inverse[:, 0, 1] = self.inverse[:, 1, 0] = 1
        self.inverse[:, 0, 0] = -self.sizes
        self.right[:, 0] = 1
        self.right[:, 1] = picked(flat, self.indices[:, :1])[:, 0]
        self.newest = torch.zeros(
            batch, dtype=torch.int64, device=flat.device
        )  # slot of the last tree that came

    def tree(self) -> Tensor:
        """``z``, flat ``(B, E)``."""
        return spread(self.indices, self.weights, self.count)

    def make_room(self) -> None:
        """Twice the slots."""
        more = self.used.shape[1]
        self.indices = pad(self.indices, (0, 0, 0, more), value=self.count)
        self.used, self.weights, self.right = (
            pad(x, (0, more)) for x in (self.used, self.weights, self.right)
        )
        self.system, self.inverse = (
            pad(x, (0, more, 0, more)) for x in (self.system, self.inverse)
        )

    def border(self, tree: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """For new trees ``(B, parts)``: parts that each shares with those of the support, behind a 1;
        ``u = M g``; the squared distance to their affine hull; and whether it is one of them."""
        there = torch.zeros_like(self.flat).scatter_(1, tree, 1)
        there[:, -1] = 0
        shared = pad(picked(there, self.indices), (1, 0), value=1)
        u = (self.inverse @ shared[..., None])[..., 0]
        parts = there.sum(1)  # no structure has all the parts of another one and more
        known = ((shared[:, 1:] == parts[:, None]) & self.used).any(1)
        return shared, u, parts - (shared * u).sum(1), known

    def add(self, who: Tensor, tree: Tensor, shared: Tensor, u: Tensor, distance: Tensor) -> None:
        """Put trees into the first free slots of the sentences ``who``: ``M += v vᵀ / s``."""
        slot = torch.where(self.used, 1, 0).argmin(1)
        here = who[:, None] & (
            torch.arange(self.used.shape[1], device=slot.device) == slot[:, None]
        )
        self.indices = torch.where(here[..., None], tree[:, None], self.indices)
        self.used |= here
        self.newest = torch.where(who, slot, self.newest)
        one = pad(here, (1, 0))
        v = u - one.to(u.dtype)
        self.update(torch.where(who, 1 / distance, 0), v)
        parts = (tree < self.count).sum(1).to(shared.dtype)
        self.put(self.system, who, slot, torch.where(one, parts[:, None], shared))
        self.right += torch.where(one, picked(self.flat, tree[:, None]), 0)

    def update(self, scale: Tensor, v: Tensor) -> None:
        """``M += scale v vᵀ``."""
        self.inverse.baddbmm_((scale[:, None] * v)[:, :, None], v[:, None])

    def put(self, matrix: Tensor, who: Tensor, slot: Tensor, row: Tensor) -> None:
        """Row and column of a slot, in the sentences ``who``."""
        every, place = torch.arange(len(slot), device=slot.device), slot + 1
        for at in ((every, place), (every, slice(None), place)):
            matrix[at] = torch.where(who[:, None], row, matrix[at])

    def step(self, who: Tensor) -> tuple[Tensor, Tensor]:
        """Towards the best affine combination of the trees, as far as no weight turns negative.

        A tree whose weight becomes 0 leaves the support. Returns where the whole way was taken, and
        where the last tree that came leaves before it had a weight, which only rounding can bring about.
        """
        x = (self.inverse @ self.right[..., None])[..., 0]
        rest = self.right - (self.system @ x[..., None])[..., 0]
        x = x + (self.inverse @ rest[..., None])[..., 0]
        goal = x[:, 1:]
        falls = self.used & ~(goal > 0)
        ratio = torch.where(self.weights > 0, self.weights / (self.weights - goal), 0)
        ratio = ratio.masked_fill(~falls, float("inf"))
        length, slot = ratio.min(1)
        whole = ~falls.any(1)
        stuck = who & ~whole & ~(length > 0) & (slot == self.newest)
        length = torch.where(whole, 1, length)[:, None]
        moved = torch.where(whole[:, None], goal, self.weights + length * (goal - self.weights))
        self.weights = torch.where(who[:, None], moved, self.weights).clamp(min=0)
        self.drop(who & ~whole, slot)
        return who & whole, stuck

    def drop(self, who: Tensor, slot: Tensor) -> None:
        """Empty a slot of the sentences ``who``: ``M -= m mᵀ / m_ii``."""
        here = who[:, None] & (
            torch.arange(self.used.shape[1], device=slot.device) == slot[:, None]
        )
        place = slot[:, None, None] + 1
        row = self.inverse.gather(1, place.expand(-1, 1, self.inverse.shape[2]))[:, 0]
        pivot = row.gather(1, slot[:, None] + 1)[:, 0]
        self.update(torch.where(who, -1 / pivot, 0), row)
        for matrix in (self.inverse, self.system):
            self.put(matrix, who, slot, torch.zeros_like(row))
        self.right.masked_fill_(pad(here, (1, 0)), 0)
        self.weights = self.weights.masked_fill(here, 0)
        self.used &= ~here
        self.indices = self.indices.masked_fill(here[..., None], self.count)


def solve(
    scores: Tensor,
    start: Tensor,
    best: Oracle,
    parts: int,
    words: int,
    max_iterations: int | None = None,
) -> Solution:
    """The projection of scores ``(B, ...)``, finite or ``-inf``, on the hull of their structures.

    Args:
        scores: as `prepared` makes them.
        start: structures 0/1 ``(B, ...)`` to start from; a forbidden part says that there is none
            without, and no parts that there is nothing to do.
        best: the structure's argmax.
        parts: most parts of a structure.
        words: most words of a sentence.
        max_iterations: trees that may be added to the first one; None for as many as it takes.
    """
    batch = len(scores)
    waits = checks.readable(scores)  # else the number of steps must not depend on the scores
    flat = scores.flatten(1)
    forbidden = flat == float("-inf")
    if max_iterations is None:
        max_iterations = most_trees(flat.shape[1]) if waits else usual_iterations(words)
    room = min(8, max_iterations + 1)
    if not waits:
        room = usual_room(words, flat.shape[1], max_iterations)
    allowed = pad(flat.masked_fill(forbidden, 0), (0, 1))
    state = Systems(allowed, indices_of(start, parts), room)
    # scores of the support's parts decide what counts as rounding
    size = torch.ones_like(state.sizes)
    stuck = (forbidden & (start.flatten(1) != 0)).any(1)
    gap = torch.zeros_like(size).masked_fill(stuck, float("inf"))
    running = ~stuck
    pending = torch.zeros_like(running)
    added = torch.zeros(batch, dtype=torch.int64, device=flat.device)
    tree = state.tree()
    # every tree that is added takes a solve, and another if one leaves
    for _ in range(2 * max_iterations + 1):
        if waits and not bool(running.any()):
            break
        ready = running & ~pending
        rest = allowed - pad(tree, (0, 1))
        asked = rest[:, :-1].masked_fill(forbidden, float("-inf")).view(scores.shape)
        if waits:
            chosen = ready.nonzero()[:, 0]
            new = torch.zeros_like(asked)
            if len(chosen):
                new[chosen] = best(asked[chosen], chosen)
        else:
            new = best(asked, None)
        new = indices_of(new, parts)
        new_size = allowed.gather(1, new).abs().amax(1) if parts else size
        size = torch.where(ready, torch.maximum(size, new_size), size)
        found = picked(rest, new[:, None])[:, 0] - (tree * rest[:, :-1]).sum(1)
        gap = torch.where(ready, found.clamp(min=0), gap)
        shared, u, distance, known = state.border(new)
        enough = (gap <= ROUNDING * state.sizes * size) | known | ~(distance > TINY)
        enough |= added >= max_iterations
        running &= ~(ready & enough)
        adds = ready & ~enough
        if waits and bool((adds & state.used.all(1)).any()):
            state.make_room()
            more = state.used.shape[1] + 1 - shared.shape[1]
            shared, u = pad(shared, (0, more)), pad(u, (0, more))
        full = adds & state.used.all(1)
        running &= ~full
        adds &= ~full
        state.add(adds, new, shared, u, distance)
        added += adds
        pending |= adds
        whole, stuck = state.step(running & pending)
        pending &= ~whole
        running &= ~stuck
        tree = state.tree()
    return trimmed(state, tree.view(scores.shape), gap, waits)


def trimmed(state: Systems, tree: Tensor, gap: Tensor, waits: bool) -> Solution:
    """The solution with no more slots than the batch needs, if their number may be read."""
    order = torch.where(state.used, 1, 0).argsort(dim=1, descending=True, stable=True)
    if waits:
        order = order[:, : int(state.used.sum(1).amax()) if len(tree) else 0]
    inverse = state.inverse[:, 1:, 1:]
    inverse = inverse.gather(1, order[..., None].expand(-1, -1, inverse.shape[2]))
    inverse = inverse.gather(2, order[:, None].expand(-1, order.shape[1], -1))
    indices = state.indices.gather(1, order[..., None].expand(-1, -1, state.indices.shape[2]))
    return Solution(tree, gap, indices, state.weights.gather(1, order), inverse)
