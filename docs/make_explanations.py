"""Draw the pictures of docs/how-it-works.md as SVG.

    python docs/make_explanations.py docs/images

`pipeline` and `eisner-items` are drawings; `perturbed-trees` shows what treelax computes from the
scores of the README's picture with three draws of noise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch

if not __package__:  # run as a script: the repository is the search path, not this folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import treelax as tx
from docs.make_picture import NOTE, draw_soft_tree, scores
from treelax.apps.pictures import Picture, stack_pictures
from treelax.apps.pictures.style import COLOURS
from treelax.apps.pictures.svg import draw_note, number, text_element

FAINT = 0.16  # opacity of what fills a shape, so that its text is seen on light and on dark
SMALL, LARGE = 13, 15  # sizes of fonts
MUTED = 'fill-opacity="0.75"'
DASHES = "5 3"


def coloured(colour: str, *parts: str) -> str:
    """Parts whose ``currentColor`` is a colour of the pictures."""
    light, _ = COLOURS[colour]
    return f'<g class="treelax-{colour}" color="{light}" fill="currentColor">{"".join(parts)}</g>'


def words(x: float, y: float, text: str, size: int = SMALL, more: str = "") -> str:
    return text_element(x, y, text, size=size, attributes=more, longest=99)


def line(path: str, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.6"{dashed}/>'


def tip(path: str) -> str:
    return f'<path d="{path}"/>'


def filled(path: str, colour: str) -> str:
    """A closed shape with a faint inside."""
    look = (
        f'fill-opacity="{FAINT}" stroke="currentColor" stroke-width="1.6" stroke-linejoin="round"'
    )
    return coloured(colour, f'<path d="{path}" {look}/>')


def arrow(x0: float, y: float, x1: float, dashes: str = "") -> str:
    """A level arrow, to the right or to the left."""
    way = 1 if x1 > x0 else -1
    shaft = line(f"M{number(x0)} {number(y)}H{number(x1 - 6 * way)}", dashes)
    return shaft + tip(f"M{number(x1)} {number(y)}l{-8 * way} -4v8z")


def box(x: float, y: float, size: tuple[int, int], name: str, how: str, colour: str) -> str:
    """A round box with what comes out of it, and what makes that."""
    wide, high = size
    frame = (
        f'<rect x="{number(x)}" y="{number(y)}" width="{wide}" height="{high}" rx="7" '
        f'fill-opacity="{FAINT}" stroke="currentColor"/>'
    )
    return (
        coloured(colour, frame)
        + words(x + wide / 2, y + 26, name, LARGE, 'font-weight="600"')
        + words(x + wide / 2, y + 45, how, SMALL, MUTED)
    )


def pipeline() -> Picture:
    """From word vectors to the loss, and the gradient on its way back through every box."""
    rows = [
        [
            ("word vectors", "any encoder", "grey"),
            ("arc scores W", "ArcScorer", "grey"),
            ("W + G", "Gumbel noise", "vermillion"),
        ],
        [
            ("soft tree T", "relaxed Eisner", "blue"),
            ("new vectors", "TreeGCN", "grey"),
            ("loss", "your task", "grey"),
        ],
    ]
    wide, gap, high, left, apart = 124, 42, 58, 14, 9
    right = left + 3 * (wide + gap) - gap
    tops = (16, 130)
    body, back = [], []
    for top, boxes in zip(tops, rows, strict=True):
        for place, (name, how, colour) in enumerate(boxes):
            x = left + place * (wide + gap)
            body.append(box(x, top, (wide, high), name, how, colour))
            if place:
                body.append(arrow(x - gap + 3, top + high / 2 - apart, x - 3))
                back.append(arrow(x - 3, top + high / 2 + apart, x - gap + 3, DASHES))
    # from the end of the first row to the start of the second, and back inside of it
    near, far, bottom = left + wide / 2, right - wide / 2, tops[0] + high + 3
    top, level = tops[1] - 3, (tops[0] + high + tops[1]) / 2
    near_to, far_to, across = (number(value + apart) for value in (near, far, level))
    body.append(line(f"M{far_to} {bottom}V{across}H{near_to}V{top - 6}"))
    body.append(tip(f"M{near_to} {top}l-4 -8h8z"))
    near_back, far_back, across = (number(value - apart) for value in (near, far, level))
    back.append(line(f"M{near_back} {top}V{across}H{far_back}V{bottom + 6}", DASHES))
    back.append(tip(f"M{far_back} {bottom}l-4 8h8z"))
    below = tops[1] + high + 26
    told = "the gradient, from the loss back to the encoder"
    back.append(line(f"M{left} {below - 4}h36", DASHES))
    body.append(coloured("blue", *back))
    body.append(text_element(left + 46, below, told, size=SMALL, anchor="start", longest=99))
    return Picture(
        right + left,
        below + 18,
        "\n".join(body),
        "Word vectors become scores, a soft tree and a loss",
        "Six boxes with an arrow from each to the next: "
        + "; ".join(f"{name}, {how}" for row in rows for name, how, _ in row)
        + ". A dashed arrow leads back from each to the one before: the gradient, from the loss back to "
        "the encoder.",
    )


def complete(x: float, base: float, width: float, height: float, way: str) -> str:
    """A triangle, high at its head."""
    tall = x if way == "→" else x + width
    path = (
        f"M{number(x)} {number(base)}H{number(x + width)}L{number(tall)} {number(base - height)}z"
    )
    return filled(path, "blue")


def incomplete(x: float, base: float, width: float, height: float, way: str) -> str:
    """A trapezium, high at its head, with the arc that was just drawn."""
    left, right = (height, 0.55 * height) if way == "→" else (0.55 * height, height)
    start, end = (x, x + width) if way == "→" else (x + width, x)
    up, reach = number(base - height - 20), base - 0.55 * height - 9
    path = (
        f"M{number(x)} {number(base)}H{number(x + width)}V{number(base - right)}"
        f"L{number(x)} {number(base - left)}z"
    )
    arc = (
        f"M{number(start)} {number(base - height - 4)}"
        f"C{number(start)} {up} {number(end)} {up} {number(end)} {number(reach)}"
    )
    return (
        filled(path, "vermillion")
        + line(arc)
        + tip(f"M{number(end - 4)} {number(reach - 2)}h8l-4 7z")
    )


Shape = Callable[[float, float, float, float, str], str]


def rule(
    x: float, base: float, first: tuple[Shape, str, str], second: tuple[Shape, str, str],
    marks: tuple[str, str, str], result: tuple[Shape, str, str], share: bool,
) -> list[str]:  # fmt: skip
    """Two items side by side and the one they make."""
    wide, high, gap = 74, 46, 10 if share else 16
    body = [first[0](x, base, wide, high, first[1])]
    body.append(second[0](x + wide + gap, base, wide, high, second[1]))
    middle = x + wide + gap / 2
    body.append(words(x, base + 18, marks[0], more=MUTED))
    body.append(words(middle, base + 18, marks[1], more=MUTED))
    body.append(words(x + 2 * wide + gap, base + 18, marks[2], more=MUTED))
    body.append(words(middle, base + 40, f"{first[2]} + {second[2]}"))
    start = x + 2 * wide + gap + 22
    body.append(arrow(start, base - high / 2, start + 34))
    body.append(result[0](start + 56, base, 1.7 * wide, high, result[1]))
    body.append(words(start + 56, base + 18, marks[0], more=MUTED))
    body.append(words(start + 56 + 1.7 * wide, base + 18, marks[2], more=MUTED))
    body.append(words(start + 56 + 0.85 * wide, base + 40, result[2]))
    return body


def eisner_items() -> Picture:
    """The four rules by which spans grow."""
    halves = ((complete, "→", "C→(i,k)"), (complete, "←", "C←(k+1,j)"))
    rules = [
        (*halves, "k  k+1", (incomplete, "→", "I→(i,j): arc i → j")),
        (*halves, "k  k+1", (incomplete, "←", "I←(i,j): arc j → i")),
        ((incomplete, "→", "I→(i,k)"), (complete, "→", "C→(k,j)"), "k", (complete, "→", "C→(i,j)")),
        ((complete, "←", "C←(i,k)"), (incomplete, "←", "I←(k,j)"), "k", (complete, "←", "C←(i,j)")),
    ]
    body = []
    for place, (first, second, split, result) in enumerate(rules):
        base = 84 + 134 * place
        body += rule(24, base, first, second, ("i", split, "j"), result, share=split == "k")
    return Picture(
        440,
        84 + 134 * 3 + 54,
        "\n".join(body),
        "How spans of Eisner's algorithm are put together",
        "Complete items are triangles, incomplete ones trapeziums with an arc, both high at their head. "
        "Four rules: "
        + "; ".join(f"{one[2]} and {two[2]} make {made[2]}" for one, two, _, made in rules)
        + ".",
    )


def perturbed_trees() -> Picture:
    """Soft trees of the same scores with three draws of noise."""
    generator = torch.Generator().manual_seed(3)
    pictures = []
    for draw in (1, 2, 3):
        noisy = scores() + tx.noise.gumbel((8, 8), generator=generator)
        title = f"Soft tree, draw {draw} of Gumbel noise"
        pictures.append(draw_soft_tree(tx.ops.soft_tree(noisy), title))
    return stack_pictures([*pictures, draw_note(NOTE)], title="Soft trees of three draws of noise")


PICTURES = {
    "pipeline": pipeline,
    "eisner-items": eisner_items,
    "perturbed-trees": perturbed_trees,
}


def main(folder: str) -> None:
    for name, draw in PICTURES.items():
        draw().save(Path(folder, f"{name}.svg"))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/images")
