"""What a set of ListOps expressions is like, and how far trivial trees get on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from math import ceil
from operator import eq
from statistics import fmean, median
from typing import Any, Literal, get_args

from treelax.data.listops.expression import OPERATORS, Expression
from treelax.ops.checks import one_of

__all__ = ["baseline_heads", "listops_statistics"]

Baseline = Literal["previous", "operator"]
QUANTILES = (5, 10, 25, 50, 75, 90, 95)  # percent


def baseline_heads(expression: Expression, baseline: Baseline) -> tuple[int, ...]:
    """Give every token a head by a rule that does not look at brackets.

    ``"previous"`` is the token before, ``"operator"`` the nearest operator to the left. The first
    token hangs off the root with both.

    Example:
        >>> from treelax.data.listops import parse_expression
        >>> baseline_heads(parse_expression("[MAX 2 [MIN 4 7 ] 0 ]"), "operator")
        (0, 1, 1, 3, 3, 3, 3, 3)
    """
    one_of("baseline", baseline, get_args(Baseline))
    if baseline == "previous":
        return tuple(range(len(expression)))
    places = enumerate(expression.tokens, 1)
    own = (place if token in OPERATORS else 0 for place, token in places)
    return tuple(accumulate(own, max, initial=0))[:-1]


def listops_statistics(expressions: Iterable[Expression]) -> dict[str, Any]:
    """Figures of one expression or more: numbers of sentences and tokens, lengths, depths and so on.

    They include the percentage of tokens whose head is that of `baseline_heads`.

    Example:
        >>> from treelax.data.listops import parse_expression
        >>> figures = listops_statistics([parse_expression("[MAX 2 [MIN 4 7 ] 0 ]")])
        >>> figures["tokens"], figures["valencies"], figures["attachment_operator"]
        (8, {2: 1, 3: 1}, 75.0)
    """
    expressions = list(expressions)
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
