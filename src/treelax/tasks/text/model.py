"""Sentence models with latent trees: pair classification, classification, tagging."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.nn import MLP
from treelax.nn.attention import DecomposableAttention, word_mask
from treelax.nn.mlp import linear
from treelax.tasks.text.encoder import ModelConfig, SentenceEncoder, Sentences

__all__ = ["ClassModel", "ModelConfig", "PairModel", "SentenceEncoder", "Sentences", "TagModel"]


class PairModel(nn.Module):
    """The relation of two texts: encoder and decomposable attention."""

    def __init__(self, config: ModelConfig, table: Tensor, classes: int) -> None:
        super().__init__()
        self.encoder = SentenceEncoder(config, table)
        self.head = DecomposableAttention(
            self.encoder.output_size,
            config.output_size,
            classes,
            dropout=config.dropout,
            attend_dropout=config.dropout_of("attend"),
            pooling=config.pooling,
        )

    def forward(
        self,
        first: Sentences,
        second: Sentences,
        *,
        soft: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Logits ``(batch, classes)``."""
        return self.with_tree(first, second, soft=soft, generator=generator)[0]

    def with_tree(
        self,
        first: Sentences,
        second: Sentences,
        *,
        soft: bool = False,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Logits, and the trees they were made with: those of all first texts, then the second."""
        # as one batch: half the kernels, each with twice the work
        vectors, tree = self.encoder(both(first, second), soft=soft, generator=generator)
        a, b = vectors.chunk(2)
        return self.head(a, first.lengths, b, second.lengths), tree


def both(first: Sentences, second: Sentences) -> Sentences:
    """Two batches of as many sentences as one, padded to the longer size."""
    size = max(first.ids.shape[-1], second.ids.shape[-1])

    def padded(*tensors: Tensor) -> Tensor:
        return torch.cat([F.pad(tensor, (0, size - tensor.shape[-1])) for tensor in tensors])

    heads = None
    if first.heads is not None and second.heads is not None:
        heads = padded(first.heads, second.heads)
    subwords = None
    if first.subwords is not None and second.subwords is not None:
        subwords = max(first.subwords, second.subwords)
    lengths = torch.cat((first.lengths, second.lengths))
    return Sentences(padded(first.ids, second.ids), lengths, heads, subwords)


class _Labeller(nn.Module):
    """An encoder and a perceptron that gives logits, of a text or of its words."""

    def __init__(self, config: ModelConfig, table: Tensor, classes: int) -> None:
        super().__init__()
        self.encoder = SentenceEncoder(config, table)
        self.hidden = MLP(self.encoder.output_size, config.output_size, dropout=config.dropout)
        self.output = linear(config.output_size, classes)

    def forward(
        self,
        batch: Sentences,
        *,
        soft: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Logits, see the class."""
        return self.with_tree(batch, soft=soft, generator=generator)[0]

    def with_tree(
        self,
        batch: Sentences,
        *,
        soft: bool = False,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Logits, and the trees they were made with, if any."""
        vectors, tree = self.encoder(batch, soft=soft, generator=generator)
        return self.output(self.hidden(self._pooled(vectors, batch))), tree

    def _pooled(self, vectors: Tensor, batch: Sentences) -> Tensor:
        """What logits are made from: the vectors of the words, unless a class says otherwise."""
        return vectors


class ClassModel(_Labeller):
    """The class of a text: encoder, max-pooling, a perceptron; logits ``(batch, classes)``."""

    def _pooled(self, vectors: Tensor, batch: Sentences) -> Tensor:
        word = word_mask(batch.lengths, batch.ids.shape[-1])
        return vectors.masked_fill(~word[..., None], -torch.inf).amax(-2)


class TagModel(_Labeller):
    """The tag of every word: encoder and a perceptron; logits ``(batch, n, classes)``."""
