"""Scores of arcs and spans against their formulas written out."""

import pytest
import torch
from layer_checks import drawn, error, loops, some_vectors
from tolerances import EXACT
from torch import nn
from torch.func import functional_call

from treelax.errors import InputError
from treelax.nn import ArcScorer, BiaffineScorer, SpanScorer


@pytest.mark.parametrize(("layers", "distances"), [(1, None), (2, 1), (2, 11), (3, 3)])
def test_dotted_attention(layers, distances):
    scorer = drawn(ArcScorer(4, 6, layers=layers, distances=distances))
    vectors = some_vectors(6, 4)
    scores = scorer(vectors)
    for h in range(6):
        for m in range(6):
            score = loops(scorer.head, vectors[h]) @ loops(scorer.modifier, vectors[m])
            if distances is not None:
                score = score + scorer.distance[max(-distances, min(distances, h - m)) + distances]
            assert error(scores[h, m], score) < EXACT


@pytest.mark.parametrize("labels", [None, 3])
def test_biaffine_attention(labels):
    scorer, vectors = drawn(BiaffineScorer(4, 5, labels)), some_vectors(2, 4, 4)
    scores = scorer(vectors)
    one = torch.ones(2, 1, dtype=torch.float64)
    for h in range(4):
        for m in range(4):
            head = torch.cat((scorer.head(vectors[:, h]), one), 1)
            modifier = torch.cat((scorer.modifier(vectors[:, m]), one), 1)
            expected = torch.einsum("bi,lij,bj->bl", head, scorer.weight, modifier)
            assert error(scores[:, h, m].reshape(2, -1), expected) < EXACT
    heads = torch.tensor([[2, 0, 2], [0, 1, 1]])
    expected = scores[torch.arange(2)[:, None], heads, torch.arange(1, 4)]
    assert error(scorer.of_heads(vectors, heads), expected) < EXACT
    with pytest.raises(InputError, match="a head for every word"):
        scorer.of_heads(vectors, heads[:, :2])
    assert not BiaffineScorer(4, 5, labels)(
        vectors.float()
    ).any()  # trees are equally likely at first


@pytest.mark.parametrize("labels", [None, 3])
def test_spans(labels):
    scorer, vectors = drawn(SpanScorer(4, 5, labels=labels)), some_vectors(4, 4)
    scores = scorer(vectors)
    for i in range(4):
        for j in range(i, 4):
            ends = loops(scorer.first, vectors[i]) * loops(scorer.last, vectors[j])
            assert error(scores[i, j].reshape(-1), scorer.output(ends)) < EXACT


def test_the_paper_count_of_parameters():
    """Two perceptrons of one layer of 200 units add 80,400 parameters to the NLI model."""
    scorer = ArcScorer(200, 200, layers=1, distances=None)
    assert sum(p.numel() for p in scorer.parameters()) == 80_400


def test_weights_may_come_after_the_module():
    scorer = ArcScorer(3, 4, distances=2)
    nn.init.normal_(scorer.distance)
    with torch.device("meta"):
        other = ArcScorer(3, 4, distances=2)
    other.load_state_dict(scorer.state_dict(), assign=True)
    assert torch.equal(other.distance_bias(5), scorer.distance_bias(5))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, in jvp
@pytest.mark.parametrize("size", [1, 2, 7])
def test_the_bias_is_an_entry_for_every_distance(size):
    """In value, and in derivatives of every kind."""
    scorer = ArcScorer(3, 4, distances=2).double()
    nn.init.normal_(scorer.distance)
    position = torch.arange(size)
    expected = scorer.distance[(position[:, None] - position).clamp(-2, 2) + 2]
    bias, upstream = scorer.distance_bias(size), torch.randn(size, size, dtype=torch.float64)
    assert torch.equal(bias, expected)
    slopes = (torch.autograd.grad(b, scorer.distance, upstream)[0] for b in (bias, expected))
    torch.testing.assert_close(*slopes)
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
    compiled = torch.compile(
        scorer, fullgraph=True, backend=lambda graph, _: graphs.append(graph) or graph
    )
    for size in (2, 3, 4, 8, 13):
        vectors = torch.randn(2, size, 3)
        torch.testing.assert_close(compiled(vectors), scorer(vectors))
    assert len(graphs) <= 4
