"""Docstrings of the house as Markdown, for the pages of the API.

They are written for ``help()`` and doctest: formulas stand behind ``.. math::`` or in ``:math:``, an
example behind ``Example:``, a table between rows of ``=``. What the fields of a class are may stand in
comments beside them. A griffe extension puts all that into the forms that mkdocstrings shows.
"""

from __future__ import annotations

import re
import textwrap
from itertools import takewhile
from typing import Any

from griffe import Class, Docstring, Extension, Object

MATH_BLOCK = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +.*| *(?=\n\1 )))*)", re.MULTILINE)
MATH_INLINE = re.compile(r":math:`([^`]+)`")
EXAMPLE = re.compile(r"^( *)Example:$", re.MULTILINE)
NOTE = re.compile(r"^( *)(Shape|References?):\n((?:\1 +.*\n?|\n(?=\1 ))+)", re.MULTILINE)
COMMENT = re.compile(r"(?:^|[^\"'])# (?!type:|noqa)(.+)$")
SECTION = re.compile(r"^ *(Args|Attributes):$", re.MULTILINE)
COMMENT_LINE = re.compile(r" *# ")
TABLE = re.compile(r"^(=+ +=[= ]*)\n((?:(?!\1$).+\n)+)(?:\1\n((?:(?!\1$).+\n)+))?\1$", re.MULTILINE)


def to_markdown(text: str) -> str:
    """The docstring in Markdown, its sections as the Google style has them."""
    text = MATH_BLOCK.sub(_math, text)
    text = MATH_INLINE.sub(lambda match: f"${' '.join(match[1].split())}$", text)
    text = EXAMPLE.sub(r"\1Examples:", text)
    text = NOTE.sub(_note, text)
    return TABLE.sub(_table, text)


def _math(match: re.Match[str]) -> str:
    formula = "\n".join(line.strip() for line in match[2].strip().splitlines())
    return textwrap.indent(f"```math\n{formula}\n```", match[1])


def _note(match: re.Match[str]) -> str:
    """A section that only this house has, as a paragraph with its name in front."""
    body = " ".join(match[3].split())
    return f"{match[1]}**{match[2]}.** {body}\n"


def _table(match: re.Match[str]) -> str:
    """A table of reStructuredText, without or with a heading, as one of Markdown."""
    starts = [mark.start() for mark in re.finditer(r"=+", match[1])]

    def cells(lines: str) -> list[list[str]]:
        ends = [*starts[1:], None]
        return [
            [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
            for line in lines.splitlines()
        ]

    head = cells(match[2])[0] if match[3] else [""] * len(starts)
    rows = [head, ["---"] * len(starts), *cells(match[3] or match[2])]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _attributes(cls: Class) -> str:
    """A section on the fields of a class from the comments behind them, or above."""
    lines, rows = cls.lines_collection[cls.filepath], []
    for name, field in cls.attributes.items():
        first, last = field.lineno or 0, field.endlineno or 0
        if name.startswith("_") or not "".join(lines[first - 1 : last]).startswith(f"    {name}:"):
            continue
        above = takewhile(COMMENT_LINE.match, reversed(lines[: first - 1]))
        texts = [COMMENT.search(line) for line in (*reversed([*above]), lines[last - 1])]
        if comment := " ".join(text[1].strip() for text in texts if text):
            rows.append(f"    {name}: {comment}")
    return "\n\nAttributes:\n" + "\n".join(rows) if rows else ""


class HouseDocstrings(Extension):
    """Rewrites every docstring once it is loaded."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called by griffe for each module, class, function and attribute."""
        if isinstance(obj.docstring, Docstring):
            text = obj.docstring.value
            if isinstance(obj, Class) and not SECTION.search(text):
                text += _attributes(obj)
            obj.docstring.value = to_markdown(text)
