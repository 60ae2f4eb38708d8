"""Undirected spanning trees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.interface import Options
from treelax.ops.backend import LIMIT, Algorithm, Relaxation, inner
from treelax.ops.call import Call, make_call, precise, value_type
from treelax.ops.checks import check_length_values, check_lengths, readable
from treelax.ops.spanning import ALGORITHM, bottlenecks, grow
from treelax.ops.sparsemap.result import SparseMap
from treelax.structures.base import AlgorithmStructure, Structure
from treelax.structures.nonprojective import NonProjective
from treelax.structures.search import check_count


@dataclass(frozen=True)
class Spanning(AlgorithmStructure):
    r"""Undirected spanning trees of a graph, by the matrix-tree theorem: O(n³).

    Parts are edges: ``scores[..., i, j]``, ``i < j``, is the score of the edge between nodes ``i`` and
    ``j``, counted from 0; the diagonal and what is below it are never read. Lengths count nodes. There
    are :math:`n^{n-2}` trees over ``n`` nodes; one node, or none, has a tree without edges.

    Example:
        >>> trees = Spanning()(torch.zeros(2, 5, 5), torch.tensor([5, 4]))
        >>> trees.log_partition.exp().round()
        tensor([125.,  16.])
        >>> Spanning()(torch.tensor([[0.0, 2.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])).mode
        tensor([[0., 1., 1.],
                [0., 0., 0.],
                [0., 0., 0.]])

    Reference:
        Kirchhoff (1847), Ueber die Auflösung der Gleichungen, auf welche man bei der Untersuchung der
        linearen Vertheilung galvanischer Ströme geführt wird, Annalen der Physik.
    """

    name: ClassVar[str] = "spanning"
    part: ClassVar[str] = ALGORITHM.part
    #: There is no dynamic program whose choices could be relaxed one by one.
    relaxations: ClassVar[tuple[Relaxation, ...]] = ("entropy",)
    algorithm: ClassVar[Algorithm] = ALGORITHM

    def check_scores(self, scores: Tensor) -> None:
        super().check_scores(scores)
        shape = tuple(scores.shape)
        if shape[-1] != shape[-2]:
            raise InputError(
                f"scores has shape {shape}; expected (..., n, n), where scores[..., i, j], i < j, is "
                "the score of the edge between nodes i and j."
            )

    def _call(self, scores: Tensor, lengths: Tensor | None = None, **settings: Any) -> Call:
        self.check_scores(scores)
        upper = self._upper(scores)
        scores = upper + upper.mT
        none = scores.shape[-1] == 0
        if none:  # has a root nevertheless
            scores = scores.new_zeros(*scores.shape[:-2], 1, 1)
        if lengths is not None:
            check_lengths(lengths, scores.shape[:-2], scores.device)
            if none and settings.get("validate", True) and readable(lengths):
                check_length_values(lengths.reshape(-1), 0, rooted=False)
            lengths = lengths - (lengths != 0).to(lengths.dtype)  # node 0 is the root
        return make_call(self.algorithm, scores, lengths, **settings)

    def _undirected(self, tree: Tensor, scores: Tensor) -> Tensor:
        """Edges of dependency trees, like the scores; both of their directions are added."""
        n = scores.shape[-1]
        return self._upper(tree + tree.mT)[..., :n, :n].to(scores.dtype)

    def _upper(self, values: Tensor) -> Tensor:
        """Those above the diagonal, 0 elsewhere."""
        node = torch.arange(values.shape[-1], device=values.device)
        return torch.where(node[:, None] < node, values, 0)

    def argmax(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        call = self._call(scores, lengths, **options)
        if call.settings.backend != "reference":  # Prim's algorithm
            call = call._replace(settings=call.settings._replace(backend="diagonal"))
        return self._undirected(call.best(), scores)

    def marginals(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> tuple[Tensor, Tensor]:
        tree, value = super().marginals(precise(scores), lengths, **options)
        return self._undirected(tree, scores), value.to(value_type(scores))

    def sample(self, scores: Tensor, lengths: Tensor | None = None, **options: Any) -> Tensor:
        return self._undirected(super().sample(scores, lengths, **options), scores)

    def relaxed(self, scores: Tensor, lengths: Tensor | None = None, **options: Any) -> Tensor:
        return self._undirected(super().relaxed(precise(scores), lengths, **options), scores)

    def sparsemap(self, *arguments: Any, **options: Any) -> SparseMap:
        # the polytope of directed trees has two coordinates for every edge
        return Structure.sparsemap(self, *arguments, **options)

    def max_marginals(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        # an edge takes the place of the lowest one between its ends in the best tree
        scores = scores.detach()
        best = inner(self.argmax(scores, lengths, **options), scores)
        call = self._call(scores, lengths, **{**options, "validate": False})
        wide = call.scores.to(best.dtype)
        order, keys, _ = grow(wide, call.lengths)
        finite = wide.clamp(-LIMIT, LIMIT).masked_fill(wide == -math.inf, -math.inf)
        gain = call.restore(finite - bottlenecks(order, keys).clamp(max=LIMIT), best.dtype)
        if lengths is None:
            lengths = self.full_lengths(scores)
        mask = self.part_mask(lengths, *scores.shape[-2:])
        values = best[..., None, None] + gain[..., : mask.shape[-2], : mask.shape[-1]]
        return values.masked_fill(~mask, -math.inf).to(scores.dtype)

    def sizes(self, *shape: int) -> tuple[int, ...]:
        return (shape[0],)

    def part_mask(self, lengths: Tensor, *shape: int) -> Tensor:
        node = torch.arange(shape[0], device=lengths.device)
        return (node[:, None] < node) & (node < lengths[..., None, None])

    def part_count(self, lengths: Tensor) -> Tensor:
        return (lengths - 1).clamp(min=0)

    def _connected(self, edges: Tensor) -> Tensor:
        """``(..., n, n)``, whether there is a path of edges between two nodes."""
        n = edges.shape[-1]
        linked = (edges | edges.mT | torch.eye(n, dtype=torch.bool, device=edges.device)).float()
        for _ in range(max(n - 1, 1).bit_length()):  # of twice as many edges every time
            linked = (linked @ linked).clamp(max=1)
        return linked > 0

    def compatible_parts(self, parts: Tensor) -> Tensor:
        return parts | ~self._connected(parts)  # all that close no cycle

    def force(self, scores: Tensor, parts: Tensor) -> Tensor:
        return scores.masked_fill(parts, math.inf)  # scores are only compared

    def shared_score(self, best: Tensor, at_best: Tensor) -> Tensor:
        # all trees have as many edges; the median of the best one's, as a few may be huge
        scores = at_best.masked_fill(~best, -math.inf).flatten(-2)
        scores = scores.topk(max(best.shape[-1] - 1, 1)).values
        middle = scores.gather(-1, best.flatten(-2).sum(-1, keepdim=True) // 2)
        return middle.masked_fill(middle == -math.inf, 0)[..., None]

    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        # n-1 edges that connect all nodes
        edges = value == 1
        mask = self.part_mask(lengths, *value.shape[-2:])
        good = ((value == 0) | (edges & mask)).flatten(-2).all(-1)
        good &= edges.flatten(-2).sum(-1) == self.part_count(lengths)
        outside = torch.arange(value.shape[-1], device=value.device) >= lengths[..., None]
        return good & (self._connected(edges)[..., :1, :].all(-2) | outside).all(-1)

    def enumerate(self, n: int) -> Tensor:
        check_count(n ** max(n - 2, 0), n, "nodes")
        trees = NonProjective().enumerate(max(n - 1, 0))
        return self._undirected(trees, trees.new_empty(n, n))

    def log_count(self, n: int) -> float:
        return (n - 2) * math.log(n) if n > 1 else 0.0

    @property
    def none_left(self) -> str:
        return "no spanning tree"

    @property
    def rules(self) -> str:
        return "n-1 edges [i, j], i < j, that connect all nodes"
