"""Reading and writing ListOps files: one expression a line, its value and a tab before it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from treelax.data.listops.expression import DIGITS, Expression, parse_expression
from treelax.data.sources import one_file
from treelax.errors import DataError, InputError
from treelax.files import atomic_write, compressed

__all__ = ["read_listops", "write_listops"]


def read_listops(
    path: str | os.PathLike[str],
    *,
    min_length: int = 1,
    max_length: int | None = None,
    keep_digits: bool = False,
) -> list[Expression]:
    """Read the expressions of a ListOps file, in the original format or a simpler one.

    A line is a value, a tab and an expression in binary brackets, as in the original files; or with
    plain tokens; or an expression alone. Tokens have spaces or tabs between them. The file may be
    compressed (``.gz``, ``.xz``, ``.bz2``) or in a ``.zip``, alone or as the only ``.tsv``.

    A line with a lone digit for an expression is checked like any other and then left out: the
    original generator makes up to ten of them in a file, and they have no operator to tag.

    Args:
        path: the file, UTF-8.
        min_length: shortest expression to keep, in tokens without round brackets.
        max_length: longest expression to keep; no limit by default.
        keep_digits: keep the lone digits.

    Returns:
        The expressions in the order of the file; `Expression.value` is None where no value is.

    Raises:
        DataError: the file is missing, empty, cannot be decompressed or is not UTF-8; a line is no
            expression, or its value is not what the expression comes to; or no expression has a
            length asked for. The message names the file and the line.
        InputError: the lengths asked for leave none.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "two.tsv")
        ...     count = path.write_text("9\\t( ( ( [MAX 2 ) 9 ) ] )\\n[MED 2 7 1 ]\\n")
        ...     [(str(e), e.value) for e in read_listops(path)]
        [('[MAX 2 9 ]', 9), ('[MED 2 7 1 ]', None)]
    """
    if min_length < 1 or (max_length is not None and max_length < min_length):
        raise InputError(
            f"min_length and max_length: received {min_length} and {max_length}; "
            "expected 1 or more and no less than that"
        )
    source = one_file(path, preferred=(".tsv",), expected="a ListOps file")
    found = [
        read_line(text, f"{source.name}, line {number}")
        for number, text in source.lines()
        if text.strip()
    ]
    if not found:
        raise DataError(f"{path}: is empty; expected lines of value, tab, expression")
    kept = [
        expression
        for expression in found
        if min_length <= len(expression) and (max_length is None or len(expression) <= max_length)
        if keep_digits or len(expression) > 1
    ]
    if not kept:
        lengths = [len(expression) for expression in found]
        limit = "any" if max_length is None else max_length
        raise DataError(
            f"{path}: its {len(found)} expressions have {min(lengths)} to {max(lengths)} tokens; "
            f"expected some of {min_length} to {limit} tokens, lone digits aside"
        )
    return kept


def write_listops(path: str | os.PathLike[str], expressions: Iterable[Expression]) -> int:
    """Write expressions in the original format: value, tab, expression in binary brackets.

    The file is compressed if its name ends in ``.gz``, ``.xz`` or ``.bz2``, and appears whole or
    not at all (see `treelax.files.atomic_write`).

    Args:
        path: the file, replaced if it exists; its folder must exist.
        expressions: what to write; where the value is None it is computed.

    Returns:
        The number of expressions written.

    Raises:
        DataError: a value is not what its expression comes to, or the file cannot be written. The
            message names the expression, counted from 1.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     count = write_listops(Path(folder, "one.tsv"), [parse_expression("[MAX 2 9 ]")])
        ...     Path(folder, "one.tsv").read_text()
        '9\\t( ( ( [MAX 2 ) 9 ) ] )\\n'
    """
    file, count = Path(path), 0
    with atomic_write(file) as raw, compressed(raw, file, "wb") as out:
        for count, expression in enumerate(expressions, 1):
            _check_value(expression, expression.value, f"{file}, expression {count}")
            line = f"{expression.evaluate()}\t{expression.bracketed()}\n"
            out.write(line.encode())
    return count


def read_line(text: str, where: str) -> Expression:
    """An expression, with or without its value and a tab in front."""
    before, tab, after = text.partition("\t")
    # a tab after the start of the expression is a space like any other
    if not tab or before.lstrip().startswith(("(", "[")):
        return parse_expression(text, where)
    expression = parse_expression(after, where)
    if before.strip() not in DIGITS:
        raise DataError(
            f"{where}: received the value {before!r}; expected a digit, a tab and an expression"
        )
    value = int(before)
    _check_value(expression, value, where)
    return Expression(expression.tokens, value)


def _check_value(expression: Expression, value: int | None, where: str) -> None:
    if value is not None and value != expression.evaluate():
        raise DataError(
            f"{where}: received the value {value}; expected {expression.evaluate()}, "
            "which the expression comes to"
        )
