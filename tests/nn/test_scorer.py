"""Arc scores against the formula written out, and their gradients."""

import pytest
import torch
from layer_checks import check_gradients, drawn, error, loops, some_vectors
from tolerances import EXACT
from torch import nn
from torch.func import functional_call

from treelax.nn import ArcScorer


def make(**options) -> ArcScorer:
    return drawn(ArcScorer(4, 6, **options))


def by_loops(scorer, vectors, bias_of):
    heads = [loops(scorer.head, vector) for vector in vectors]
    modifiers = [loops(scorer.modifier, vector) for vector in vectors]
    return torch.stack(
        [
            torch.stack([head @ modifier + bias_of(h, m) for m, modifier in enumerate(modifiers)])
            for h, head in enumerate(heads)
        ]
    )


@pytest.mark.parametrize(("layers", "distances"), [(1, None), (2, 1), (2, 11), (3, 3)])
def test_against_loops(layers, distances):
    scorer = make(layers=layers, distances=distances)
    vectors = some_vectors(2, 6, 4)

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
    assert check_gradients(make(distances=distances), lambda x: ((x,), {}), some_vectors(2, 5, 4))


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
