"""Draw the pictures of docs/how-it-works.md as SVG.

    python docs/make_explanations.py docs/images

`pipeline` and `eisner-items` are drawings; `perturbed-trees` shows what treelax computes from the
scores of the README's picture with three draws of noise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from pathlib import Path

import torch

if not __package__:  # run as a script: the repository is the search path, not this folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import treelax as tx
from docs.make_picture import HEIGHT, LEFT, STEP, panel, scores

BLUE, ORANGE, GREY, INK = "#0072b2", "#d55e00", "#666", "#111"
FILLS = {"complete": "#d6e8f5", "incomplete": "#fbe3d3"}


def svg(width: int, height: int, title: str, body: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" role="img">\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def words(x: float, y: float, text: str, size: int = 15, colour: str = INK, more: str = "") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="middle" font-size="{size}" fill="{colour}" {more}>'
        f"{escape(text)}</text>"
    )


def arrow(x0: float, y0: float, x1: float, y1: float, colour: str = INK, dashes: str = "") -> str:
    """A straight arrow, to the right or to the left."""
    way = 1 if x1 > x0 else -1
    tip = f"M{x1:g} {y1:g} l{-8 * way} -4 v8 Z"
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<path d="M{x0:g} {y0:g} L{x1 - 6 * way:g} {y1:g}" stroke="{colour}" stroke-width="1.6"'
        f'{dashed}/><path d="{tip}" fill="{colour}"/>'
    )


def pipeline() -> str:
    """From word vectors to the loss, and the gradient on its way back."""
    rows = [
        [
            ("word vectors", "any encoder", "#eee"),
            ("arc scores W", "ArcScorer", "#eee"),
            ("W + G", "Gumbel noise", FILLS["incomplete"]),
        ],
        [
            ("soft tree T", "relaxed Eisner", FILLS["complete"]),
            ("new vectors", "TreeGCN", "#eee"),
            ("loss", "your task", "#eee"),
        ],
    ]
    wide, gap, high, left = 124, 26, 58, 14
    right = left + 3 * (wide + gap) - gap
    tops = (16, 118)
    body = []
    for top, boxes in zip(tops, rows, strict=True):
        for number, (name, how, fill) in enumerate(boxes):
            x = left + number * (wide + gap)
            body.append(
                f'<rect x="{x}" y="{top}" width="{wide}" height="{high}" rx="7" fill="{fill}" '
                f'stroke="{GREY}"/>'
            )
            body.append(words(x + wide / 2, top + 26, name, 15, more='font-weight="600"'))
            body.append(words(x + wide / 2, top + 45, how, 13, GREY))
            if number:
                body.append(arrow(x - gap + 2, top + high / 2, x - 2, top + high / 2))
    # from the end of the first row to the start of the second
    start, end, level = right - wide / 2, left + wide / 2, (tops[0] + high + tops[1]) / 2
    body.append(
        f'<path d="M{start:g} {tops[0] + high} V{level:g} H{end:g} V{tops[1] - 8}" fill="none" '
        f'stroke="{INK}" stroke-width="1.6"/>'
        f'<path d="M{end:g} {tops[1] - 2} l-4 -8 h8 Z" fill="{INK}"/>'
    )
    below = tops[1] + high + 20
    body.append(arrow(start, below, end, below, BLUE, "6 4"))
    body.append(
        words((start + end) / 2, below + 20, "the gradient comes back through all of it", 13, BLUE)
    )
    return svg(right + left, below + 32, "Word vectors become scores, a soft tree and a loss", body)


def complete(x: float, base: float, width: float, height: float, way: str) -> str:
    """A triangle, high at its head."""
    tall = x if way == "→" else x + width
    return (
        f'<path d="M{x:g} {base:g} H{x + width:g} L{tall:g} {base - height:g} Z" '
        f'fill="{FILLS["complete"]}" stroke="{BLUE}" stroke-width="1.6" stroke-linejoin="round"/>'
    )


def incomplete(x: float, base: float, width: float, height: float, way: str) -> str:
    """A trapezium, high at its head, with the arc that was just drawn."""
    left, right = (height, 0.55 * height) if way == "→" else (0.55 * height, height)
    start, end = (x, x + width) if way == "→" else (x + width, x)
    up = base - height - 20
    arc = f"M{start:g} {base - height - 4:g} C{start:g} {up:g} {end:g} {up:g} {end:g}"
    reach = base - 0.55 * height - 9
    return (
        f'<path d="M{x:g} {base:g} H{x + width:g} V{base - right:g} L{x:g} {base - left:g} Z" '
        f'fill="{FILLS["incomplete"]}" stroke="{ORANGE}" stroke-width="1.6" '
        f'stroke-linejoin="round"/><path d="{arc} {reach:g}" fill="none" stroke="{INK}" '
        f'stroke-width="1.6"/><path d="M{end - 4:g} {reach - 2:g} h8 l-4 7 Z" fill="{INK}"/>'
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
    body.append(words(x, base + 18, marks[0], 13, GREY))
    body.append(words(middle, base + 18, marks[1], 13, GREY))
    body.append(words(x + 2 * wide + gap, base + 18, marks[2], 13, GREY))
    body.append(words(middle, base + 40, f"{first[2]} + {second[2]}", 13))
    start = x + 2 * wide + gap + 22
    body.append(arrow(start, base - high / 2, start + 34, base - high / 2))
    body.append(result[0](start + 56, base, 1.7 * wide, high, result[1]))
    body.append(words(start + 56, base + 18, marks[0], 13, GREY))
    body.append(words(start + 56 + 1.7 * wide, base + 18, marks[2], 13, GREY))
    body.append(words(start + 56 + 0.85 * wide, base + 40, result[2], 13))
    return body


def eisner_items() -> str:
    """The four rules by which spans grow."""
    halves = ((complete, "→", "C→(i,k)"), (complete, "←", "C←(k+1,j)"))
    rules = [
        (*halves, "k  k+1", (incomplete, "→", "I→(i,j): arc i → j")),
        (*halves, "k  k+1", (incomplete, "←", "I←(i,j): arc j → i")),
        ((incomplete, "→", "I→(i,k)"), (complete, "→", "C→(k,j)"), "k", (complete, "→", "C→(i,j)")),
        ((complete, "←", "C←(i,k)"), (incomplete, "←", "I←(k,j)"), "k", (complete, "←", "C←(i,j)")),
    ]
    body = []
    for number, (first, second, split, result) in enumerate(rules):
        base = 84 + 134 * number
        body += rule(24, base, first, second, ("i", split, "j"), result, share=split == "k")
    return svg(440, 84 + 134 * 3 + 54, "How spans of Eisner's algorithm are put together", body)


def perturbed_trees() -> str:
    """Soft trees of the same scores with three draws of noise."""
    generator = torch.Generator().manual_seed(3)
    body = []
    for number in range(3):
        noisy = scores() + tx.noise.gumbel((8, 8), generator=generator)
        note = "the same scores, other noise" if number else "temperature 1"
        title = f"soft tree, draw {number + 1} of Gumbel noise"
        body.append(panel(number, title, note, tx.ops.soft_tree(noisy)))
    return svg(2 * LEFT + 7 * STEP, 3 * HEIGHT, "Soft trees of three draws of noise", body)


PICTURES = {
    "pipeline": pipeline,
    "eisner-items": eisner_items,
    "perturbed-trees": perturbed_trees,
}


def main(folder: str) -> None:
    for name, draw in PICTURES.items():
        (Path(folder) / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/images")
