"""Runs the code of a page and puts below each block what it prints and draws, as a notebook does."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def executed(name: str, text: str) -> tuple[str, dict[str, str]]:
    """A page with the results of its code, and the pictures that it shows then.

    Args:
        name: of the page, which the names of its pictures begin with.
        text: of the page; its blocks of Python share their names.

    Returns:
        The page, and the pictures as SVG by their paths beside the page.
    """
    names: dict[str, Any] = {"__name__": name}
    pictures: dict[str, str] = {}

    def run(match: re.Match[str]) -> str:
        value, printed = _run(match[1], name, names)
        parts = [match[0]]
        if printed:
            parts.append(f"```text\n{printed.rstrip()}\n```")
        if hasattr(value, "svg"):
            path = f"images/{name}-{len(pictures) + 1}.svg"
            pictures[path] = value.svg()
            parts.append(f"![{value.title}. {value.description}]({path})")
        elif value is not None:
            parts.append(f"```text\n{value!r}\n```")
        return "\n\n".join(parts)

    return BLOCK.sub(run, text), pictures


def _run(code: str, name: str, names: dict[str, Any]) -> tuple[Any, str]:
    """The value of the last line, if it is an expression, and what was printed."""
    tree = ast.parse(code, name)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    return value, printed.getvalue()
