"""What a trained model says of a corpus: trees, how sure it is of them, labels with either tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from treelax.analysis.entropy import TreeEntropy
from treelax.analysis.shapes import Heads

__all__ = ["MOST_SENTENCES", "LabelFigures", "Parses", "Progress"]

MOST_SENTENCES = 128  # in a batch
Progress = Callable[[int], None]


@dataclass(frozen=True)
class LabelFigures:
    """Labels predicted with discrete trees and with soft ones, in percent.

    Attributes:
        labels: predicted: of examples, of words for a tagger, of operators for ListOps.
        same: those that are the same with either tree.
        accuracy: those that are right with discrete trees; None if the right ones are not known.
        soft_accuracy: likewise with soft trees.

    Example:
        >>> LabelFigures(labels=10, same=90.0, accuracy=80.0, soft_accuracy=70.0).gap
        10.0
    """

    labels: int
    same: float
    accuracy: float | None
    soft_accuracy: float | None

    @property
    def gap(self) -> float | None:
        """By how much discrete trees are better."""
        if self.accuracy is None or self.soft_accuracy is None:
            return None
        return self.accuracy - self.soft_accuracy


@dataclass(frozen=True)
class Parses:
    """What a model says of a corpus.

    Attributes:
        name: of the run.
        trees: heads of the discrete tree of each sentence, counted from 1, 0 the root.
        entropies: of the distribution over the trees of each sentence; None where the trees are not
            latent.
        labels: figures of the labels; None if no labels were predicted.
        single_root: all trees have one word under the root.

    Example:
        >>> Parses("one", ((2, 0),)).entropies is None
        True
    """

    name: str
    trees: tuple[Heads, ...]
    entropies: tuple[TreeEntropy, ...] | None = None
    labels: LabelFigures | None = None
    single_root: bool = False
