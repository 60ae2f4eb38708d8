"""How trees look: one palette and one geometry for the terminal, SVG files, the report and the page.

An arc rises from its head, runs level and falls on its modifier. Three places stand above a word: its
arrow in the middle, where all arcs to the word end, and beside it, still above the word, the stems of
its arcs to the left and to the right; without an arrow both stems are in the middle. So no two arcs of a
projective tree cross, and an arrow never starts beside its word. An arc is one level above all shorter
ones that it runs over.

Where a word stands depends on the words and labels alone, so trees of the same words can be compared.
`as_json` has all of it for code that draws by itself.
"""

from __future__ import annotations

from typing import Any, Literal

Kind = Literal["tree", "other", "right", "wrong", "missed"]

# of Okabe and Ito, for light and for dark pages
COLOURS = {
    "blue": ("#0072B2", "#56B4E9"),
    "vermillion": ("#D55E00", "#F08A3C"),
    "green": ("#009E73", "#2FBF96"),
    "grey": ("#767676", "#9A9A9A"),
}
INK, PAPER = ("#1A1A1A", "#E6E6E6"), ("#FFFFFF", "#16181C")  # light and dark
LOOKS: dict[Kind, tuple[str, str]] = {  # colour and dashes
    "tree": ("blue", ""),
    "other": ("grey", "3 3"),
    "right": ("blue", ""),
    "wrong": ("vermillion", "7 4"),
    "missed": ("green", "1.5 3.5"),
}

WORD, TAG, LABEL = 16.0, 12.0, 11.0  # font sizes of words, tags below them, labels of arcs
TAG_OPACITY = 0.75  # tags have the colour of words: that of a tree would say that they belong to it
BETWEEN = 15.0  # words
PORT, LEAST_PORT = 7.0, 4.5  # from arrow to stem: half the word's width, within these bounds
ARROW = 7.0  # width and height of its tip
ROUND = 12.0  # largest radius of corners
LOWEST = 5.0  # from the tip of an arrow to level 0
STEP, LABELLED_STEP, LEAST_STEP = 15.0, 19.0, 7.0  # from one level to the next
HIGHEST = 300.0  # of lines without labels, as long as their levels are distinct
ABOVE_ALL = 12.0  # by which an arc from the root is higher than all others
THINNEST, WIDEST = 0.8, 1.8  # lines of weight 0 and 1
FAINTEST = 0.35  # opacity of a line that weighs nothing, which is to be seen on a dark page too
FAINTEST_DASHED = 0.5  # the same for other heads beside a tree: dashes are fainter
READABLE = 0.65  # the same for the arcs of a tree that was chosen


def port(width: float) -> float:
    """How far from the middle of a word of this width its stems stand."""
    return min(PORT, max(width / 2, LEAST_PORT))


def line_width(weight: float) -> float:
    """The width of a line of this weight."""
    return THINNEST + (WIDEST - THINNEST) * weight


def opacity(weight: float, faintest: float = FAINTEST) -> float:
    """The opacity of a line of this weight."""
    return faintest + (1 - faintest) * weight


def as_json() -> dict[str, Any]:
    """Colours for light and dark, looks of lines and all sizes in pixels, by name.

    >>> as_json()["colours"]["blue"], as_json()["looks"]["wrong"], as_json()["sizes"]["port"]
    (('#0072B2', '#56B4E9'), ('vermillion', '7 4'), 7.0)
    """
    sizes = {name.lower(): value for name, value in globals().items() if isinstance(value, float)}
    return {"colours": {**COLOURS, "ink": INK, "paper": PAPER}, "looks": LOOKS, "sizes": sizes}
