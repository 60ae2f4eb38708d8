"""The ListOps tagger: a parser that sees the tokens and a composer that sees only the tree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from treelax.data.listops import VOCABULARY, EncodedListOps
from treelax.errors import InputError
from treelax.nn import MLP, ArcScorer, BiLSTM, LatentTree, Root, TreeGCN
from treelax.nn.checks import check_size
from treelax.nn.mlp import linear
from treelax.noise import NOISES
from treelax.ops.checks import one_of
from treelax.ops.eisner.common import RELAXATIONS
from treelax.trees import heads_to_tree

Trees = Literal["latent", "heads", "gold", "chain"]
SIZES = (
    *("embedding_size", "encoder_size", "encoder_stacks", "scorer_size", "scorer_layers"),
    *("gcn_size", "gcn_layers", "tagger_size", "max_valency"),
)


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and kind of the tagger; the defaults are the paper's (appendix A.1).

    Attributes:
        embedding_size: of the token embeddings.
        encoder_size: of each direction of the BiLSTM.
        encoder_stacks: of the BiLSTM.
        scorer_size: of every layer of the two perceptrons that score arcs.
        scorer_layers: of each of them.
        distances: largest distance with a bias of its own, None for no distance bias.
        left_head_bias: initial bias of all arcs from a head on the left; 0 in the paper.
        gcn_size: of the unlexicalised vector and of each GCN layer.
        gcn_layers: number of them.
        tagger_size: of the tagger's hidden layer.
        max_valency: tags are valencies 0 (not an operator) to this.
        trees: "latent" projective trees, "heads" chosen without a tree constraint, "gold" trees or
            a left-to-right "chain".
        relaxation: "softmax" (the paper's) or "entropy" (arc marginals).
        temperature: of the relaxation.
        noise: "gumbel", "sum-of-gamma" or "none" (the paper's G = 0).
        noise_scale: factor of the noise.
        straight_through: discrete trees in the forward pass of training.
        single_root: allow one modifier of the root only.

    Raises:
        InputError: a value is out of range, or two contradict each other; the message names the
            key, ``model.gcn_size`` say.

    Example:
        >>> ModelConfig(trees="gold").gcn_size
        100
    """

    embedding_size: int = 100
    encoder_size: int = 100
    encoder_stacks: int = 2
    scorer_size: int = 100
    scorer_layers: int = 2
    distances: int | None = 11
    left_head_bias: float = 0.0
    gcn_size: int = 100
    gcn_layers: int = 1
    tagger_size: int = 100
    max_valency: int = 5
    trees: Trees = "latent"
    relaxation: Literal["softmax", "entropy"] = "softmax"
    temperature: float = 1.0
    noise: Literal["gumbel", "sum-of-gamma", "none"] = "gumbel"
    noise_scale: float = 1.0
    straight_through: bool = False
    single_root: bool = False

    def __post_init__(self) -> None:
        for name in SIZES:
            check_size(f"model.{name}", getattr(self, name))
        if self.distances is not None:
            check_size("model.distances", self.distances)
        one_of("model.trees", self.trees, get_args(Trees))
        one_of("model.relaxation", self.relaxation, RELAXATIONS)
        one_of("model.noise", self.noise, NOISES)
        if not 0 < self.temperature < math.inf:
            raise InputError(
                f"model.temperature is {self.temperature}; expected more than 0, and finite"
            )
        if not 0 <= self.noise_scale < math.inf:
            raise InputError(f"model.noise_scale is {self.noise_scale}; expected at least 0")
        if not math.isfinite(self.left_head_bias):
            raise InputError(f"model.left_head_bias is {self.left_head_bias}; expected a number")
        if self.left_head_bias and self.distances is None:
            raise InputError(
                f"model.left_head_bias is {self.left_head_bias} and model.distances none; expected "
                "a bias of 0 where no distance has one"
            )
        if self.single_root and self.trees == "heads":
            raise InputError(
                "model.single_root is true and model.trees heads; expected false: words that "
                "choose alone cannot agree on one root"
            )


class Parser(nn.Module):
    """Tokens to arc scores: embeddings, BiLSTM, root, deep dotted attention."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY) + 1, config.embedding_size, padding_idx=0)
        nn.init.xavier_uniform_(self.embedding.weight)
        self.encoder = BiLSTM(
            config.embedding_size, config.encoder_size, stacks=config.encoder_stacks
        )
        self.root = Root(self.encoder.output_size)
        scorer = ArcScorer(
            self.encoder.output_size,
            config.scorer_size,
            layers=config.scorer_layers,
            distances=config.distances,
        )
        scorer.start_bias(left=config.left_head_bias)
        self.tree = LatentTree(
            scorer,
            structure="heads" if config.trees == "heads" else "projective",
            relaxation=config.relaxation,
            temperature=config.temperature,
            noise=config.noise,
            noise_scale=config.noise_scale,
            straight_through=config.straight_through,
            single_root=config.single_root,
            validate=False,  # the training loop has a word on a loss that is not finite
        )

    def scores(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """``(batch, n)`` token ids to ``(batch, n + 1, n + 1)`` arc scores."""
        return self.tree.scorer(self.root(self.encoder(self.embedding(tokens), lengths)))


class Composer(nn.Module):
    """A tree to tags, without a look at the tokens: every vertex starts from the same vector.

    With one layer, a vertex's tag can depend on its (soft) number of modifiers only.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.vertex = nn.Parameter(torch.empty(config.gcn_size))
        nn.init.xavier_uniform_(self.vertex.data[None])
        self.gcn = TreeGCN(config.gcn_size, config.gcn_size, layers=config.gcn_layers)
        self.hidden = MLP(self.gcn.output_size, config.tagger_size)
        self.output = linear(config.tagger_size, config.max_valency + 1, bias=False)

    def forward(self, tree: Tensor) -> Tensor:
        """``(batch, n + 1, n + 1)`` to logits ``(batch, n, tags)``."""
        vectors = self.vertex.expand(*tree.shape[:-1], -1)
        return self.output(self.hidden(self.gcn(vectors, tree)[..., 1:, :]))


class ListOpsTagger(nn.Module):
    """Parser and composer together; gold trees and chains do without the parser.

    Attributes:
        parser: None where the trees are given.
        composer: from trees to tags.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.parser = Parser(config) if config.trees in ("latent", "heads") else None
        self.composer = Composer(config)

    def forward(self, batch: EncodedListOps, *, generator: torch.Generator | None = None) -> Tensor:
        """Logits ``(batch, n, tags)``: of sampled soft trees while training, else of discrete ones."""
        return self.composer(self.tree(batch, generator=generator))

    def tree(self, batch: EncodedListOps, *, generator: torch.Generator | None = None) -> Tensor:
        """Trees ``(batch, n + 1, n + 1)``: sampled and soft while training, else discrete."""
        if self.parser is None:
            return self.given_tree(batch)
        scores = self.parser.scores(batch.tokens, batch.lengths)
        if self.training:
            return self.parser.tree.sample(scores, batch.lengths, generator=generator)
        return self.parser.tree.discrete(scores, batch.lengths)

    def both_trees(self, batch: EncodedListOps) -> tuple[Tensor, Tensor]:
        """The discrete trees and the soft ones, without noise."""
        if self.parser is None:
            tree = self.given_tree(batch)
            return tree, tree
        scores = self.parser.scores(batch.tokens, batch.lengths)
        latent = self.parser.tree
        return latent.discrete(scores, batch.lengths), latent.soft(scores, batch.lengths)

    def given_tree(self, batch: EncodedListOps) -> Tensor:
        """Gold trees or chains, without a look at the tokens' values or a wait for the GPU."""
        position = torch.arange(batch.tokens.shape[-1], device=batch.tokens.device)
        heads = batch.heads if self.config.trees == "gold" else position.expand_as(batch.tokens)
        dtype = self.composer.vertex.dtype
        return heads_to_tree(heads, batch.lengths, dtype=dtype, validate=False)
