"""Programs over positions as loops over edges: slow, and the ground truth.

Every node has a value of shape ``(B,)``. Gradients come from PyTorch's autograd through the loops, as in
`treelax.ops.chart.reference`, whose choices are these.
"""

from __future__ import annotations

import torch
from torch import Tensor

from treelax.ops.backend import FORBIDDEN, Batch, bounded
from treelax.ops.chain.rules import NONE, Program
from treelax.ops.chart import reference as charts
from treelax.ops.chart.reference import Chooser, drawn, entropy_choice

Edge = tuple[int, int]  # its tail and its part


class Graph:
    """All nodes of a batch of sentences, in order; node -1 is the goal.

    ``edges[node]`` enter a node; ``weights[node]`` ``(B, edges)`` are the weights ``b`` of its choice.
    """

    def __init__(self, program: Program, given: Batch, choose: Chooser) -> None:
        scores, lengths = given.scores, given.lengths
        self.shape = shape = scores.shape[1:]
        w = bounded(scores, program.parts(lengths, shape)).flatten(1)
        self.zero = w.new_zeros(len(w))
        values, self.edges, self.weights = [self.zero], [list[Edge]()], [w.new_zeros(len(w), 0)]
        for level in program.levels(shape):
            for row in zip(level.tails.tolist(), level.parts.tolist(), strict=True):
                edges = [edge for edge in zip(*row, strict=True) if edge[0] != NONE]
                s = [values[tail] + (w[:, part] if part != NONE else 0) for tail, part in edges]
                b, v = (
                    choose(torch.stack(s, -1))
                    if s
                    else (w.new_zeros(len(w), 0), self.zero + FORBIDDEN)
                )
                values.append(v.clamp(min=FORBIDDEN))
                self.edges.append(edges)
                self.weights.append(b)
        self.goals = program.goals(lengths, shape)
        missing = self.goals == NONE
        ends = torch.stack(values, -1).gather(1, self.goals.masked_fill(missing, 0))
        self.ends, self.goal_value = choose(ends.masked_fill(missing, FORBIDDEN))

    def value(self) -> Tensor:
        """The goal's value for every sentence, ``(B,)``."""
        return self.goal_value

    def tree(self) -> Tensor:
        """Contributions pushed down from the goal: the structure, of the scores' shape."""
        given = [(self.ends * (self.goals == node)).sum(1) for node in range(len(self.edges))]
        parts = [self.zero] * self.shape.numel()
        for node in reversed(range(len(self.edges))):
            for (tail, part), b in zip(self.edges[node], self.weights[node].unbind(1), strict=True):
                share = b * given[node]
                given[tail] = given[tail] + share
                if part != NONE:
                    parts[part] = parts[part] + share
        return torch.stack(parts, -1).unflatten(1, self.shape)


class ReferenceBackend(charts.ReferenceBackend):
    """The backend `reference` of a program over positions."""

    chart = Graph

    def sample_tree(self, given: Batch, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        graph, scores = Graph(self.program, given, entropy_choice), given.scores
        trees = scores.new_zeros((len(uniforms), len(scores), graph.shape.numel()))
        for s, b in torch.cartesian_prod(*map(torch.arange, trees.shape[:2])).tolist():
            decisions = iter(uniforms[s, b].tolist())
            node = int(graph.goals[b, 0])
            if graph.goals.shape[1] > 1:
                node = int(graph.goals[b, drawn(graph.ends[b], next(decisions))])
            while node > 0:
                node, part = graph.edges[node][drawn(graph.weights[node][b], next(decisions))]
                if part != NONE:
                    trees[s, b, part] = 1
        return trees.reshape(len(uniforms), *scores.shape), graph.value()
