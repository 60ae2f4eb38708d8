"""ListOps expressions: their values, trees and written forms; what is none."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given
from listops_expressions import FLAT, NESTED, expressions

from treelax.data.listops import TOKEN_IDS, VOCABULARY, Expression, parse_expression
from treelax.errors import DataError, InputError
from treelax.trees import is_projective, is_tree


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
