"""What the words of a source choose: its distribution given scores, and its relaxation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.distributions import Categorical

from treelax.demo.messages import StructureName
from treelax.distributions import ProjectiveTrees
from treelax.errors import InputError
from treelax.ops import select_heads, soft_tree
from treelax.trees import heads_to_tree, tree_to_heads

__all__ = ["HeadChoices", "Heads", "Projective", "structure_of"]

Relaxation = Literal["softmax", "entropy"]


@dataclass(frozen=True)
class Projective:
    """Projective trees."""

    single_root: bool = False

    def __call__(self, scores: Tensor) -> ProjectiveTrees:
        """Their distribution; a NoTreeError comes with its mode."""
        return ProjectiveTrees(scores, single_root=self.single_root)

    def relaxed(self, scores: Tensor, relaxation: Relaxation, temperature: float) -> Tensor:
        """The soft tree."""
        return soft_tree(
            scores, relaxation=relaxation, temperature=temperature, single_root=self.single_root
        )

    @property
    def none_left(self) -> str:
        """What arcs that forbid too much leave."""
        return "no projective tree" + (" with a single root" if self.single_root else "")


@dataclass(frozen=True)
class Heads:
    """A head for every word, chosen alone; both relaxations are the same softmax."""

    none_left = "a word without a head"

    def __call__(self, scores: Tensor) -> HeadChoices:
        """Their distribution."""
        return HeadChoices(scores)

    def relaxed(self, scores: Tensor, relaxation: Relaxation, temperature: float) -> Tensor:
        """The softmax over the heads of each word."""
        return select_heads(scores, temperature=temperature)


class HeadChoices:
    """Independent heads of the words of one sentence, with what `ProjectiveTrees` has of trees.

    Args:
        scores: ``(n + 1, n + 1)``.

    Raises:
        NoTreeError: a word has no allowed head.

    Example:
        >>> choices = HeadChoices(torch.zeros(3, 3))
        >>> choices.marginals[0], choices.entropy().exp().round()
        (tensor([0.0000, 0.5000, 0.5000]), tensor(4.))
    """

    def __init__(self, scores: Tensor) -> None:
        self.scores = scores
        self.mode = select_heads(scores, hard=True)
        self.marginals = select_heads(scores)
        itself = torch.eye(len(scores), dtype=torch.bool)
        weights = scores.masked_fill(itself, float("-inf"))[:, 1:].T  # (n, n + 1)
        self.log_partition = weights.logsumexp(-1).sum()
        self._heads = Categorical(logits=weights)

    def log_prob(self, tree: Tensor) -> Tensor:
        """Of heads as a matrix."""
        return self._heads.log_prob(tree_to_heads(tree)).sum()

    def entropy(self) -> Tensor:
        """In nats."""
        return self._heads.entropy().sum()

    def sample(self, sample_shape: tuple[int], *, generator: torch.Generator) -> Tensor:
        """``(count, n + 1, n + 1)``; of one generator, the first are the same whatever the count."""
        below = self._heads.probs.cumsum(-1)
        below = below / below[:, -1:]
        n = len(below)
        drawn = torch.rand(*sample_shape, n, dtype=below.dtype, generator=generator)
        # the first head with more below it than was drawn: never one without probability
        heads = torch.searchsorted(below, drawn.T.contiguous(), right=True).T
        return heads_to_tree(heads, dtype=below.dtype)


def structure_of(name: StructureName, single_root: bool) -> Projective | Heads:
    """The structure of a source, with the setting of a request.

    Raises:
        InputError: words that choose alone shall have a single root.
    """
    if name == "projective":
        return Projective(single_root)
    if single_root:
        raise InputError(
            "single_root: received true, but the words of this source choose their heads alone; "
            "expected false"
        )
    return Heads()
