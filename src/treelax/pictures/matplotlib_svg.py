"""What matplotlib draws as SVG, for light and dark pages, and with what it shows in words.

Matplotlib writes every colour into the style of its element. Rules of a style sheet find these
styles and give each colour its counterpart where the reader has chosen dark: elements stay as they
are, so a program that knows no such rules shows the drawing as on a light page. As in `Picture` the
rules are bound to the root of a document; put into a page as elements, a drawing stays light.
"""

from __future__ import annotations

import re

from treelax.errors import BackendError
from treelax.pictures.svg import INK, PAPER, spoken

__all__ = ["COLOURS", "EDGE", "FADED", "GRID", "adapted"]

# of Okabe and Ito, less the yellow, which is faint on white; for light and for dark pages
COLOURS = {
    "#0072B2": "#56B4E9",
    "#D55E00": "#F08A3C",
    "#009E73": "#2FBF96",
    "#CC79A7": "#E39BC3",
    "#000000": INK[1],
    "#E69F00": "#E6B84D",
    "#56B4E9": "#8FD0F5",
}
EDGE, GRID, FADED = "#555555", "#DDDDDD", "#999999"  # of axes, of their grid, of what stands back
DARK = {**COLOURS, PAPER[0]: PAPER[1], EDGE: "#A6ADB7", GRID: "#363B43", FADED: "#8A8F98"}
# matplotlib's own style sheet: as attributes it touches nothing else in a page
ITS_STYLE = '<style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>'
ITS_ATTRIBUTES = 'stroke-linejoin="round" stroke-linecap="butt"'
_MARKER = re.compile(r'(<path id="[^"]*" d="[^"]*") style="stroke[^"]*"/>')


def adapted(document: str, title: str, description: str) -> str:
    """Let a drawing follow the reader's choice of light or dark, and tell what it shows.

    Args:
        document: SVG as matplotlib writes it.
        title: what it shows, in a few words.
        description: the same in full, for those who hear it read.

    Returns:
        The document, with the same elements in it.

    Raises:
        BackendError: there is no ``<svg>`` element.

    Example:
        >>> print(adapted("<svg><g/></svg>", "a plot", "")[:42])
        <svg class="treelax" role="img" aria-label
    """
    before, start, rest = document.partition("<svg")
    attributes, end, elements = rest.partition(">")
    if not start or not end:
        raise BackendError("matplotlib gave no <svg> element; install another version of it")
    role, about = spoken(title, description, document)
    elements = elements.replace(ITS_STYLE, "", 1)
    # wherever a marker stands its style is told again, and no rule reaches the marker itself there
    elements = _MARKER.sub(r"\1/>", elements)
    return (
        f'{before}<svg class="treelax" {role} {ITS_ATTRIBUTES}{attributes}>\n '
        f"{about}\n <style>{_style()}</style>{elements}"
    )


def _style() -> str:
    """The rules; what has no colour of its own, as text, is black and takes that of the root."""
    rules = [f"svg.treelax:root{{fill:{INK[1]}}}"]
    for light, dark in DARK.items():
        for what in ("fill", "stroke"):
            rules.append(
                f'svg.treelax:root [style*="{what}: {light.lower()}"]{{{what}:{dark}!important}}'
            )
        # the ground of a hatch has an attribute
        rules.append(f'svg.treelax:root [fill="{light.lower()}"]{{fill:{dark}}}')
    return f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}"
