"""Structures whose parts are arcs: every word has one head, another word or the root."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from treelax.interface import BY_NAME, StructureInterface
from treelax.ops.checks import arc_mask, check_scores
from treelax.structures.base import AlgorithmStructure, Structure
from treelax.structures.search import check_count
from treelax.trees import heads_to_tree, one_head_each, reaches_root


class Arcs(Structure):
    """A head for every word: ``scores[..., h, m]`` is that of the arc from h to m, index 0 the root."""

    part: ClassVar[str] = "arc"

    def check_scores(self, scores: Tensor) -> None:
        check_scores(scores)

    def sizes(self, *shape: int) -> tuple[int, ...]:
        return (shape[0] - 1,)

    def part_mask(self, lengths: Tensor, *shape: int) -> Tensor:
        return arc_mask(lengths, shape[0])

    def part_count(self, lengths: Tensor) -> Tensor:
        return lengths

    def most_parts(self, *shape: int) -> int:
        return shape[0] - 1

    def parts_of(self, value: Tensor) -> Tensor:
        position = torch.arange(value.shape[-1], device=value.device)
        column = position[1:].view(-1, *(1,) * value.dim()) == position
        return column & (value != 0)

    def compatible_parts(self, parts: Tensor) -> Tensor:
        return parts | ~parts.any(-2, keepdim=True)

    @property
    def unconstrained(self) -> StructureInterface | None:
        return BY_NAME["heads"]()

    def shared_score(self, best: Tensor, at_best: Tensor) -> Tensor:
        return at_best.sum(-2, keepdim=True)  # the arcs of a word lose the score of its best one

    def has_extra_support(
        self,
        other: StructureInterface,
        counts: Tensor,
        lengths: Tensor,
        *,
        backend: str | None = None,
    ) -> Tensor:
        one_root, other_has_one = (getattr(s, "single_root", False) for s in (self, other))
        if one_root or not other_has_one:
            return super().has_extra_support(other, counts, lengths, backend=backend)
        # more roots than one are extra: a part that the other forbids counts 2, a root 1
        first = torch.arange(counts.shape[-1], device=counts.device) == 0
        counts = 2 * counts + first[:, None]
        best = self.argmax(counts, lengths, validate=False, backend=backend)
        return (best * counts.clamp(min=0)).sum((-2, -1)) > 1

    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        return one_head_each(value, lengths)[2]

    def enumerate(self, n: int) -> Tensor:
        check_count(n**n, n)
        heads = torch.zeros(1, 0, dtype=torch.int64)
        if n:
            choices = [torch.tensor([h for h in range(n + 1) if h != m]) for m in range(1, n + 1)]
            heads = torch.cartesian_prod(*choices).reshape(-1, n)
        trees = heads_to_tree(heads, dtype=torch.float64)
        return trees[self.contains(trees, torch.tensor(n))]

    @property
    def none_left(self) -> str:
        return "a word without a head"

    @property
    def rules(self) -> str:
        return "one head per word"


class DependencyTrees(Arcs, AlgorithmStructure):
    """Trees of arcs that an algorithm computes, with one modifier of the root or any number."""

    single_root: bool = False
    kind: ClassVar[str] = "tree"

    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        heads, word, good = one_head_each(value, lengths)
        if self.single_root:
            good = good & (((heads == 0) & word).sum(-1) <= 1)
        return good & reaches_root(heads, word)

    @property
    def none_left(self) -> str:
        return f"no {self.kind}{' with a single root' if self.single_root else ''}"

    @property
    def rules(self) -> str:
        return "one head per word, no cycles" + ", one modifier of the root" * self.single_root
