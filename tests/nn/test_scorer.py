"""Arc scores against the formula written out, and their gradients."""

import pytest
import torch
from tolerances import EXACT, largest_error
from torch import nn
from torch.func import functional_call

from treelax.nn import ArcScorer


def make(**options) -> ArcScorer:
    """A float64 scorer with no weight at its initial value."""
    torch.manual_seed(3)
    scorer = ArcScorer(4, 6, **options).double()
    for parameter in scorer.parameters():
        nn.init.normal_(parameter)
    return scorer


def error(got, expected) -> float:
    return largest_error(got.detach(), expected.detach())


def perceptron(mlp, vector):
    """ReLU(Wx + b), layer by layer, unit by unit."""
    for layer in mlp:
        if isinstance(layer, nn.Linear):
            units = []
            for row, bias in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True):
                total = sum(w * x for w, x in zip(row, vector, strict=True)) + bias
                units.append(max(total, 0.0))
            vector = units
    return vector


def by_loops(scorer, vectors, bias_of):
    size = len(vectors)
    heads = [perceptron(scorer.head, v.tolist()) for v in vectors]
    modifiers = [perceptron(scorer.modifier, v.tolist()) for v in vectors]
    scores = torch.zeros(size, size, dtype=torch.float64)
    for h in range(size):
        for m in range(size):
            dot = sum(a * b for a, b in zip(heads[h], modifiers[m], strict=True))
            scores[h, m] = dot + bias_of(h, m)
    return scores


@pytest.mark.parametrize(("layers", "distances"), [(1, None), (2, 1), (2, 11), (3, 3)])
def test_against_loops(layers, distances):
    scorer = make(layers=layers, distances=distances)
    vectors = torch.randn(2, 6, 4, dtype=torch.float64)

    def bias_of(h, m):
        if distances is None:
            return 0.0
        by_distance = dict(
            zip(range(-distances, distances + 1), scorer.distance.tolist(), strict=True)
        )
        return by_distance[max(-distances, min(distances, h - m))]

    expected = torch.stack([by_loops(scorer, sentence, bias_of) for sentence in vectors])
    assert error(scorer(vectors), expected) < EXACT


@pytest.mark.parametrize("distances", [None, 2])
def test_gradients(distances):
    scorer = make(distances=distances)
    names, weights = zip(*scorer.named_parameters(), strict=True)
    vectors = torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True)

    def run(vectors, *weights):
        return functional_call(scorer, dict(zip(names, weights, strict=True)), (vectors,))

    assert torch.autograd.gradcheck(run, (vectors, *weights))


def test_the_paper_count_of_parameters():
    """Two perceptrons of one layer of 200 units add 80,400 parameters to the NLI model."""
    scorer = ArcScorer(200, 200, layers=1, distances=None)
    assert sum(p.numel() for p in scorer.parameters()) == 80_400


def test_the_bias_of_a_long_sentence_begins_with_that_of_a_short_one():
    scorer = ArcScorer(3, 4, distances=5)
    nn.init.normal_(scorer.distance)
    assert torch.equal(scorer.distance_bias(100)[:9, :9], scorer.distance_bias(9))


def test_weights_may_come_after_the_module():
    scorer = ArcScorer(3, 4, distances=2)
    nn.init.normal_(scorer.distance)
    with torch.device("meta"):
        other = ArcScorer(3, 4, distances=2)
    other.load_state_dict(scorer.state_dict(), assign=True)
    assert torch.equal(other.distance_bias(5), scorer.distance_bias(5))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, in jvp
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_the_bias_is_an_entry_for_every_distance(size):
    scorer = ArcScorer(3, 4, distances=2).double()
    nn.init.normal_(scorer.distance)
    position = torch.arange(size)
    expected = scorer.distance[(position[:, None] - position).clamp(-2, 2) + 2]
    bias, upstream = scorer.distance_bias(size), torch.randn(size, size, dtype=torch.float64)
    assert torch.equal(bias, expected)
    (slope,), (own,) = (
        torch.autograd.grad(each, scorer.distance, upstream) for each in (expected, bias)
    )
    torch.testing.assert_close(own, slope)
    vectors = torch.randn(size, 3, dtype=torch.float64)

    def of(values):
        return functional_call(scorer, {"distance": values}, (vectors,))

    assert torch.autograd.gradgradcheck(lambda x: of(x).square(), scorer.distance)
    moved = torch.func.jvp(of, (scorer.distance,), (scorer.distance,))[1]
    torch.testing.assert_close(moved, bias)
    mapped = torch.func.jacrev(of)(scorer.distance)
    torch.testing.assert_close(mapped @ scorer.distance, bias)


def test_few_graphs_for_many_lengths():
    torch._dynamo.reset()
    graphs = []
    scorer = ArcScorer(3, 4, distances=2)

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    compiled = torch.compile(scorer, fullgraph=True, backend=backend)
    for size in range(2, 14):
        vectors = torch.randn(2, size, 3)
        torch.testing.assert_close(compiled(vectors), scorer(vectors))
    assert len(graphs) <= 4
