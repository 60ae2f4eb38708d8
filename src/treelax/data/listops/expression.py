"""One ListOps expression: its tokens, its tree, its value, its two written forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from treelax.errors import DataError, InputError

__all__ = [
    "CLOSE",
    "DIGITS",
    "OPERATORS",
    "TOKEN_IDS",
    "VOCABULARY",
    "Expression",
    "parse_expression",
]

OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
CLOSE = "]"
DIGITS = tuple("0123456789")
VOCABULARY = (*OPERATORS, CLOSE, *DIGITS)
# 0 is padding
TOKEN_IDS = {token: number for number, token in enumerate(VOCABULARY, 1)}

_IS_OPERATOR = frozenset(OPERATORS)
_ROUND = ("(", ")")


@dataclass(frozen=True, slots=True)
class Expression:
    """A ListOps expression and, where it is known, its value.

    Two expressions are equal if their tokens are: the value follows from them.

    Attributes:
        tokens: the n tokens, without round brackets; one whole expression. A lone digit is one too.
        value: the value that came with the expression; None if none did, see `evaluate`.

    Raises:
        InputError: the tokens are not one whole expression; the message names the token.

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
        fault = _fault(self.tokens)
        if fault is not None:
            index, what = fault
            raise InputError(f"tokens: token {index + 1}: {what}")

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
        counts = [0] * len(self.tokens)
        open_operators: list[int] = []
        for index, token in enumerate(self.tokens):
            if token == CLOSE:
                open_operators.pop()
                continue
            if open_operators:
                counts[open_operators[-1]] += 1
            if token in _IS_OPERATOR:
                open_operators.append(index)
        return tuple(counts)

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
        depth = deepest = 0
        for token in self.tokens:
            if token in _IS_OPERATOR:
                depth += 1
                deepest = max(deepest, depth)
            elif token == CLOSE:
                depth -= 1
        return deepest

    def evaluate(self) -> int:
        """Compute the value, 0 to 9.

        ``[MED`` is the median, rounded down; ``[SM`` is the sum modulo 10.

        Returns:
            The value, whatever `value` says.

        Example:
            >>> Expression(("[MED", "2", "7", "]")).evaluate()
            4
        """
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
        """Write the expression as the original files do, in binary brackets.

        Each token after the operator is joined to all that stands before it:
        ``[OP a b ]`` is ``( ( ( [OP a ) b ) ] )``.

        Returns:
            The tokens and round brackets, with spaces between.

        Example:
            >>> Expression(("[MAX", "2", "9", "]")).bracketed()
            '( ( ( [MAX 2 ) 9 ) ] )'
        """
        parts: list[str] = []
        for index, (token, valency) in enumerate(zip(self.tokens, self.valencies, strict=True)):
            if token in _IS_OPERATOR:
                parts.extend("(" * (valency + 1))
                parts.append(token)
                continue
            parts.append(token)
            if token == CLOSE:
                parts.append(")")
            # what has just ended, a digit or a list, is an argument unless it is the whole
            if index + 1 < len(self.tokens):
                parts.append(")")
        return " ".join(parts)


def parse_expression(text: str, source: str = "expression") -> Expression:
    """Read one expression, plain (``[MAX 2 9 ]``) or in binary brackets (see `bracketed`).

    A lone digit is an expression too: the original generator makes them.

    Args:
        text: the tokens, with spaces between.
        source: where the text comes from, for the message of an error.

    Returns:
        The expression, with no value; ask `Expression.evaluate`.

    Raises:
        DataError: a token is unknown, a bracket is missing or too many, an operator has no
            argument, the text goes on after its end or there is none. The message names the source
            and the token, counted from 1 with all round brackets.

    Example:
        >>> parse_expression("( ( ( [MAX 2 ) 9 ) ] )").tokens
        ('[MAX', '2', '9', ']')
    """
    written = text.split()
    places = [place for place, token in enumerate(written, 1) if token not in _ROUND]
    tokens = tuple(written[place - 1] for place in places)
    if not tokens:
        raise DataError(f"{source}: received {text!r}; expected an expression such as [MAX 2 9 ]")
    fault = _fault(tokens)
    if fault is not None:
        index, what = fault
        place = places[index] if index < len(tokens) else len(written) + 1
        raise DataError(f"{source}, token {place}: {what}")
    expression = Expression(tokens)
    if len(tokens) < len(written):
        _check_round(written, expression.bracketed().split(), source)
    return expression


def _check_round(written: Sequence[str], expected: Sequence[str], source: str) -> None:
    """The round brackets are those of the binary form, which the other tokens determine."""
    pairs = zip_longest(written, expected, fillvalue="the end")
    for place, (found, wanted) in enumerate(pairs, 1):
        if found != wanted:
            raise DataError(
                f"{source}, token {place}: received {found}; expected {wanted}, "
                "as binary brackets have it (or leave out all round brackets)"
            )


def _fault(tokens: Sequence[str]) -> tuple[int, str] | None:
    """The first token (from 0) that keeps these from being one expression, and what is wrong."""
    if not tokens:
        return 0, "received none; expected an expression such as [MAX 2 9 ]"
    depth, before = 0, ""
    for index, token in enumerate(tokens):
        if token not in TOKEN_IDS:
            return index, f"received {token!r}; expected one of {' '.join(VOCABULARY)}"
        if index and not depth:
            return index, f"received {token} after the end; expected one expression"
        if token in _IS_OPERATOR:
            depth += 1
        elif token == CLOSE:
            if not depth:
                return index, "received ] where no list is open; expected an operator or a digit"
            if before in _IS_OPERATOR:
                return index, f"received ] right after {before}; expected at least one argument"
            depth -= 1
        before = token
    if depth:
        return len(tokens), "received the end while a list is open; expected ]"
    return None


def _apply(operator: str, arguments: Sequence[int]) -> int:
    match operator:
        case "[MIN":
            return min(arguments)
        case "[MAX":
            return max(arguments)
        case "[SM":
            return sum(arguments) % 10
        case _:  # the median
            ordered, half = sorted(arguments), len(arguments) // 2
            return (ordered[half] + ordered[~half]) // 2
