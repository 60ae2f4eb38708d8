"""Sentences with their heads, drawings as written in a test, and the parts of an SVG."""

from __future__ import annotations

import re
from itertools import combinations
from random import Random
from typing import NamedTuple
from xml.etree import ElementTree

from torch import Tensor

from treelax.apps.pictures.svg import text_width
from treelax.trees import read_brackets, spans_to_tensor

MAX = ["[MAX", "2", "9", "[MIN", "4", "7", "]", "0", "]"]
MAX_GOLD = [0, 1, 1, 1, 4, 4, 4, 1, 1]
MAX_FOUND = [0, 1, 4, 1, 4, 4, 4, 4, 0]
FOX = ["The", "quick", "fox", "that", "I", "saw", "did", "not", "jump"]
FOX_HEADS = [3, 3, 9, 6, 6, 3, 9, 9, 0]
HEARING = ["a", "hearing", "is", "scheduled", "on", "the", "issue", "today"]
HEARING_HEADS = [2, 4, 0, 3, 2, 7, 5, 4]  # arcs cross
PTB = read_brackets(
    "(S (NP (DT The) (JJ quick) (NN fox)) (VP (VBD jumped) (PP (IN over) (NP (DT the) (NN dog)))) (. .))"
)


def random_tree(n: int, seed: int) -> Tensor:
    """A binary tree by random splits."""
    random, todo, spans = Random(seed), [(0, n - 1)], []
    for i, j in todo:
        spans.append((i, j))
        if i < j:
            split = random.randrange(i, j)
            todo += [(i, split), (split + 1, j)]
    return spans_to_tensor(spans, n)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG has it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def block(text: str) -> str:
    """A drawing as it stands in this file: less the indentation and the lines around it."""
    lines = text.splitlines()[1:-1]
    return "\n".join(line.removeprefix("    ") for line in lines)


SVG = "{http://www.w3.org/2000/svg}"
DASHES = {"7 4": "wrong", "1.5 3.5": "missed", "3 3": "other", None: "solid"}


class DrawnArc(NamedTuple):
    title: str
    look: str
    head_x: float
    modifier_x: float
    base: float
    y: float  # of its highest (or lowest) part
    opacity: float
    width: float

    @property
    def head(self) -> str:
        return self.title.split(" → ")[0]

    @property
    def modifier(self) -> str:
        return self.title.split(" → ")[1].split(",")[0]


def root_of(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(svg: str) -> list[str]:
    """All that is shown as text, in order."""
    return [element.text or _tail(element) for element in root_of(svg).iter(f"{SVG}text")]


def _tail(element: ElementTree.Element) -> str:
    return "".join(child.tail or "" for child in element)


def arcs(svg: str) -> list[DrawnArc]:
    """The arcs of a drawing, those of the legend left out."""
    found = []
    for group in root_of(svg).iter(f"{SVG}g"):
        title, path = group.find(f"{SVG}title"), group.find(f"{SVG}path")
        if title is None or title.text is None or path is None or "→" not in title.text:
            continue
        shape = path.get("d") or ""
        start = re.match(r"M([\d.-]+) ([\d.-]+)V([\d.-]+)", shape)
        assert start is not None
        x, y, first = map(float, start.groups())
        look = DASHES[path.get("stroke-dasharray")]
        rest = (float(group.get("opacity", "1")), float(path.get("stroke-width", "0")))
        if "A" in shape:
            corners = re.findall(r"A[\d.-]+ [\d.-]+ 0 0 \d ([\d.-]+) ([\d.-]+)", shape)
            end = (float(corners[1][0]), float(corners[0][1]))
            found.append(DrawnArc(title.text, look, x, end[0], y, end[1], *rest))
        else:  # from the root: from the edge to the word
            found.append(DrawnArc(title.text, look, x, x, first, y, *rest))
    return found


def size_of(svg: str) -> tuple[float, float]:
    root = root_of(svg)
    return float(root.get("width", "0")), float(root.get("height", "0"))


Box = tuple[float, float, float, float]  # left, right, top, bottom


def assert_inside(svg: str) -> None:
    """No text begins outside of the drawing."""
    width, height = size_of(svg)
    for element in root_of(svg).iter(f"{SVG}text"):
        assert 0 <= float(element.get("x", "nan")) <= width
        assert 0 <= float(element.get("y", "nan")) <= height


def label_boxes(svg: str) -> list[Box]:
    """The places of texts that begin with "label", of which no two may meet."""
    boxes = []
    for element in root_of(svg).iter(f"{SVG}text"):
        if (element.text or "").startswith("label"):
            x, y = float(element.get("x", "nan")), float(element.get("y", "nan"))
            half = text_width(element.text or "", 11) / 2
            boxes.append((x - half, x + half, y - 8, y))
    for (a, b, top, bottom), (c, d, over, under) in combinations(boxes, 2):
        assert b <= c or d <= a or bottom <= over or under <= top
    return boxes
