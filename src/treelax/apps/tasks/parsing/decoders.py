"""Decoders: the words of a sentence predicted from its tree, to learn from sentences without trees.

Words are numbers of the parser's learned vectors, which the decoder reads and predicts by too: what
it learns about words that no labelled sentence has, the parser knows as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from treelax.apps.tasks.parsing.config import UnlabelledConfig
from treelax.apps.tasks.parsing.lexicon import UNKNOWN
from treelax.nn import TreeGCN
from treelax.nn.mlp import linear

SPREAD = 0.1  # of the root's initial vector


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
