"""ListOps expressions: their tokens, trees and values, and the files that hold them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from statistics import median

from treelax.data.input_files import one_file
from treelax.errors import DataError, InputError
from treelax.files import atomic_write, compressed

OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
CLOSE = "]"
DIGITS = tuple("0123456789")
VOCABULARY = (*OPERATORS, CLOSE, *DIGITS)
# 0 is padding
TOKEN_IDS = {token: number for number, token in enumerate(VOCABULARY, 1)}

_IS_OPERATOR = frozenset(OPERATORS)


@dataclass(frozen=True, slots=True)
class Expression:
    """A ListOps expression and, where it is known, its value.

    Two expressions are equal if their tokens are: the value follows from them.

    Attributes:
        tokens: the n tokens, without round brackets; one whole expression. A lone digit is one too.
        value: the value that came with the expression; None if none did, see `evaluate`.

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
        object.__setattr__(self, "tokens", tuple(self.tokens))
        depth, before = 0, ""
        for place, token in enumerate(self.tokens, 1):
            if token not in TOKEN_IDS:
                raise InputError(
                    f"token {place}: received {token!r}; expected one of {' '.join(VOCABULARY)}"
                )
            if before and not depth:
                raise InputError(
                    f"token {place}: received {token} after the end; expected one expression"
                )
            if token == CLOSE and (not depth or before in _IS_OPERATOR):
                raise InputError(f"token {place}: received ] with no argument before it")
            depth += (token in _IS_OPERATOR) - (token == CLOSE)
            before = token
        if depth or not before:
            raise InputError(
                f"received the end after {len(self.tokens)} tokens; expected a whole expression such "
                "as [MAX 2 9 ]"
            )

    def __len__(self) -> int:
        """The number of tokens."""
        return len(self.tokens)

    def __str__(self) -> str:
        """The tokens with spaces between."""
        return " ".join(self.tokens)

    @property
    def heads(self) -> tuple[int, ...]:
        """The head of each token, counted from 1, and 0 for the first, which hangs off the root."""
        heads: list[int] = []
        open_operators = [0]
        for position, token in enumerate(self.tokens, 1):
            heads.append(open_operators[-1])
            if token in _IS_OPERATOR:
                open_operators.append(position)
            elif token == CLOSE:
                open_operators.pop()
        return tuple(heads)

    @property
    def valencies(self) -> tuple[int, ...]:
        """The number of arguments of each operator, 0 for every other token."""
        pairs = zip(self.heads, self.tokens, strict=True)
        counts = Counter(head for head, token in pairs if token != CLOSE)
        return tuple(counts[position] for position in range(1, len(self) + 1))

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each token is: ``"operator"``, ``"argument"`` (a digit) or ``"bracket"``."""
        return tuple(
            "operator" if token in _IS_OPERATOR else "bracket" if token == CLOSE else "argument"
            for token in self.tokens
        )

    @property
    def depth(self) -> int:
        """How deep operators are nested: 1 for a flat list, 0 for a lone digit."""
        return max(accumulate((t in _IS_OPERATOR) - (t == CLOSE) for t in self.tokens))

    def evaluate(self) -> int:
        """The value, 0 to 9; ``[MED`` is the median, rounded down, ``[SM`` the sum modulo 10."""
        outer: list[tuple[str, list[int]]] = []
        operator, arguments = "", list[int]()  # of the innermost open list; at the end, the whole
        for token in self.tokens:
            if token in _IS_OPERATOR:
                outer.append((operator, arguments))
                operator, arguments = token, []
            elif token == CLOSE:
                value = _apply(operator, arguments)
                operator, arguments = outer.pop()
                arguments.append(value)
            else:
                arguments.append(int(token))
        return arguments[0]

    def bracketed(self) -> str:
        """The expression in binary brackets, as the original files have it.

        Each token after the operator is joined to all that stands before it:
        ``[OP a b ]`` is ``( ( ( [OP a ) b ) ] )``.
        """
        parts: list[str] = []
        for index, (token, valency) in enumerate(zip(self.tokens, self.valencies, strict=True)):
            if token in _IS_OPERATOR:
                parts.extend("(" * (valency + 1))
            parts.append(token)
            if token == CLOSE:
                parts.append(")")
            # what has just ended, a digit or a list, is an argument unless it is the whole
            if token not in _IS_OPERATOR and index + 1 < len(self.tokens):
                parts.append(")")
        return " ".join(parts)


def _apply(operator: str, arguments: Sequence[int]) -> int:
    match operator:
        case "[MIN":
            return min(arguments)
        case "[MAX":
            return max(arguments)
        case "[SM":
            return sum(arguments) % 10
        case _:
            return int(median(arguments))


def parse_expression(text: str, source: str = "expression") -> Expression:
    """Read one expression, plain (``[MAX 2 9 ]``) or in binary brackets (see `bracketed`).

    Args:
        text: the tokens, with spaces between; round brackets are ignored.
        source: where the text comes from, for messages.

    Returns:
        The expression, with no value; ask `Expression.evaluate`.

    Raises:
        DataError: the tokens are not one expression. The message names the source and the token.

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
    """Read the expressions of a ListOps file, in the original format or a simpler one.

    A line is a value, a tab and an expression in binary brackets, as in the original files; or with
    plain tokens; or an expression alone. A lone digit, which has no operator to tag, is skipped.

    Args:
        path: the file, UTF-8, also compressed (``.gz``, ``.xz``, ``.bz2``) or in a ``.zip``, alone or
            as the only ``.tsv``.
        min_length: shortest expression to keep, in tokens without round brackets.
        max_length: longest expression to keep; no limit by default.

    Returns:
        The expressions in the order of the file; `Expression.value` is None where no value is.

    Raises:
        DataError: the file is missing, damaged or not UTF-8; a line is no expression, or its value
            is not that of the expression; or no expression has a length asked for.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "two.tsv")
        ...     count = path.write_text("9\\t( ( ( [MAX 2 ) 9 ) ] )\\n[MED 2 7 1 ]\\n")
        ...     [(str(e), e.value) for e in read_listops(path)]
        [('[MAX 2 9 ]', 9), ('[MED 2 7 1 ]', None)]
    """
    source = one_file(path, preferred=(".tsv",), expected="a ListOps file")
    found = [
        read_line(text, f"{source.name}, line {number}")
        for number, text in source.lines()
        if text.strip()
    ]
    if not found:
        raise DataError(f"{path}: is empty; expected lines of value, tab, expression")
    longest = max(map(len, found)) if max_length is None else max_length
    kept = [e for e in found if max(min_length, 2) <= len(e) <= longest]
    if not kept:
        lengths = [len(expression) for expression in found]
        limit = "any" if max_length is None else max_length
        raise DataError(
            f"{path}: its {len(found)} expressions have {min(lengths)} to {max(lengths)} tokens; "
            f"expected some of {min_length} to {limit} tokens, lone digits aside"
        )
    return kept


def read_line(text: str, where: str) -> Expression:
    """An expression, with or without its value and a tab in front."""
    before, tab, after = text.partition("\t")
    # a tab after the start of the expression is a space like any other
    if not tab or before.lstrip().startswith(("(", "[")):
        return parse_expression(text, where)
    expression = parse_expression(after, where)
    value = expression.evaluate()
    if before.strip() != str(value):
        raise DataError(
            f"{where}: received the value {before!r}; expected {value}, that of the expression"
        )
    return Expression(expression.tokens, value)


def write_listops(path: str | os.PathLike[str], expressions: Iterable[Expression]) -> int:
    """Write expressions in the original format: value, tab, expression in binary brackets.

    Args:
        path: the file, which appears whole or not at all, compressed if it ends in ``.gz``, ``.xz`` or
            ``.bz2``; its folder must exist.
        expressions: what to write.

    Returns:
        The number of expressions written.
    """
    file, count = Path(path), 0
    with atomic_write(file) as raw, compressed(raw, file, "wb") as out:
        for expression in expressions:
            out.write(f"{expression.evaluate()}\t{expression.bracketed()}\n".encode())
            count += 1
    return count
