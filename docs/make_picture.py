"""Draw the picture of the README: best tree and soft trees of one sentence, as SVG.

    python docs/make_picture.py docs/images/soft-trees.svg

The scores are made up (a tree that a person would draw, plus Gaussian noise from a fixed seed); the
trees are what treelax computes from them.
"""

import sys
from html import escape
from pathlib import Path

import torch

import treelax as tx

WORDS = ["the", "old", "cat", "watched", "a", "small", "bird"]
HEADS = [3, 3, 4, 0, 7, 7, 4]
STEP, LEFT, HEIGHT = 92, 60, 190
PANELS = [
    ("best tree", "exact, 0 or 1", 0.0),
    ("soft tree, temperature 1", "darker arcs weigh more", 1.0),
    ("soft tree, temperature 3", "every word's arcs sum to 1", 3.0),
]


def scores() -> torch.Tensor:
    noise = torch.randn(8, 8, generator=torch.Generator().manual_seed(7))
    gold = tx.trees.heads_to_tree(torch.tensor(HEADS))
    return 3 * gold + noise


def tree(temperature: float) -> torch.Tensor:
    if temperature == 0:
        return tx.ops.best_tree(scores())
    return tx.ops.soft_tree(scores(), temperature=temperature)


def arc(head: int, modifier: int, weight: float, base: float) -> str:
    """An arch from head to modifier with an arrow; its opacity is the weight."""
    x0, x1 = (LEFT + STEP * p for p in (head, modifier))
    x0 += 7 if x1 > x0 else -7  # arcs leave beside the arrows that arrive
    rise = 24 + 17 * abs(head - modifier)
    path = f"M{x0} {base} C{x0} {base - rise} {x1} {base - rise} {x1} {base - 5}"
    colour = "#0072b2" if head else "#d55e00"
    tip = f"M{x1 - 4} {base - 8} L{x1 + 4} {base - 8} L{x1} {base} Z"
    return (
        f'<g opacity="{weight:.3f}"><path d="{path}" fill="none" stroke="{colour}" '
        f'stroke-width="2"/><path d="{tip}" fill="{colour}"/></g>'
    )


def panel(number: int, title: str, note: str, weights: torch.Tensor) -> str:
    base = number * HEIGHT + 158
    parts = [
        f'<text x="14" y="{base - 134}" font-weight="600" font-size="17">{escape(title)}</text>',
        f'<text x="14" y="{base - 115}" font-size="13" fill="#666">{escape(note)}</text>',
    ]
    for head in range(8):
        for modifier in range(1, 8):
            weight = float(weights[head, modifier])
            if weight >= 0.02:
                parts.append(arc(head, modifier, weight, base))
    for position, word in enumerate(["root", *WORDS]):
        style = 'font-style="italic" fill="#666"' if position == 0 else 'fill="#111"'
        parts.append(
            f'<text x="{LEFT + STEP * position}" y="{base + 20}" text-anchor="middle" '
            f'font-size="17" {style}>{escape(word)}</text>'
        )
    return "\n".join(parts)


def main(target: str) -> None:
    width, height = 2 * LEFT + 7 * STEP, HEIGHT * len(PANELS)
    body = "\n".join(
        panel(i, title, note, tree(temperature))
        for i, (title, note, temperature) in enumerate(PANELS)
    )
    Path(target).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" role="img">\n'
        "<title>A best tree and two soft trees of one sentence</title>\n"
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/images/soft-trees.svg")
