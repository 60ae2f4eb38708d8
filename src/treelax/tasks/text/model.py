"""Sentence models with latent trees: pair classification, classification, tagging."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from treelax.errors import InputError
from treelax.nn import MLP, ArcScorer, BiLSTM, LatentTree, Root, TreeGCN
from treelax.nn.attention import DecomposableAttention, IntraAttention, word_mask
from treelax.nn.embeddings import WordEmbedding
from treelax.nn.mlp import linear

Trees = Literal["none", "intra", "latent", "heads", "chain", "given"]


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and kind of a sentence model; the defaults are the paper's for NLI (appendix A.2).

    Attributes:
        learned_words: how many of the first rows of the embedding table are learned: the NULL token
            and the unknown words; the others are frozen.
        projection_size: of the layer on top of the word vectors, None for none.
        encoder: "none" or "bilstm", between projection and trees.
        encoder_size: of each direction of the BiLSTM.
        encoder_stacks: of the BiLSTM.
        trees: "none", "intra" (attention within the sentence), "latent" projective trees, "heads"
            chosen without a tree constraint, a left-to-right "chain", or "given" with the data.
        scorer_size: of every layer of the two perceptrons that score arcs.
        scorer_layers: of each of them; one fits the paper's parameter counts.
        distances: largest distance with a bias of its own, None for no distance bias.
        gcn_size: of each GCN layer.
        gcn_layers: number of them.
        dense: put each GCN layer's output behind its input.
        output_size: of the hidden layers above the words.
        pooling: of words, for pairs: "max" or "sum".
        dropout: in all perceptrons and GCN layers.
        input_dropout: of word vectors.
        relaxation: "softmax" (the paper's) or "entropy" (arc marginals).
        temperature: of the relaxation.
        noise: "gumbel", "sum-of-gamma" or "none".
        straight_through: discrete trees in the forward pass of training.
        single_root: allow one modifier of the root only.
    """

    learned_words: int = 1
    projection_size: int | None = 200
    encoder: Literal["none", "bilstm"] = "none"
    encoder_size: int = 100
    encoder_stacks: int = 1
    trees: Trees = "latent"
    scorer_size: int = 200
    scorer_layers: int = 1
    distances: int | None = 11
    gcn_size: int = 200
    gcn_layers: int = 2
    dense: bool = True
    output_size: int = 200
    pooling: Literal["max", "sum"] = "max"
    dropout: float = 0.2
    input_dropout: float = 0.0
    relaxation: Literal["softmax", "entropy"] = "softmax"
    temperature: float = 1.0
    noise: Literal["gumbel", "sum-of-gamma", "none"] = "gumbel"
    straight_through: bool = False
    single_root: bool = False


@dataclass(frozen=True)
class Sentences:
    """A padded batch of sentences.

    Attributes:
        ids: ``(batch, n)`` of words, 0 for padding.
        lengths: ``(batch)``.
        heads: ``(batch, n)`` given heads, 0 the root, or None.
    """

    ids: Tensor
    lengths: Tensor
    heads: Tensor | None = None


class SentenceEncoder(nn.Module):
    """Words to vectors that know their neighbours in a tree.

    Args:
        config: kind and sizes.
        table: word vectors, ``(words, size)``, row 0 for padding.
    """

    def __init__(self, config: ModelConfig, table: Tensor) -> None:
        super().__init__()
        self.config = config
        self.embedding = WordEmbedding(table, learned=config.learned_words)
        self.input_dropout = nn.Dropout(config.input_dropout)
        size = self.embedding.size
        self.projection: MLP | None = None
        if config.projection_size is not None:
            self.projection = MLP(size, config.projection_size, dropout=config.dropout)
            size = config.projection_size
        self.encoder: BiLSTM | None = None
        if config.encoder == "bilstm":
            self.encoder = BiLSTM(size, config.encoder_size, stacks=config.encoder_stacks)
            size = self.encoder.output_size
        self.root: Root | None = None
        self.tree: LatentTree | None = None
        self.gcn: TreeGCN | None = None
        self.intra: IntraAttention | None = None
        if config.trees == "intra":
            self.intra = IntraAttention(
                size,
                config.scorer_size,
                layers=config.scorer_layers,
                distances=config.distances,
                dropout=config.dropout,
            )
            size = self.intra.output_size
        elif config.trees != "none":
            self.root = Root(size)
            if config.trees in ("latent", "heads"):
                self.tree = self._latent_tree(size)
            self.gcn = TreeGCN(
                size,
                config.gcn_size,
                layers=config.gcn_layers,
                dense=config.dense,
                dropout=config.dropout,
            )
            size = self.gcn.output_size
        self.output_size = size

    def _latent_tree(self, size: int) -> LatentTree:
        config = self.config
        return LatentTree(
            ArcScorer(
                size,
                config.scorer_size,
                layers=config.scorer_layers,
                distances=config.distances,
                dropout=config.dropout,
            ),
            structure="heads" if config.trees == "heads" else "projective",
            relaxation=config.relaxation,
            temperature=config.temperature,
            noise=config.noise,
            straight_through=config.straight_through,
            single_root=config.single_root,
        )

    def words(self, batch: Sentences) -> Tensor:
        """``(batch, n, size)``: vectors before any tree."""
        vectors = self.input_dropout(self.embedding(batch.ids))
        if self.projection is not None:
            vectors = self.projection(vectors)
        if self.encoder is not None:
            vectors = self.encoder(vectors, batch.lengths)
        return vectors

    def forward(
        self, batch: Sentences, *, soft: bool = False, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Vectors ``(batch, n, output_size)`` and the tree that they were made with, if any.

        Args:
            batch: the sentences.
            soft: in evaluation mode, relaxed trees without noise instead of discrete ones.
            generator: source of the noise.
        """
        vectors = self.words(batch)
        if self.intra is not None:
            return self.intra(vectors, batch.lengths), None
        if self.gcn is None or self.root is None:
            return vectors, None
        vertices = self.root(vectors)
        tree = self._tree(vertices, batch, soft, generator)
        return self.gcn(vertices, tree)[..., 1:, :], tree

    def scores(self, batch: Sentences) -> Tensor:
        """Arc scores ``(batch, n + 1, n + 1)``."""
        if self.tree is None or self.root is None:
            raise InputError(f"trees are {self.config.trees!r}; expected 'latent' or 'heads'")
        scores: Tensor = self.tree.scorer(self.root(self.words(batch)))
        return scores

    def _tree(
        self, vertices: Tensor, batch: Sentences, soft: bool, generator: torch.Generator | None
    ) -> Tensor:
        if self.tree is None:
            return self._given(batch, vertices)
        if soft and not self.training:
            return self.tree.soft(self.tree.scorer(vertices), batch.lengths)
        return self.tree(vertices, batch.lengths, generator=generator)

    def _given(self, batch: Sentences, vertices: Tensor) -> Tensor:
        size = batch.ids.shape[-1]
        position = torch.arange(size, device=batch.ids.device)
        heads = position.expand_as(batch.ids)
        if self.config.trees == "given":
            if batch.heads is None:
                raise InputError("trees are 'given' but the data have no heads; give --trees")
            heads = batch.heads.clamp(min=0)
        head = torch.arange(size + 1, device=batch.ids.device)[:, None]
        arcs = (heads[..., None, :] == head) & (position < batch.lengths[:, None])[:, None, :]
        return nn.functional.pad(arcs, (1, 0)).to(vertices.dtype)


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


class ClassModel(nn.Module):
    """The class of a text: encoder, max-pooling, a perceptron."""

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
        """Logits ``(batch, classes)``."""
        vectors, _ = self.encoder(batch, soft=soft, generator=generator)
        word = word_mask(batch.lengths, batch.ids.shape[-1])
        pooled = vectors.masked_fill(~word[..., None], -torch.inf).amax(-2)
        logits: Tensor = self.output(self.hidden(pooled))
        return logits


class TagModel(nn.Module):
    """The tag of every word: encoder and a perceptron."""

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
        """Logits ``(batch, n, classes)``."""
        vectors, _ = self.encoder(batch, soft=soft, generator=generator)
        logits: Tensor = self.output(self.hidden(vectors))
        return logits
