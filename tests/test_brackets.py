"""Binary trees as brackets and back, and masks of what is known, against all trees."""

from __future__ import annotations

import re
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from nltk import Tree

import treelax as tx
from treelax.errors import BackendError, InputError
from treelax.trees import (
    brackets,
    constrain,
    from_nltk,
    read_brackets,
    spans_to_tensor,
    to_nltk,
)

PTB = "(S (NP-SBJ (DT The) (JJ big) (NN cat)) (VP (VBD sat) (ADVP (RB down))) (. .))"
NAMES = ["S", "NP", "VP", "X"]


def labelled(tree: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """A tree with a label on each span."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(len(NAMES), tree.shape, generator=generator)
    return torch.nn.functional.one_hot(drawn, len(NAMES)) * tree[..., None].long()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_every_tree_can_be_read_back(n: int) -> None:
    words = [f"w{m}" for m in range(n)]
    trees = tx.Binary().enumerate(n)
    lines = [brackets(tree, words) for tree in trees]
    assert len({*lines}) == len(trees)
    for tree, line in zip(trees, lines, strict=True):
        found, spans = read_brackets(line)
        assert found == words
        assert torch.equal(spans_to_tensor(spans, n, dtype=tree.dtype), tree)
        with_labels = labelled(tree)
        found, spans = read_brackets(brackets(with_labels, words, NAMES), labelled=True)
        assert found == words
        assert len(spans) == 2 * n - 1
        assert all(with_labels[i, j, NAMES.index(label or "")] for i, j, label in spans)
        there = to_nltk(with_labels, words, NAMES)
        assert there == Tree.fromstring(brackets(with_labels, words, NAMES))
        assert from_nltk(there) == (words, spans)
        assert from_nltk(to_nltk(tree, words)) == read_brackets(line)


def test_trees_of_any_type_and_without_words() -> None:
    trees = tx.Binary().enumerate(3)
    assert [brackets(tree) for tree in trees] == ["(0 (1 2))", "((0 1) 2)"]
    for dtype in (torch.bool, torch.uint8, torch.bfloat16):
        assert brackets(trees[0].to(dtype)) == "(0 (1 2))"
        assert brackets(labelled(trees[0]).to(dtype)) == brackets(labelled(trees[0]))
    assert brackets(trees[0].float().requires_grad_()) == "(0 (1 2))"
    assert brackets(torch.ones(2, 2).triu(), ["(", "a)b"]) == "(-LRB- a-RRB-b)"


def test_a_line_of_the_treebank() -> None:
    words, spans = read_brackets(f"( {PTB})")
    assert words == ["The", "big", "cat", "sat", "down", "."]
    assert spans[:2] == [(0, 5, "S"), (0, 2, "NP-SBJ")]
    assert spans[-3:] == [(4, 4, "ADVP"), (4, 4, "RB"), (5, 5, ".")]  # a unary chain
    known = spans_to_tensor(spans, 6)
    assert known.nonzero().tolist() == sorted([i, j] for i, j in {span[:2] for span in spans})
    assert read_brackets(PTB.replace(" ", "\n  ")) == (words, spans)
    assert read_brackets("(NP (-LRB- -LRB-) (CD 2\u00a01/2))")[0] == ["-LRB-", "2\u00a01/2"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("(a (b c))", "a b c"),  # all pairs: a plain tree
        ("((a b) (c d e))", "a b c d e"),  # three words cannot follow a label alone
        ("(3 (2 It) (4 works))", "It works"),
        ("((UH Yes))", "Yes"),
        ("(a)", "a"),
    ],
)
def test_whether_a_line_has_labels(line: str, words: str) -> None:
    assert read_brackets(line)[0] == words.split()
    labels = [label for _, _, label in read_brackets(line)[1]]
    assert all(labels) or not any(labels)


def test_what_is_said_of_labels_goes() -> None:
    assert read_brackets("(S (UH Yes))", labelled=True) == (["Yes"], [(0, 0, "S"), (0, 0, "UH")])
    assert read_brackets("(S (UH Yes))") == (["S", "UH", "Yes"], [(0, 2, None), (1, 2, None)])
    assert read_brackets("(a (b c) (d e))", labelled=False)[0] == list("abcde")


def test_without_nltk(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = to_nltk(torch.eye(1))
    monkeypatch.setitem(sys.modules, "nltk", None)
    assert from_nltk(tree) == (["0"], [(0, 0, None)])
    with pytest.raises(BackendError, match=r'pip install "treelax\[data\]"'):
        to_nltk(torch.eye(1))


def test_deep_trees() -> None:
    n = 1500  # beyond the limit of recursion
    tree = torch.eye(n)
    tree[:, -1] = 1
    words, spans = read_brackets(brackets(tree))
    assert len(words) == n
    assert torch.equal(spans_to_tensor(spans, n), tree)
    assert from_nltk(to_nltk(tree)) == (words, spans)


@given(st.text(alphabet="() ab", max_size=12))
def test_any_line_is_read_or_refused(line: str) -> None:
    for labels in (None, True, False):
        try:
            words, spans = read_brackets(line, labelled=labels)
        except InputError:
            continue
        assert words
        constrain(spans=spans_to_tensor(spans, len(words)))  # raises where they cross


@pytest.mark.parametrize("structure", [tx.Projective(), tx.NonProjective(), tx.Heads()])
def test_known_heads_leave_the_trees_that_have_them(structure: tx.structures.Structure) -> None:
    heads = torch.tensor([[2, -1, -1], [-1, -1, -1], [-1, 0, 2]])
    mask = constrain(heads=heads, dtype=torch.float64)
    assert mask.shape == (3, 4, 4)
    assert mask.dtype == torch.float64
    trees = structure.enumerate(3)
    for own, known in zip(mask, heads, strict=True):
        has = [trees[:, h, m] == 1 for m, h in enumerate(known.tolist(), 1) if h != -1]
        kept = torch.stack([torch.ones(len(trees), dtype=torch.bool), *has]).all(0)
        allowed = (trees * own.nan_to_num(neginf=1)).sum((1, 2)) == 0
        assert torch.equal(allowed, kept)


def test_known_spans_leave_the_trees_that_have_them() -> None:
    trees = tx.Binary().enumerate(5)
    for known in ([(1, 3)], [(0, 1), (2, 4)], [(0, 3), (1, 3), (1, 2)], []):
        mask = constrain(spans=spans_to_tensor(known, 5).expand(2, 5, 5))
        assert torch.equal(mask[0], mask[1])
        assert not mask.tril(-1).any()
        kept = torch.stack([trees[:, i, j] == 1 for i, j in [(0, 4), *known]]).all(0)
        allowed = (trees * mask[0].nan_to_num(neginf=1)).sum((1, 2)) == 0
        assert torch.equal(allowed, kept)


HALF = torch.ones(2, 2).triu() / 2
CROSSING = spans_to_tensor([(0, 1), (1, 2)], 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: brackets(HALF), "tree[0, 0] is 0.5; expected 0 or 1"),
        (lambda: brackets(torch.ones(2, 2, 2)), "tree[0, 0] is 2; expected 0 or 1"),
        (lambda: brackets(torch.ones(2, 2)), "tree[1, 0] is 1; expected spans (i, j) with i <= j"),
        (lambda: brackets(CROSSING), "tree holds (0, 1) and (1, 2); expected spans that do not"),
        (lambda: brackets(torch.eye(3)), "tree has 3 spans; expected 5, a binary tree over 3"),
        (lambda: brackets(torch.zeros(2, 3)), "tree has shape (2, 3); expected one tree (n, n)"),
        (lambda: brackets(torch.eye(1), ["a", "b"]), "expected a list of 1 words"),
        (lambda: brackets(torch.eye(1), ["a b"]), "words holds 'a b'; expected no white space"),
        (lambda: brackets(torch.eye(1), labels=["a"]), "labels has 1 names; expected None"),
        (lambda: read_brackets("((a b)"), "line is '((a b)', with 1 bracket left open"),
        (lambda: read_brackets("(a) (b)"), "line is '(a) (b)'; expected one tree"),
        (lambda: read_brackets("(a ())"), "expected a word in every bracket"),
        (lambda: spans_to_tensor([(1, 3)], 3), "spans holds (1, 3); expected 0 <= i <= j < 3"),
        (lambda: from_nltk(Tree("NP", [])), "a node 'NP' without words"),
        (lambda: from_nltk("(a b)"), "tree holds a str; expected nltk.Tree"),
        (lambda: constrain(), "neither given; expected one of the two"),
        (lambda: constrain(heads=torch.tensor([[0, 4]])), "heads[0, 1] is 4; expected -1"),
        (
            lambda: constrain(heads=torch.tensor([1, 0])),
            "heads[0] is 1; expected -1 (unknown) to 2",
        ),
        (lambda: constrain(heads=torch.tensor([0]), dtype=torch.int64), "dtype is torch.int64"),
        (lambda: constrain(spans=CROSSING.expand(2, 3, 3)), "spans[0] holds (0, 1) and (1, 2)"),
        (lambda: constrain(spans=torch.ones(3)), "spans has shape (3,); expected a tensor"),
    ],
)
def test_what_is_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=re.escape(message)):
        call()
