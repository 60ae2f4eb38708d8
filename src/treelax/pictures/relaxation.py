"""The figure "argmax against its relaxation": why a relaxed choice has a gradient.

It shows the first of three outputs for the input ``(x1, x2, 0)``: that of the argmax, which is flat
wherever it does not jump, and that of its relaxation. The choice is a word's choice of a head
among three, as `treelax.ops.select_heads` makes it.

Reference: Corro & Titov (2019), appendix B.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import torch

from treelax.errors import InputError
from treelax.ops import select_heads
from treelax.pictures.svg import COLOURS, Picture
from treelax.pictures.svg_text import number, text_element

__all__ = ["draw_relaxation"]

REACH, CELLS = 4.0, 20  # inputs from -REACH to REACH, in so many cells
WIDTH, DEPTH, RISE = 17.0, 8.5, 96.0  # pixels for one unit along x1 + x2, x1 - x2, and the output
PANEL, TOP, HEIGHT = 340.0, 46.0, 360.0
FAINT, STRONG = (0xDD, 0xEC, 0xF6), (0x00, 0x72, 0xB2)  # of a surface at 0 and at 1

FACES = '<g stroke="#7FA9C4" stroke-width="0.5" stroke-linejoin="round">'

Point = tuple[float, float, float]  # x1, x2, output


def draw_relaxation(*, temperature: float = 1.0) -> Picture:
    r"""Draw the first output of argmax and of its relaxation, for the inputs ``(x1, x2, 0)``.

    .. math:: \frac{\exp(x_1/\tau)}{\exp(x_1/\tau) + \exp(x_2/\tau) + 1}

    Args:
        temperature: of the relaxation.

    Returns:
        The picture: two surfaces side by side.

    Raises:
        InputError: the temperature is not positive.

    Example:
        >>> draw_relaxation(temperature=0.5).title
        'Argmax against its relaxation: first output for the input (x1, x2, 0)'
    """
    if not 0 < temperature < math.inf:
        raise InputError(f"temperature: received {temperature}; expected a positive number")
    parts = [
        text_element(
            *(16, 27, "First output for the input (x₁, x₂, 0)"),
            size=15,
            anchor="start",
            attributes='font-weight="600"',
            longest=99,
        )
    ]
    panels = [
        ("argmax", "every derivative is 0, save at the cliff", _argmax()),
        (
            f"relaxation, temperature {temperature:g}",
            "derivatives that show the way up",
            _relaxed(temperature),
        ),
    ]
    for i, (name, note, surface) in enumerate(panels):
        body = "\n".join([FACES, *surface, "</g>", *_axes(), *_captions(name, note)])
        parts.append(
            f'<g transform="translate({number((i + 0.5) * PANEL)} {TOP:g})">\n{body}\n</g>'
        )
    return Picture(
        2 * PANEL,
        HEIGHT,
        "\n".join(parts),
        "Argmax against its relaxation: first output for the input (x1, x2, 0)",
        "Two surfaces over x1 and x2 from -4 to 4. Left, argmax: 1 where x1 is the greatest of the "
        "three inputs, 0 elsewhere, with a cliff between; its derivatives are 0 almost everywhere. "
        f"Right, its relaxation with temperature {temperature:g}: a smooth slope from 0 to 1, whose "
        "derivatives are not 0.",
    )


def _outputs(points: Iterable[tuple[float, float]], temperature: float | None) -> list[float]:
    """The first output at each point; of argmax if there is no temperature."""
    inputs = torch.tensor([[x1, x2, 0.0] for x1, x2 in points], dtype=torch.float64)
    scores = torch.zeros(len(inputs), 4, 4, dtype=torch.float64)
    scores[:, :3, 3] = inputs  # the third word chooses among the root and the two other words
    if temperature is None:
        chosen = select_heads(scores, hard=True)
    else:
        chosen = select_heads(scores, temperature=temperature)
    outputs: list[float] = chosen[:, 0, 3].tolist()
    return outputs


def _edges() -> list[float]:
    # in whole numbers first: then 0 is exactly 0
    return [(2 * i - CELLS) * REACH / CELLS for i in range(CELLS + 1)]


def _relaxed(temperature: float) -> list[str]:
    """The surface of the relaxation, the cells at the back first."""
    edges = _edges()
    values = dict(
        zip(
            ((a, b) for a in edges for b in edges),
            _outputs(((a, b) for a in edges for b in edges), temperature),
            strict=True,
        )
    )
    faces = []
    for a, right in pairwise(edges):
        for b, front in pairwise(edges):
            corners = [(a, b), (right, b), (right, front), (a, front)]
            faces.append((b - a, [(x1, x2, values[x1, x2]) for x1, x2 in corners]))
    return [_face(corners) for _, corners in sorted(faces)]


def _argmax() -> list[str]:
    """The two levels of argmax, each cell of one level, and the cliff between them."""
    edges = _edges()
    flats: list[list[tuple[float, float]]] = []
    for a, right in pairwise(edges):
        for b, front in pairwise(edges):
            if a == b >= 0:  # the border runs through it
                flats.append([(a, b), (right, b), (right, front)])
                flats.append([(a, b), (right, front), (a, front)])
            else:
                flats.append([(a, b), (right, b), (right, front), (a, front)])
    middles = [(_mean(x for x, _ in flat), _mean(x for _, x in flat)) for flat in flats]
    faces: dict[float, list[str]] = {0.0: [], 1.0: []}
    for flat, output in zip(flats, _outputs(middles, None), strict=True):
        faces[output].append(_face([(x1, x2, output) for x1, x2 in flat]))
    cliff = [
        _cliff((0.0, -REACH), (0.0, 0.0)),
        _cliff((0.0, 0.0), (REACH, REACH)),
    ]
    return [*faces[1.0], *cliff, *faces[0.0]]


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


# ------------------------------------------------------------------ as SVG


def _place(point: Point) -> str:
    """A point of space on the page: x1 grows to the back and right, x2 to the front and right."""
    x1, x2, output = point
    x = (x1 + x2) * WIDTH
    y = (x2 - x1) * DEPTH - output * RISE
    return f"{number(x)} {number(y + 2 * REACH * DEPTH + RISE)}"


def _outline(points: Sequence[Point]) -> str:
    return "M" + "L".join(map(_place, points))


def _face(corners: Sequence[Point]) -> str:
    """A cell of a surface, in the colour of its mean output."""
    share = _mean(output for _, _, output in corners)
    mixed = (round(a + share * (b - a)) for a, b in zip(FAINT, STRONG, strict=True))
    colour = "#" + "".join(f"{part:02X}" for part in mixed)
    return f'<path d="{_outline(corners)}z" fill="{colour}"/>'


def _cliff(start: tuple[float, float], end: tuple[float, float]) -> str:
    corners = [(*start, 0.0), (*end, 0.0), (*end, 1.0), (*start, 1.0)]
    return (
        f'<path class="treelax-grey" color="{COLOURS["grey"][0]}" d="{_outline(corners)}z" '
        'fill-opacity="0.22" stroke="currentColor" stroke-width="0.8" stroke-dasharray="3 3"/>'
    )


def _axes() -> list[str]:
    """Lines and numbers along the two lower edges at the front and along the left corner."""
    left, front, right = (-REACH, -REACH), (-REACH, REACH), (REACH, REACH)
    lines = _outline([(*left, 1.0), (*left, 0.0), (*front, 0.0), (*right, 0.0)])
    parts = [f'<path d="{lines}" fill="none" stroke="currentColor" stroke-width="1"/>']

    def mark(point: Point, text: str, dx: float, dy: float, anchor: str, size: float = 11) -> None:
        x, y = map(float, _place(point).split())
        parts.append(text_element(x + dx, y + dy, text, size=size, anchor=anchor))

    for tick in (-4, -2, 0, 2, 4):
        text = f"{tick}".replace("-", "−")
        mark((-REACH, tick, 0.0), text, -7, 13, "end")
        mark((tick, REACH, 0.0), text, 7, 13, "start")
    for tick in (0, 1):
        mark((*left, tick), f"{tick}", -6, 2, "end")
    mark((-REACH, 0, 0.0), "x₂", -34, 26, "middle", 13)
    mark((0, REACH, 0.0), "x₁", 34, 26, "middle", 13)
    return parts


def _captions(name: str, note: str) -> list[str]:
    y = 4 * REACH * DEPTH + RISE
    return [
        text_element(0, y + 38, name, size=14, attributes='font-weight="600"', longest=60),
        text_element(0, y + 56, note, size=12, longest=60),
    ]
