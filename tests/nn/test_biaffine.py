"""Biaffine scores against the formula written out, and their gradients."""

import pytest
import torch
from tolerances import EXACT, largest_error
from torch import nn
from torch.func import functional_call

from treelax.errors import InputError
from treelax.nn import BiaffineScorer


def make(labels: int | None) -> BiaffineScorer:
    """A float64 scorer with no weight at its initial value."""
    torch.manual_seed(3)
    scorer = BiaffineScorer(4, 5, labels).double()
    for parameter in scorer.parameters():
        nn.init.normal_(parameter)
    return scorer


@pytest.mark.parametrize("labels", [None, 3])
def test_against_loops(labels):
    scorer, vectors = make(labels), torch.randn(2, 6, 4, dtype=torch.float64)
    scores = scorer(vectors)
    assert scores.shape == ((2, 6, 6) if labels is None else (2, 6, 6, labels))
    one = torch.ones(1, dtype=torch.float64)
    for b in range(2):
        for h in range(6):
            for m in range(6):
                head = torch.cat((scorer.head(vectors[b, h]), one))
                modifier = torch.cat((scorer.modifier(vectors[b, m]), one))
                expected = torch.stack([head @ own @ modifier for own in scorer.weight])
                assert (
                    largest_error(scores[b, h, m].reshape(-1).detach(), expected.detach()) < EXACT
                )


@pytest.mark.parametrize("labels", [None, 3])
def test_scores_of_given_heads_are_those_of_all_arcs(labels):
    scorer, vectors = make(labels), torch.randn(2, 4, 4, dtype=torch.float64)
    heads = torch.tensor([[2, 0, 2], [0, 1, 1]])
    expected = scorer(vectors)[torch.arange(2)[:, None], heads, torch.arange(1, 4)]
    assert largest_error(scorer.of_heads(vectors, heads).detach(), expected.detach()) < EXACT
    with pytest.raises(InputError, match="a head for every word"):
        scorer.of_heads(vectors, heads[:, :2])


@pytest.mark.parametrize("labels", [None, 2])
def test_gradients(labels):
    scorer, vectors = make(labels), torch.randn(1, 3, 4, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in scorer.named_parameters()]

    def scores(vectors, *weights):
        return functional_call(scorer, dict(zip(names, weights, strict=True)), (vectors,))

    assert torch.autograd.gradcheck(scores, (vectors, *scorer.parameters()))


def test_all_trees_are_equally_likely_at_first():
    assert not BiaffineScorer(4, 5, 3)(torch.randn(3, 4)).any()
