"""Sentence models with latent trees: pair classification, classification, tagging."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treelax.nn import MLP
from treelax.nn.attention import DecomposableAttention, word_mask
from treelax.nn.mlp import linear
from treelax.tasks.text.encoder import ModelConfig, SentenceEncoder, Sentences

__all__ = ["ClassModel", "ModelConfig", "PairModel", "SentenceEncoder", "Sentences", "TagModel"]


class PairModel(nn.Module):
    """The relation of two texts: encoder and decomposable attention.

    Args:
        config: kind and sizes.
        table: word vectors, ``(words, size)``, row 0 for padding.
        classes: number of them.

    Example:
        >>> model = PairModel(ModelConfig(trees="none"), torch.zeros(5, 4), 3)
        >>> batch = Sentences(torch.tensor([[3, 4], [4, 0]]), torch.tensor([2, 1]))
        >>> model(batch, batch).shape
        torch.Size([2, 3])
    """

    def __init__(self, config: ModelConfig, table: Tensor, classes: int) -> None:
        super().__init__()
        self.encoder = SentenceEncoder(config, table)
        self.head = DecomposableAttention(
            self.encoder.output_size,
            config.output_size,
            classes,
            dropout=config.dropout,
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
        a, _ = self.encoder(first, soft=soft, generator=generator)
        b, _ = self.encoder(second, soft=soft, generator=generator)
        logits: Tensor = self.head(a, first.lengths, b, second.lengths)
        return logits


class _Labeller(nn.Module):
    """An encoder and a perceptron that gives logits, of a text or of its words."""

    def __init__(self, config: ModelConfig, table: Tensor, classes: int) -> None:
        super().__init__()
        self.encoder = SentenceEncoder(config, table)
        self.hidden = MLP(self.encoder.output_size, config.output_size, dropout=config.dropout)
        self.output = linear(config.output_size, classes)


class ClassModel(_Labeller):
    """The class of a text: encoder, max-pooling, a perceptron.

    Args:
        config: kind and sizes.
        table: word vectors, ``(words, size)``, row 0 for padding.
        classes: number of them.

    Example:
        >>> model = ClassModel(ModelConfig(trees="none"), torch.zeros(5, 4), 2)
        >>> model(Sentences(torch.tensor([[3, 4], [4, 0]]), torch.tensor([2, 1]))).shape
        torch.Size([2, 2])
    """

    def forward(
        self,
        batch: Sentences,
        *,
        soft: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Logits ``(batch, classes)``."""
        vectors, _ = self.encoder(batch, soft=soft, generator=generator)
        word = word_mask(batch.lengths, batch.ids.shape[-1])
        pooled = vectors.masked_fill(~word[..., None], -torch.inf).amax(-2)
        logits: Tensor = self.output(self.hidden(pooled))
        return logits


class TagModel(_Labeller):
    """The tag of every word: encoder and a perceptron.

    Args:
        config: kind and sizes.
        table: word vectors, ``(words, size)``, row 0 for padding.
        classes: number of tags.

    Example:
        >>> model = TagModel(ModelConfig(trees="none"), torch.zeros(5, 4), 7)
        >>> model(Sentences(torch.tensor([[3, 4], [4, 0]]), torch.tensor([2, 1]))).shape
        torch.Size([2, 2, 7])
    """

    def forward(
        self,
        batch: Sentences,
        *,
        soft: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Logits ``(batch, n, classes)``."""
        vectors, _ = self.encoder(batch, soft=soft, generator=generator)
        logits: Tensor = self.output(self.hidden(vectors))
        return logits
