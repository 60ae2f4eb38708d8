"""Attention within and between sentences, against loops written from the formulas."""

import pytest
import torch
from tolerances import EXACT, largest_error
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call

from treelax.nn.attention import DecomposableAttention, IntraAttention

SIZE = 3
every_pooling = pytest.mark.parametrize("pooling", ["max", "sum"])


def seeded(layer: nn.Module) -> nn.Module:
    """The layer in float64 with no weight at its initial value: zeros sit on the edge of ReLU."""
    generator = torch.Generator().manual_seed(5)
    for parameter in layer.double().parameters():
        parameter.data = torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
    return layer


def intra(**options) -> IntraAttention:
    return seeded(IntraAttention(SIZE, 4, **options))


def between(**options) -> DecomposableAttention:
    return seeded(DecomposableAttention(SIZE, 4, 2, **options))


def some_vectors(*shape: int, seed: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, SIZE, dtype=torch.float64, generator=generator)


# ── the formulas, word by word ───────────────────────────────────────────────────────────────────


def perceptron(layers: nn.Module, x: Tensor) -> Tensor:
    for layer in layers:
        if isinstance(layer, nn.Linear):
            x = (layer.weight @ x + layer.bias).clamp(min=0)
    return x


def weighted_mean(scores: list[Tensor], vectors: list[Tensor]) -> Tensor:
    weights = [score.exp() for score in scores]
    return sum(w * v for w, v in zip(weights, vectors, strict=True)) / sum(weights)


def slow_intra(layer: IntraAttention, words: list[Tensor]) -> Tensor:
    scorer = layer.scorer
    rows = []
    for m, modifier in enumerate(words):
        scores = []
        for h, head in enumerate(words):
            score = perceptron(scorer.head, head) @ perceptron(scorer.modifier, modifier)
            if scorer.distances is not None:
                apart = max(-scorer.distances, min(scorer.distances, h - m))
                score = score + scorer.distance[apart + scorer.distances]
            scores.append(score)
        rows.append(torch.cat((modifier, weighted_mean(scores, words))))
    return torch.stack(rows)


def slow_between(layer: DecomposableAttention, a: list[Tensor], b: list[Tensor]) -> Tensor:
    e = [[perceptron(layer.attend, x) @ perceptron(layer.attend, y) for y in b] for x in a]
    beta = [weighted_mean(e[i], b) for i in range(len(a))]
    alpha = [weighted_mean([row[j] for row in e], a) for j in range(len(b))]
    pooled = []
    for words, aligned in ((a, beta), (b, alpha)):
        compared = [
            perceptron(layer.compare, torch.cat(pair)) for pair in zip(words, aligned, strict=True)
        ]
        stacked = torch.stack(compared)
        pooled.append(stacked.max(0).values if layer.pooling == "max" else stacked.sum(0))
    return layer.output(perceptron(layer.aggregate, torch.cat(pooled)))


@pytest.mark.parametrize("distances", [None, 1, 11])
@pytest.mark.parametrize("layers", [1, 2])
def test_intra_attention_is_its_formula(distances, layers):
    layer, lengths = intra(distances=distances, layers=layers), torch.tensor([5, 3, 1])
    vectors = some_vectors(3, 5)
    output = layer(vectors, lengths)
    assert output.shape == (3, 5, layer.output_size)
    for sentence, length, row in zip(vectors, lengths.tolist(), output, strict=True):
        expected = slow_intra(layer, list(sentence[:length]))
        assert largest_error(row[:length].detach(), expected.detach()) < EXACT


@every_pooling
def test_decomposable_attention_is_its_formula(pooling):
    layer = between(pooling=pooling)
    a, b = some_vectors(4, 5), some_vectors(4, 3, seed=8)
    a_lengths, b_lengths = torch.tensor([5, 3, 1, 1]), torch.tensor([1, 3, 2, 1])
    logits = layer(a, a_lengths, b, b_lengths)
    assert logits.shape == (4, 2)
    for i in range(4):
        expected = slow_between(layer, list(a[i, : a_lengths[i]]), list(b[i, : b_lengths[i]]))
        assert largest_error(logits[i].detach(), expected.detach()) < EXACT


# ── padding ──────────────────────────────────────────────────────────────────────────────────────


def test_padding_changes_nothing():
    """The formulas above see no padding; nor do gradients reach it, whatever it holds."""
    lengths = torch.tensor([4, 2])
    outside = torch.arange(6) >= lengths[:, None]
    tight = some_vectors(2, 4)
    wide = torch.cat((tight, torch.zeros(2, 2, SIZE)), 1).masked_fill(outside[..., None], 1e3)
    wide.requires_grad_()
    layer, pair = intra(), between()
    within = layer(wide, lengths)[~outside]
    expected = layer(tight, lengths)[~outside[:, :4]]
    assert largest_error(within.detach(), expected.detach()) < EXACT
    logits = pair(wide, lengths, wide, lengths)
    assert largest_error(logits.detach(), pair(tight, lengths, tight, lengths).detach()) < EXACT
    (within.square().sum() + logits.square().sum()).backward()
    assert not wide.grad[outside].any()
    assert wide.grad[~outside].any(-1).all()


# ── gradients and types ──────────────────────────────────────────────────────────────────────────


FIRST, SECOND = torch.tensor([2, 1]), torch.tensor([1, 3])


@pytest.mark.parametrize(
    ("layer", "arguments"),
    [
        (between(pooling="max"), lambda a, b: (a, FIRST, b, SECOND)),
        (between(pooling="sum"), lambda a, b: (a, FIRST, b, SECOND)),
        (intra(distances=2), lambda a, b: (b, SECOND)),
    ],
)
def test_gradients(layer, arguments):
    names, values = zip(*layer.named_parameters(), strict=True)

    def run(a: Tensor, b: Tensor, *parameters: Tensor) -> Tensor:
        return functional_call(layer, dict(zip(names, parameters, strict=True)), arguments(a, b))

    inputs = some_vectors(2, 2).requires_grad_(), some_vectors(2, 3).requires_grad_()
    assert gradcheck(run, (*inputs, *values), fast_mode=True)


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
    assert largest_error(logits.detach(), expected.detach()) < 0.05
