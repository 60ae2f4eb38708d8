"""Soft trees as text."""

from __future__ import annotations

import re

import pytest
import torch
from drawings import FOX
from hypothesis import given
from hypothesis import strategies as st

import treelax as tx
from treelax.errors import InputError
from treelax.pictures import list_weights
from treelax.pictures.characters import columns

WEIGHTS = [[0, 0.25, 0.04], [0, 0, 0.96], [0, 0.75, 0]]


def test_the_heaviest_first_and_no_light_ones() -> None:
    assert list_weights(["Dogs", "b"], WEIGHTS, width=60).splitlines() == [
        "1 Dogs  b (2) 0.75  root (0) 0.25",
        "2 b     Dogs (1) 0.96",
    ]
    assert "root (0) 0.04" in list_weights(["Dogs", "b"], WEIGHTS, width=60, least=0.01)


def test_a_word_always_has_a_head() -> None:
    even = torch.full((10, 10), 0.01)
    lines = list_weights(FOX, even, width=60).splitlines()
    assert [len(re.findall(r"\d\.\d\d", line)) for line in lines] == [1] * 9


def test_ascii() -> None:
    assert list_weights(["été", "b"], WEIGHTS, width=60, ascii=True).startswith("1 \\xe9t\\xe9  b")


@given(
    st.lists(st.text(max_size=30), min_size=1, max_size=8), st.integers(1, 60), st.integers(0, 9)
)
def test_it_fits(words: list[str], width: int, seed: int) -> None:
    scores = torch.randn(len(words) + 1, len(words) + 1, generator=_generator(seed))
    lines = list_weights(words, tx.ops.soft_tree(scores), width=width).splitlines()
    assert len(lines) == len(words)
    assert max(map(columns, lines)) <= width


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("weights", "least", "message"),
    [
        (torch.zeros(2, 2), 0.05, r"expected \(3, 3\)"),
        (torch.full((3, 3), torch.nan), 0.05, "nan"),
        (torch.zeros(3, 3), 2, "least: received 2"),
    ],
)
def test_wrong_arguments(weights: torch.Tensor, least: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list_weights(["a", "b"], weights, least=least)
