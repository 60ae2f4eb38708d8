"""Programs over positions in plain PyTorch, whatever the device: level by level, all sentences at once.

The four sweeps are those of `treelax.ops.chart.plain`, where every choice is of one edge instead of two
items. They run in float64 where the device has it: the values of long sentences are large, and what
counts is their differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import torch
from torch import Tensor

from treelax.ops.backend import FORBIDDEN, NO_TREE, Batch, bounded
from treelax.ops.chain.rules import NONE, Level, Program

#: Of what is no edge: below any sum of forbidden scores, so that the best path is one even then.
MISSING = 4 * FORBIDDEN


def wide(x: Tensor) -> Tensor:
    """In float64 where the device has it."""
    return x if x.device.type == "mps" else x.double()


def within_room(program: Program, lengths: Tensor, shape: torch.Size) -> Tensor:
    """Lengths for which scores of a shape have room: a GPU, whose lengths may not be read, stays within
    its memory."""
    columns = lengths.reshape(len(lengths), -1).unbind(1)
    within = [x.clamp(program.least, size) for x, size in zip(columns, shape, strict=False)]
    return torch.stack(within, 1).view_as(lengths)


class Nodes:
    """The nodes of a batch, node by node: value, maximum, 1/normaliser and contribution ``(N, B)``."""

    def __init__(self, program: Program, given: Batch, best: bool = False) -> None:
        scores = given.scores
        self.shape = scores.shape[1:]
        lengths = within_room(program, given.lengths, self.shape)
        self.best = best
        device = scores.device
        self.levels = [
            Level(level.tails.to(device), level.parts.to(device))
            for level in program.levels(self.shape)
        ]
        counts = [1, *(len(level.tails) for level in self.levels)]
        *self.first, self.count = accumulate(counts)  # of every level; node 0 is the start
        w = wide(bounded(scores, program.parts(lengths, self.shape))).flatten(1).T
        self.w = torch.cat(
            (w, w.new_zeros(1, w.shape[1]))
        )  # an edge without a score reads the last
        goals = program.goals(lengths, self.shape).T
        self.goals, self.missing = goals.clamp(min=0), goals == NONE

    def forward(self) -> Iterator[tuple[slice, Level]]:
        """The levels with the nodes that they make."""
        for first, level in zip(self.first, self.levels, strict=True):
            yield slice(first, first + len(level.tails)), level

    def backward(self) -> Iterator[tuple[slice, Level]]:
        """The levels, the last one first."""
        return reversed(list(self.forward()))

    def splits(self, level: Level) -> Tensor:
        """``value(tail) + score(part)`` of every edge ``(edges, nodes, B)``."""
        s = self.value[level.tails.T] + self.w[level.parts.T]
        return s.masked_fill((level.tails.T == NONE)[..., None], MISSING)

    def choose(self, s: Tensor, relaxation: str) -> tuple[Tensor, Tensor, Tensor]:
        """Maximum, 1/normaliser and value of choices among the first dimension."""
        top = s.amax(0)
        if self.best:
            return top, torch.ones_like(top), top
        e = (s - top).exp()
        scale = 1 / e.sum(0)
        if relaxation == "entropy":
            return top, scale, (top - scale.log()).clamp(min=FORBIDDEN)
        distance = (s - top).clamp(min=-1e4)  # e is 0 long before the clamp
        return top, scale, (top + (e * distance).sum(0) * scale).clamp(min=FORBIDDEN)

    def weights(self, s: Tensor, top: Tensor, scale: Tensor) -> Tensor:
        """``b`` of every edge; one-hot at the first maximum for the best structure."""
        if not self.best:
            return (s - top).exp() * scale
        first = (s == top).to(torch.uint8).argmax(0, keepdim=True)
        return torch.zeros_like(s).scatter_(0, first, 1)

    def inside(self, relaxation: str) -> Tensor:
        """Sweep 1: the values of all nodes; returns that of every sentence ``(B,)``."""
        self.value, self.top, self.scale, self.given = self.w.new_zeros(
            4, self.count, self.w.shape[1]
        )
        for nodes, level in self.forward():
            choice = self.choose(self.splits(level), relaxation)
            self.top[nodes], self.scale[nodes], self.value[nodes] = choice
        self.end(relaxation)
        return self.end_value

    def end(self, relaxation: str) -> None:
        """The choice among the ends of every sentence."""
        ends = self.value.gather(0, self.goals).masked_fill(self.missing, MISSING)
        top, scale, self.end_value = self.choose(ends, relaxation)
        self.ends = ends
        self.end_weights = self.weights(ends, top, scale)

    def outside(self) -> Tensor:
        """Sweep 2: contributions; returns the tree ``(B, *shape)``."""
        tree = torch.zeros_like(self.w)
        self.given.scatter_add_(0, self.goals, self.end_weights)
        for nodes, level in self.backward():
            b = self.weights(self.splits(level), self.top[nodes], self.scale[nodes])
            share = b * self.given[nodes]
            self.hand_down(level, share, self.given)
            tree.index_add_(0, level.parts.T.flatten() % len(tree), share.flatten(0, 1))
        return self.of_scores(tree)

    def max_marginals(self) -> tuple[Tensor, Tensor]:
        """After `inside`, for every part: the value of the best path through it, and by how much the
        best way to the goal from its tail exceeds that from its head."""
        shared = torch.zeros_like(self.w)
        result = torch.full_like(self.w, -torch.inf)
        rest = torch.full_like(self.value, -torch.inf)  # of the best path from a node to the goal
        rest.scatter_reduce_(
            0,
            self.goals,
            torch.zeros_like(rest[: len(self.goals)]).masked_fill(self.missing, -torch.inf),
            "amax",
        )
        for nodes, level in self.backward():
            s = self.w[level.parts.T] + rest[nodes]
            s = s.masked_fill((level.tails.T == NONE)[..., None], -torch.inf)
            through = s + self.value[level.tails.T]
            for to, at, x in ((rest, level.tails, s), (result, level.parts, through)):
                at = (at.T.flatten() % len(to))[:, None].expand(-1, x.shape[-1])
                to.scatter_reduce_(0, at, x.flatten(0, 1), "amax")
        for nodes, level in self.forward():
            gain = rest[level.tails] - rest[nodes][:, None]
            gain = gain.masked_fill(~(rest[nodes] > NO_TREE)[:, None], 0)  # on no path
            shared[level.parts.flatten()] = gain.flatten(0, 1)  # what is no part is cut off
        result = result.masked_fill(result < NO_TREE, -torch.inf)
        return self.of_scores(result), self.of_scores(shared)

    def hand_down(self, level: Level, share: Tensor, to: Tensor) -> None:
        """Add to the tail of every edge."""
        to.index_add_(0, level.tails.T.clamp(min=0).flatten(), share.flatten(0, 1))

    def of_scores(self, parts: Tensor) -> Tensor:
        """Parts ``(P + 1, B)`` in the shape of the scores."""
        return parts[:-1].T.contiguous().unflatten(1, self.shape)

    def gradient(self, grad_tree: Tensor, grad_value: Tensor, relaxation: str) -> Tensor:
        """Sweeps 3 and 4: adjoints of all contributions, then of all values.

        ds_k = b_k [ gv (1 + (s_k - v)) + a (g_k - ḡ) ], without s_k - v for entropy
        """
        entropy = relaxation == "entropy"
        g = torch.cat((wide(grad_tree).flatten(1).T, self.w.new_zeros(1, self.w.shape[1])))
        mean, gv, grad = (
            torch.zeros_like(self.value),
            torch.zeros_like(self.value),
            torch.zeros_like(g),
        )

        def adjoint(s: Tensor, b: Tensor, v: Tensor, a: Tensor, gs: Tensor, up: Tensor) -> Tensor:
            bracket = a * (gs - (b * gs).sum(0)) + up
            return b * (bracket if entropy else bracket + up * (s - v).clamp(min=-1e4))

        for nodes, level in self.forward():
            b = self.weights(self.splits(level), self.top[nodes], self.scale[nodes])
            mean[nodes] = (b * (g[level.parts.T] + mean[level.tails.T])).sum(0)
        ones, up = torch.ones_like(self.end_value), wide(grad_value)
        ends = mean.gather(0, self.goals).masked_fill(self.missing, 0)
        gv.scatter_add_(
            0, self.goals, adjoint(self.ends, self.end_weights, self.end_value, ones, ends, up)
        )
        for nodes, level in self.backward():
            s = self.splits(level)
            b = self.weights(s, self.top[nodes], self.scale[nodes])
            gs = g[level.parts.T] + mean[level.tails.T]
            ds = adjoint(s, b, self.value[nodes], self.given[nodes], gs, gv[nodes])
            self.hand_down(level, ds, gv)
            grad.index_add_(0, level.parts.T.flatten() % len(grad), ds.flatten(0, 1))
        return self.of_scores(grad)


class PlainBackend:
    """The backend `diagonal` of a program over positions."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def saved_shape(self, shape: torch.Size, dtype: torch.dtype) -> tuple[int, ...]:
        """Nothing is kept; the backward pass runs the forward sweeps again."""
        return (0,)

    def soft_tree(self, given: Batch, save: bool) -> tuple[Tensor, Tensor, Tensor]:
        nodes, scores = Nodes(self.program, given), given.scores
        value = nodes.inside(given.relaxation)
        return nodes.outside().to(scores), value.to(scores), scores.new_empty(0)

    def soft_tree_backward(
        self, grad_tree: Tensor, grad_value: Tensor, saved: Tensor, given: Batch
    ) -> Tensor:
        nodes = Nodes(self.program, given)
        nodes.inside(given.relaxation)
        nodes.outside()
        grad = nodes.gradient(grad_tree, grad_value, given.relaxation).to(given.scores)
        parts = self.program.parts(given.lengths, given.scores.shape[1:])
        return grad.masked_fill(~parts, 0)  # beyond a sentence, 0 times its NaN

    def log_partition(self, given: Batch) -> Tensor:
        return Nodes(self.program, given).inside("entropy").to(given.scores)

    def best_tree(self, given: Batch) -> tuple[Tensor, Tensor]:
        nodes = Nodes(self.program, given, best=True)
        value = nodes.inside("best")
        return nodes.outside().to(given.scores), value.to(given.scores)

    def max_marginals(self, given: Batch) -> tuple[Tensor, Tensor, Tensor]:
        nodes = Nodes(self.program, given, best=True)
        value = nodes.inside("best")
        result, shared = nodes.max_marginals()
        return result.to(given.scores), shared, value.to(given.scores)

    def sample_tree(self, given: Batch, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """All samples of all sentences take their decisions side by side."""
        nodes, scores = Nodes(self.program, given), given.scores
        value = nodes.inside("entropy")
        samples, batch, _ = uniforms.shape
        most = max([nodes.goals.shape[0], *(level.tails.shape[1] for level in nodes.levels)])
        # (N, most): of node 0 no edges at all
        tails, parts = torch.full((2, nodes.count, most), NONE, device=scores.device)
        for made, level in nodes.forward():
            tails[made, : level.tails.shape[1]] = level.tails
            parts[made, : level.parts.shape[1]] = level.parts
        sentence = torch.arange(samples * batch, device=scores.device) % batch
        flat = wide(uniforms.flatten(0, 1))
        trees = nodes.w.new_zeros(samples * batch, len(nodes.w))
        ends, step = nodes.ends.T[sentence], 0
        node = nodes.goals[0, sentence]
        if ends.shape[1] > 1:
            node = nodes.goals.T[sentence].gather(1, drawn(ends, flat[:, 0]))[:, 0]
            step = 1
        for uniform in flat[:, step:].unbind(1):
            tail, part = tails[node], parts[node]
            s = nodes.value[tail, sentence[:, None]] + nodes.w[part, sentence[:, None]]
            edge = drawn(s.masked_fill(tail == NONE, MISSING), uniform)
            live = node > 0
            trees.scatter_add_(1, part.gather(1, edge) % trees.shape[1], live[:, None].to(trees))
            node = torch.where(live, tail.gather(1, edge)[:, 0], 0)
        trees = trees[:, :-1].reshape(samples, *scores.shape)
        return trees.to(scores), value.to(scores)


def drawn(s: Tensor, uniform: Tensor) -> Tensor:
    """The first choice ``(…, 1)`` whose cumulative weight exceeds a uniform variable, or the last of any
    weight."""
    b = s.softmax(-1)
    choices = torch.arange(s.shape[-1], device=s.device)
    last = ((b > 0) * choices).amax(-1, keepdim=True)
    above = (b.cumsum(-1) > uniform[:, None]) | (choices == last)
    return above.to(torch.uint8).argmax(-1, keepdim=True)
