"""Formulas of the pages as MathML, which browsers draw without any script.

An extension of Python-Markdown for ``$x_i$`` in a line, and a formatter of fences for blocks:

    ```math
    b = \\operatorname{softmax}(s)
    ```

Repository hosts draw the same notation from the sources.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from pymdownx.superfences import SuperFencesException

# between the code of `…` (190) and escapes of \… (180), which would eat the commands of a formula
PRIORITY = 185
INLINE = r"(?<![\\\w$])\$(?![\s$])([^$\n]*?[^$\s\\])\$(?![\w$])"
NAMESPACE = "http://www.w3.org/1998/Math/MathML"
# functions, which TeX sets upright; MathML's <mo> would space them wrongly
WORD = re.compile(r"^[A-Za-z]{2,}$")
UPRIGHT = re.compile(r"\\mathrm\{([A-Za-z]+)\}")
LIMITS_BELOW = {"∑", "∏", "max", "min", "argmax"}
SCRIPTS = {"msub", "msup", "msubsup", "munder", "munderover"}


def mathml(tex: str, display: str = "inline") -> str:
    """A formula of TeX as MathML.

    Args:
        tex: without the signs around it.
        display: "inline" or "block".

    Returns:
        The element as text; its TeX is kept for those who copy it.

    Raises:
        ValueError: it has a command that is not known.
    """
    source = " ".join(tex.split())
    written = UPRIGHT.sub(r"\\text{\1}", source)
    written = written.replace("{aligned}", "{align*}")
    if r"\\" in written and r"\begin" not in written:  # as Sphinx takes several lines
        written = rf"\begin{{align*}} {written} \end{{align*}}"
    root = ElementTree.fromstring(convert(written, display=display))
    for element in root.iter():
        if "\\" in (element.text or ""):
            raise ValueError(f"{element.text} in the formula {source} is not known")
        element.tag = element.tag.removeprefix(f"{{{NAMESPACE}}}")
        if element.tag == "mo" and WORD.match(element.text or ""):
            element.tag = "mi"
            element.attrib.clear()
        if display == "block" and element.tag in ("msub", "msubsup"):
            base = element[0]
            if (base.text or "") in LIMITS_BELOW:
                element.tag = {"msub": "munder", "msubsup": "munderover"}[element.tag]
        if element.tag == "mtr":
            # browsers know no columnalign
            for column, cell in enumerate(element):
                cell.set(
                    "style", f"text-align: {'left' if column % 2 else 'right'}; padding-inline: 0"
                )
    for element in list(root.iter()):
        _space_functions(element)
    root.set("alttext", source)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _is_function(element: ElementTree.Element) -> bool:
    if element.tag in SCRIPTS:
        return _is_function(element[0])
    return element.tag == "mi" and bool(WORD.match(element.text or ""))


def _space_functions(row: ElementTree.Element) -> None:
    """Put the thin space between a function and a variable beside it."""
    if row.tag not in ("math", "mrow", "mtd"):
        return
    children = list(row)
    for place in range(len(children) - 1, 0, -1):
        left, right = children[place - 1], children[place]
        named = (_is_function(left), _is_function(right))
        if any(named) and not {left.tag, right.tag} & {"mo", "mspace", "mtext"}:
            row.insert(place, ElementTree.Element("mspace", width="0.167em"))


def fence(source: str, *_: Any, **__: Any) -> str:
    """What superfences calls for a block of maths."""
    try:
        # a wide one scrolls, which a keyboard can only where it has the focus
        return f'<div class="formula" tabindex="0">{mathml(source, "block")}</div>'
    except Exception as error:
        # anything else would be swallowed, and the formula shown as code
        raise SuperFencesException(f"the formula {source!r} cannot be drawn: {error}") from error


class _Inline(InlineProcessor):
    """``$…$`` to MathML, kept from all further processing."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # type: ignore[override]
        return self.md.htmlStash.store(mathml(m[1])), m.start(0), m.end(0)


class MathExtension(Extension):
    """Registers the inline form; the fence is named in ``zensical.toml``."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.inlinePatterns.register(_Inline(INLINE, md), "mathml", PRIORITY)


def makeExtension(**settings: Any) -> MathExtension:
    """The name that Python-Markdown looks for."""
    return MathExtension(**settings)
