"""The ListOps tagger: a parser that sees the tokens and a composer that sees only the tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from treelax.apps.data.listops import VOCABULARY, EncodedListOps
from treelax.apps.tasks.settings import TreeSettings
from treelax.apps.training.settings import SIZE, setting
from treelax.nn import MLP, BiLSTM, Root, TreeGCN
from treelax.nn.mlp import linear
from treelax.trees import heads_to_tree


@dataclass(frozen=True)
class ModelConfig(TreeSettings):
    """Sizes and kind of the tagger; the defaults are the paper's (appendix A.1)."""

    embedding_size: int = setting(100, "size of the token embeddings", SIZE)
    encoder_size: int = setting(100, "size of each direction of the BiLSTM", SIZE)
    encoder_stacks: int = setting(2, "stacked BiLSTMs", SIZE)
    scorer_layers: int = 2
    tagger_size: int = setting(100, "size of the tagger's hidden layer", SIZE)
    max_valency: int = setting(5, "tags are valencies 0 (not an operator) to this", SIZE)
    trees: Literal["latent", "heads", "gold", "chain"] = setting(
        "latent", '"heads" has no tree constraint, "chain" is left to right'
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
        self.tree = config.latent_tree(self.encoder.output_size)

    def scores(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """``(batch, n)`` token ids to ``(batch, n + 1, n + 1)`` arc scores."""
        return self.tree.scorer(self.root(self.encoder(self.embedding(tokens), lengths)))


class Composer(nn.Module):
    """A tree to tags, without the tokens: every vertex starts from the same vector.

    With one layer, a vertex's tag can depend on its (soft) number of modifiers only.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.vertex = nn.Parameter(torch.empty(config.gcn_size))
        nn.init.xavier_uniform_(self.vertex.data[None])
        self.gcn = TreeGCN(
            config.gcn_size,
            config.gcn_size,
            layers=config.gcn_layers,
            root_arcs=config.root_arcs,
        )
        self.hidden = MLP(self.gcn.output_size, config.tagger_size)
        self.output = linear(config.tagger_size, config.max_valency + 1, bias=False)

    def forward(self, tree: Tensor) -> Tensor:
        """``(batch, n + 1, n + 1)`` to logits ``(batch, n, tags)``."""
        vectors = self.vertex.expand(*tree.shape[:-1], -1)
        return self.output(self.hidden(self.gcn(vectors, tree)[..., 1:, :]))


class ListOpsTagger(nn.Module):
    """Parser and composer together; gold trees and chains need no parser."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.parser = Parser(config) if config.trees in ("latent", "heads") else None
        self.composer = Composer(config)

    def forward(self, batch: EncodedListOps) -> Tensor:
        """Logits ``(batch, n, tags)`` with discrete trees."""
        return self.composer(self.both_trees(batch)[0])

    def expect(
        self,
        batch: EncodedListOps,
        f: Callable[[Tensor], Tensor],
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The expected loss ``(batch,)``, whose gradient trains parser and composer.

        ``f`` takes logits ``(samples, batch, n, tags)`` to losses ``(samples, batch)``.
        """
        if self.parser is None:
            return f(self.composer(self.given_tree(batch))[None])[0]
        latent = self.parser.tree
        trees = latent.distribution_from_scores(
            self.parser.scores(batch.tokens, batch.lengths), batch.lengths
        )
        return latent.estimator.expect(
            trees, lambda sampled: f(self.composer(sampled)), generator=generator
        )

    def both_trees(
        self, batch: EncodedListOps, scores: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The discrete and the soft trees, without noise; scores are computed if not given."""
        if self.parser is None:
            tree = self.given_tree(batch)
            return tree, tree
        if scores is None:
            scores = self.parser.scores(batch.tokens, batch.lengths)
        latent = self.parser.tree
        return latent.discrete(scores, batch.lengths), latent.soft(scores, batch.lengths)

    def given_tree(self, batch: EncodedListOps) -> Tensor:
        """Gold trees or chains; does not wait for the GPU."""
        position = torch.arange(batch.tokens.shape[-1], device=batch.tokens.device)
        heads = batch.heads if self.config.trees == "gold" else position.expand_as(batch.tokens)
        dtype = self.composer.vertex.dtype
        return heads_to_tree(heads, batch.lengths, dtype=dtype, validate=False)
