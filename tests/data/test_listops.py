"""ListOps: expressions and their trees, files, random expressions, tensors, statistics."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from treelax.data.listops import (
    CLOSE,
    DIGITS,
    OPERATORS,
    TOKEN_IDS,
    VOCABULARY,
    Expression,
    baseline_heads,
    encode_listops,
    generate_listops,
    generate_splits,
    generator,
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


# ------------------------------------------------------------------ one expression


def test_vocabulary() -> None:
    assert " ".join(VOCABULARY) == "[MIN [MAX [MED [SM ] 0 1 2 3 4 5 6 7 8 9"
    assert sorted(TOKEN_IDS.values()) == list(range(1, 16))
    assert [VOCABULARY[TOKEN_IDS[token] - 1] for token in VOCABULARY] == list(VOCABULARY)


def test_an_expression_by_hand() -> None:
    expression = parse_expression("[MAX 2 9 [MIN 4 7 [SM 5 8 3 ] ] 0 ]")
    #                       tokens:  1   2 3  4   5 6  7  8 9 10 11 12 13 14
    assert expression.heads == (0, 1, 1, 1, 4, 4, 4, 7, 7, 7, 7, 4, 1, 1)
    assert expression.valencies == (4, 0, 0, 3, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0)
    assert expression.depth == 3
    assert len(expression) == 14
    assert Counter(expression.kinds) == {"argument": 8, "operator": 3, "bracket": 3}
    assert expression.kinds[3:5] == ("operator", "argument")
    assert expression.kinds[-2:] == ("argument", "bracket")
    assert expression.evaluate() == 9
    assert expression.value is None
    assert expression.bracketed() == (
        "( ( ( ( ( [MAX 2 ) 9 ) ( ( ( ( [MIN 4 ) 7 ) ( ( ( ( [SM 5 ) 8 ) 3 ) ] ) ) ] ) ) 0 ) ] )"
    )


def test_a_lone_digit() -> None:
    digit = parse_expression("7")
    assert (digit.heads, digit.valencies, digit.depth, digit.kinds) == (
        (0,),
        (0,),
        0,
        ("argument",),
    )
    assert (digit.evaluate(), digit.bracketed()) == (7, "7")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[MIN 4 2 8 ]", 2),
        ("[MAX 4 2 8 ]", 8),
        ("[MED 8 2 4 ]", 4),
        ("[MED 9 0 2 6 1 ]", 2),
        ("[MED 2 7 ]", 4),  # 4.5, rounded down
        ("[MED 9 1 3 9 ]", 6),
        ("[SM 5 9 3 9 ]", 6),
        ("[SM 5 5 ]", 0),
        ("[MIN [SM 5 8 ] [MAX 9 [MED 1 2 ] ] ]", 3),
        ("[MED 3 ]", 3),
    ],
)
def test_values(text: str, value: int) -> None:
    assert parse_expression(text).evaluate() == value


def test_expressions_are_equal_if_their_tokens_are() -> None:
    assert Expression(FLAT.tokens, 9) == FLAT != NESTED
    assert len({Expression(FLAT.tokens, 9), FLAT, NESTED}) == 2


def test_tokens_are_checked() -> None:
    with pytest.raises(InputError, match=r"tokens: token 2: received \] right after \[MAX"):
        Expression(("[MAX", "]"))
    with pytest.raises(InputError, match="tokens: token 1: received none"):
        Expression(())
    with pytest.raises(InputError, match=r"tokens: token 4: received the end while a list is open"):
        Expression(("[MAX", "1", "2"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"here: received ''; expected an expression such as \[MAX 2 9 \]"),
        (" \n", "here: received"),
        ("( )", r"here: received '\( \)'"),
        ("[MAX 2 x ]", r"here, token 3: received 'x'; expected one of \[MIN \[MAX .* 9$"),
        ("[SUM 2 3 ]", r"token 1: received '\[SUM'"),
        ("[MAX 2 10 ]", "token 3: received '10'"),
        ("[MAX2 3 ]", r"token 1: received '\[MAX2'"),
        ("[MAX 2 9", r"token 4: received the end while a list is open; expected \]"),
        ("[MAX 2 [MIN 3 4 ]", "token 7: received the end"),
        ("[MAX 2 9 ] 3", "token 5: received 3 after the end; expected one expression"),
        ("3 [MAX 2 9 ]", r"token 2: received \[MAX after the end"),
        ("[MAX 2 9 ] ]", r"token 5: received \] after the end"),
        ("]", r"token 1: received \] where no list is open"),
        ("[MAX ]", r"token 2: received \] right after \[MAX; expected at least one argument"),
        ("[MAX 1 [MIN ] ]", r"token 4: received \] right after \[MIN"),
        # the same with round brackets, which count
        ("( ( ( [MAX 2 ) x ) ] )", "token 7: received 'x'"),
        ("( ( ( [MAX 2 ) 9 )", "token 9: received the end while a list is open"),
        # round brackets that are not those of the binary form
        ("( ( ( [MAX 2 ) 9 ) ]", r"token 10: received the end; expected \), as binary brackets"),
        ("( ( ( [MAX 2 ) 9 ) ] ) )", r"token 11: received \); expected the end"),
        ("( ( [MAX 2 ) 9 ) ] )", r"token 3: received \[MAX; expected \("),
        ("( ( ( ( [MAX 2 ) 9 ) ] )", r"token 4: received \(; expected \[MAX"),
        ("( [MAX ( 2 9 ) ] )", r"token 2: received \[MAX; expected \("),
        ("( 7 )", r"token 1: received \(; expected 7"),
    ],
)
def test_what_is_no_expression(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        parse_expression(text, "here")
    assert str(caught.value).startswith("here")
    assert "\n" not in str(caught.value)


@given(expressions())
def test_both_written_forms_are_parsed_back(expression: Expression) -> None:
    assert parse_expression(str(expression)) == expression
    assert parse_expression(expression.bracketed()) == expression
    assert parse_expression("\t" + str(expression).replace(" ", "  ")) == expression


@given(expressions())
def test_binary_brackets_are_balanced_and_binary(expression: Expression) -> None:
    stack: list[int] = [0]
    for token in expression.bracketed().split():
        if token == "(":
            stack.append(0)
        elif token == ")":
            assert stack.pop() == 2
            stack[-1] += 1
        else:
            stack[-1] += 1
    assert stack == [1]


@given(expressions())
def test_the_tree_of_an_expression(expression: Expression) -> None:
    heads = torch.tensor(expression.heads)
    assert is_tree(heads, single_root=True)
    assert is_projective(heads)
    children = Counter(expression.heads)
    for place, (kind, valency) in enumerate(
        zip(expression.kinds, expression.valencies, strict=True), 1
    ):
        assert valency == (children[place] - 1 if kind == "operator" else 0)
        assert kind == "operator" or not children[place]


@given(expressions())
def test_depth_is_the_longest_chain_of_operators(expression: Expression) -> None:
    depths = [0] * (len(expression) + 1)
    for place, (head, kind) in enumerate(zip(expression.heads, expression.kinds, strict=True), 1):
        depths[place] = depths[head] + (kind == "operator")
    assert expression.depth == max(depths)


# ------------------------------------------------------------------ files


def test_original_files_are_read_and_written_back(tmp_path: Path) -> None:
    sample = read_listops(SAMPLE)
    assert len(sample) == 12
    assert str(sample[1]) == "[MAX 1 5 [MIN 9 2 5 ] ]"
    assert [e.value for e in sample] == [0, 5, 1, 3, 6, 8, 8, 1, 0, 5, 9, 7]
    path = tmp_path / "copy.tsv"
    assert write_listops(path, sample) == 12
    assert path.read_bytes() == SAMPLE.read_bytes()


def test_simpler_formats(tmp_path: Path) -> None:
    text = "9\t[MAX 2 9 ]\r\n\n[SM 1 [MIN 4 7 ] 0 ]\n 9 \t ( ( ( [MAX 2 ) 9 ) ] )\n"
    found = read_listops(written(tmp_path, text))
    assert found == [FLAT, NESTED, FLAT]
    assert [e.value for e in found] == [9, None, 9]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_compressed_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / ("file.tsv" + suffix)
    write_listops(path, [FLAT, NESTED])
    assert path.read_bytes()[:1] != b"9"
    assert read_listops(str(path)) == [FLAT, NESTED]


def test_lengths(tmp_path: Path) -> None:
    path = written(tmp_path, f"{FLAT.bracketed()}\n{NESTED.bracketed()}\n")
    assert read_listops(path, max_length=4) == [FLAT]
    assert read_listops(path, min_length=5, max_length=8) == [NESTED]
    assert read_listops(path, min_length=4, max_length=8) == [FLAT, NESTED]
    with pytest.raises(
        DataError, match=r"its 2 expressions have 4 to 8 tokens; expected some of 5 to 7 tokens"
    ):
        read_listops(path, min_length=5, max_length=7)
    with pytest.raises(DataError, match="expected some of 9 to any tokens"):
        read_listops(path, min_length=9)


@pytest.mark.parametrize(("low", "high"), [(0, None), (5, 4), (1, 0)])
def test_lengths_that_leave_none(tmp_path: Path, low: int, high: int | None) -> None:
    path = written(tmp_path, str(FLAT))
    with pytest.raises(InputError, match=f"received {low} and {high}; expected 1 or more"):
        read_listops(path, min_length=low, max_length=high)


def test_lone_digits_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, f"7\t7\n{FLAT}\n3\n")
    assert read_listops(path) == [FLAT]
    assert [str(e) for e in read_listops(path, keep_digits=True)] == ["7", str(FLAT), "3"]
    with pytest.raises(DataError, match="its 1 expressions have 1 to 1 tokens"):
        read_listops(written(tmp_path, "7\t7\n"))
    with pytest.raises(DataError, match="line 1: received the value 8; expected 7"):
        read_listops(written(tmp_path, f"8\t7\n{FLAT}\n"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("8\t[MAX 2 9 ]", "line 2: received the value 8; expected 9, which the expression"),
        ("x\t[MAX 2 9 ]", "line 2: received the value 'x'; expected a digit, a tab and"),
        ("19\t[MAX 2 9 ]", "line 2: received the value '19'"),
        ("\t[MAX 2 9 ]", "line 2: received the value ''"),
        ("9\t9\t[MAX 2 9 ]", r"line 2: received the value '9\\t9'"),
        ("9 [MAX 2 9 ]", r"line 2, token 2: received \[MAX after the end"),
        ("9\t", "line 2: received ''; expected an expression"),
        ("9\t[MAX 2 y ]", "line 2, token 3: received 'y'"),
        ("9\t( ( ( [MAX 2 ) 9 ) ]", "line 2, token 10: received the end"),
    ],
)
def test_lines_that_are_wrong(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_listops(written(tmp_path, f"9\t[MAX 2 9 ]\n{line}\n[MIN 3 4 ]\n"))
    assert "file.tsv, line 2" in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_empty_files(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"file.tsv: is empty; expected lines of value, tab"):
        read_listops(written(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: does not exist; expected a ListOps file"):
        read_listops(tmp_path / "nowhere")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(SAMPLE.read_bytes())[:-9])
    with pytest.raises(DataError, match=r"cut.gz, after line \d+: cannot be read"):
        read_listops(tmp_path / "cut.gz")
    (tmp_path / "latin").write_bytes(b"9\t[MAX 2 9 ]\n\xe9\n")
    with pytest.raises(DataError, match="latin, line 2: is not UTF-8"):
        read_listops(tmp_path / "latin")


def test_writing_is_all_or_nothing(tmp_path: Path) -> None:
    def interrupted() -> Iterator[Expression]:
        yield FLAT
        raise KeyboardInterrupt

    path = written(tmp_path, "older")
    with pytest.raises(KeyboardInterrupt):
        write_listops(path, interrupted())
    with pytest.raises(DataError, match="expression 2: received the value 3; expected 9"):
        write_listops(path, [FLAT, Expression(FLAT.tokens, 3)])
    assert path.read_text() == "older"
    assert os.listdir(tmp_path) == ["file.tsv"]


@given(st.lists(expressions(), min_size=1, max_size=4))
def test_whatever_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, batch: list[Expression]
) -> None:
    path = tmp_path_factory.mktemp("round-trip") / "file.tsv"
    assert write_listops(path, batch) == len(batch)
    found = read_listops(path, keep_digits=True)
    assert found == batch
    assert [e.value for e in found] == [e.evaluate() for e in batch]


# ------------------------------------------------------------------ random expressions


@given(st.integers(), st.sampled_from(["original", "paulus"]))
def test_random_expressions_keep_their_rules(seed: int, variant: str) -> None:
    drawn = generate_listops(20, variant=variant, seed=seed)  # type: ignore[arg-type]
    assert len(set(drawn)) == len(drawn) == 20
    for expression in drawn:
        assert parse_expression(str(expression)) == expression
        assert parse_expression(expression.bracketed()) == expression
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


def test_lengths_of_random_expressions() -> None:
    drawn = generate_listops(300, seed=0, min_length=6, max_length=14)
    assert {len(e) for e in drawn} == {*range(6, 15)}
    assert {len(e) for e in generate_listops(50, seed=0, min_length=30, max_length=31)} == {30, 31}


def test_excluded_expressions_are_not_drawn() -> None:
    every = generate_listops(400, seed=0, max_length=4)
    assert len(set(every)) == 400  # four operators, two digits: there are no more
    some = [Expression(e.tokens) for e in every[:390]]
    rest = generate_listops(10, seed=1, max_length=4, exclude=some)
    assert set(rest) == set(every[390:])


def test_too_few_distinct_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "PATIENCE", 30_000)
    with pytest.raises(InputError, match=r"count: received 401; expected about 400 or fewer, as"):
        generate_listops(401, seed=0, max_length=4)
    monkeypatch.setattr(generator, "PATIENCE", 100)
    with pytest.raises(InputError, match=r"no new expression of 99999 to any tokens"):
        generate_listops(1, seed=0, min_length=99_999)


def test_progress() -> None:
    done: list[int] = []
    generate_listops(2500, seed=0, progress=done.append)
    assert done == [1000, 2000, 2500]


def test_any_part_is_like_the_whole() -> None:
    """As drawn, the short expressions run out and the later ones are longer."""
    drawn = generate_listops(6000, seed=0, max_length=6)
    shorter = [len(e) < 6 for e in drawn]
    first, last = sum(shorter[:3000]), sum(shorter[3000:])
    assert abs(first - last) < 250  # standard deviation below 55; some 500 or more apart as drawn


def drawn_by_recursion(rng: random.Random, depth: int = 1) -> list[str]:
    """A node as the original authors describe it: greatest depth 20, operators one in four."""
    if depth == 20 or rng.random() >= 0.25:
        return [rng.choice(DIGITS)]
    arguments = [drawn_by_recursion(rng, depth + 1) for _ in range(rng.randint(2, 5))]
    return [rng.choice(OPERATORS), *chain(*arguments), CLOSE]


def test_the_distribution_is_that_of_the_definition() -> None:
    count, rng = 10_000, random.Random(0)
    defined: set[Expression] = set()
    while len(defined) < count:
        tokens = drawn_by_recursion(rng)
        if len(tokens) > 1:
            defined.add(Expression(tuple(tokens)))
    drawn = generate_listops(count, seed=0)
    wanted, found = (Counter(map(len, e)) for e in (defined, drawn))
    for length in range(4, 20):
        assert found[length] / count == pytest.approx(wanted[length] / count, abs=0.012)
    expected, figures = listops_statistics(defined), listops_statistics(drawn)
    assert figures["depth_max"] == expected["depth_max"] == 19
    for name, tolerance in (("depth_mean", 0.15), ("length_mean", 3.0), ("operator_share", 0.1)):
        assert figures[name] == pytest.approx(expected[name], abs=tolerance)
    for counts in (figures["operators"], figures["valencies"]):
        shares = [number / sum(counts.values()) for number in counts.values()]
        assert shares == pytest.approx([0.25] * 4, abs=0.02)
    # of the authors' 100,000 expressions; a smaller set has shorter ones
    assert figures["attachment_previous"] == pytest.approx(23.8, abs=0.8)
    assert figures["attachment_operator"] == pytest.approx(63.8, abs=0.8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count: received 0; expected an integer, 1 or more"),
        ({"count": 2.0}, "count: received 2.0"),
        ({"variant": "long"}, "variant: received 'long'; expected one of original, paulus"),
        ({"seed": None}, "seed: received None; expected an integer"),
        ({"max_length": 3}, "received 4 to 3; expected at least 4 for max_length"),
        ({"min_length": 9, "max_length": 8}, "received 9 to 8; expected at least 9"),
        ({"min_length": 1, "max_length": 3}, "received 1 to 3; expected at least 4"),
        ({"variant": "paulus", "max_length": 9}, "received 10 to 9; expected at least 10"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        generate_listops(**{"count": 1, "seed": 0, **arguments})  # type: ignore[arg-type]


def test_splits_are_disjoint_and_alike() -> None:
    sizes = {"train": 3000, "dev": 1, "test": 3000}
    splits = generate_splits(sizes, seed=3, max_length=6)
    assert {name: len(split) for name, split in splits.items()} == sizes
    assert len(set().union(*splits.values())) == 6001
    assert generate_splits(sizes, seed=3, max_length=6) == splits
    short = [sum(len(e) < 6 for e in splits[name]) for name in ("train", "test")]
    assert abs(short[0] - short[1]) < 250


def test_options_of_splits() -> None:
    done: list[int] = []
    every = generate_listops(400, seed=0, max_length=4)
    options = {"min_length": 4, "max_length": 4, "exclude": every[:300], "progress": done.append}
    splits = generate_splits({"a": 60, "b": 40}, seed=0, **options)  # type: ignore[arg-type]
    assert {*splits["a"], *splits["b"]} == set(every[300:])
    assert done == [100]
    paulus = generate_splits({"a": 50}, variant="paulus", seed=0)["a"]
    assert min(map(len, paulus)) >= 10


@pytest.mark.parametrize(
    ("sizes", "message"),
    [({}, "sizes: received none"), ({"a": 3, "b": 0}, r"sizes\['b'\]: received 0; expected an")],
)
def test_sizes_are_checked(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        generate_splits(sizes, seed=0)


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
