"""Draw the moving picture of the README: a sentence's soft tree while the temperature falls.

    python docs/make_animation.py docs/images/temperature.svg

The scores are those of the English parser that comes with treelax. All arcs are laid out once, so
words and arcs keep their places; style sheets move their opacity, and only for readers who have not
asked for less motion. Others see the best tree.
"""

import re
import sys

import torch

import treelax as tx
from treelax.apps.pictures import draw_arcs
from treelax.apps.pictures.style import opacity

TEXT = "She saw the man with a telescope."
TITLE = "One sentence, all of its trees, and a falling temperature"
HOTTEST, COLDEST, FRAMES = 40.0, 0.5, 13
LEAST = 0.1  # weight that an arc must reach at some temperature to be drawn
SECONDS = 7
ARC = re.compile(r'<g class="([^"]*)"([^>]*?)(?: opacity="[^"]*")?>(<title>[^<]*<)')
NAMES = re.compile(r"\((\d+)\) → .*\((\d+)\)")


def soft_trees() -> tuple[tuple[str, ...], torch.Tensor]:
    """The words, and a soft tree for every temperature from the highest to the lowest."""
    parser = tx.load("english")
    words = parser.words(TEXT)
    scores = parser.arc_scores(words)
    temperatures = torch.logspace(0, 1, FRAMES, base=COLDEST / HOTTEST) * HOTTEST
    trees = [tx.ops.soft_tree(scores, temperature=float(t), single_root=True) for t in temperatures]
    return words, torch.stack(trees)


def keyframes(name: str, values: list[str]) -> str:
    """An animation that takes as long from each value to the next, and rests at both ends."""
    steps = [10 + 70 * i / (len(values) - 1) for i in range(len(values))]
    steps[0] = 0.0
    frames = "".join(f"{step:.0f}%{{{value}}}" for step, value in zip(steps, values, strict=True))
    return f"@keyframes {name}{{{frames}100%{{{values[-1]}}}}}"


def strength(weight: float) -> float:
    """The opacity of an arc; one that weighs next to nothing disappears."""
    return min(weight / LEAST, 1) * opacity(weight)


def animated() -> str:
    """The picture as SVG."""
    words, trees = soft_trees()
    union = trees.amax(0)
    union[0] *= trees[-1, 0]  # one arc from the root is enough to see
    picture = draw_arcs(words, weights=union, title=TITLE, least=LEAST)
    rules, moved = [], []

    def arc(match: re.Match[str]) -> str:
        names = NAMES.search(match[3])
        if names is None:
            return match[0]
        head, modifier = int(names[1]), int(names[2])
        name = f"arc-{head}-{modifier}"
        strengths = [strength(weight) for weight in trees[:, head, modifier].tolist()]
        rules.append(keyframes(name, [f"opacity:{each:.2f}" for each in strengths]))
        moved.append(f".{name}{{animation-name:{name}}}")
        told = re.sub(r", [\d.]+<$", "<", match[3])  # a weight that moves is not told
        return f'<g class="{match[1]} arc {name}"{match[2]} opacity="{strengths[-1]:.2f}">{told}'

    svg = ARC.sub(arc, picture.svg())
    timing = f".arc{{animation:{SECONDS}s ease-in-out infinite alternate}}"
    style = f"@media (prefers-reduced-motion:no-preference){{{''.join([timing, *moved])}}}"
    return svg.replace("</style>", f"{''.join(rules)}{style}</style>", 1)


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "docs/images/temperature.svg"
    with open(path, "w", encoding="utf-8") as file:
        file.write(animated())
