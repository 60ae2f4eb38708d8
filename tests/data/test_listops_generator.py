"""Random ListOps expressions: their rules, their distribution, disjoint splits."""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treelax.apps.data.listops import (
    CLOSE,
    DIGITS,
    OPERATORS,
    Expression,
    encode_listops,
    generate_listops,
    generate_splits,
    listops_statistics,
)
from treelax.errors import InputError
from treelax.trees import is_projective, is_tree


@settings(max_examples=20)
@given(st.integers(), st.sampled_from(["original", "paulus"]))
def test_random_expressions_keep_their_rules(seed: int, variant: str) -> None:
    drawn = generate_listops(20, variant=variant, seed=seed)  # type: ignore[arg-type]
    assert len(set(drawn)) == len(drawn) == 20
    for expression in drawn:
        assert expression.value == expression.evaluate()
        assert {v for v in expression.valencies if v} <= {2, 3, 4, 5}
        if variant == "original":
            assert len(expression) >= 4
            assert expression.depth <= 19
        else:
            assert 10 <= len(expression) <= 50
            assert expression.depth <= 5
            assert "[SM" not in expression.tokens
    batch = encode_listops(drawn)
    assert is_tree(batch.heads, batch.lengths, single_root=True).all()
    assert is_projective(batch.heads, batch.lengths).all()


def test_the_seed_decides() -> None:
    first = generate_listops(30, seed=5)
    assert generate_listops(30, seed=5) == first
    assert not set(generate_listops(30, seed=6, min_length=12)) & set(first)
    # in every version of Python: only then can a run be repeated from its seed
    assert [str(e) for e in generate_listops(2, seed=1, min_length=9, max_length=12)] == [
        "[MED [MED 2 7 2 3 ] 3 ]",
        "[MED [SM 1 7 ] 3 5 5 ]",
    ]


def drawn_by_recursion(rng: random.Random, depth: int = 1) -> list[str]:
    """A node as the original authors describe it: greatest depth 20, operators one in four."""
    if depth == 20 or rng.random() >= 0.25:
        return [rng.choice(DIGITS)]
    arguments = [drawn_by_recursion(rng, depth + 1) for _ in range(rng.randint(2, 5))]
    return [rng.choice(OPERATORS), *chain(*arguments), CLOSE]


def test_the_distribution_is_that_of_the_definition() -> None:
    count, rng = 1500, random.Random(0)
    defined: set[Expression] = set()
    while len(defined) < count:
        tokens = drawn_by_recursion(rng)
        if len(tokens) > 1:
            defined.add(Expression(tuple(tokens)))
    drawn = generate_listops(count, seed=0)
    wanted, found = (Counter(map(len, e)) for e in (defined, drawn))
    for length in range(4, 20):
        assert found[length] / count == pytest.approx(wanted[length] / count, abs=0.03)
    expected, figures = listops_statistics(defined), listops_statistics(drawn)
    assert figures["depth_max"] == expected["depth_max"] == 19
    for name, tolerance in (("depth_mean", 0.4), ("length_mean", 9.0), ("operator_share", 0.3)):
        assert figures[name] == pytest.approx(expected[name], abs=tolerance)
    for counts in (figures["operators"], figures["valencies"]):
        shares = [number / sum(counts.values()) for number in counts.values()]
        assert shares == pytest.approx([0.25] * 4, abs=0.02)


def test_splits_are_disjoint_and_alike() -> None:
    sizes = {"train": 1000, "dev": 1, "test": 1000}
    splits = generate_splits(sizes, seed=3, max_length=6)
    assert {name: len(split) for name, split in splits.items()} == sizes
    assert len(set().union(*splits.values())) == 2001
    short = [sum(len(e) < 6 for e in splits[name]) for name in ("train", "test")]
    assert abs(short[0] - short[1]) < 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count is 0; expected at least 1"),
        ({"variant": "long"}, "variant is 'long'; expected one of 'original', 'paulus'"),
        ({"max_length": 3}, "max_length is 3; expected at least 4"),
        ({"variant": "paulus", "max_length": 9}, "max_length is 9; expected at least 10"),
        ({"count": 401, "max_length": 4}, r"count is 401; expected about \d+ or fewer expressions"),
    ],
)
def test_arguments_are_checked(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, object], message: str
) -> None:
    monkeypatch.setattr("treelax.apps.data.listops.PATIENCE", 100)
    with pytest.raises(InputError, match=message):
        generate_listops(**{"count": 1, "seed": 0, **arguments})  # type: ignore[arg-type]
