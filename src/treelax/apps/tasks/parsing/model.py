"""The network of a parser: words in, scores of arcs and labels out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.apps.data.batching import MOST_ARCS
from treelax.apps.tasks.parsing.config import ModelConfig, UnlabelledConfig
from treelax.apps.tasks.parsing.lexicon import (
    FIRST_CHARACTER,
    UNKNOWN,
    Batch,
    EncodedTreebank,
    Forms,
    Lexicon,
)
from treelax.apps.tasks.sentences.transformer import SubwordTable, load_transformer, whole_words
from treelax.distributions import StructureDistribution
from treelax.estimators import Estimator, Marginals, Relaxed, fenchel_young_loss
from treelax.nn import BiaffineScorer, BiLSTM, LatentTree, Root, TreeGCN
from treelax.nn.embeddings import WordEmbedding
from treelax.nn.mlp import linear
from treelax.nn.modes import evaluating
from treelax.nn.transformer import SubwordTransformer
from treelax.structures import Heads, Labelled
from treelax.trees import heads_to_tree

WIDTH = 3  # characters that a filter sees
SPREAD = 0.1  # of the initial vectors of words, characters and tags
NO_LABEL = -1  # of words without a tree


class WordEncoder(nn.Module):
    """Vectors of words from given and learned ones, their characters, tags and a transformer."""

    def __init__(self, config: ModelConfig, lexicon: Lexicon) -> None:
        super().__init__()
        self.config = config
        sizes = [config.word_size]
        self.learned = _embedding(UNKNOWN + 1 + len(lexicon.words), config.word_size)
        self.given: WordEmbedding | None = None
        self.characters: nn.Embedding | None = None
        self.tags: nn.Embedding | None = None
        if lexicon.vectors is not None:
            self.given = WordEmbedding(lexicon.vectors.matrix)
            self.projection = linear(self.given.size, config.word_size)
        if config.filters:
            count = FIRST_CHARACTER + len(lexicon.characters)
            self.characters = _embedding(count, config.character_size)
            self.filters = nn.Conv1d(config.character_size, config.filters, WIDTH, padding=1)
            sizes.append(config.filters)
        if lexicon.tags:
            self.tags = _embedding(UNKNOWN + 1 + len(lexicon.tags), config.tag_size)
            sizes.append(config.tag_size)
        self.transformer: SubwordTransformer | None = None
        self.subwords: SubwordTable | None = None  # of all words met so far
        if config.pretrained is not None:
            self.transformer, split = load_transformer(
                config.pretrained, subwords=config.subwords, frozen=config.pretrained_rate == 0
            )
            self.subwords = SubwordTable(self.transformer, split, whole_words(()))
            sizes.append(self.transformer.size)
        self.output_size = sum(sizes)

    def forward(self, batch: Batch, forms: Forms, hidden: Tensor | None = None) -> Tensor:
        """``(batch, n, output_size)``, 0 for words that are ``hidden``."""
        ids, training = batch.forms, self.training
        learned = forms.learned[ids]
        if training and self.config.word_dropout:
            dropped = torch.empty_like(ids, dtype=torch.bool).bernoulli_(self.config.word_dropout)
            learned = torch.where(dropped & (learned > 0), UNKNOWN, learned)
        words = self.learned(learned)
        if self.given is not None:
            # vectors of length 1 have small entries
            given = self.given(forms.vectors[ids]) * self.given.size**0.5
            words = words + self.projection(given)
        parts = [words]
        if self.characters is not None:
            parts.append(self._spelling(ids, forms.characters))
        if self.tags is not None:
            parts.append(self.tags(batch.tags))
        if self.transformer is not None:
            pieces = forms.subwords[ids]
            if hidden is not None:  # also from the neighbours, which a transformer shows them to
                pieces = pieces.masked_fill(hidden, 0)
            parts.append(self.transformer(pieces, batch.lengths, batch.subwords))
        if training and self.config.input_dropout:
            mask = words.new_empty((*ids.shape, len(parts)))
            mask.bernoulli_(1 - self.config.input_dropout)
            mask = mask * (len(parts) / mask.sum(-1, keepdim=True).clamp(min=1))
            parts = [part * mask[..., i, None] for i, part in enumerate(parts)]
        vectors = torch.cat(parts, -1)
        return vectors if hidden is None else vectors.masked_fill(hidden[..., None], 0)

    def sizes(self, data: EncodedTreebank, forms: Forms) -> Tensor:
        """``(sentences, 1)``, words; ``(sentences, 2)``, with the sub-words that a transformer reads."""
        if self.transformer is None:
            return data.lengths[:, None]
        ends = self.transformer.count(forms.subwords[data.columns[:, 0]]).cumsum(0)
        pieces = F.pad(ends, (1, 0))[data.offsets].diff() + self.transformer.around
        return torch.stack((data.lengths, pieces), 1)

    def _spelling(self, ids: Tensor, characters: Tensor) -> Tensor:
        """The largest value of each filter over the characters of a word."""
        distinct, place = ids.flatten(), None
        if ids.device.type == "cpu":  # elsewhere, to count them would take waiting for the device
            distinct, place = ids.unique(return_inverse=True)
        spelled = characters[distinct]
        assert self.characters is not None
        features = self.filters(self.characters(spelled).transpose(1, 2))
        features = features.masked_fill(spelled[:, None] == 0, 0).relu().amax(-1)
        return features.unflatten(0, ids.shape) if place is None else features[place]


class ParserModel(nn.Module):
    """A parser after Dozat and Manning (2017) with a distribution over trees on top."""

    def __init__(self, config: ModelConfig, lexicon: Lexicon) -> None:
        super().__init__()
        self.config = config
        self.words = WordEncoder(config, lexicon)
        options = {"stacks": config.encoder_stacks, "dropout": config.dropout}
        self.encoder = BiLSTM(self.words.output_size, config.encoder_size, **options)  # type: ignore[arg-type]
        size = self.encoder.output_size
        self.root = Root(size)
        scorer = BiaffineScorer(size, config.arc_size, dropout=config.dropout)
        # not validated: the training loop has a word on a loss that is not finite
        self.tree = LatentTree(
            scorer, config.make_structure(), Relaxed("entropy", noise=None), validate=False
        )
        self.label = BiaffineScorer(
            size, config.label_size, len(lexicon.labels), dropout=config.dropout
        )
        self.decoder: Decoder | None = None  # to learn from sentences without trees

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        """Load weights, but those of a decoder, which a trained parser does not need."""
        weights = {k: value for k, value in state_dict.items() if not k.startswith("decoder.")}
        return super().load_state_dict(weights, *args, **options)

    @property
    def most_arcs(self) -> int:
        """Arcs in a batch; fewer where the scores of all their labels have to fit into memory."""
        return MOST_ARCS // (self.label.weight.shape[0] if self.config.loss == "labelled" else 1)

    def vertices(self, batch: Batch, forms: Forms, hidden: Tensor | None = None) -> Tensor:
        """``(batch, n + 1, size)``: the root and words that know their context, but not themselves
        where they are ``hidden``.
        """
        return self.root(self.encoder(self.words(batch, forms, hidden), batch.lengths))

    def trees(self, vertices: Tensor, lengths: Tensor) -> StructureDistribution:
        """The distribution over trees; of labelled ones, that of their arcs."""
        scores = self.tree.scorer(vertices)
        if self.config.loss == "labelled":
            scores = scores + self.label(vertices).logsumexp(-1)
        return self.tree.distribution_from_scores(scores, lengths)

    def label_scores(self, vertices: Tensor, heads: Tensor) -> Tensor:
        """``(batch, n, labels)``, given the head of each word."""
        return self.label.of_heads(vertices, heads)

    def loss(self, batch: Batch, forms: Forms) -> Tensor:
        """``(batch,)``: minus the log-likelihood of the trees and their labels."""
        return self.tree_loss(self.vertices(batch, forms), batch)

    def tree_loss(self, vertices: Tensor, batch: Batch) -> Tensor:
        """Likewise, of the vertices of a batch."""
        lengths = batch.lengths
        tree = heads_to_tree(batch.heads, lengths, validate=False)
        if self.config.loss == "labelled":
            scores = self.tree.scorer(vertices)[..., None] + self.label(vertices)
            labels = F.one_hot(F.pad(batch.labels, (1, 0)).clamp(min=0), scores.shape[-1])[:, None]
            labelled = Labelled(self.tree.structure)(scores, lengths, validate_args=False)
            return -labelled.log_prob(tree[..., None] * labels)
        structure = Heads() if self.config.loss == "heads" else self.tree.structure
        trees = structure(self.tree.scorer(vertices), lengths, validate_args=False)
        logits = self.label_scores(vertices, batch.heads)
        labels = F.cross_entropy(
            logits.flatten(0, 1), batch.labels.flatten(), ignore_index=NO_LABEL, reduction="none"
        )
        inside = torch.arange(batch.heads.shape[1], device=lengths.device) < lengths[:, None]
        return (labels.view_as(batch.heads) * inside).sum(-1) - trees.log_prob(tree)


def _embedding(count: int, size: int) -> nn.Embedding:
    table = nn.Embedding(count, size, padding_idx=0)
    nn.init.normal_(table.weight, std=SPREAD)
    with torch.no_grad():
        table.weight[0] = 0
    return table


# ------------------------------------------------------------------ sentences without trees


class Encoded(NamedTuple):
    """Sentences as a decoder meets them."""

    words: Tensor  # (batch, n), 0 in the padding
    vertices: Tensor  # (batch, n + 1, size): what the parser makes of the root and the words
    hidden: Tensor  # (batch, n), true for words that the parser did not see


class Decoder(nn.Module, ABC):
    """Predicts words from trees; ``count`` words with vectors of size ``word_size``."""

    def __init__(self, count: int, word_size: int) -> None:
        super().__init__()
        self.root = nn.Parameter(SPREAD * torch.randn(word_size))
        self.bias = nn.Parameter(torch.zeros(count))

    @abstractmethod
    def forward(
        self, given: Encoded, trees: Tensor, table: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """``(samples, batch)``: minus the log-probability of the words of each sentence given its tree,
        ``(samples, batch, n + 1, n + 1)``, and a table of vectors of words, ``(count, word_size)``.
        """

    def read(self, words: Tensor, table: Tensor) -> Tensor:
        """``(batch, n + 1, word_size)``: vectors of the root and the words."""
        root = self.root.expand(len(words), 1, -1)
        return torch.cat((root, table[words]), 1)

    def predict(self, vectors: Tensor, table: Tensor) -> Tensor:
        """``(..., count)``: log-probabilities of all words."""
        logits = torch.addmm(self.bias, vectors.flatten(0, -2), table.T)
        return logits.log_softmax(-1).unflatten(0, vectors.shape[:-1])

    def lost(self, vectors: Tensor, words: Tensor, counted: Tensor, table: Tensor) -> Tensor:
        """``(samples, batch)``: minus the summed log-probability of the words that count."""
        log_probs = self.predict(vectors, table)
        wanted = words.expand(log_probs.shape[:-1])[..., None]
        return -(log_probs.gather(-1, wanted)[..., 0] * counted).sum(-1)


class ArcDecoder(Decoder):
    r"""Predicts each word from its head, by the side that it is on.

    .. math:: \log p(s \mid T) = \sum_{h,m} T_{h,m} \log p(s_m \mid s_h, m < h)

    It is linear in the tree, so that `treelax.Marginals` has its exact expectation.
    """

    def __init__(self, config: UnlabelledConfig, count: int, word_size: int) -> None:
        super().__init__(count, word_size)
        self.hidden = nn.ModuleList(linear(word_size, config.size) for _ in range(2))
        self.output = nn.ModuleList(linear(config.size, word_size) for _ in range(2))

    def forward(
        self, given: Encoded, trees: Tensor, table: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        return -(trees[..., 1:] * self.arcs(given.words, table)).sum((-1, -2))

    def arcs(self, words: Tensor, table: Tensor) -> Tensor:
        """``(batch, n + 1, n)``: the log-probability of each word given each head."""
        n = words.shape[-1]
        heads = self.read(words, table)
        wanted = words[:, None].expand(-1, n + 1, -1)
        left, right = (
            self.predict(output(hidden(heads).relu()), table).gather(-1, wanted)
            for hidden, output in zip(self.hidden, self.output, strict=True)
        )
        place = torch.arange(n + 1, device=words.device)
        return torch.where(place[1:] < place[:, None], left, right)


class GCNDecoder(Decoder):
    r"""Predicts each word from those before it: an LSTM, and the arcs between them and the word.

    .. math:: v_i = \mathrm{ReLU}\Big(f(e_{i-1}) + \sum_{j<i} T_{j,i}\, g(e_j)
                                      + \sum_{j<i} T_{i,j}\, h(e_j)\Big)

    where :math:`e_j` is the LSTM's state after the root and ``j`` words.

    Reference:
        Corro & Titov (2019), Differentiable perturb-and-parse, ICLR, section 3.
    """

    def __init__(self, config: UnlabelledConfig, count: int, word_size: int) -> None:
        super().__init__(count, word_size)
        self.word_dropout = config.word_dropout
        self.lstm = nn.LSTM(word_size, config.size, batch_first=True)
        self.own, self.head, self.modifier = (linear(config.size, config.size) for _ in range(3))
        self.output = linear(config.size, word_size)

    def forward(
        self, given: Encoded, trees: Tensor, table: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        read = words = given.words
        if self.training and self.word_dropout:
            dropped = torch.empty_like(words, dtype=torch.bool)
            dropped.bernoulli_(self.word_dropout, generator=generator)
            read = torch.where(dropped & (words > 0), UNKNOWN, words)
        states, _ = self.lstm(self.read(read, table))
        to_word, from_word = trees.mT.tril(-1)[..., 1:, :], trees.tril(-1)[..., 1:, :]
        mixed = self.own(states[:, :-1]) + to_word @ self.head(states)
        mixed = mixed + from_word @ self.modifier(states)
        return self.lost(self.output(mixed.relu()), words, words > 0, table)


class MaskedDecoder(Decoder):
    """Predicts the words that the parser did not see from what it makes of them and their neighbours.

    As a masked language model it trains the parser's encoder too, beside its scores.
    """

    def __init__(self, config: UnlabelledConfig, count: int, word_size: int, size: int) -> None:
        super().__init__(count, word_size)
        self.share = config.hidden
        self.gcn = TreeGCN(size, config.size)
        self.output = linear(config.size, word_size)

    def forward(
        self, given: Encoded, trees: Tensor, table: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        vectors = self.output(self.gcn(given.vertices, trees)[..., 1:, :])
        return self.lost(vectors, given.words, given.hidden, table) / self.share


def make_decoder(config: UnlabelledConfig, count: int, word_size: int, vertex_size: int) -> Decoder:
    """The decoder of a config."""
    if config.decoder == "masked":
        return MaskedDecoder(config, count, word_size, vertex_size)
    return {"arcs": ArcDecoder, "gcn": GCNDecoder}[config.decoder](config, count, word_size)


def mixed_loss(
    model: ParserModel,
    config: UnlabelledConfig,
    estimator: Estimator,
    batch: Batch,
    forms: Forms,
    labelled: Tensor,
    generator: torch.Generator,
) -> Tensor:
    r"""``(batch,)``: the losses of sentences with and without trees.

    .. math::
        \ell(s, T) &= -\log q(T \mid s) - \alpha \log p(s \mid T) \\
        \ell(s) &= -\alpha \, \mathbb{E}_{T \sim q(\cdot \mid s)} \log p(s \mid T)
                   - \beta \, \mathrm{H}(q(\cdot \mid s))
                   - \gamma \, \mathbb{E}_{T \sim \bar q(\cdot \mid s)} \log q(T \mid s)

    with the parser :math:`q`, as it is without dropout :math:`\bar q`, the decoder :math:`p`, and the
    weights :math:`\alpha` of the reconstruction, :math:`\beta` of the entropy and :math:`\gamma` of the
    agreement. With :math:`\alpha = \beta = 1` and :math:`\gamma = 0` it is minus the bound of a
    variational autoencoder whose prior takes all trees for equally likely. `labelled` ``(batch,)`` tells
    whether a sentence has a tree.
    """
    assert model.decoder is not None
    decoder, lengths, known = model.decoder, batch.lengths, labelled[:, None]
    place = torch.arange(batch.heads.shape[1], device=lengths.device)
    hidden = torch.empty_like(batch.heads, dtype=torch.bool)
    hidden.bernoulli_(config.hidden, generator=generator)
    hidden &= (place < lengths[:, None]) & ~known
    vertices = model.vertices(batch, forms, hidden)
    # a chain in place of the tree that is not known: any tree will do, its loss is left out
    batch = batch._replace(heads=torch.where(known, batch.heads, place))
    loss = model.tree_loss(vertices, batch) * labelled
    trees = model.trees(vertices, lengths)
    # the reconstruction of a tree that is known does not train the scores
    free = torch.where(known[..., None], trees.scores.detach(), trees.scores)
    gold = heads_to_tree(batch.heads, lengths, validate=False).to(free)
    given = Encoded(forms.learned[batch.forms], vertices, hidden)

    def rebuilt(latent: Tensor) -> Tensor:
        chosen = torch.where(known[..., None], gold, latent)
        return decoder(given, chosen, model.words.learned.weight, generator)

    expected = estimator.expect(
        model.tree.distribution_from_scores(free, lengths), rebuilt, generator=generator
    )
    loss = loss + config.reconstruction * expected
    if config.entropy:
        loss = loss - config.entropy * trees.entropy() * ~labelled
    if config.agreement:
        with torch.no_grad(), evaluating(model):
            sure = model.trees(model.vertices(batch, forms), lengths).marginals
        apart = fenchel_young_loss(trees, sure, Marginals())
        loss = loss + config.agreement * apart * ~labelled
    return loss
