"""Undirected spanning trees, by the kernels of non-projective ones.

Directed away from node 0, a spanning tree is exactly one dependency tree with its root there: node 0
is the root and the others are the words, and an edge has the same score in both directions. So
kernels take symmetric scores and lengths that do not count node 0, and the trees that they return have
each edge in one of its directions.

The best tree is Prim's. Which one that is depends on the order of the scores alone, and the algorithm
only compares them: no digit of a small score is lost beside a large one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from treelax.errors import InputError, NoTreeError
from treelax.ops import dispatch, matrix_tree
from treelax.ops.backend import FORBIDDEN, LIMIT, Algorithm, Batch, bounded
from treelax.ops.checks import arc_mask
from treelax.ops.native_program import NativeProgram

#: Above every score: of edges that a tree must have.
FORCED = 3e38
#: Below every score, also a forbidden one: of edges to nodes that a graph does not have.
NO_EDGE = -3e38


@dataclass(frozen=True, eq=False)
class SpanningTrees(Algorithm):
    """That of the matrix-tree theorem, whose errors speak of nodes and edges."""

    @property
    def part(self) -> str:
        return "edge"

    def wrong_length(self, sentence: int, length: int, form: int, place: int = 0) -> InputError:
        return InputError(
            f"lengths[{sentence}] (of the flattened batch) is {length + 1}; expected 0 to {form} "
            f"(scores has room for {form} nodes)."
        )

    def no_tree(self, sentence: int, words: int, forbidden: int) -> NoTreeError:
        return NoTreeError(
            f"Graph {sentence} (of the flattened batch; {words + 1} nodes) has no spanning tree: "
            "without the forbidden edges (-inf) it is not connected; expected at least one. Allow more "
            "edges."
        )


class Borrowed:
    """A backend of the matrix-tree theorem, imported when it is first used."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(dispatch.load(matrix_tree.ALGORITHM.name, self.name), attribute)


class Plain(Borrowed):
    """That in plain PyTorch, with the best tree of undirected graphs."""

    def best_tree(self, given: Batch) -> tuple[Tensor, Tensor]:
        edges = arc_mask(given.lengths, given.scores.shape[-1])
        parent = grow(given.scores, given.lengths)[2]
        position = torch.arange(parent.shape[-1], device=parent.device)
        tree = (parent[:, None] == position[:, None]) & edges
        weights = bounded(given.scores, edges)
        return tree.to(weights.dtype), (weights * tree).sum((1, 2))


ALGORITHM = SpanningTrees("spanning", "spanning tree")
reference, diagonal, triton = Borrowed("reference"), Plain("diagonal"), Borrowed("triton")
native = NativeProgram(ALGORITHM, "matrix_tree_", planes=2, logarithms=True)


def grow(scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The best tree from node 0 on, by the best edge that leaves it in every step (Prim 1957).

    Takes symmetric scores ``(B, N, N)``. Returns, all ``(B, N)``, the nodes in the order in which they
    join, the score of the edge by which each of them does, and the node at its other end, by node. Of
    equal edges, that to the node with the smallest number joins.
    """
    edges = arc_mask(lengths, scores.shape[-1])
    scores = scores.clamp(-LIMIT, FORCED).masked_fill(scores == -torch.inf, FORBIDDEN)
    scores = torch.where(edges & ~scores.isnan(), scores, NO_EDGE)
    graph = torch.arange(len(scores), device=scores.device)
    best = torch.full_like(scores[:, 0], NO_EDGE)
    joined = torch.zeros_like(best)  # -inf for nodes that are in the tree
    parent = torch.zeros_like(best, dtype=torch.int64)
    node, key = parent[:, 0], torch.full_like(best[:, 0], torch.inf)
    order, keys = [node], [key]
    for _ in range(scores.shape[-1] - 1):
        joined = joined.scatter(1, node[:, None], -torch.inf)
        row = scores[graph, node] + joined
        parent = torch.where(row > best, node[:, None], parent)
        best = torch.maximum(best, row) + joined
        node = best.argmax(1)
        order.append(node)
        keys.append(best[graph, node])
    return torch.stack(order, 1), torch.stack(keys, 1), parent


def bottlenecks(order: Tensor, keys: Tensor) -> Tensor:
    """``(B, N, N)``: the lowest score between two nodes in the best tree, from what `grow` returns.

    It is the lowest by which a node joins after the one and until the other has done.
    """
    position = torch.arange(order.shape[-1], device=order.device)
    after = torch.where(position > position[:, None], keys[:, None], torch.inf).cummin(2).values
    lowest = torch.minimum(after, after.mT)
    rank = order.argsort(1)
    lowest = lowest.gather(1, rank[:, :, None].expand_as(lowest))
    return lowest.gather(2, rank[:, None].expand_as(lowest))
