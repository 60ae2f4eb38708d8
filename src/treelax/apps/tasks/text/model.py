"""Sentence models with latent trees: pair classification, classification, tagging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.apps.tasks.text.config import ModelConfig
from treelax.apps.tasks.text.encoder import SentenceEncoder, Sentences
from treelax.nn import MLP
from treelax.nn.attention import DecomposableAttention, word_mask
from treelax.nn.layout import PADDED, Padded
from treelax.nn.mlp import linear


class TextModel(nn.Module):
    """An encoder of sentences, and what gives logits from its vectors."""

    def __init__(self, config: ModelConfig, table: Tensor) -> None:
        super().__init__()
        self.encoder = SentenceEncoder(config, table)

    def forward(self, *texts: Sentences, **options: Any) -> Tensor:
        """Logits, for ``soft`` trees or with a ``generator`` of noise; see `SentenceEncoder`."""
        return self.parse(*texts, **options)[0]

    def parse(
        self, *texts: Sentences, **options: Any
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Logits, and the trees they were made with and their scores, if any.

        They are of all first texts, then of the second.
        """
        # as one batch: half the kernels, each with twice the work
        batch = both(*texts) if len(texts) == 2 else texts[0]
        layout = self.encoder.layout(batch)
        vectors, tree, scores = self.encoder(batch, layout, **options)
        return self.logits(vectors, batch.lengths, layout), tree, scores

    def expect(
        self,
        *texts: Sentences,
        losses: Callable[[Tensor], Tensor],
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The expected losses of examples, whose gradient trains all layers.

        `losses` takes logits ``(samples, batch, ...)`` to losses ``(samples, examples)``; the batch may
        have several copies of the examples, one after the other.
        """
        latent = self.encoder.tree
        if latent is None:
            return losses(self(*texts)[None])[0]
        batch = both(*texts) if len(texts) == 2 else texts[0]
        layout = self.encoder.layout(batch)
        rooted = layout.rooted()
        vertices = self.encoder.with_root(self.encoder.words(batch, layout), layout)
        shared = 1  # trees of an example

        def of_trees(trees: Tensor) -> Tensor:
            nonlocal shared
            samples = len(trees)
            if samples == 1:
                vectors = self.encoder.compose(vertices, trees[0], rooted)
                logits = self.logits(vectors, batch.lengths, layout)
            else:
                # (samples, texts · batch, ...) to (texts · samples · batch, ...)
                flat = trees.unflatten(1, (len(texts), -1)).transpose(0, 1).flatten(0, 2)
                vectors = rooted.pad(vertices).unflatten(0, (len(texts), 1, -1))
                vectors = vectors.expand(-1, samples, -1, -1, -1).flatten(0, 2)
                lengths = batch.lengths.unflatten(0, (len(texts), 1, -1))
                lengths = lengths.expand(-1, samples, -1).flatten()
                logits = self.logits(self.encoder.compose(vectors, flat), lengths)
            joint = losses(logits.unflatten(0, (samples, -1)))
            shared = trees.shape[1] // joint.shape[1]
            # a tree answers for the whole loss of its example, and brings its share of the gradient
            return (joint + (shared - 1) * joint.detach()).repeat(1, shared) / shared

        trees = self.encoder.trees(vertices, batch.lengths, rooted)
        loss = latent.estimator.expect(trees, of_trees, generator=generator)
        loss = loss.unflatten(0, (shared, -1)).sum(0)
        return loss - (1 - 1 / shared) * loss.detach()

    def logits(self, vectors: Tensor, lengths: Tensor, layout: Padded = PADDED) -> Tensor:
        """From the vectors of all words, of all first texts, then of the second."""
        raise NotImplementedError


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


class PairModel(TextModel):
    """The relation of two texts: encoder and decomposable attention; logits ``(batch, classes)``."""

    def __init__(self, config: ModelConfig, table: Tensor, classes: int) -> None:
        super().__init__(config, table)
        self.head = DecomposableAttention(
            self.encoder.output_size,
            config.output_size,
            classes,
            dropout=config.dropout,
            attend_dropout=config.dropout_of("attend"),
            pooling=config.pooling,
        )

    def logits(self, vectors: Tensor, lengths: Tensor, layout: Padded = PADDED) -> Tensor:
        """From the attention between the two."""
        return self.head.both(vectors, lengths, layout)


class TagModel(TextModel):
    """The tag of every word: encoder and a perceptron; logits ``(batch, n, classes)``."""

    def __init__(self, config: ModelConfig, table: Tensor, classes: int) -> None:
        super().__init__(config, table)
        self.hidden = MLP(self.encoder.output_size, config.output_size, dropout=config.dropout)
        self.output = linear(config.output_size, classes)

    def logits(self, vectors: Tensor, lengths: Tensor, layout: Padded = PADDED) -> Tensor:
        """From each vector."""
        return layout.pad(self.output(self.hidden(vectors, layout)))


class ClassModel(TagModel):
    """The class of a text: the same under max-pooling over words; logits ``(batch, classes)``."""

    def logits(self, vectors: Tensor, lengths: Tensor, layout: Padded = PADDED) -> Tensor:
        """From the largest of each coordinate."""
        vectors = layout.pad(vectors)
        word = word_mask(lengths, vectors.shape[-2])
        return super().logits(vectors.masked_fill(~word[..., None], -torch.inf).amax(-2), lengths)


NETWORKS: dict[str, type[PairModel | TagModel]] = {
    "pair": PairModel,
    "classify": ClassModel,
    "tag": TagModel,
}
