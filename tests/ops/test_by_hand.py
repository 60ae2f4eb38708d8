"""Beside the list of all trees: an example by hand, trees of networkx, a device without values."""

import itertools
import math

import networkx
import oracle
import pytest
import torch
from matrix import event, seeded

import treelax as tx

both_roots = pytest.mark.parametrize("single_root", [False, True])


@pytest.mark.parametrize(
    ("heads", "tree", "projective"),
    [
        ((2, 0, 2), True, True),
        ((2, 1, 0), False, False),  # a cycle 1 → 2 → 1, spanned by the arc to 3
        ((1,), False, True),  # its own head
        ((3, 0, 2), True, False),  # 3 → 1 spans 2, the head of 3
        ((0, 4, 4, 0), True, True),
        ((0, 4, 0, 3), True, False),  # 4 → 2 spans 3, the head of 4
        ((3, 0, 0), True, False),  # 3 → 1 spans 2, which hangs off the root
    ],
)
def test_definitions(heads, tree, projective):
    assert oracle.is_tree(heads) is tree
    assert oracle.is_projective(heads) is projective


@pytest.mark.parametrize("structure", [tx.Projective(), tx.NonProjective()], ids=str)
def test_two_words(structure):
    """The third word is padding, which is not read."""
    scores = torch.full((4, 4), torch.nan)
    scores[0, 1], scores[0, 2], scores[1, 2], scores[2, 1] = 1.0, 2.0, 3.0, 4.0
    weights = [math.exp(1 + 2), math.exp(1 + 3), math.exp(4 + 2)]
    total = sum(weights)
    for backend in ("reference", "diagonal", "native"):
        trees = structure(scores, torch.tensor(2), backend=backend)
        assert trees.log_partition.item() == pytest.approx(math.log(total))
        assert trees.marginals[0, 1].item() == pytest.approx((weights[0] + weights[1]) / total)
        assert trees.marginals[2, 1].item() == pytest.approx(weights[2] / total)
        assert trees.mode.nonzero().tolist() == [[0, 2], [2, 1]]


@both_roots
def test_best_trees_of_networkx(single_root):
    n, structure = 12, tx.NonProjective(single_root)
    scores = torch.randint(-20, 21, (8, n + 1, n + 1), generator=seeded()).double()
    expected = []
    for weights in scores.long().tolist():
        graph = networkx.DiGraph()
        for h, m in itertools.permutations(range(n + 1), 2):
            if m:  # a thousand is more than any tree makes up for
                graph.add_edge(h, m, weight=weights[h][m] - 1000 * (single_root and h == 0))
        best = networkx.maximum_spanning_arborescence(graph)
        expected.append(sum(weights[h][m] for h, m in best.edges))
    for backend in ("reference", "diagonal", "native"):
        best = structure.argmax(scores, backend=backend)
        assert structure.contains(best, torch.full((8,), n)).all()
        assert (best * scores).sum((1, 2)).tolist() == expected


@both_roots
def test_no_value_is_read_off_the_cpu(single_root):
    """A GPU would wait for it; the meta device, which has no values, raises."""
    structure = tx.NonProjective(single_root)
    scores = torch.empty(3, *event(structure, 3), device="meta", requires_grad=True)
    lengths = torch.empty(3, dtype=torch.int64, device="meta")
    options = {"backend": "diagonal", "validate": False}
    relaxation = structure.relaxations[0]
    tree = structure.relaxed(scores, lengths, relaxation=relaxation, **options)
    marginals, value = structure.marginals(scores, lengths, **options)
    (grad,) = torch.autograd.grad((tree.sum(), value.sum()), scores)
    best = structure.argmax(scores, lengths, **options)
    sample = structure.sample(scores, lengths, sample_shape=(2,), **options)
    assert tree.shape == marginals.shape == grad.shape == best.shape == scores.shape
    assert sample.shape == (2, *scores.shape)
    assert value.shape == structure.log_partition(scores, lengths, **options).shape == (3,)
