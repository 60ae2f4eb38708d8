"""Attention within and between sentences, against loops written from the formulas."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import EXACT, largest_error
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call

from treelax.nn.attention import DecomposableAttention, IntraAttention, word_mask

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


def test_the_poolings_differ_and_agree_on_single_words():
    a, lengths = some_vectors(2, 4), torch.tensor([4, 2])
    one, ones = some_vectors(2, 1), torch.tensor([1, 1])
    layers = [between(pooling="max"), between(pooling="sum")]
    many = [layer(a, lengths, a, lengths).detach() for layer in layers]
    single = [layer(one, ones, one, ones) for layer in layers]
    assert largest_error(*many) > 0.01
    assert torch.equal(*single)


# ── padding ──────────────────────────────────────────────────────────────────────────────────────


def padded(vectors: list[Tensor], size: int, fill: float) -> Tensor:
    batch = torch.full((len(vectors), size, SIZE), fill, dtype=torch.float64)
    for row, words in zip(batch, vectors, strict=True):
        row[: len(words)] = words
    return batch.requires_grad_()


def gradients(layer: nn.Module, output: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    weights = torch.linspace(-1, 2, output.numel(), dtype=torch.float64).view_as(output)
    return torch.autograd.grad((output * weights).sum(), (*inputs, *layer.parameters()))


sentence_lengths = st.lists(st.integers(1, 4), min_size=2, max_size=2)


@settings(max_examples=40)
@given(sentence_lengths, st.integers(0, 3), st.sampled_from([0.0, 1e3, -1e3]))
def test_padding_changes_nothing_within_a_sentence(lengths, more, fill):
    layer, longest = intra(), max(lengths)
    sentences = [some_vectors(n, seed=n + i) for i, n in enumerate(lengths)]
    results = []
    for size, value in ((longest, 0.0), (longest + more, fill)):
        batch, words = padded(sentences, size, value), torch.tensor(lengths)
        output = layer(batch, words)[:, :longest].masked_fill(
            ~word_mask(words, longest)[..., None], 0
        )
        results.append((output, *gradients(layer, output, batch)))
    (plain, plain_grad, *plain_rest), (wide, wide_grad, *wide_rest) = results
    assert largest_error(wide.detach(), plain.detach()) < EXACT
    assert largest_error(wide_grad[:, :longest], plain_grad) < EXACT
    assert not wide_grad[~word_mask(torch.tensor(lengths), longest + more)].any()
    for one, other in zip(wide_rest, plain_rest, strict=True):
        assert largest_error(one, other) < EXACT


@every_pooling
@settings(max_examples=40)
@given(sentence_lengths, sentence_lengths, st.integers(0, 3), st.sampled_from([0.0, 1e3, -1e3]))
def test_padding_changes_nothing_between_sentences(pooling, a_lengths, b_lengths, more, fill):
    layer = between(pooling=pooling)
    a = [some_vectors(n, seed=n + i) for i, n in enumerate(a_lengths)]
    b = [some_vectors(n, seed=9 + n + i) for i, n in enumerate(b_lengths)]
    words = torch.tensor(a_lengths), torch.tensor(b_lengths)
    sizes = max(a_lengths), max(b_lengths)
    results = []
    for extra, value in ((0, 0.0), (more, fill)):
        first, second = padded(a, sizes[0] + extra, value), padded(b, sizes[1] + extra, value)
        logits = layer(first, words[0], second, words[1])
        results.append((logits.detach(), *gradients(layer, logits, first, second)))
    plain, wide = results
    for place, one, other in zip(range(len(plain)), wide, plain, strict=True):
        if place in (1, 2):  # of the inputs
            size = sizes[place - 1]
            assert not one[~word_mask(words[place - 1], size + more)].any()
            one = one[:, :size]
        assert largest_error(one, other) < EXACT


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


def test_dropout_while_training_only():
    layer, lengths = between(dropout=0.5), torch.tensor([3, 2])
    vectors = some_vectors(2, 3)
    torch.manual_seed(0)
    first, second = (layer(vectors, lengths, vectors, lengths) for _ in range(2))
    assert not torch.equal(first, second)
    layer.eval()
    first, second = (layer(vectors, lengths, vectors, lengths) for _ in range(2))
    assert torch.equal(first, second)


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
