"""What a set of ListOps expressions is like, and how far trivial trees get on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from math import ceil
from operator import eq
from statistics import fmean, median
from typing import Any, Literal

from treelax.data.listops.expression import OPERATORS, Expression
from treelax.errors import InputError

__all__ = ["baseline_heads", "listops_statistics"]

Baseline = Literal["previous", "operator"]
QUANTILES = (5, 10, 25, 50, 75, 90, 95)  # percent


def baseline_heads(expression: Expression, baseline: Baseline) -> tuple[int, ...]:
    """Give every token a head by a rule that does not look at brackets.

    Args:
        expression: n tokens.
        baseline: ``"previous"``, the token before; or ``"operator"``, the nearest operator to the
            left. The first token hangs off the root with both.

    Returns:
        The n heads, counted from 1, 0 the root.

    Raises:
        InputError: there is no such baseline.

    Example:
        >>> from treelax.data.listops import parse_expression
        >>> baseline_heads(parse_expression("[MAX 2 [MIN 4 7 ] 0 ]"), "operator")
        (0, 1, 1, 3, 3, 3, 3, 3)
    """
    match baseline:
        case "previous":
            return tuple(range(len(expression)))
        case "operator":
            places = enumerate(expression.tokens, 1)
            own = (place if token in OPERATORS else 0 for place, token in places)
            return tuple(accumulate(own, max, initial=0))[:-1]
        case _:
            raise InputError(f"baseline: received {baseline!r}; expected previous or operator")


def listops_statistics(expressions: Iterable[Expression]) -> dict[str, Any]:
    """Describe a set of expressions, and how far two trivial trees get on it.

    Args:
        expressions: at least one.

    Returns:
        A dictionary that can be written as JSON:

        - ``sentences``, ``tokens``: how many.
        - ``length_mean``, ``length_median``, ``length_max``, and ``length_quantiles``: for 5 to 95
          percent the shortest length that so many expressions do not exceed.
        - ``depth_mean``, ``depth_max``: of nested operators.
        - ``operator_share``: percent of the tokens that are operators.
        - ``operators``, ``valencies``, ``values``: how often each occurs.
        - ``attachment_previous``, ``attachment_operator``: percent of all tokens whose head is the
          one of `baseline_heads`.

    Raises:
        InputError: there are no expressions.

    Example:
        >>> from treelax.data.listops import parse_expression
        >>> figures = listops_statistics([parse_expression("[MAX 2 [MIN 4 7 ] 0 ]")])
        >>> figures["tokens"], figures["valencies"], figures["attachment_operator"]
        (8, {2: 1, 3: 1}, 75.0)
    """
    expressions = list(expressions)
    if not expressions:
        raise InputError("expressions: received none; expected at least one")
    lengths = sorted(map(len, expressions))
    depths = [e.depth for e in expressions]
    operators = Counter(token for e in expressions for token in e.tokens if token in OPERATORS)
    valencies = Counter(valency for e in expressions for valency in e.valencies if valency)
    values = Counter(e.evaluate() for e in expressions)
    right: dict[Baseline, int] = {"previous": 0, "operator": 0}
    for e in expressions:
        heads = e.heads
        for baseline in right:
            right[baseline] += sum(map(eq, heads, baseline_heads(e, baseline)))
    tokens = sum(lengths)
    return {
        "sentences": len(expressions),
        "tokens": tokens,
        "length_mean": fmean(lengths),
        "length_median": median(lengths),
        "length_quantiles": {q: lengths[ceil(len(lengths) * q / 100) - 1] for q in QUANTILES},
        "length_max": lengths[-1],
        "depth_mean": fmean(depths),
        "depth_max": max(depths),
        "operator_share": 100 * operators.total() / tokens,
        "operators": {token: operators[token] for token in OPERATORS},
        "valencies": dict(sorted(valencies.items())),
        "values": dict(sorted(values.items())),
        "attachment_previous": 100 * right["previous"] / tokens,
        "attachment_operator": 100 * right["operator"] / tokens,
    }
