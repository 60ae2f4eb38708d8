"""ListOps expressions for tests: two by hand, and any at all."""

from __future__ import annotations

from itertools import chain

from hypothesis import strategies as st

from treelax.data.listops import CLOSE, DIGITS, OPERATORS, Expression, parse_expression

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
