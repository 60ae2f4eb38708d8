"""Attention within and between sentences, against loops written from the formulas."""

import pytest
import torch
from layer_checks import drawn, error, loops
from layer_checks import some_vectors as vectors_of
from tolerances import EXACT
from torch import Tensor

from treelax.nn.attention import DecomposableAttention, IntraAttention

SIZE = 3


def some_vectors(*shape: int, seed: int = 7) -> Tensor:
    return vectors_of(*shape, SIZE, seed=seed)


def weighted_mean(scores: list[Tensor], vectors: list[Tensor]) -> Tensor:
    weights = [score.exp() for score in scores]
    return sum(w * v for w, v in zip(weights, vectors, strict=True)) / sum(weights)


def slow_intra(layer: IntraAttention, words: list[Tensor]) -> Tensor:
    scorer = layer.scorer
    rows = []
    for m, modifier in enumerate(words):
        scores = []
        for h, head in enumerate(words):
            score = loops(scorer.head, head) @ loops(scorer.modifier, modifier)
            if scorer.distances is not None:
                apart = max(-scorer.distances, min(scorer.distances, h - m))
                score = score + scorer.distance[apart + scorer.distances]
            scores.append(score)
        rows.append(torch.cat((modifier, weighted_mean(scores, words))))
    return torch.stack(rows)


def slow_between(layer: DecomposableAttention, a: list[Tensor], b: list[Tensor]) -> Tensor:
    e = [[loops(layer.attend, x) @ loops(layer.attend, y) for y in b] for x in a]
    beta = [weighted_mean(e[i], b) for i in range(len(a))]
    alpha = [weighted_mean([row[j] for row in e], a) for j in range(len(b))]
    pooled = []
    for words, aligned in ((a, beta), (b, alpha)):
        compared = [
            loops(layer.compare, torch.cat(pair)) for pair in zip(words, aligned, strict=True)
        ]
        stacked = torch.stack(compared)
        pooled.append(stacked.max(0).values if layer.pooling == "max" else stacked.sum(0))
    return layer.output(loops(layer.aggregate, torch.cat(pooled)))


@pytest.mark.parametrize(("distances", "layers"), [(None, 1), (1, 2), (11, 1)])
def test_intra_attention_is_its_formula(distances, layers):
    layer = drawn(IntraAttention(SIZE, 4, distances=distances, layers=layers))
    lengths = torch.tensor([5, 3, 1])
    vectors = some_vectors(3, 5)
    output = layer(vectors, lengths)
    assert output.shape == (3, 5, layer.output_size)
    for sentence, length, row in zip(vectors, lengths.tolist(), output, strict=True):
        expected = slow_intra(layer, list(sentence[:length]))
        assert error(row[:length], expected) < EXACT


@pytest.mark.parametrize("pooling", ["max", "sum"])
def test_decomposable_attention_is_its_formula(pooling):
    layer = drawn(DecomposableAttention(SIZE, 4, 2, pooling=pooling))
    a, b = some_vectors(4, 5), some_vectors(4, 3, seed=8)
    a_lengths, b_lengths = torch.tensor([5, 3, 1, 1]), torch.tensor([1, 3, 2, 1])
    logits = layer(a, a_lengths, b, b_lengths)
    assert logits.shape == (4, 2)
    for i in range(4):
        expected = slow_between(layer, list(a[i, : a_lengths[i]]), list(b[i, : b_lengths[i]]))
        assert error(logits[i], expected) < EXACT


def test_half_precision_of_the_layers():
    vectors, lengths = some_vectors(2, 3).float(), torch.tensor([3, 1])
    pair = DecomposableAttention(SIZE, 4, 2)
    with torch.autocast("cpu", torch.bfloat16):
        logits = pair(vectors, lengths, vectors, lengths)
        within = IntraAttention(SIZE, 4)(vectors, lengths)
    assert logits.dtype == torch.bfloat16
    assert within.isfinite().all()
    assert torch.equal(within[..., :SIZE], vectors)
    expected = pair(vectors, lengths, vectors, lengths)
    assert error(logits, expected) < 0.05
