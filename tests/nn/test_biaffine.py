"""Biaffine scores against the formula written out, and their gradients."""

import pytest
import torch
from layer_checks import check_gradients, drawn, error, some_vectors
from tolerances import EXACT

from treelax.errors import InputError
from treelax.nn import BiaffineScorer


def make(labels: int | None) -> BiaffineScorer:
    return drawn(BiaffineScorer(4, 5, labels))


@pytest.mark.parametrize("labels", [None, 3])
def test_against_loops(labels):
    scorer, vectors = make(labels), some_vectors(2, 6, 4)
    scores = scorer(vectors)
    assert scores.shape == ((2, 6, 6) if labels is None else (2, 6, 6, labels))
    one = torch.ones(1, dtype=torch.float64)
    for b in range(2):
        for h in range(6):
            for m in range(6):
                head = torch.cat((scorer.head(vectors[b, h]), one))
                modifier = torch.cat((scorer.modifier(vectors[b, m]), one))
                expected = torch.stack([head @ own @ modifier for own in scorer.weight])
                assert error(scores[b, h, m].reshape(-1), expected) < EXACT


@pytest.mark.parametrize("labels", [None, 3])
def test_scores_of_given_heads_are_those_of_all_arcs(labels):
    scorer, vectors = make(labels), some_vectors(2, 4, 4)
    heads = torch.tensor([[2, 0, 2], [0, 1, 1]])
    expected = scorer(vectors)[torch.arange(2)[:, None], heads, torch.arange(1, 4)]
    assert error(scorer.of_heads(vectors, heads), expected) < EXACT
    with pytest.raises(InputError, match="a head for every word"):
        scorer.of_heads(vectors, heads[:, :2])


@pytest.mark.parametrize("labels", [None, 2])
def test_gradients(labels):
    assert check_gradients(make(labels), lambda x: ((x,), {}), some_vectors(1, 3, 4))


def test_all_trees_are_equally_likely_at_first():
    assert not BiaffineScorer(4, 5, 3)(torch.randn(3, 4)).any()
