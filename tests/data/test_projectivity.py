"""The nearest projective tree, held against all of them."""

from itertools import product

import pytest
import torch

from treelax.apps.data.projectivity import nearest_projective
from treelax.errors import InputError
from treelax.trees import is_projective, is_tree


def all_heads(n):
    return [
        heads for heads in product(range(n + 1), repeat=n) if bool(is_tree(torch.tensor(heads)))
    ]


ALL = all_heads(4)
PROJECTIVE = [heads for heads in ALL if bool(is_projective(torch.tensor(heads)))]


def shared(one, other):
    return sum(a == b for a, b in zip(one, other, strict=True))


def test_no_projective_tree_shares_more_arcs():
    for heads in ALL:
        nearest = nearest_projective(heads)
        assert nearest in PROJECTIVE
        assert shared(nearest, heads) == max(shared(other, heads) for other in PROJECTIVE)


def test_a_word_is_lifted_no_higher_than_it_must_be():
    # 4 hangs off 1, across the arc from the root to 2: it could go to 2 or to the root
    assert nearest_projective([2, 0, 2, 1]) == (2, 0, 2, 2)


def test_a_single_root_stays_single():
    for heads in ALL:
        if heads.count(0) == 1:
            nearest = nearest_projective(heads, single_root=True)
            assert nearest in PROJECTIVE
            assert nearest.count(0) == 1


@pytest.mark.parametrize("heads", [[], [2, 1], [1], [0, 3]])
def test_what_is_no_tree_is_refused(heads):
    with pytest.raises(InputError, match="expected a tree"):
        nearest_projective(heads)
