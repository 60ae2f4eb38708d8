"""Decoders against plain loops, and their gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax import Exact, Marginals, Projective
from treelax.apps.tasks.parsing.config import UnlabelledConfig
from treelax.apps.tasks.parsing.model import Decoder, Encoded, make_decoder
from treelax.trees import heads_to_tree

COUNT, SIZE = 6, 3
LENGTHS = torch.tensor([4, 2])
WORDS = torch.tensor([[2, 5, 3, 2], [4, 1, 0, 0]])
HEADS = torch.tensor([[2, 0, 4, 2], [0, 1, -1, -1]])
TREES = heads_to_tree(HEADS, LENGTHS).double()
VERTICES = torch.randn(2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
HIDDEN = torch.tensor([[True, False, True, False], [False, True, False, False]])
GIVEN = Encoded(WORDS, VERTICES, HIDDEN)


def made(kind: str, **settings: Any) -> tuple[Decoder, Tensor]:
    torch.manual_seed(0)
    config = UnlabelledConfig(decoder=kind, size=4, **settings)  # type: ignore[arg-type]
    decoder = make_decoder(config, COUNT, SIZE, VERTICES.shape[-1]).double()
    nn.init.normal_(decoder.bias)
    return decoder, torch.randn(COUNT, SIZE, dtype=torch.float64)


def soft_trees() -> Tensor:
    """Two for each sentence, with fractions, and arcs both ways."""
    torch.manual_seed(1)
    scores = torch.randn(2, 2, 5, 5, dtype=torch.float64)
    return Projective()(scores, LENGTHS.expand(2, 2)).marginals


def lost(logits: Tensor, word: int) -> Tensor:
    return F.cross_entropy(logits, torch.tensor(word))


def arcs_by_a_loop(
    decoder: Any, table: Tensor, sentence: int, words: list[int], tree: Tensor
) -> Any:
    """Words from their heads."""
    for m in range(1, len(words) + 1):
        for h in range(len(words) + 1):
            side = 0 if m < h else 1
            vector = decoder.root if h == 0 else table[words[h - 1]]
            hidden = decoder.hidden[side](vector).relu()
            logits = table @ decoder.output[side](hidden) + decoder.bias
            yield tree[h, m] * lost(logits, words[m - 1])


def gcn_by_a_loop(
    decoder: Any, table: Tensor, sentence: int, words: list[int], tree: Tensor
) -> Any:
    """Words from those to their left."""
    for i in range(1, len(words) + 1):
        left = torch.stack([decoder.root, *(table[word] for word in words[: i - 1])])
        states, _ = decoder.lstm(left)
        vector = decoder.own(states[-1])
        for j in range(i):
            vector = vector + tree[j, i] * decoder.head(states[j])
            vector = vector + tree[i, j] * decoder.modifier(states[j])
        yield lost(table @ decoder.output(vector.relu()) + decoder.bias, words[i - 1])


def masked_by_a_loop(
    decoder: Any, table: Tensor, sentence: int, words: list[int], tree: Tensor
) -> Any:
    """Hidden words from their neighbours."""
    for m, word in enumerate(words):
        if HIDDEN[sentence, m]:
            vector = decoder.gcn(VERTICES[sentence], tree)[m + 1]
            yield 2 * lost(table @ decoder.output(vector) + decoder.bias, word)


LOOPS = {"arcs": arcs_by_a_loop, "gcn": gcn_by_a_loop, "masked": masked_by_a_loop}


@pytest.mark.parametrize("kind", LOOPS)
@torch.no_grad()
def test_losses_are_those_of_a_loop(kind: str) -> None:
    decoder, table = made(kind, word_dropout=0.0, hidden=0.5)
    trees = soft_trees()
    expected = torch.zeros(2, 2, dtype=torch.float64)
    for sample, sentence in torch.cartesian_prod(torch.arange(2), torch.arange(2)).tolist():
        words = WORDS[sentence, : LENGTHS[sentence]].tolist()
        losses = LOOPS[kind](decoder, table, sentence, words, trees[sample, sentence])
        expected[sample, sentence] = sum(losses)
    assert torch.allclose(decoder(GIVEN, trees, table), expected)


@pytest.mark.parametrize("dropout", [0.0, 1.0])
def test_dropped_words_are_predicted_but_not_read(dropout: float) -> None:
    decoder, table = made("gcn", word_dropout=dropout)
    sentences = torch.tensor([[2, 5, 3, 2], [2, 5, 3, 4], [3, 4, 5, 2], [3, 4, 5, 4]])
    loss = decoder(GIVEN._replace(words=sentences), TREES[:1].expand(1, 4, 5, 5), table)[0]
    # what the last word costs depends on those before it, if they are read
    same = torch.allclose(loss[1] - loss[0], loss[3] - loss[2])
    assert same == (dropout == 1)
    assert not torch.allclose(loss[0], loss[2])


@pytest.mark.parametrize("kind", LOOPS)
def test_gradients(kind: str) -> None:
    decoder, table = made(kind, word_dropout=0.0, hidden=0.5)
    decoder.requires_grad_(False)
    inputs = (soft_trees().detach().requires_grad_(), table.requires_grad_())
    assert torch.autograd.gradcheck(lambda trees, table: decoder(GIVEN, trees, table), inputs)


def test_marginals_have_the_exact_expectation_of_arcs() -> None:
    decoder, table = made("arcs")
    found = []
    for estimator in (Exact(), Marginals()):
        torch.manual_seed(2)
        scores = torch.randn(2, 5, 5, dtype=torch.float64, requires_grad=True)
        trees = Projective(single_root=True)(scores, LENGTHS)
        loss = estimator.expect(trees, lambda sampled: decoder(GIVEN, sampled, table))
        [gradient] = torch.autograd.grad(loss.sum(), scores)
        found.append((loss.detach(), gradient))
    (exact, exact_gradient), (mean, mean_gradient) = found
    assert torch.allclose(exact, mean)
    assert torch.allclose(exact_gradient, mean_gradient)
