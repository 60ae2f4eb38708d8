"""The encoder of all sentence models: words to vectors that know their neighbours in a tree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from treelax.errors import InputError
from treelax.nn import MLP, ArcScorer, BiLSTM, LatentTree, Root, TreeGCN
from treelax.nn.attention import POOLINGS, IntraAttention
from treelax.nn.checks import check_size
from treelax.nn.embeddings import WordEmbedding
from treelax.noise import NOISES
from treelax.ops.checks import one_of
from treelax.ops.eisner.common import RELAXATIONS
from treelax.trees import heads_to_tree

Trees = Literal["none", "intra", "latent", "heads", "chain", "given"]
SIZES = (
    *("encoder_size", "encoder_stacks", "scorer_size", "scorer_layers"),
    *("gcn_size", "gcn_layers", "output_size"),
)
NO_HEADS = (
    "model.trees is 'given' but the data have no trees; expected CoNLL-U files of them: give --set "
    "data.trees=FILES, such as trees/{split}.conllu"
)


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and kind of a sentence model; the defaults are the paper's for NLI (appendix A.2).

    Attributes:
        learned_words: how many of the first rows of the embedding table are learned: the NULL token
            and the unknown words; the others are frozen. Random vectors are all learned.
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

    Raises:
        InputError: a value is out of range, or two contradict each other; the message names the
            key, ``model.gcn_size`` say.

    Example:
        >>> ModelConfig(trees="intra").scorer_size
        200
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

    def __post_init__(self) -> None:
        for name in SIZES:
            check_size(f"model.{name}", getattr(self, name))
        for name in ("projection_size", "distances"):
            if getattr(self, name) is not None:
                check_size(f"model.{name}", getattr(self, name))
        if self.learned_words < 0:
            raise InputError(f"model.learned_words is {self.learned_words}; expected at least 0")
        one_of("model.encoder", self.encoder, ("none", "bilstm"))
        one_of("model.trees", self.trees, get_args(Trees))
        one_of("model.pooling", self.pooling, POOLINGS)
        one_of("model.relaxation", self.relaxation, RELAXATIONS)
        one_of("model.noise", self.noise, NOISES)
        for name in ("dropout", "input_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(
                    f"model.{name} is {getattr(self, name)}; expected at least 0, less than 1"
                )
        if not 0 < self.temperature < math.inf:
            raise InputError(f"model.temperature is {self.temperature}; expected more than 0")
        if self.single_root and self.trees == "heads":
            raise InputError(
                "model.single_root is true and model.trees heads; expected false: words that "
                "choose alone cannot agree on one root"
            )


@dataclass(frozen=True)
class Sentences:
    """A padded batch of sentences, each of one word or more.

    Attributes:
        ids: ``(batch, n)`` of words, 0 for padding.
        lengths: ``(batch)``.
        heads: ``(batch, n)`` given heads, counted from 1, 0 the root and anything in the padding;
            or None.

    Example:
        >>> Sentences(torch.tensor([[3, 4], [5, 0]]), torch.tensor([2, 1])).heads is None
        True
    """

    ids: Tensor
    lengths: Tensor
    heads: Tensor | None = None


class SentenceEncoder(nn.Module):
    """Words to vectors that know their neighbours in a tree.

    Args:
        config: kind and sizes.
        table: word vectors, ``(words, size)``, row 0 for padding.

    Raises:
        InputError: the table has fewer rows than are to be learned, or a first row that is not 0.

    Example:
        >>> encoder = SentenceEncoder(ModelConfig(projection_size=8, gcn_size=8), torch.zeros(5, 4))
        >>> batch = Sentences(torch.tensor([[3, 4], [4, 0]]), torch.tensor([2, 1]))
        >>> vectors, tree = encoder.eval()(batch)
        >>> vectors.shape, tree.shape
        (torch.Size([2, 2, 24]), torch.Size([2, 3, 3]))
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

        Returns:
            The vectors, and the tree ``(batch, n + 1, n + 1)`` in float32, or float64 if the layers
            are; None without trees. Vectors in the padding mean nothing.

        Raises:
            InputError: the trees are given but the batch has no heads.
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
        """Arc scores ``(batch, n + 1, n + 1)``, as the trees are made of.

        Args:
            batch: the sentences.

        Returns:
            The scores, in float32, or float64 if the layers are.

        Raises:
            InputError: there are no scores, for the trees are not latent.
        """
        if self.tree is None or self.root is None:
            raise InputError(
                f"model.trees is {self.config.trees!r}; expected 'latent' or 'heads', which alone "
                "have scores"
            )
        return _at_least_float32(self.tree.scorer(self.root(self.words(batch))))

    def _tree(
        self, vertices: Tensor, batch: Sentences, soft: bool, generator: torch.Generator | None
    ) -> Tensor:
        if self.tree is None:
            return self._given(batch, vertices)
        scores = _at_least_float32(self.tree.scorer(vertices))
        if self.training:
            return self.tree.sample(scores, batch.lengths, generator=generator)
        if soft:
            return self.tree.soft(scores, batch.lengths)
        return self.tree.discrete(scores, batch.lengths)

    def _given(self, batch: Sentences, vertices: Tensor) -> Tensor:
        """Given trees or chains, without a wait for the GPU."""
        position = torch.arange(batch.ids.shape[-1], device=batch.ids.device)
        heads = position.expand_as(batch.ids)
        if self.config.trees == "given":
            if batch.heads is None:
                raise InputError(NO_HEADS)
            heads = batch.heads
        dtype = torch.promote_types(vertices.dtype, torch.float32)
        return heads_to_tree(heads, batch.lengths, dtype=dtype, validate=False)


def _at_least_float32(tensor: Tensor) -> Tensor:
    # noise and the sums over a whole chart drown in the rounding of a half type
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
