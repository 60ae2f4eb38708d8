"""Heads, tree tensors, is-tree and is-projective, against the naive definitions of the oracle."""

from __future__ import annotations

from collections.abc import Callable

import oracle
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from treelax.errors import InputError
from treelax.trees import heads_to_tree, is_projective, is_tree, tree_to_heads

PADDING = -7

Ragged = list[list[int]]


@st.composite
def ragged_heads(draw: st.DrawFn, low: int = 0, high: int = 0) -> Ragged:
    """Head vectors of up to six words, none its own head, in range by default."""

    def heads_of(n: int) -> st.SearchStrategy[list[int]]:
        return st.tuples(
            *(st.integers(low, n + high).filter(lambda h, m=m: h != m) for m in range(1, n + 1))
        ).map(list)

    return draw(st.lists(st.integers(1, 6).flatmap(heads_of), min_size=1, max_size=5))


def tree_like_heads() -> st.SearchStrategy[Ragged]:
    """Random heads are seldom trees, so half of the vectors are drawn from the list of trees with
    one head changed."""

    def nearly(drawn: tuple[int, int, int, int]) -> list[int]:
        n, which, word, head = drawn
        trees = oracle.all_trees(n)
        heads: list[int] = trees[which % len(trees)].tolist()
        heads[word % n] = head % (n + 1)
        return heads

    one = st.tuples(*(st.integers(1, high) for high in (5, 273, 5, 6))).map(nearly)
    return st.lists(one, min_size=1, max_size=5)


def batch_of(ragged: Ragged, padding: int = PADDING) -> tuple[Tensor, Tensor]:
    n = max(map(len, ragged))
    heads = torch.tensor([heads + [padding] * (n - len(heads)) for heads in ragged])
    return heads, torch.tensor([len(heads) for heads in ragged])


@settings(max_examples=50)
@given(ragged_heads())
def test_heads_to_tree_and_back(ragged: Ragged) -> None:
    heads, lengths = batch_of(ragged)
    tree = heads_to_tree(heads, lengths)
    assert tree.sum((-1, -2)).tolist() == lengths.tolist()
    assert torch.equal(tree_to_heads(tree, lengths, padding=PADDING), heads)
    for one, words in zip(tree, ragged, strict=True):
        assert all(one[head, modifier] == 1 for modifier, head in enumerate(words, 1))


@settings(max_examples=50)
@given(st.one_of(ragged_heads(-1, 1), tree_like_heads()), st.sampled_from([-1, 0, 1, 3, 99]))
def test_is_tree_agrees_with_the_naive_definition(ragged: Ragged, padding: int) -> None:
    batch = batch_of(ragged, padding)
    assert is_tree(*batch).tolist() == [oracle.is_tree(heads) for heads in ragged]
    single = is_tree(*batch, single_root=True)
    assert single.tolist() == [oracle.is_tree(heads, single_root=True) for heads in ragged]


@settings(max_examples=50)
@given(st.one_of(ragged_heads(), tree_like_heads()), st.sampled_from([-1, 0, 1, 3, 99]))
def test_is_projective_agrees_with_the_naive_definition(ragged: Ragged, padding: int) -> None:
    batch = batch_of(ragged, padding)
    for heads, tree, projective in zip(
        ragged, is_tree(*batch).tolist(), is_projective(*batch).tolist(), strict=True
    ):
        if tree:
            assert projective == oracle.is_projective(heads)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("single_root", [False, True])
def test_all_heads_up_to_five_words(n: int, single_root: bool) -> None:
    heads = torch.cartesian_prod(*[torch.arange(n + 1)] * n).reshape(-1, n)
    kept = heads[is_tree(heads, single_root=single_root) & is_projective(heads)]
    assert torch.equal(kept, oracle.all_trees(n, single_root))


def test_cycles_of_every_size_are_found() -> None:
    n = 33
    chain = torch.arange(n)  # word m hangs off m - 1: a path of n steps, the longest there is
    assert is_tree(chain)
    for last in range(2, n + 1):
        cycle = chain.clone()
        cycle[0] = last
        assert not is_tree(cycle)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.uint16])
def test_types_and_batch_shapes(dtype: torch.dtype) -> None:
    for batch in ((), (2, 0, 3)):
        tree = heads_to_tree(torch.tensor([2, 0, 2, 7]).expand(*batch, 4), torch.full(batch, 3))
        back = tree_to_heads(tree, torch.full(batch, 3))
        assert torch.equal(back, torch.tensor([2, 0, 2, -1]).expand(*batch, 4))
    for kind in (torch.float64, torch.float16, torch.int64, torch.bool):
        tree = heads_to_tree(torch.tensor([2, 0]), dtype=kind)
        assert tree.dtype == kind
        assert tree_to_heads(tree).tolist() == [2, 0]
    heads = torch.tensor([[2, 0, 9], [0, 1, 2]], dtype=dtype)
    lengths = torch.tensor([2, 3], dtype=dtype)
    assert tree_to_heads(heads_to_tree(heads, lengths), lengths).tolist() == [[2, 0, -1], [0, 1, 2]]
    assert is_tree(heads, lengths).tolist() == [True, True]
    assert is_projective(heads, lengths).tolist() == [True, True]


def tree_with(head: int, modifier: int, weight: float) -> Tensor:
    tree = heads_to_tree(torch.tensor([[2, 0], [2, 0]]))
    tree[1, head, modifier] = weight
    return tree


HEADS = torch.tensor([[2, 0], [0, 1]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: heads_to_tree(torch.tensor([[0, 1], [0, 3]])), "sentence 1, word 2: head 3; .*2"),
        (lambda: heads_to_tree(torch.tensor([[[0, 1]], [[-1, 1]]])), r"\(1, 0\), word 1: head -1"),
        (lambda: heads_to_tree(torch.tensor([[3, 0, 0]]), torch.tensor([2])), "head 3; .* 0 to 2"),
        (lambda: heads_to_tree(torch.zeros(2, 3)), "torch.float32; .*integer"),
        (lambda: is_tree(torch.tensor(1)), r"shape \(\); expected \(..., n\)"),
        (lambda: tree_to_heads(tree_with(0, 2, 0.5)), r"1, word 2: heads and weights \{0: 0.5\}"),
        (lambda: tree_to_heads(tree_with(2, 1, torch.nan)), "word 1: heads have weight nan; exp"),
        (lambda: tree_to_heads(torch.full((3, 3), 0.5)), r"best_tree.*\.eval\(\)"),
        (lambda: tree_to_heads(torch.zeros(0, 0)), r"shape \(0, 0\)"),
        (lambda: is_tree(HEADS, torch.tensor([2.0, 2.0])), "lengths has dtype torch.float32"),
        (lambda: is_projective(HEADS, torch.tensor(2)), r"lengths has shape \(\); expected \(2,\)"),
        (lambda: heads_to_tree(HEADS, torch.tensor([3, 2])), r"lengths\[0\].* is 3; expected 0 to"),
        (lambda: is_tree(HEADS, torch.tensor([2, 2], device="meta")), "on meta; expected cpu"),
    ],
)
def test_what_is_refused(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_what_is_no_tree_but_no_error() -> None:
    assert is_tree(torch.tensor([[1, 0], [0, 2], [0, 1]])).tolist() == [False, False, True]
    assert not is_tree(torch.tensor([[3, 0, 0]]), torch.tensor([2]))  # a head in the padding


def test_weights_in_the_padding_are_ignored() -> None:
    tree = heads_to_tree(torch.tensor([[2, 0, -1]]), torch.tensor([2]))
    tree[:, 3, :] = float("nan")
    tree[:, :, 3] = 0.5
    assert tree_to_heads(tree, torch.tensor([2])).tolist() == [[2, 0, -1]]
