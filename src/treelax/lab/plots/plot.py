"""Plots by matplotlib, in one look, as SVG, PNG or PDF.

Series differ in colour and in dashes or hatches. The colours are those of Okabe and Ito (2008), less
the yellow, which is faint on white. Figures are made without pyplot: no global state, no display.

Matplotlib writes every colour into the style of its element; a style sheet gives each its counterpart
in dark mode. Its rules are bound to the root of a document: inside a page a plot stays light.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treelax.apps.pictures.style import COLOURS as TREE_COLOURS
from treelax.apps.pictures.style import INK, PAPER
from treelax.apps.pictures.svg import save, spoken
from treelax.errors import BackendError, install_command

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# for light and for dark pages, those of trees first
DARK_COLOURS = {
    **{light: dark for name, (light, dark) in TREE_COLOURS.items() if name != "grey"},
    "#CC79A7": "#E39BC3",
    "#000000": INK[1],
    "#E69F00": "#E6B84D",
    "#56B4E9": "#8FD0F5",
}
COLOURS = tuple(DARK_COLOURS)
EDGE, GRID, FADED = "#555555", "#DDDDDD", "#999999"  # axes, their grid, baselines
DARK = {**DARK_COLOURS, PAPER[0]: PAPER[1], EDGE: "#A6ADB7", GRID: "#363B43", FADED: "#8A8F98"}
# what must not be in a file, for equal plots to give equal bytes
NOT_WRITTEN: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
}
LOOK = {
    "axes.edgecolor": EDGE,
    "axes.grid": True,
    "axes.labelsize": 11,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 12,
    "figure.titlesize": 13,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.fontsize": 11,
    "savefig.bbox": "tight",  # a label too long for the figure makes it larger
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # text stays text: small files, and it can be searched and selected
    "svg.hashsalt": "treelax",  # else the names inside are random
    "text.parse_math": False,  # a $ in a label is a $
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
}
# matplotlib's style sheet: as attributes it touches nothing else in a page
ITS_STYLE = '<style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>'
ITS_ATTRIBUTES = 'stroke-linejoin="round" stroke-linecap="butt"'
_MARKER = re.compile(r'(<path id="[^"]*" d="[^"]*") style="stroke[^"]*"/>')


class Curves:
    """A plot, to be saved or shown in a notebook: a matplotlib figure, its title and description."""

    def __init__(self, figure: Figure, title: str = "Curves", description: str = "") -> None:
        self.figure, self.title, self.description = figure, title, description

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a ``.svg``, ``.png`` or ``.pdf``, whole or not at all; equal plots give equal bytes."""
        return save(path, self._rendered)

    def svg(self) -> str:
        """The plot as SVG, to be put into a page, where it keeps its white ground."""
        document = self._rendered("svg").decode()
        return document[document.index("<svg") :]

    def _repr_svg_(self) -> str:
        return self.svg()

    def _rendered(self, kind: str) -> bytes:
        buffer = io.BytesIO()
        with plot_style():
            self.figure.savefig(buffer, format=kind, metadata=NOT_WRITTEN[kind])
        data = buffer.getvalue()
        return self._adapted(data.decode()).encode() if kind == "svg" else data

    def _adapted(self, document: str) -> str:
        """Let matplotlib's SVG follow the reader's choice of light or dark, and tell what it shows."""
        before, _, rest = document.partition("<svg")
        attributes, _, elements = rest.partition(">")
        role, about = spoken(self.title, self.description, document)
        elements = elements.replace(ITS_STYLE, "", 1)
        # a marker's style is repeated wherever it stands, and no rule reaches the marker itself
        elements = _MARKER.sub(r"\1/>", elements)
        return (
            f'{before}<svg class="treelax" {role} {ITS_ATTRIBUTES}{attributes}>\n '
            f"{about}\n <style>{_style()}</style>{elements}"
        )


def _style() -> str:
    """The rules; what has no colour, as text, is black and takes that of the root."""
    rules = [f"svg.treelax:root{{fill:{INK[1]}}}"]
    for light, dark in DARK.items():
        for what in ("fill", "stroke"):
            styled = f'[style*="{what}: {light.lower()}"]'
            rules.append(f"svg.treelax:root {styled}{{{what}:{dark}!important}}")
        # the ground of a hatch has an attribute
        rules.append(f'svg.treelax:root [fill="{light.lower()}"]{{fill:{dark}}}')
    return f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}"


@contextmanager
def plot_style() -> Iterator[type[Figure]]:
    """Matplotlib's figures, with its defaults and ours, whatever the user has set for others."""
    try:
        from matplotlib import figure, style
    except ImportError as error:
        raise BackendError(f"plots need matplotlib: {install_command('train')}") from error
    with style.context(["default", LOOK]):
        yield figure.Figure
