"""Sentence models with latent trees: pair classification, classification, tagging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.apps.data.text.encoding import NO_TAG
from treelax.apps.data.text.vectors import Vectors
from treelax.apps.data.text.vocabulary import WordTable
from treelax.apps.tasks.sentences.transformer import SubwordTable, load_transformer
from treelax.apps.tasks.text.config import Kind, ModelConfig
from treelax.distributions import StructureDistribution
from treelax.nn import MLP, BiLSTM, BinaryTreeLSTM, ChainScorer, LatentTree, Root, TreeGCN
from treelax.nn.attention import DecomposableAttention, IntraAttention, word_mask
from treelax.nn.dropout import Dropout
from treelax.nn.embeddings import WordEmbedding
from treelax.nn.layout import PADDED, Padded, best_layout
from treelax.nn.mlp import linear
from treelax.nn.transformer import SubwordTransformer
from treelax.structures import Chain
from treelax.trees import heads_to_tree


@dataclass(frozen=True)
class Sentences:
    """A padded batch of sentences, each of one word or more."""

    ids: Tensor  # (batch, n), 0 for padding
    lengths: Tensor  # (batch)
    heads: Tensor | None = None  # (batch, n): given heads, 0 the root; anything in the padding
    subwords: int | None = None  # padded sub-words; None to count them, which waits for the device


class SentenceEncoder(nn.Module):
    """Words to vectors that know their neighbours in a tree."""

    def __init__(self, config: ModelConfig, table: Tensor) -> None:
        super().__init__()
        self.config = config
        self.transformer: SubwordTransformer | None = None
        learned = config.learned_words
        if config.pretrained is not None:
            self.transformer, self._split = load_transformer(
                config.pretrained, subwords=config.subwords, frozen=config.pretrained_rate == 0
            )
            learned, table = 0, table[:, :0]
        self._read: tuple[Vectors, SubwordTable] | None = None
        self.embedding = WordEmbedding(table, learned=learned)
        self.input_dropout = Dropout(config.input_dropout)
        size = self.embedding.size if self.transformer is None else self.transformer.size
        self.projection: MLP | None = None
        if config.projection_size is not None:
            self.projection = MLP(
                size, config.projection_size, dropout=config.dropout_of("projection")
            )
            size = config.projection_size
        self.encoder: BiLSTM | None = None
        if config.encoder == "bilstm":
            self.encoder = BiLSTM(size, config.encoder_size, stacks=config.encoder_stacks)
            size = self.encoder.output_size
        self.root: Root | None = None
        self.tree: LatentTree | None = None
        self.gcn: TreeGCN | None = None
        self.lstm: BinaryTreeLSTM | None = None
        self.intra: IntraAttention | None = None
        if config.trees == "intra":
            self.intra = IntraAttention(
                size,
                config.scorer_size,
                layers=config.scorer_layers,
                distances=config.distances,
                dropout=config.dropout_of("scorer"),
            )
            size = self.intra.output_size
        elif config.structure == "binary":
            self.tree = config.latent_tree(size, dropout=config.dropout_of("scorer"))
            self.lstm = BinaryTreeLSTM(size, config.gcn_size)
            self.lstm_dropout = Dropout(config.dropout_of("gcn"))
            size = size + config.gcn_size if config.dense else config.gcn_size
        elif config.trees != "none":
            self.root = Root(size)
            if config.trees in ("latent", "heads"):
                self.tree = config.latent_tree(size, dropout=config.dropout_of("scorer"))
            self.gcn = TreeGCN(
                size,
                config.gcn_size,
                layers=config.gcn_layers,
                dense=config.dense,
                dropout=config.dropout_of("gcn"),
                root_arcs=config.root_arcs,
            )
            size = self.gcn.output_size
        self.output_size = size

    def read(self, table: WordTable) -> WordTable:
        """Get to know words; only a transformer needs to."""
        if self.transformer is None or not isinstance(table, Vectors):
            return table
        if self._read is None or self._read[0] is not table:
            self._read = (table, SubwordTable(self.transformer, self._split, table))
        return self._read[1]

    def layout(self, batch: Sentences) -> Padded:
        """How the vectors of words lie in memory, the fastest way for a device.

        Intra-attention and binary trees take padding.
        """
        if self.intra is not None or self.lstm is not None:
            return PADDED
        return best_layout(batch.lengths, batch.ids.shape[-1])

    def words(self, batch: Sentences, layout: Padded = PADDED) -> Tensor:
        """``(batch, n, size)``, or packed: vectors before any tree."""
        if self.transformer is not None:
            vectors = layout.pack(self.transformer(batch.ids, batch.lengths, batch.subwords))
        else:
            vectors = self.embedding(layout.pack(batch.ids))
        if self.config.word_scale != 1:
            vectors = vectors * self.config.word_scale
        if self.training and self.config.word_dropout:
            mask = vectors.new_empty((*batch.ids.shape, 1)).bernoulli_(1 - self.config.word_dropout)
            vectors = vectors * layout.pack(mask)
        vectors = self.input_dropout(vectors, layout)
        if self.projection is not None:
            vectors = self.projection(vectors, layout)
        if self.encoder is not None:
            vectors = layout.pack(self.encoder(layout.pad(vectors), batch.lengths))
        return vectors

    def forward(
        self,
        batch: Sentences,
        layout: Padded = PADDED,
        *,
        soft: bool = False,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Vectors ``(batch, n, output_size)``, or packed; the tree they were made with; its scores.

        There need not be a tree, nor scores of a tree.
        """
        vectors = self.words(batch, layout)
        if self.intra is not None:
            return self.intra(vectors, batch.lengths), None, None
        if self.gcn is None and self.lstm is None:
            return vectors, None, None
        vertices, rooted = self.with_root(vectors, layout), layout.rooted()
        if self.tree is None:
            tree, scores = self._known_tree(vertices, batch), None
        else:
            trees = self.trees(vertices, batch.lengths, rooted)
            scores = trees.scores
            if self.training:
                tree = self.tree.estimator.sample(trees, generator=generator)
            else:
                tree = self.tree.estimator.soft(trees) if soft else trees.mode
        return self.compose(vertices, tree, rooted), tree, scores

    def with_root(self, vectors: Tensor, layout: Padded = PADDED) -> Tensor:
        """The vertices of trees: words, with a root in front unless trees are binary."""
        return vectors if self.root is None else self.root(vectors, layout)

    def compose(self, vertices: Tensor, tree: Tensor, rooted: Padded = PADDED) -> Tensor:
        """Vectors of words that know their neighbours in the tree."""
        if self.gcn is not None:
            return rooted.without_root(self.gcn(vertices, tree, rooted))
        assert self.lstm is not None
        around = self.lstm_dropout(self.lstm.words(self.lstm(vertices, tree), tree))
        return torch.cat((vertices, around), -1) if self.config.dense else around

    def trees(
        self, vertices: Tensor, lengths: Tensor, rooted: Padded = PADDED
    ) -> StructureDistribution:
        """The distribution over latent trees."""
        assert self.tree is not None
        scorer = self.tree.scorer
        scores = scorer(vertices) if rooted is PADDED else scorer(vertices, rooted)
        return self.tree.distribution_from_scores(_at_least_float32(scores), lengths)

    def _known_tree(self, vertices: Tensor, batch: Sentences) -> Tensor:
        """A given tree, or a chain."""
        heads = batch.heads
        if self.config.trees == "chain":
            heads = torch.arange(batch.ids.shape[-1], device=batch.ids.device)
            heads = heads.expand_as(batch.ids)
        assert heads is not None
        dtype = torch.promote_types(vertices.dtype, torch.float32)
        return heads_to_tree(heads, batch.lengths, dtype=dtype, validate=False)


def _at_least_float32(tensor: Tensor) -> Tensor:
    # half precision would round away the noise and the sums over a chart
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


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

    def label_losses(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        """The losses ``(...)`` of labels ``(...)`` by logits ``(..., classes)``; 0 in the padding."""
        losses = F.cross_entropy(
            logits.flatten(0, -2),
            labels.flatten(),
            ignore_index=NO_TAG,
            label_smoothing=smoothing,
            reduction="none",
        )
        return losses.reshape(labels.shape)

    def best_labels(self, logits: Tensor, lengths: Tensor) -> Tensor:
        """The labels ``(...)`` to predict by logits ``(..., classes)``; lengths are those of texts."""
        return logits.argmax(-1)

    def probabilities(self, logits: Tensor, lengths: Tensor) -> Tensor:
        """The probability of every label, ``(..., classes)``."""
        return logits.float().softmax(-1)


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

    make_output: Callable[[int, int], nn.Module] = staticmethod(linear)

    def __init__(self, config: ModelConfig, table: Tensor, classes: int) -> None:
        super().__init__(config, table)
        self.hidden = MLP(self.encoder.output_size, config.output_size, dropout=config.dropout)
        self.output = self.make_output(config.output_size, classes)

    def logits(self, vectors: Tensor, lengths: Tensor, layout: Padded = PADDED) -> Tensor:
        """From each vector."""
        return layout.pad(self.output(self.hidden(vectors, layout)))


class ChainModel(TagModel):
    """A chain of tags; logits are its emissions."""

    make_output = ChainScorer
    output: ChainScorer

    def logits(self, vectors: Tensor, lengths: Tensor, layout: Padded = PADDED) -> Tensor:
        """From each vector."""
        return layout.pad(self.output.emissions(self.hidden(vectors, layout)))

    def chain(self, logits: Tensor, lengths: Tensor) -> StructureDistribution:
        """The distribution over chains."""
        scores = self.output.join(_at_least_float32(logits), lengths)
        return Chain()(scores, lengths, validate_args=False)

    def label_losses(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        """The losses ``(..., 1)`` of chains of tags, by likelihood."""
        lengths = (labels != NO_TAG).sum(-1)
        return -self.output.log_likelihood(_at_least_float32(logits), labels, lengths)[..., None]

    def best_labels(self, logits: Tensor, lengths: Tensor) -> Tensor:
        """The best chain."""
        return Chain.tags(self.chain(logits, lengths).mode)

    def probabilities(self, logits: Tensor, lengths: Tensor) -> Tensor:
        """The marginals of tags."""
        return self.chain(logits, lengths).marginals.sum(-2)


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


def network_for(kind: Kind, config: ModelConfig) -> type[PairModel | TagModel]:
    """The network for a kind of task."""
    return ChainModel if config.output == "chain" else NETWORKS[kind]
