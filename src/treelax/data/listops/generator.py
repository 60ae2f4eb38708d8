"""Random ListOps expressions, drawn as Nangia & Bowman (2018) draw them.

A node is an operator with probability 1/4, above the greatest depth, else a digit. An operator has 2
to 5 arguments; it, their number and the digits are uniform.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Literal, NamedTuple

from treelax.data.listops.expression import CLOSE, DIGITS, OPERATORS, Expression
from treelax.errors import InputError
from treelax.ops.checks import one_of

__all__ = ["generate_listops", "generate_splits"]

OPERATOR_PROBABILITY = 0.25
FEWEST_ARGUMENTS, MOST_ARGUMENTS = 2, 5
SHORTEST = 2 + FEWEST_ARGUMENTS  # an operator, its arguments and a bracket
# draws in a row that may bring nothing new before the rest is given up
PATIENCE = 300_000
REPORT_EVERY = 1000  # expressions


class _Variant(NamedTuple):
    operators: tuple[str, ...]
    depth: int  # greatest `Expression.depth`
    min_length: int
    max_length: int | None


VARIANTS = {
    # nodes down to depth 20, where all are digits, so operators down to depth 19
    "original": _Variant(OPERATORS, 19, SHORTEST, None),
    "paulus": _Variant(tuple(o for o in OPERATORS if o != "[SM"), 5, 10, 50),
}
Variant = Literal["original", "paulus"]


def generate_listops(
    count: int,
    *,
    variant: Variant = "original",
    seed: int,
    min_length: int | None = None,
    max_length: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[Expression]:
    """Draw random expressions, no two alike; the same arguments give the same ones.

    ``"original"`` draws as Nangia & Bowman (2018): four operators, nested up to 19 deep, of any
    length, but never a lone digit, which has nothing to tag. ``"paulus"`` draws as Paulus et al.
    (2020, Gradient Estimation with Stochastic Softmax Tricks): no ``[SM``, nested up to 5 deep, 10 to
    50 tokens. As no two are alike, the few short expressions run out when many are asked for: the
    lengths depend on ``count``.

    Args:
        min_length: fewest tokens; the variant's by default. Other lengths are drawn again.
        max_length: most tokens; the variant's by default.
        progress: called with the number done so far, now and then and at the end.

    Returns:
        The expressions with their values, in random order: any part is like the whole.

    Example:
        >>> [str(e) for e in generate_listops(2, seed=0, max_length=8)]
        ['[SM 2 4 3 5 5 ]', '[SM 2 9 9 ]']
    """
    one_of("variant", variant, VARIANTS)
    rule = VARIANTS[variant]
    low = rule.min_length if min_length is None else min_length
    high = rule.max_length if max_length is None else max_length
    if count < 1:
        raise InputError(f"count is {count}; expected at least 1")
    if high is not None and high < max(low, SHORTEST):
        raise InputError(f"max_length is {high}; expected at least {max(low, SHORTEST)}")
    rng = random.Random(seed)
    seen: set[tuple[str, ...]] = set()
    drawn: list[tuple[str, ...]] = []
    fruitless = 0
    while len(drawn) < count:
        tokens = _draw(rng, rule, high)
        if tokens is None or len(tokens) < low or tokens in seen:
            fruitless += 1
            if fruitless == PATIENCE:
                raise InputError(
                    f"count is {count}; expected about {len(drawn)} or fewer expressions of {low} to "
                    f"{high or 'any'} tokens: ask for fewer or widen the lengths"
                )
            continue
        fruitless = 0
        seen.add(tokens)
        drawn.append(tokens)
        if progress is not None and (len(drawn) % REPORT_EVERY == 0 or len(drawn) == count):
            progress(len(drawn))
    # in random order, for the later ones are longer; Python promises the same numbers in all its
    # versions for random.random alone, not for random.shuffle
    keys = [rng.random() for _ in drawn]
    order = sorted(range(count), key=keys.__getitem__)
    return [Expression(drawn[i], Expression(drawn[i]).evaluate()) for i in order]


def generate_splits(
    sizes: Mapping[str, int], *, seed: int, **options: Any
) -> dict[str, list[Expression]]:
    """Draw several sets with the same distribution and no expression in common.

    `sizes` says how many expressions each set has, by its name; for the options see
    `generate_listops`, which draws all of them.

    Example:
        >>> splits = generate_splits({"train": 8, "test": 2}, seed=0)
        >>> {name: len(split) for name, split in splits.items()}
        {'train': 8, 'test': 2}
    """
    everything = iter(generate_listops(sum(sizes.values()), seed=seed, **options))
    return {name: list(islice(everything, size)) for name, size in sizes.items()}


def _draw(rng: random.Random, rule: _Variant, max_length: int | None) -> tuple[str, ...] | None:
    """An expression that starts with an operator; None as soon as it must get too long."""
    uniform = rng.random
    operators, deepest = rule.operators, rule.depth
    choices = MOST_ARGUMENTS - FEWEST_ARGUMENTS + 1
    limit = math.inf if max_length is None else max_length
    tokens: list[str] = []
    missing: list[int] = []  # arguments still to come in each open list, the innermost last
    length = 1  # of the whole, if all that is to come were digits
    is_operator = True
    while True:
        if is_operator:
            arguments = FEWEST_ARGUMENTS + int(uniform() * choices)
            length += arguments + 1
            if length > limit:
                return None
            tokens.append(operators[int(uniform() * len(operators))])
            missing.append(arguments)
        else:
            tokens.append(DIGITS[int(uniform() * len(DIGITS))])
            missing[-1] -= 1
            while not missing[-1]:
                tokens.append(CLOSE)
                missing.pop()
                if not missing:
                    return tuple(tokens)
                missing[-1] -= 1
        is_operator = len(missing) < deepest and uniform() < OPERATOR_PROBABILITY
