"""How sure a model is of its trees: the entropy of their distribution, sentence by sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from treelax.structures import Projective, Structure


@dataclass(frozen=True, slots=True)
class TreeEntropy:
    """The distribution over the trees of one sentence; entropies are in nats."""

    vertices: int  # words of the tree; a NULL token in front is one of them
    entropy: float
    greatest: float  # entropy of random trees over as many words
    best_arcs: float  # mean probability of the arcs of the best tree, in percent


@torch.no_grad()
def tree_entropies(
    scores: Tensor,
    lengths: Tensor,
    structure: Structure = Projective(),  # noqa: B008  frozen
) -> list[TreeEntropy]:
    r"""The entropy of the trees of each sentence, from the scores of their arcs.

    :math:`H = \log Z - \sum \mu W` over all trees. Scores are taken as they are, without noise and at
    temperature 1.
    """
    wide = scores if scores.device.type == "mps" else scores.double()  # MPS has no float64
    trees = structure(wide, lengths)
    arcs = (trees.marginals * trees.mode).sum((-2, -1)) / lengths
    rows = zip(lengths.tolist(), trees.entropy().tolist(), arcs.tolist(), strict=True)
    return [
        TreeEntropy(n, max(0.0, entropy), structure.log_count(n), 100 * share)
        for n, entropy, share in rows
    ]


@dataclass(frozen=True)
class EntropySummary:
    """Totals over sentences, divided: every word counts the same, so long sentences for more."""

    entropy: float  # sum of the entropies over number of sentences, in nats
    per_word: float  # the same sum over number of words, in nats
    # the same sum in percent of that of random trees; None if all sentences are of one word
    relative: float | None
    best_arcs: float  # mean probability of the arcs of the best trees, in percent


def entropy_summary(entropies: Sequence[TreeEntropy]) -> EntropySummary:
    """Some entropies summed up."""
    total = math.fsum(tree.entropy for tree in entropies)
    greatest = math.fsum(tree.greatest for tree in entropies)
    vertices = sum(tree.vertices for tree in entropies)
    return EntropySummary(
        entropy=total / len(entropies),
        per_word=total / vertices,
        relative=100 * total / greatest if greatest else None,
        best_arcs=sum(tree.best_arcs * tree.vertices for tree in entropies) / vertices,
    )
