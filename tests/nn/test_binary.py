"""Layers for binary trees."""

import pytest
import torch

import treelax as tx
from treelax.errors import InputError
from treelax.nn import BinaryTreeLSTM, LatentTree, SpanScorer


def recursive(layer, vectors, tree, i, j):
    """State and cell of a span of a discrete tree, as the TreeLSTM is written down."""
    if i == j:
        gate, out, update = layer.leaf(vectors[i]).chunk(3)
        cell = gate.sigmoid() * update.tanh()
        return out.sigmoid() * cell.tanh(), cell
    [k] = [k for k in range(i, j) if tree[i, k] and tree[k + 1, j]]
    left, right = recursive(layer, vectors, tree, i, k), recursive(layer, vectors, tree, k + 1, j)
    gates = layer.cell(torch.cat((left[0], right[0]))).chunk(5)
    cell = gates[0].sigmoid() * gates[2].tanh()
    cell = cell + gates[3].sigmoid() * left[1] + gates[4].sigmoid() * right[1]
    return gates[1].sigmoid() * cell.tanh(), cell


def test_states_of_a_discrete_tree(generator):
    layer = BinaryTreeLSTM(3, 4).double()
    vectors = torch.randn(2, 6, 3, dtype=torch.float64, generator=generator)
    lengths = torch.tensor([6, 4])
    scores = torch.randn(2, 6, 6, dtype=torch.float64, generator=generator)
    trees = tx.Binary()(scores, lengths).mode
    states = layer(vectors, trees)
    sentences = layer.sentence(states, lengths)
    words = layer.words(states, trees)
    for b, n in enumerate(lengths.tolist()):
        around = torch.zeros(n, 4, dtype=torch.float64)
        for i, j in trees[b].nonzero().tolist():
            expected, _ = recursive(layer, vectors[b], trees[b], i, j)
            assert torch.allclose(states[b, i, j], expected)
            around[i : j + 1] += expected
        assert torch.equal(sentences[b], states[b, 0, n - 1])
        assert torch.allclose(words[b, :n], around)


def test_labels_and_what_is_refused():
    vectors = torch.zeros(2, 5, 8)
    latent = LatentTree(SpanScorer(8, 16, labels=3), tx.Labelled(tx.Binary()))
    assert latent(vectors).shape == (2, 5, 5, 3)
    assert latent.eval()(vectors).unique().tolist() == [0, 1]
    with pytest.raises(InputError, match=r"scores has shape \(2, 5, 5\).*n, n, labels"):
        LatentTree(SpanScorer(8, 16), tx.Labelled(tx.Binary()))(vectors)
    with pytest.raises(InputError, match=r"tree has shape \(2, 4, 4\)"):
        BinaryTreeLSTM(8, 4)(vectors, torch.zeros(2, 4, 4))
    with pytest.raises(InputError, match="labels is 0"):
        SpanScorer(8, 16, labels=0)
