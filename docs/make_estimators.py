"""Draw the picture of docs/estimators.md: what every estimator does to the three trees of two words.

python docs/make_estimators.py docs/images
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

if not __package__:  # run as a script: the repository is the search path, not this folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import treelax as tx
from treelax.estimators import Estimator
from treelax.lab.plots.plot import COLOURS, EDGE, FADED, Curves, plot_style

STRUCTURE = tx.Projective()
SEEN, SINGLE, DRAWS = 60, 40, 4000  # trees and estimates that are shown, estimates behind an arrow
LENGTH = 0.9  # of a step in the scores
# scores that prefer the first tree, a loss that is least for the third
SCORES = torch.tensor([[0.0, 1.1, 0.9], [0.0, 0.0, 0.6], [0.0, 0.2, 0.0]], dtype=torch.float64)
COSTS = torch.tensor([[0.0, 1.3, 0.5], [0.0, 0.0, 0.7], [0.0, -0.6, 0.0]], dtype=torch.float64)
PANELS: dict[str, Estimator] = {
    "Exact": tx.Exact(),
    "Relaxed, softmax": tx.Relaxed(),
    "Relaxed, entropy": tx.Relaxed("entropy"),
    "Marginals": tx.Marginals(),
    "SparseMAP": tx.SparseMAP(),
    "StraightThrough": tx.StraightThrough(),
    "SPIGOT": tx.SPIGOT(step=1.0),
    "SPIGOT-EG": tx.SPIGOT(step=1.0, form="eg"),
    "IMLE": tx.IMLE(step=2.0),
    "Perturbed, 4 samples": tx.Perturbed(samples=4),
    "REINFORCE": tx.REINFORCE(samples=1),
    "RLOO, 4 samples": tx.RLOO(samples=4),
}


def loss(trees: Tensor) -> Tensor:
    """Not linear in the tree."""
    return (trees * COSTS).sum((-2, -1)).square()


def place(trees: Tensor) -> Tensor:
    """Points ``(..., 2)`` of a triangle whose corners are the three trees."""
    second, third = trees[..., 1, 2], trees[..., 2, 1]
    corners = torch.tensor([[0.5, 0.866], [0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    shares = torch.stack((1 - second - third, second, third), -1)
    return shares @ corners


def moved(gradient: Tensor) -> Tensor:
    """The mean tree after a step against a gradient, and before."""
    step = LENGTH * gradient / gradient.norm().clamp(min=1e-12)
    return place(torch.stack((STRUCTURE(SCORES).marginals, STRUCTURE(SCORES - step).marginals)))


def estimates(estimator: Estimator, draws: int) -> tuple[Tensor, Tensor]:
    """Estimates of the gradient ``(draws, 3, 3)``, and the trees that the loss saw."""
    scores = SCORES.expand(draws, 3, 3).clone().requires_grad_()
    seen: list[Tensor] = []

    def f(trees: Tensor) -> Tensor:
        seen.append(trees.detach())
        return loss(trees)

    generator = torch.Generator().manual_seed(0)
    for _ in range(2):  # at first REINFORCE has no earlier losses for its baseline
        scores.grad = None
        estimator.expect(STRUCTURE(scores), f, generator=generator).sum().backward()
    assert scores.grad is not None
    return scores.grad, seen[-1].flatten(0, 1)


def draw() -> Curves:
    """All panels."""
    exact = moved(estimates(tx.Exact(), 1)[0][0])
    blue, red = COLOURS[0], COLOURS[1]
    with plot_style() as Figure:
        figure = Figure(figsize=(9.6, 7.4))
        figure.subplots_adjust(
            left=0.01, right=0.99, bottom=0.02, top=0.93, wspace=0.02, hspace=0.3
        )
        random = torch.Generator().manual_seed(1)
        for index, (name, estimator) in enumerate(PANELS.items(), 1):
            axes = figure.add_subplot(3, 4, index)
            axes.set(xlim=(-0.12, 1.12), ylim=(-0.14, 1.0), aspect="equal", title=name)
            axes.axis("off")
            axes.plot([0, 1, 0.5, 0], [0, 0, 0.866, 0], color=EDGE, linewidth=1)
            if index == 1:
                for x, y, tree in (
                    (0.62, 0.88, "0→1 0→2"),
                    (0, -0.12, "0→1→2"),
                    (1, -0.12, "0→2→1"),
                ):
                    axes.text(x, y, tree, fontsize=8, ha="left" if y > 0 else "center")
            found, trees = estimates(estimator, DRAWS)
            points = place(trees[torch.randperm(len(trees), generator=random)[:SEEN]])
            # scattered a little, that equal ones can be told apart
            points = points + 0.02 * torch.randn(points.shape, generator=random, dtype=points.dtype)
            axes.plot(*points.T.numpy(), ".", color=blue, alpha=0.55, markersize=5, zorder=2)
            single = torch.stack([moved(each)[1] for each in found[:SINGLE]])
            axes.plot(*single.T.numpy(), ".", color=red, alpha=0.6, markersize=3, zorder=2)
            own = moved(found.mean(0))
            for (start, end), colour, width in ((exact, FADED, 4.5), (own, red, 1.8)):
                axes.annotate(
                    "",
                    xy=tuple(end.tolist()),
                    xytext=tuple(start.tolist()),
                    arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": width},
                    zorder=3,
                )
    return Curves(
        figure,
        "What estimators do to the three trees of two words",
        "A triangle for each estimator, whose corners are the trees of two words. Blue dots are what "
        "the loss sees: corners for estimators with discrete trees, points inside for soft ones. A red "
        "arrow leads from the mean tree to where a step along the mean estimate moves it, a grey one "
        "along the exact gradient; small red dots are where single estimates lead.",
    )


if __name__ == "__main__":
    draw().save(Path(sys.argv[1], "estimators.svg"))
