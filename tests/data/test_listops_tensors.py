"""ListOps expressions as tensors, and their statistics."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from listops_expressions import FLAT, NESTED, expressions

from treelax.data.listops import (
    VOCABULARY,
    Expression,
    baseline_heads,
    encode_listops,
    listops_statistics,
    parse_expression,
)
from treelax.errors import InputError

# ------------------------------------------------------------------ tensors


def test_tensors_by_hand() -> None:
    data = encode_listops(iter([FLAT, NESTED]))
    assert len(data) == 2
    assert data.tokens.tolist() == [[2, 8, 15, 5, 0, 0, 0, 0], [4, 7, 1, 10, 13, 5, 6, 5]]
    assert data.lengths.tolist() == [4, 8]
    assert data.heads.tolist() == [[0, 1, 1, 1, -1, -1, -1, -1], [0, 1, 1, 3, 3, 3, 1, 1]]
    assert data.tags.tolist() == [[2, 0, 0, 0, -1, -1, -1, -1], [3, 0, 2, 0, 0, 0, 0, 0]]
    for tensor in (data.tokens, data.lengths, data.heads, data.tags):
        assert tensor.dtype == torch.int64


def test_no_expressions() -> None:
    data = encode_listops([])
    assert len(data) == 0
    assert data.tokens.shape == data.heads.shape == data.tags.shape == (0, 0)
    assert data.lengths.dtype == data.tokens.dtype == torch.int64
    assert len(data.select([])) == 0


@given(st.lists(expressions(), min_size=1, max_size=5))
def test_tensors_hold_what_expressions_say(batch: list[Expression]) -> None:
    data = encode_listops(batch)
    for i, expression in enumerate(batch):
        n = len(expression)
        assert tuple(VOCABULARY[t - 1] for t in data.tokens[i, :n]) == expression.tokens
        assert tuple(data.heads[i, :n].tolist()) == expression.heads
        assert tuple(data.tags[i, :n].tolist()) == expression.valencies
        assert (data.tokens[i, n:] == 0).all()
        assert (data.heads[i, n:] == -1).all()
        assert (data.tags[i, n:] == -1).all()


@pytest.mark.parametrize("kind", [list, torch.tensor])
def test_selected_expressions(kind: type) -> None:
    data = encode_listops([NESTED, FLAT, FLAT])
    both = data.select(kind([1, 0]))
    again = encode_listops([FLAT, NESTED])
    for name in ("tokens", "lengths", "heads", "tags"):
        assert torch.equal(getattr(both, name), getattr(again, name))
    short = data.select(kind([2, 1]))
    assert short.tokens.shape == short.heads.shape == short.tags.shape == (2, 4)
    empty = data.select(kind([]))
    assert (len(empty), empty.tokens.shape) == (0, (0, 0))


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([0, 2], "indices: received 0 to 2; expected 0 to 1"),
        ([-1], "indices: received -1 to -1"),
        ([0.5], r"indices: received torch.float32 of shape \(1,\); expected integers"),
        ([True, False], r"indices: received torch.bool of shape \(2,\)"),
        ([[0, 1]], r"of shape \(1, 2\)"),
        (torch.tensor(0), r"of shape \(\)"),
    ],
)
def test_indices_are_checked(indices: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        encode_listops([FLAT, NESTED]).select(indices)


def test_tensors_move_together() -> None:
    moved = encode_listops([FLAT]).to("meta")
    names = ("tokens", "lengths", "heads", "tags")
    assert {getattr(moved, name).device.type for name in names} == {"meta"}


# ------------------------------------------------------------------ statistics


def test_baselines_by_hand() -> None:
    assert baseline_heads(NESTED, "previous") == (0, 1, 2, 3, 4, 5, 6, 7)
    assert baseline_heads(NESTED, "operator") == (0, 1, 1, 3, 3, 3, 3, 3)
    assert baseline_heads(parse_expression("7"), "operator") == (0,)
    with pytest.raises(InputError, match="baseline: received 'next'; expected previous or"):
        baseline_heads(FLAT, "next")  # type: ignore[arg-type]


def test_statistics_by_hand() -> None:
    figures = listops_statistics(iter([NESTED, FLAT]))
    assert figures == {
        "sentences": 2,
        "tokens": 12,
        "length_mean": 6.0,
        "length_median": 6.0,
        "length_quantiles": {5: 4, 10: 4, 25: 4, 50: 4, 75: 8, 90: 8, 95: 8},
        "length_max": 8,
        "depth_mean": 1.5,
        "depth_max": 2,
        "operator_share": 25.0,
        "operators": {"[MIN": 1, "[MAX": 1, "[MED": 0, "[SM": 1},
        "valencies": {2: 2, 3: 1},
        "values": {5: 1, 9: 1},
        "attachment_previous": 100 * 5 / 12,
        "attachment_operator": 100 * 10 / 12,
    }
    assert json.loads(json.dumps(figures))["tokens"] == 12


def test_statistics_of_nothing() -> None:
    with pytest.raises(InputError, match="expressions: received none; expected at least one"):
        listops_statistics([])
