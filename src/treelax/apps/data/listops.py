"""ListOps, nested lists of digits whose gold trees are known (Nangia & Bowman 2018).

An *expression* such as ``[MAX 2 9 [MIN 4 7 ] 0 ]`` is a sentence of tokens. Its tree: every token
is attached to the innermost open operator, ``]`` to its operator, the outermost operator to the
root. The task is to tag each operator with its *valency*, the number of its arguments.
"""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, chain, islice
from operator import eq
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from treelax.apps.data.input_files import one_file
from treelax.errors import DataError, InputError, counted
from treelax.files import atomic_write, compressed
from treelax.ops.checks import one_of

__all__ = [
    "CLOSE",
    "DIGITS",
    "OPERATORS",
    "TOKEN_IDS",
    "VOCABULARY",
    "EncodedListOps",
    "Expression",
    "baseline_heads",
    "encode_listops",
    "generate_listops",
    "generate_splits",
    "listops_statistics",
    "parse_expression",
    "read_line",
    "read_listops",
    "write_listops",
]

OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
CLOSE = "]"
DIGITS = tuple("0123456789")
VOCABULARY = (*OPERATORS, CLOSE, *DIGITS)
TOKEN_IDS = {token: number for number, token in enumerate(VOCABULARY, 1)}  # 0 is padding
Baseline = Literal["previous", "operator"]
QUANTILES = (5, 10, 25, 50, 75, 90, 95)  # percent
_APPLY: dict[str, Callable[[Sequence[int]], int]] = {
    "[MIN": min,
    "[MAX": max,
    "[MED": lambda arguments: int(median(arguments)),
    "[SM": lambda arguments: sum(arguments) % 10,
}


@dataclass(frozen=True, slots=True)
class Expression:
    """A ListOps expression and, where it is known, its value.

    Attributes:
        tokens: the n tokens of one whole expression, perhaps a lone digit, without round brackets.
        value: that came with the expression, if any; not compared, since it follows from the tokens.

    Example:
        >>> expression = Expression(("[MAX", "2", "[MIN", "4", "7", "]", "0", "]"))
        >>> expression.heads
        (0, 1, 1, 3, 3, 3, 1, 1)
        >>> expression.valencies
        (3, 0, 2, 0, 0, 0, 0, 0)
        >>> expression.depth, expression.evaluate()
        (2, 4)
    """

    tokens: tuple[str, ...]
    value: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        depth, previous = 0, ""
        for place, token in enumerate((*self.tokens, ""), 1):
            wrong = ""
            if not token:  # the end
                if depth or not previous:
                    wrong = "the end; expected a whole expression such as [MAX 2 9 ]"
            elif token not in TOKEN_IDS:
                wrong = f"{token!r}; expected one of {' '.join(VOCABULARY)}"
            elif previous and not depth:
                wrong = f"{token} after the end; expected one expression"
            elif token == CLOSE and (not depth or previous in OPERATORS):
                wrong = "]; expected an argument before it"
            if wrong:
                raise InputError(f"token {place}: received {wrong}")
            depth += (token in OPERATORS) - (token == CLOSE)
            previous = token

    def __len__(self) -> int:
        return len(self.tokens)

    def __str__(self) -> str:
        return " ".join(self.tokens)

    @property
    def heads(self) -> tuple[int, ...]:
        """The head of each token, counted from 1, and 0 for the first, attached to the root."""
        heads, operators = list[int](), [0]
        for position, token in enumerate(self.tokens, 1):
            heads.append(operators[-1])
            if token in OPERATORS:
                operators.append(position)
            elif token == CLOSE:
                operators.pop()
        return tuple(heads)

    @property
    def valencies(self) -> tuple[int, ...]:
        """The number of arguments of each operator, 0 for every other token."""
        counts = Counter(h for h, t in zip(self.heads, self.tokens, strict=True) if t != CLOSE)
        return tuple(counts[position] for position in range(1, len(self) + 1))

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each token is: ``"operator"``, ``"argument"`` (a digit) or ``"bracket"``."""
        kinds = dict.fromkeys(OPERATORS, "operator") | {CLOSE: "bracket"}
        return tuple(kinds.get(token, "argument") for token in self.tokens)

    @property
    def depth(self) -> int:
        """How deep operators are nested: 1 for a flat list, 0 for a lone digit."""
        return max(accumulate((t in OPERATORS) - (t == CLOSE) for t in self.tokens))

    def evaluate(self) -> int:
        """The value, 0 to 9; ``[MED`` is the median, rounded down, ``[SM`` the sum modulo 10."""
        open_lists: list[list[Any]] = [[]]  # an operator and its arguments so far, innermost last
        for token in self.tokens:
            if token in OPERATORS:
                open_lists.append([token])
            elif token == CLOSE:
                operator, *arguments = open_lists.pop()
                open_lists[-1].append(_APPLY[operator](arguments))
            else:
                open_lists[-1].append(int(token))
        return int(open_lists[0][0])

    def bracketed(self) -> str:
        """The expression in binary brackets: ``[OP a b ]`` is ``( ( ( [OP a ) b ) ] )``."""
        parts: list[str] = []
        for token, valency in zip(self.tokens, self.valencies, strict=True):
            # each token after the operator is joined to everything to its left
            opening = "(" * (valency + 1) if valency else ""
            closing = "" if valency else "))" if token == CLOSE else ")"
            parts += [*opening, token, *closing]
        return " ".join(parts[:-1])  # the whole is no argument


def parse_expression(text: str, source: str = "expression") -> Expression:
    """Read one expression, plain (``[MAX 2 9 ]``) or in binary brackets, which are ignored.

    Raises:
        DataError: the tokens are not one expression. The message names `source` and the token.

    Example:
        >>> parse_expression("( ( ( [MAX 2 ) 9 ) ] )").tokens
        ('[MAX', '2', '9', ']')
    """
    try:
        return Expression(tuple(token for token in text.split() if token not in ("(", ")")))
    except InputError as error:
        raise DataError(f"{source}: {error}") from error


def read_listops(
    path: str | os.PathLike[str], *, min_length: int = 1, max_length: int | None = None
) -> list[Expression]:
    """Read the expressions of a ListOps file with at least and at most so many tokens.

    A line is an expression, in binary brackets as in the original files or without, perhaps after its
    value and a tab. A lone digit, which has no operator to tag, is skipped. The file is UTF-8, perhaps
    compressed (``.gz``, ``.xz``, ``.bz2``) or in a ``.zip``, alone or as the only ``.tsv``.

    Raises:
        DataError: the file cannot be read, a line is no expression or has another value, or no
            expression has such a length.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "two.tsv")
        ...     count = path.write_text("9\\t( ( ( [MAX 2 ) 9 ) ] )\\n[MED 2 7 1 ]\\n")
        ...     [(str(e), e.value) for e in read_listops(path)]
        [('[MAX 2 9 ]', 9), ('[MED 2 7 1 ]', None)]
    """
    source = one_file(path, preferred=(".tsv",), expected="a ListOps file")
    lines = ((number, text) for number, text in source.lines() if text.strip())
    expressions = [read_line(text, f"{source.name}, line {number}") for number, text in lines]
    shortest, longest = max(min_length, 2), math.inf if max_length is None else max_length
    chosen = [expression for expression in expressions if shortest <= len(expression) <= longest]
    if not chosen:
        raise DataError(
            f"{path}: none of {counted(len(expressions), 'expression')} has {shortest} to "
            f"{max_length or 'any'} tokens; expected lines of value, tab, expression"
        )
    return chosen


def read_line(text: str, where: str) -> Expression:
    """An expression, with or without its value and a tab in front."""
    first, tab, rest = text.partition("\t")
    # a tab after the start of the expression is a space like any other
    if not tab or first.lstrip().startswith(("(", "[")):
        return parse_expression(text, where)
    expression = parse_expression(rest, where)
    value = expression.evaluate()
    if first.strip() != str(value):
        raise DataError(f"{where}: received the value {first!r}; expected {value}, the right one")
    return Expression(expression.tokens, value)


def write_listops(path: str | os.PathLike[str], expressions: Iterable[Expression]) -> int:
    """Write expressions in the original format and return how many.

    The file appears whole or not at all, compressed if its name ends in ``.gz``, ``.xz`` or ``.bz2``.
    """
    file, expressions = Path(path), list(expressions)
    with atomic_write(file) as raw, compressed(raw, file, "wb") as out:
        for expression in expressions:
            out.write(f"{expression.evaluate()}\t{expression.bracketed()}\n".encode())
    return len(expressions)


@dataclass(frozen=True, eq=False, slots=True)
class EncodedListOps:
    """N expressions, the longest of L tokens, as tensors of int64 on one device.

    Attributes:
        tokens: ``(N, L)``, the ids of `TOKEN_IDS`, 1 to 15, padded with 0.
        lengths: ``(N,)``, tokens of each expression.
        heads: ``(N, L)``, the gold heads, counted from 1 with 0 the root, padded with -1.
        tags: ``(N, L)``, the valency of operators, 0 for other tokens, padded with -1.
    """

    tokens: Tensor
    lengths: Tensor
    heads: Tensor
    tags: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: torch.device | str) -> EncodedListOps:
        """The same expressions with all tensors on a device."""
        return EncodedListOps(*(getattr(self, part.name).to(device) for part in fields(self)))

    def select(self, indices: Tensor | Sequence[int]) -> EncodedListOps:
        """Some expressions, a batch for example, with no more padding than they need."""
        index = torch.as_tensor(indices, device=self.lengths.device)
        lengths = self.lengths[index]
        cut = index, slice(int(lengths.max()))
        return EncodedListOps(self.tokens[cut], lengths, self.heads[cut], self.tags[cut])


def encode_listops(expressions: Iterable[Expression]) -> EncodedListOps:
    """Put expressions into padded tensors, on the CPU.

    Example:
        >>> data = encode_listops(map(parse_expression, ["[MAX 2 9 ]", "[MIN 2 9 7 ]"]))
        >>> data.tokens
        tensor([[ 2,  8, 15,  5,  0],
                [ 1,  8, 15, 13,  5]])
        >>> data.tags
        tensor([[ 2,  0,  0,  0, -1],
                [ 3,  0,  0,  0,  0]])
    """
    expressions = list(expressions)
    lengths = torch.tensor(list(map(len, expressions)))
    inside = torch.arange(int(lengths.max())) < lengths[:, None]

    def padded(rows: Iterable[Iterable[int]], padding: int) -> Tensor:
        result = torch.full(inside.shape, padding)
        result[inside] = torch.tensor(list(chain.from_iterable(rows)))  # faster than pad_sequence
        return result

    return EncodedListOps(
        tokens=padded((map(TOKEN_IDS.__getitem__, e.tokens) for e in expressions), 0),
        lengths=lengths,
        heads=padded((e.heads for e in expressions), -1),
        tags=padded((e.valencies for e in expressions), -1),
    )


def baseline_heads(expression: Expression, baseline: Baseline) -> tuple[int, ...]:
    """Give every token but the first, which is attached to the root, a head without reading brackets.

    ``"previous"`` is the token to the left, ``"operator"`` the nearest operator there.

    Example:
        >>> baseline_heads(parse_expression("[MAX 2 [MIN 4 7 ] 0 ]"), "operator")
        (0, 1, 1, 3, 3, 3, 3, 3)
    """
    one_of("baseline", baseline, get_args(Baseline))
    if baseline == "previous":
        return tuple(range(len(expression)))
    places = enumerate(expression.tokens, 1)
    operators = (place if token in OPERATORS else 0 for place, token in places)
    return tuple(accumulate(operators, max, initial=0))[:-1]


def listops_statistics(expressions: Iterable[Expression]) -> dict[str, Any]:
    """Counts, lengths, depths, and the percentage of tokens with the heads of `baseline_heads`.

    Example:
        >>> figures = listops_statistics([parse_expression("[MAX 2 [MIN 4 7 ] 0 ]")])
        >>> figures["tokens"], figures["valencies"], figures["attachment_operator"]
        (8, {2: 1, 3: 1}, 75.0)
    """
    expressions = list(expressions)
    lengths = sorted(map(len, expressions))
    tokens = sum(lengths)
    depths = [e.depth for e in expressions]
    operators = Counter(token for e in expressions for token in e.tokens if token in OPERATORS)
    valencies = Counter(valency for e in expressions for valency in e.valencies if valency)
    values = Counter(e.evaluate() for e in expressions)

    def attachment(baseline: Baseline) -> float:
        right = (sum(map(eq, e.heads, baseline_heads(e, baseline))) for e in expressions)
        return 100 * sum(right) / tokens

    return {
        "sentences": len(expressions),
        "tokens": tokens,
        "length_mean": fmean(lengths),
        "length_median": median(lengths),
        "length_quantiles": {q: lengths[math.ceil(len(lengths) * q / 100) - 1] for q in QUANTILES},
        "length_max": lengths[-1],
        "depth_mean": fmean(depths),
        "depth_max": max(depths),
        "operator_share": 100 * operators.total() / tokens,
        "operators": {token: operators[token] for token in OPERATORS},
        "valencies": dict(sorted(valencies.items())),
        "values": dict(sorted(values.items())),
        "attachment_previous": attachment("previous"),
        "attachment_operator": attachment("operator"),
    }


# ------------------------------------------------------------------ random expressions

# As Nangia & Bowman (2018) draw them: a node is an operator with probability 1/4, above the greatest
# depth, else a digit; an operator, its 2 to 5 arguments and the digits are uniform.
OPERATOR_PROBABILITY = 0.25
FEWEST_ARGUMENTS, MOST_ARGUMENTS = 2, 5
SHORTEST = 2 + FEWEST_ARGUMENTS  # an operator, its arguments and a bracket
PATIENCE = 300_000  # draws in a row without a new expression before giving up
REPORT_EVERY = 1000  # expressions


# operators, greatest `Expression.depth`, fewest and most tokens
VARIANTS: dict[str, tuple[tuple[str, ...], int, int, int | None]] = {
    # nodes down to depth 20, where all are digits, so operators down to depth 19
    "original": (OPERATORS, 19, SHORTEST, None),
    "paulus": (tuple(o for o in OPERATORS if o != "[SM"), 5, 10, 50),
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
    50 tokens; ``min_length`` and ``max_length`` replace these bounds. As no two are alike, the few
    short expressions run out when many are asked for: the lengths depend on ``count``. The order is
    random: any part is like the whole.

    Example:
        >>> [str(e) for e in generate_listops(2, seed=0, max_length=8)]
        ['[SM 2 4 3 5 5 ]', '[SM 2 9 9 ]']
    """
    one_of("variant", variant, VARIANTS)
    operators, deepest, shortest, longest = VARIANTS[variant]
    low = shortest if min_length is None else min_length
    high = longest if max_length is None else max_length
    if count < 1:
        raise InputError(f"count is {count}; expected at least 1")
    if high is not None and high < max(low, SHORTEST):
        raise InputError(f"max_length is {high}; expected at least {max(low, SHORTEST)}")
    rng = random.Random(seed)
    drawn: dict[tuple[str, ...], None] = {}  # a set in order
    fruitless = 0
    while len(drawn) < count:
        tokens = _draw(rng.random, operators, deepest, math.inf if high is None else high)
        if tokens is None or len(tokens) < low or tokens in drawn:
            fruitless += 1
            if fruitless == PATIENCE:
                raise InputError(
                    f"count is {count}; expected about {len(drawn)} or fewer expressions of {low} to "
                    f"{high or 'any'} tokens: ask for fewer or widen the lengths"
                )
            continue
        fruitless = 0
        drawn[tokens] = None
        if progress is not None and (len(drawn) % REPORT_EVERY == 0 or len(drawn) == count):
            progress(len(drawn))
    # shuffled, as later ones are longer; only random.random is the same in all versions of Python
    keys = [rng.random() for _ in drawn]
    shuffled = [tokens for _, tokens in sorted(zip(keys, drawn, strict=True))]
    return [Expression(tokens, Expression(tokens).evaluate()) for tokens in shuffled]


def generate_splits(
    sizes: Mapping[str, int], *, seed: int, **options: Any
) -> dict[str, list[Expression]]:
    """Draw several sets of some sizes, by `generate_listops` and with no expression in common.

    Example:
        >>> splits = generate_splits({"train": 8, "test": 2}, seed=0)
        >>> {name: len(split) for name, split in splits.items()}
        {'train': 8, 'test': 2}
    """
    everything = iter(generate_listops(sum(sizes.values()), seed=seed, **options))
    return {name: list(islice(everything, size)) for name, size in sizes.items()}


def _draw(
    uniform: Callable[[], float], operators: Sequence[str], deepest: int, max_length: float
) -> tuple[str, ...] | None:
    """An expression that starts with an operator; None as soon as it must get too long."""
    tokens: list[str] = []
    room = max_length - 1

    def add_list(depth: int) -> bool:
        nonlocal room
        arguments = FEWEST_ARGUMENTS + int(uniform() * (MOST_ARGUMENTS - FEWEST_ARGUMENTS + 1))
        room -= arguments + 1
        if room < 0:
            return False
        tokens.append(operators[int(uniform() * len(operators))])
        for _ in range(arguments):
            if depth == deepest or uniform() >= OPERATOR_PROBABILITY:
                tokens.append(DIGITS[int(uniform() * len(DIGITS))])
            elif not add_list(depth + 1):
                return False
        tokens.append(CLOSE)
        return True

    return tuple(tokens) if add_list(1) else None
