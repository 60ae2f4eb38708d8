"""Draw the picture of the README: best tree and soft trees of one sentence, as SVG.

    python docs/make_picture.py docs/images/soft-trees.svg

The scores are made up (a tree that a person would draw, plus Gaussian noise from a fixed seed); the
trees are what treelax computes from them.
"""

import sys

import torch

import treelax as tx
from treelax.apps.pictures import Picture, draw_arcs, stack_pictures
from treelax.apps.pictures.svg import draw_note

WORDS = ["the", "old", "cat", "watched", "a", "small", "bird"]
HEADS = [3, 3, 4, 0, 7, 7, 4]
LEAST = 0.1  # weight of an arc that is drawn: with all of them the strong ones would be lost
NOTE = f"Arcs that weigh {LEAST:g} or more; all arcs to a word weigh 1 together"


def scores() -> torch.Tensor:
    noise = torch.randn(8, 8, generator=torch.Generator().manual_seed(7))
    gold = tx.trees.heads_to_tree(torch.tensor(HEADS))
    return 3 * gold + noise


def draw_soft_tree(weights: torch.Tensor, title: str) -> Picture:
    return draw_arcs(WORDS, weights=weights, title=title, least=LEAST)


def soft_trees() -> Picture:
    """The best tree, and soft trees of two temperatures."""
    best = tx.trees.tree_to_heads(tx.ops.best_tree(scores()))
    pictures = [draw_arcs(WORDS, best, title="Best tree")]
    for temperature in (1.0, 3.0):
        soft = tx.ops.soft_tree(scores(), temperature=temperature)
        pictures.append(draw_soft_tree(soft, f"Soft tree, temperature {temperature:g}"))
    return stack_pictures(
        [*pictures, draw_note(NOTE)], title="A best tree and two soft trees of one sentence"
    )


if __name__ == "__main__":
    soft_trees().save(sys.argv[1] if len(sys.argv) > 1 else "docs/images/soft-trees.svg")
