"""Argmax against its relaxation (Corro & Titov, 2019, appendix B): why a relaxed choice has a gradient.

The choice is that of a head by a word, among three, as `treelax.ops.select_heads` makes it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from treelax.lab.plots.plot import Curves, plot_style
from treelax.ops import select_heads

REACH, CELLS = 4, 16  # inputs from -REACH to REACH, in so many cells
FAINT, STRONG, EDGE = "#DDECF6", "#0571B0", "#7FA9C4"  # of a surface at 0, at 1, and of its cells


def draw_relaxation(*, temperature: float = 1.0) -> Curves:
    r"""Draw the first output of argmax and of its relaxation, for the inputs ``(x1, x2, 0)``.

    .. math:: \frac{\exp(x_1/\tau)}{\exp(x_1/\tau) + \exp(x_2/\tau) + 1}
    """
    surfaces = _surfaces(temperature)
    with plot_style() as Figure:
        from matplotlib.colors import LinearSegmentedColormap

        colours = LinearSegmentedColormap.from_list("output", [FAINT, STRONG])
        figure = Figure(figsize=(9.4, 4.2))
        figure.subplots_adjust(left=0, right=1, bottom=0.08, top=1, wspace=0)
        figure.suptitle("First output for the input (x₁, x₂, 0)", y=0.97)
        for i, (name, note, points) in enumerate(surfaces, 1):
            view: dict[str, Any] = {"projection": "3d", "elev": 28, "azim": -155}
            axes: Any = figure.add_subplot(1, 2, i, box_aspect=(1, 1, 0.55), **view)
            axes.plot_surface(
                *(part.numpy() for part in points),
                rcount=len(points[0]),
                ccount=len(points[0][0]),
                cmap=colours,
                vmin=0,
                vmax=1,
                edgecolor=EDGE,
                linewidth=0.4,
            )
            ticks = range(-REACH, REACH + 1, 2)
            axes.set(xlabel="x₁", ylabel="x₂", xticks=ticks, yticks=ticks, zticks=[0, 1])
            below = {"transform": axes.transAxes, "ha": "center"}
            axes.text2D(0.5, -0.01, name, weight="bold", size=12, **below)
            axes.text2D(0.5, -0.08, note, **below)
            for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
                axis.set_pane_color((0, 0, 0, 0))
    return Curves(
        figure,
        "Argmax against its relaxation: first output for the input (x1, x2, 0)",
        "Two surfaces over x1 and x2 from -4 to 4. Left, argmax: 1 where x1 is the greatest of the "
        "three inputs, 0 elsewhere, with a cliff between; its derivatives are 0 almost everywhere. "
        f"Right, its relaxation with temperature {temperature:g}: a smooth slope from 0 to 1, whose "
        "derivatives are not 0.",
    )


def _surfaces(temperature: float) -> list[tuple[str, str, tuple[Tensor, Tensor, Tensor]]]:
    """Name, note and points ``(x1, x2, output)`` of both surfaces."""
    edges = torch.linspace(-REACH, REACH, CELLS + 1, dtype=torch.float64)
    # lines of the grid follow the cliff of argmax on both sides, so that it is upright
    cliff, share = edges.clamp(min=0), torch.linspace(0, 1, CELLS // 2 + 1)[:, None]
    low = -REACH + share * (cliff - 1e-9 + REACH)
    high = cliff + 1e-9 + share * (REACH - cliff)
    upright, regular = torch.cat([low, high]), edges[:, None].expand(-1, len(edges))
    argmax = _points(upright, edges, hard=True)
    relaxed = _points(regular, edges, temperature=temperature)
    return [
        ("argmax", "every derivative is 0, except at the cliff", argmax),
        (f"relaxation, temperature {temperature:g}", "derivatives that show the way up", relaxed),
    ]


def _points(x1: Tensor, x2: Tensor, **options: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The inputs and the first output of a word that chooses between the root and two words."""
    x2 = x2.expand_as(x1)
    scores = torch.zeros(*x1.shape, 4, 4, dtype=torch.float64)
    scores[..., 0, 3], scores[..., 1, 3] = x1, x2
    return x1, x2, select_heads(scores, **options)[..., 0, 3]
