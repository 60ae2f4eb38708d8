"""Draw the pictures of docs/structures.md as SVG: the best structure of each kind, by made-up scores.

python docs/make_structures.py docs/images
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from operator import sub
from pathlib import Path

import torch

if not __package__:  # run as a script: the repository is the search path, not this folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import treelax as tx
from docs.make_explanations import coloured, filled, words
from treelax.apps.pictures import Picture, draw_arcs, draw_brackets
from treelax.apps.pictures.layout import spread
from treelax.apps.pictures.style import BETWEEN, WORD
from treelax.apps.pictures.svg import number, text_width
from treelax.structures import Structure

WIDTH, MARGIN, STEP = 336.0, 16.0, 30.0  # of all pictures, around them, from dot to dot
NESTED = ["I", "saw", "dogs", "that", "bark", "today"]
CROSSING = ["I", "saw", "dogs", "today", "that", "bark"]
ARCS = {  # scores and labels of arcs, head first; the score of all others is 0
    **{("", "saw"): (4, "root"), ("saw", "I"): (4, "nsubj"), ("saw", "today"): (3, "obl")},
    **{("saw", "dogs"): (2, "obj"), ("dogs", "bark"): (3, "acl"), ("bark", "that"): (3, "nsubj")},
    ("bark", "dogs"): (3, "nsubj"),  # more than "obj", but it closes a cycle
}
SPANS = tx.trees.spans_to_tensor([(1, 5), (1, 4), (2, 4), (3, 4)], 6)
NAMES, TAGS = ["Ada", "King", "left", "New", "York"], ["PER", "O", "LOC"]
EMISSIONS = torch.tensor([[2, 0, 0], [0.5, 0, 0], [0, 2, 0], [0, 0, 0.5], [0, 0, 2]])
NODES = torch.tensor([[20.0, 20], [100, 66], [32, 114], [196, 16], [222, 108], [304, 52]])
Pairs = list[tuple[int, int]]


def arcs(structure: Structure, sentence: list[str], labels: list[str]) -> Picture:
    """A tree with labels, or one without if all of them are the same."""
    places = {word: place for place, word in enumerate(["", *sentence])}
    scores = torch.zeros(len(places), len(places), len(labels))
    for (head, modifier), (score, label) in ARCS.items():
        scores[places[head], places[modifier], labels.index(label) if labels[0] else 0] = score
    best = tx.Labelled(structure)(scores).mode
    chosen = [labels[label] for label in best.sum(0).argmax(-1)[1:]]
    return draw_arcs(sentence, tx.trees.tree_to_heads(best.sum(-1)), labels=chosen)


def dots(points: Sequence[tuple[float, float]], options: Pairs, chosen: Pairs) -> str:
    """Dots and lines: all that there could be, and above them those that were chosen."""

    def drawn(pairs: Pairs, places: set[int], look: str, radius: int) -> str:
        ends = ([*map(number, (*points[i], *points[j]))] for i, j in pairs)
        path = "".join(f"M{x} {y}L{to_x} {to_y}" for x, y, to_x, to_y in ends)
        at = ([*map(number, points[i])] for i in sorted(places))
        circles = "".join(f'<circle cx="{x}" cy="{y}" r="{radius}"/>' for x, y in at)
        return f'<path d="{path}" stroke="currentColor" {look}/>{circles}'

    inside = {place for pair in chosen for place in pair}
    faint = drawn(options, {*range(len(points))} - inside, 'stroke-opacity="0.45"', 3)
    strong = drawn(chosen, inside, 'stroke-width="2.4"', 5)
    return coloured("grey", faint) + coloured("blue", strong)


def named_words(y: float, left: float) -> tuple[str, list[float], list[float]]:
    """The names next to each other, the middles of them, and the places between them."""
    widths = [text_width(name, WORD) for name in NAMES]
    middles = [left + x for x in spread(widths, BETWEEN, [])]
    text = "".join(words(x, y, name, int(WORD)) for x, name in zip(middles, NAMES, strict=True))
    edges = [x - (width + BETWEEN) / 2 for x, width in zip(middles, widths, strict=True)]
    return text, middles, [*edges, middles[-1] + (widths[-1] + BETWEEN) / 2]


def chain() -> Picture:
    """A column of tags for each word."""
    tags = tx.Chain.tags(tx.Chain()(tx.Chain.join(EMISSIONS, torch.eye(3))).mode).tolist()
    text, middles, edges = named_words(114, 58)
    points = [(x, 22 + STEP * tag) for x in middles for tag in range(3)]
    options = [(i, 3 * (i // 3 + 1) + j) for i in range(3 * len(NAMES) - 3) for j in range(3)]
    body = dots(points, options, [*pairwise(3 * t + tag for t, tag in enumerate(tags))])
    body += "".join(words(MARGIN + 13, 27 + STEP * i, tag) for i, tag in enumerate(TAGS))
    facts = " ".join(f"{name}: {TAGS[tag]}." for name, tag in zip(NAMES, tags, strict=True))
    return Picture(edges[-1] + MARGIN, 132, text + body, "", facts)


def segments() -> Picture:
    """A box around each segment, with its label on top."""
    scores = tx.Segments.join(EMISSIONS, torch.full((3, 3), -1.0))
    text, _, edges = named_words(53, MARGIN)
    body, facts = "", []
    for first, more, label in tx.Segments(max_length=3)(scores).mode.nonzero().tolist():
        left, right = edges[first] + 2, edges[first + more + 1] - 2
        body += filled(f"M{number(left)} 32H{number(right)}V64H{number(left)}z", "blue")
        body += words((left + right) / 2, 25, TAGS[label])
        facts.append(f"{' '.join(NAMES[first : first + more + 1])}: {TAGS[label]}.")
    return Picture(edges[-1] + MARGIN, 80, body + text, "", " ".join(facts))


def alignment() -> Picture:
    """A path through the grid of the letters of two words."""
    rows, columns, n, m = "color", "colour", 5, 6
    scores = torch.zeros(n, m, 3)
    scores[..., 0] = torch.tensor([[float(row == column) for column in columns] for row in rows])
    path = tx.Alignment()(scores).mode.sum(-1).flatten().nonzero()[:, 0].tolist()
    points = [(42 + STEP * j, 46 + STEP * i) for i in range(n) for j in range(m)]
    steps, pairs = ((0, STEP), (STEP, 0), (STEP, STEP)), combinations(range(n * m), 2)
    moves = [(i, j) for i, j in pairs if tuple(map(sub, points[j], points[i])) in steps]
    body = dots(points, moves, [*pairwise(path)])
    body += "".join(words(42 + STEP * j, 30, c, int(WORD)) for j, c in enumerate(columns))
    body += "".join(words(20, 51 + STEP * i, c, int(WORD)) for i, c in enumerate(rows))
    facts = ", ".join(f"{rows[cell // m]} with {columns[cell % m]}" for cell in path)
    return Picture(points[-1][0] + MARGIN, points[-1][1] + MARGIN, body, "", f"{facts}.")


def spanning() -> Picture:
    """The shortest tree over points."""
    best = tx.Spanning()(-torch.cdist(NODES, NODES)).mode
    edges = [(i, j) for i, j in best.nonzero().tolist()]
    body = dots(NODES.tolist(), [*combinations(range(6), 2)], edges)
    facts = ", ".join(f"{'ABCDEF'[i]}–{'ABCDEF'[j]}" for i, j in edges)
    return Picture(324, 134, body, "", f"Of all 15 edges between six points, A to F: {facts}.")


LABELS = sorted({label for _, label in ARCS.values()})
PICTURES: dict[str, Callable[[], Picture]] = {
    "projective tree": lambda: arcs(tx.Projective(), NESTED, [""]),
    "non-projective tree": lambda: arcs(tx.NonProjective(), CROSSING, [""]),
    "heads": lambda: arcs(tx.Heads(), NESTED, [""]),
    "binary tree": lambda: draw_brackets(NESTED, tx.Binary()(SPANS).mode),
    "spanning tree": spanning,
    "labelled tree": lambda: arcs(tx.Projective(), NESTED, LABELS),
    "chain": chain,
    "segments": segments,
    "alignment": alignment,
}


def draw(name: str) -> Picture:
    """In the middle of a picture that is as wide as all others."""
    picture = PICTURES[name]()
    body = f'<g transform="translate({number((WIDTH - picture.width) / 2)} 0)">{picture.body}</g>'
    return replace(picture, title=name.capitalize(), width=WIDTH, body=body)


if __name__ == "__main__":
    for name in PICTURES:
        draw(name).save(Path(sys.argv[1], f"{name.replace(' ', '-')}.svg"))
