"""The trees that SparseMAP's gradient needs beside those of its point; the README has the maths."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from treelax.ops import checks
from treelax.ops.sparsemap.limits import (
    APART,
    LEAST_GAIN,
    REACH,
    ROUNDS,
    SHORTEST_REACH,
    TIE,
    most_trees,
)
from treelax.ops.sparsemap.plain import Oracle, Solution, indices_of, picked, spread


def spanned(scores: Tensor, found: Solution, best: Oracle) -> Solution:
    """A solution with as many trees of weight 0 as it takes to span its face.

    Args:
        scores: as `treelax.ops.sparsemap.plain.solve` got them.
        found: what that returned.
        best: the structure's argmax.
    """
    if not found.indices.numel():
        return found
    face = Face(scores, found, best)
    waits = checks.readable(scores)  # else the number of rounds must not depend on the scores
    every = torch.arange(len(scores), device=scores.device)
    if not waits:
        face.make_room(2 * ROUNDS)
    for turn in range(most_trees(face.count) if waits else ROUNDS):
        rows = face.unsure.nonzero()[:, 0] if waits else every
        if not len(rows):
            break
        face.grow(rows, turn, waits)
    return Solution(found.tree, found.gap, face.indices, face.weights, face.inverse)


def scattered(count: int, turn: int, like: Tensor) -> Tensor:
    """A direction ``(count,)`` as good as a random one, and the same everywhere: hashed integers."""
    key = torch.arange(count, device=like.device) + count * turn
    for factor in (0x7FEB352D, 0x046CA68B):
        key = ((key ^ (key >> 15)) * factor) & 0x7FFFFFFF
    return (key ^ (key >> 16)).to(like.dtype) / 2**30 - 1


def apart(flat: Tensor, indices: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    """What of vectors ``(B, E + 1)`` is orthogonal to the affine hull of trees; and the rest, as weights
    of these trees."""
    total = inverse.new_zeros(indices.shape[:2])
    for _ in range(2):  # the second takes off what rounding left
        weights = (inverse @ picked(flat, indices)[..., None])[..., 0]
        flat = flat - pad(spread(indices, weights, flat.shape[1] - 1), (0, 1))
        total = total + weights
    return flat, total


class Face:
    """For every sentence of a batch, trees of the face on which its point lies."""

    def __init__(self, scores: Tensor, found: Solution, best: Oracle) -> None:
        self.best = best
        self.shape = scores.shape[1:]
        flat = scores.flatten(1)
        self.count = flat.shape[1]
        self.forbidden = flat == float("-inf")
        self.indices, self.inverse = found.indices.clone(), found.inverse.clone()
        self.weights = found.weights
        self.sizes = (self.indices[:, 0] < self.count).sum(1).to(flat.dtype)  # parts of a tree
        allowed = pad(flat.masked_fill(self.forbidden, 0), (0, 1))
        # of the scores, which says what counts as rounding
        self.scale = allowed.gather(1, self.indices.flatten(1)).abs().amax(1).clamp(min=1)
        self.rest = allowed - pad(found.tree.flatten(1), (0, 1))
        self.level = (self.weights * picked(self.rest, self.indices)).sum(1)
        self.reach = REACH * self.scale
        # a search that ended early is on no face
        self.unsure = (self.sizes > 0) & (found.gap <= TIE * self.sizes * self.scale)

    def grow(self, rows: Tensor, turn: int, waits: bool) -> None:
        """Add trees of the sentences ``rows`` on both sides of their affine hulls."""
        sure = ~self.unsure[rows]
        level, scale, rest = self.level[rows], self.scale[rows], self.rest[rows]
        near = TIE * self.sizes[rows] * scale
        aside = pad(scattered(self.count, turn, rest).expand(len(rows), -1), (0, 1))
        aside = apart(aside, self.indices[rows], self.inverse[rows])[0]
        aside = aside / aside.abs().amax(1, keepdim=True).clamp(min=1e-30)
        # the same for all trees of the hull
        shared = (self.weights[rows] * picked(aside, self.indices[rows])).sum(1)
        goes_on = torch.zeros_like(sure)
        for side in (1, -1):
            reach = self.reach[rows]
            asked = (rest + (side * reach)[:, None] * aside)[:, :-1]
            asked = asked.masked_fill(self.forbidden[rows], float("-inf"))
            trees = self.best(asked.view(-1, *self.shape), rows)
            new = indices_of(trees, self.indices.shape[2])
            gain = side * (picked(aside, new[:, None])[:, 0] - shared)
            lost = level - picked(rest, new[:, None])[:, 0]
            found = ~sure & (gain > LEAST_GAIN)
            tied = found & (lost <= near)
            at = tied.nonzero()[:, 0] if waits else torch.arange(len(rows), device=rows.device)
            if len(at):
                goes_on[at] |= self.add(rows[at], tied[at], new[at], waits)
            # one off the face may stand before others on it
            hides = found & ~tied & (reach * gain > lost)
            self.reach[rows] = torch.where(hides, lost / (4 * gain), reach)
            goes_on |= hides & (self.reach[rows] > SHORTEST_REACH * scale)
        self.unsure[rows] = goes_on

    def add(self, rows: Tensor, who: Tensor, new: Tensor, waits: bool) -> Tensor:
        """Trees ``new`` of ``who`` among the sentences ``rows`` get a free slot; returns who has one."""
        if waits and bool((self.indices[rows, -1] < self.count).any()):
            self.make_room(16)
        indices, inverse = self.indices[rows], self.inverse[rows]
        used = (indices < self.count).any(2)
        difference = inverse.new_zeros(len(rows), self.count + 1).scatter_(1, new, 1)
        difference.scatter_add_(
            1, indices[:, 0], torch.full_like(inverse[:, :1, 0], -1).expand_as(new)
        )
        difference[:, -1] = 0
        outside, weights = apart(difference, indices, inverse)
        distance = outside.square().sum(1)
        who = who & (distance > APART)  # the other side's may have brought it in
        slot = torch.where(used, 1, 0).argmin(1)
        here = who[:, None] & (torch.arange(used.shape[1], device=slot.device) == slot[:, None])
        # the same vector as weights of trees
        v = here.to(weights.dtype) - weights
        v[:, 0] -= 1
        scale = torch.where(who, 1 / distance, 0)
        self.inverse[rows] = torch.baddbmm(inverse, (scale[:, None] * v)[:, :, None], v[:, None])
        self.indices[rows] = torch.where(here[..., None], new[:, None], indices)
        return who

    def make_room(self, more: int) -> None:
        """Free slots."""
        self.indices = pad(self.indices, (0, 0, 0, more), value=self.count)
        self.weights = pad(self.weights, (0, more))
        self.inverse = pad(self.inverse, (0, more, 0, more))
