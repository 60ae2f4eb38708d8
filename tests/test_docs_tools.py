"""What turns docstrings and formulas into what the site shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from markdown import Markdown

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from docs.tools.docstrings import to_markdown
from docs.tools.mathml import makeExtension, mathml


def test_formulas_become_mathml():
    assert mathml("x_i") == (
        '<math display="inline" alttext="x_i"><mrow><msub><mi>x</mi><mi>i</mi></msub></mrow></math>'
    )
    assert '<mi>log</mi><mspace width="0.167em"></mspace><mi>p</mi>' in mathml(r"\log p")
    assert "<munder><mo>∑</mo><mi>k</mi></munder>" in mathml(r"\sum_k b_k", "block")
    lines = mathml(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "block")
    assert lines.count("<mtr>") == 2
    assert mathml(r"a &= b \\ c &= d", "block").count("<mtr>") == 2


def test_a_command_that_tex_does_not_have_is_an_error():
    with pytest.raises(ValueError, match=re.escape(r"\softmaxx in the formula")):
        mathml(r"\softmaxx(s)")


def test_only_formulas_are_taken_for_formulas():
    def shown(text):
        return Markdown(extensions=[makeExtension()]).convert(text)

    assert shown("a $x_i$, b $y_i$.").count("<math") == 2
    for text in (r"`$x$`", r"\$x$ y", "5 $ and 6 $", "$HOME and $PATH"):
        assert "<math" not in shown(text)


DOCSTRING = """Does it.

.. math:: a &= b \\\\
    c &= d

With :math:`x` in it.

=======  =====
`one`    a
`two`    b
=======  =====

Args:
    x: it.

Shape:
    vectors ``(n)``
    to more.

Example:
    >>> 1
    1
"""


def test_docstrings_become_markdown():
    assert (
        to_markdown(DOCSTRING)
        == """Does it.

```math
a &= b \\\\
c &= d
```

With $x$ in it.

|  |  |
| --- | --- |
| `one` | a |
| `two` | b |

Args:
    x: it.

**Shape.** vectors ``(n)`` to more.

Examples:
    >>> 1
    1
"""
    )
    assert to_markdown(to_markdown(DOCSTRING)) == to_markdown(DOCSTRING)
