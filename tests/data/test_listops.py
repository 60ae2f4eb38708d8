"""ListOps expressions: values, trees, files, tensors and statistics."""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
import torch
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
    parse_expression,
    read_listops,
    write_listops,
)
from treelax.errors import DataError, InputError
from treelax.trees import is_projective, is_tree

SAMPLE = Path(__file__).parent / "listops_sample.tsv"  # twelve lines of the original test set
FLAT = parse_expression("[MAX 2 9 ]")
NESTED = parse_expression("[SM 1 [MIN 4 7 ] 0 ]")


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    """Any expression, of shapes the generator never makes too."""
    digit = st.sampled_from(DIGITS).map(lambda token: [token])
    tokens = draw(
        st.recursive(
            digit,
            lambda inner: st.builds(
                lambda operator, arguments: [operator, *chain(*arguments), CLOSE],
                st.sampled_from(OPERATORS),
                st.lists(inner, min_size=1, max_size=6),
            ),
            max_leaves=15,
        )
    )
    return Expression(tuple(tokens))


def written(folder: Path, text: str, name: str = "file.tsv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_an_expression_by_hand() -> None:
    expression = parse_expression("[MAX 2 9 [MIN 4 7 [SM 5 8 3 ] ] 0 ]")
    #                       tokens:  1   2 3  4   5 6  7  8 9 10 11 12 13 14
    assert expression.heads == (0, 1, 1, 1, 4, 4, 4, 7, 7, 7, 7, 4, 1, 1)
    assert expression.valencies == (4, 0, 0, 3, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0)
    assert (expression.depth, len(expression)) == (3, 14)
    assert expression.kinds[2:5] == ("argument", "operator", "argument")
    assert expression.kinds[-2:] == ("argument", "bracket")
    assert (expression.evaluate(), expression.value) == (9, None)
    assert expression.bracketed() == (
        "( ( ( ( ( [MAX 2 ) 9 ) ( ( ( ( [MIN 4 ) 7 ) ( ( ( ( [SM 5 ) 8 ) 3 ) ] ) ) ] ) ) 0 ) ] )"
    )
    digit = parse_expression("7")
    assert (digit.heads, digit.valencies, digit.kinds) == ((0,), (0,), ("argument",))
    assert (digit.depth, digit.evaluate(), digit.bracketed()) == (0, 7, "7")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[MIN 4 2 8 ]", 2),
        ("[MAX 4 2 8 ]", 8),
        ("[MED 9 0 2 6 1 ]", 2),
        ("[MED 2 7 ]", 4),  # 4.5, rounded down
        ("[MED 9 1 3 9 ]", 6),
        ("[SM 5 9 3 9 ]", 6),
        ("[MIN [SM 5 8 ] [MAX 9 [MED 1 2 ] ] ]", 3),
        ("[MED 3 ]", 3),
    ],
)
def test_values(text: str, value: int) -> None:
    assert parse_expression(text).evaluate() == value


@settings(max_examples=30)
@given(expressions())
def test_trees_and_written_forms(expression: Expression) -> None:
    assert parse_expression(str(expression)) == expression
    assert parse_expression(expression.bracketed()) == expression
    assert parse_expression("\t" + str(expression).replace(" ", "  ")) == expression
    heads = torch.tensor(expression.heads)
    assert is_tree(heads, single_root=True)
    assert is_projective(heads)
    children, depths = Counter(expression.heads), [0]
    for place, (kind, valency) in enumerate(
        zip(expression.kinds, expression.valencies, strict=True), 1
    ):
        assert valency == (children[place] - 1 if kind == "operator" else 0)
        assert kind == "operator" or not children[place]
        depths.append(depths[expression.heads[place - 1]] + (kind == "operator"))
    assert expression.depth == max(depths)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("8\t[MAX 2 9 ]", "received the value '8'; expected 9, the right one"),
        ("9\t9\t[MAX 2 9 ]", r"token 2: received \[MAX after the end"),
        ("9\t", "token 1: received the end; expected a whole expression such as"),
        ("[MAX 2 x ]", r"token 3: received 'x'; expected one of \[MIN \[MAX .* 9$"),
        ("[MAX 2 9", "token 4: received the end"),
        ("[MAX 2 9 ] 3", "token 5: received 3 after the end; expected one expression"),
        ("]", r"token 1: received \]; expected an argument before it"),
        ("[MAX 1 [MIN ] ]", r"token 4: received \]; expected an argument before it"),
        ("( ( ( [MAX 2 ) 10 ) ] )", "token 3: received '10'"),
    ],
)
def test_what_is_no_expression(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=f"file.tsv, line 2: {message}"):
        read_listops(written(tmp_path, f"9\t[MAX 2 9 ]\n{text}\n[MIN 3 4 ]\n"))


# ------------------------------------------------------------------ files


def test_original_files_are_read_and_written_back(tmp_path: Path) -> None:
    sample = read_listops(SAMPLE)
    assert len(sample) == 12
    assert str(sample[1]) == "[MAX 1 5 [MIN 9 2 5 ] ]"
    assert [e.value for e in sample] == [0, 5, 1, 3, 6, 8, 8, 1, 0, 5, 9, 7]
    path = tmp_path / "copy.tsv"
    assert write_listops(path, iter(sample)) == 12
    assert path.read_bytes() == SAMPLE.read_bytes()


def test_simpler_formats(tmp_path: Path) -> None:
    text = "9\t[MAX 2 9 ]\r\n\n[SM 1 [MIN 4 7 ] 0 ]\n 9 \t ( ( (\t[MAX\t2 ) 9 ) ] )\n7\t7\n"
    found = read_listops(written(tmp_path, text))
    assert found == [FLAT, NESTED, FLAT]  # a lone digit has nothing to tag
    assert [e.value for e in found] == [9, None, 9]
    path = written(tmp_path, f"{FLAT.bracketed()}\n{NESTED.bracketed()}\n")
    assert read_listops(path, max_length=4) == [FLAT]
    assert read_listops(path, min_length=5, max_length=8) == [NESTED]
    for file, options, message in (
        (
            path,
            {"min_length": 5, "max_length": 7},
            "file.tsv: none of 2 expressions has 5 to 7 tok",
        ),
        (
            written(tmp_path, "\n \n", "empty.tsv"),
            {"min_length": 9},
            "none of 0 .* 9 to any tokens",
        ),
        (tmp_path / "nowhere", {}, "nowhere: does not exist; expected a ListOps file"),
    ):
        with pytest.raises(DataError, match=message):
            read_listops(file, **options)


# ------------------------------------------------------------------ tensors and statistics


def test_tensors_and_statistics_by_hand() -> None:
    data = encode_listops(iter([FLAT, NESTED]))
    assert data.tokens.tolist() == [[2, 8, 15, 5, 0, 0, 0, 0], [4, 7, 1, 10, 13, 5, 6, 5]]
    assert data.lengths.tolist() == [4, 8]
    assert data.heads.tolist() == [[0, 1, 1, 1, -1, -1, -1, -1], [0, 1, 1, 3, 3, 3, 1, 1]]
    assert data.tags.tolist() == [[2, 0, 0, 0, -1, -1, -1, -1], [3, 0, 2, 0, 0, 0, 0, 0]]
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


# ------------------------------------------------------------------ random expressions


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
    assert batch.tokens.dtype == batch.heads.dtype == batch.tags.dtype == torch.int64
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
