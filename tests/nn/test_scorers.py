"""Scores of arcs and spans against their formulas written out."""

import pytest
import torch
from layer_checks import drawn, error, loops, some_vectors
from tolerances import EXACT
from torch import nn
from torch.func import functional_call

import treelax as tx
from treelax.errors import InputError
from treelax.nn import ArcScorer, BiaffineScorer, ChainScorer, LatentTree, SpanScorer


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


def test_chains():
    scorer, vectors = drawn(ChainScorer(4, 3)), some_vectors(2, 5, 4)
    lengths, tags = torch.tensor([5, 2]), torch.tensor([[0, 2, 1, 1, 0], [2, 0, 0, 0, 0]])
    scores = scorer(vectors, lengths) * tx.Chain.parts(tags, lengths, num_tags=3)
    for b, n in enumerate(lengths.tolist()):
        used = tags[b, :n]
        expected = scorer.emissions(vectors[b])[range(n), used].sum()
        expected = expected + scorer.transitions[used[:-1], used[1:]].sum()
        expected = expected + scorer.start[used[0]] + scorer.end[used[-1]]
        assert error(scores[b].sum(), expected) < EXACT
    softmax = ChainScorer(4, 3).double()  # at first every word chooses for itself
    chain = tx.Chain()(softmax(vectors, lengths), lengths)
    alone = softmax.emissions(vectors).softmax(-1)
    assert error(chain.marginals[0].sum(-2), alone[0]) < EXACT


def test_chains_in_the_latent_layer():
    """Lengths reach the scorer; what is forbidden never happens; fixed scores are not learned."""
    constraint = tx.Chain.bio(["O", "B-X", "I-X"])
    scorer = ChainScorer(4, 3, constraint=constraint)
    layer = LatentTree(scorer, tx.Chain())
    nn.init.normal_(scorer.end)
    vectors, lengths = torch.randn(6, 5, 4), torch.tensor([5, 3, 1, 0, 2, 4])
    vectors[2, 1:] = torch.nan  # padding
    gold = tx.Chain.parts(torch.tensor([1, 2, 2, 0, 1]).expand(6, 5), lengths, num_tags=3)
    chain = layer.distribution(vectors, lengths)
    torch.testing.assert_close(chain.scores[2, 0], scorer(vectors[2, :1])[0])
    loss = layer.expect(vectors, lengths, lambda value: -(value * gold).sum((-3, -2, -1)))
    (loss.sum() - chain.log_prob(gold).sum()).backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in scorer.parameters())
    assert not (layer(vectors, lengths)[..., 0, 2]).any()
    assert sorted(scorer.state_dict()) == sorted(dict(scorer.named_parameters()))
    layer.eval()
    tags = tx.Chain.tags(layer(vectors, lengths), lengths)
    assert not ((tags[:, 1:] == 2) & (tags[:, :-1] == 0)).any()
    assert not (tags[:, 0] == 2).any()


def test_what_chain_scorers_refuse():
    allowed, *ends = tx.Chain.bio("OBI")
    for constraint in ((allowed == 0, *ends), (allowed, *ends[:1]), tx.Chain.bio("OB")):
        with pytest.raises(InputError, match=r"constraint has .*; expected scores .3, 3. of trans"):
            ChainScorer(4, 3, constraint=constraint)
    for scorer, structure, name in (
        (ArcScorer(4, 6), tx.Chain(), "transitions, such as treelax.nn.ChainScorer"),
        (ChainScorer(4, 3), tx.Projective(), "arcs, such as treelax.nn.ArcScorer"),
        (ChainScorer(4, 3), tx.Segments(2), "segments, such as a module of your own"),
    ):
        with pytest.raises(InputError, match=f"expected a scorer of {name}"):
            LatentTree(scorer, structure)


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
