"""Estimators beside the exact gradient as a picture: their noise, and the direction of their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby, product
from operator import itemgetter
from typing import Any

from treelax.lab.analysis.gradients import LOSSES, SCORES, Record
from treelax.lab.plots import Curves
from treelax.lab.plots.plot import COLOURS, EDGE, FADED, plot_style

# a colour for each group of estimators, a mark for each of the group
GROUPS = (
    ("relaxed softmax", "relaxed entropy"),
    ("straight-through", "straight-through identity"),
    ("marginals", "SparseMAP"),
    ("SPIGOT simplex", "SPIGOT polytope", "SPIGOT-CE", "SPIGOT-EG"),
    ("REINFORCE", "RLOO"),
    ("I-MLE",),
    tuple(f"perturbed {noise} ({n})" for n in (8, 1) for noise in ("Gumbel", "Gaussian")),
)
LOOKS: dict[str, dict[str, Any]] = {
    name: {
        "color": COLOURS[number],
        "marker": "osD^"[place],
        "linestyle": "--" if name.endswith("(1)") else "-",
        "linewidth": 1.2,
    }
    for number, group in enumerate(GROUPS)
    for place, name in enumerate(group)
}
COSINES = (-1, -0.8, -0.5, 0, 0.5, 0.8, 0.9, 0.95, 0.99, 1)
SMALL, LARGE = 4, 8  # marks of settings, and of the greatest value, points
STEP = 0.16  # between estimators without noise, in powers of 10
NO_NOISE = 1e-9


def draw_gradients(rows: Sequence[Record]) -> Curves:
    """Draw the cosine of the mean estimate over the deviation, a panel for each scores and loss."""
    rows = [row for row in rows if row["estimator"] in LOOKS]
    noisy = [math.log10(row["deviation"]) for row in rows if row["deviation"] > NO_NOISE]
    left, right = math.floor(min(noisy)), max(noisy) + 0.1
    draws = max(row["draws"] for row in rows)
    with plot_style() as Figure:
        from matplotlib.lines import Line2D

        figure = Figure(figsize=(9.6, 12.5), layout="constrained")
        for number, (loss, scores) in enumerate(product(LOSSES, SCORES), 1):
            axes = figure.add_subplot(len(LOSSES), len(SCORES), number)
            beside = [row for row in rows if row["loss"] == loss]
            panel = [row for row in beside if row["scores"] == scores]
            start = _draw(axes, panel, left)
            x = [left + (right - left) * i / 50 for i in range(51)]
            chance = [_height(1 / math.sqrt(1 + 100**power / draws)) for power in x]
            axes.plot(x, chance, color=FADED, linestyle=":")
            axes.axvline(left, color=EDGE, linewidth=0.8)
            powers = range(left + 1, math.floor(right) + 1)
            axes.set_xticks([(start + left) / 2, *powers], ["0", *(f"{10.0**p:g}" for p in powers)])
            axes.set_yticks([_height(c) for c in COSINES], [f"{c:g}" for c in COSINES])
            axes.set_xlim(start, right)
            axes.set_ylim(min(_height(row["cosine"]) for row in beside) - 0.1, 0.1)
            axes.set_title(f"{scores} scores, {loss} loss")
            if loss == LOSSES[-1]:
                axes.set_xlabel("standard deviation of an estimate / |gradient|")
            if scores == SCORES[0]:
                axes.set_ylabel("cosine of the mean estimate")
        names = {row["estimator"]: None for row in rows}
        handles = [Line2D([], [], label=name, **LOOKS[name]) for name in LOOKS if name in names]
        label = f"unbiased, in {draws:,} draws"
        handles.append(Line2D([], [], color=FADED, linestyle=":", label=label))
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return Curves(figure, "Estimators held against the exact gradient", _in_words(rows))


def _draw(axes: Any, rows: Sequence[Record], left: float) -> float:
    """Draw a line through the settings of each estimator; returns where the panel begins."""
    place = left
    for name, same in groupby(rows, itemgetter("estimator")):
        records = list(same)
        y = [_height(row["cosine"]) for row in records]
        edge = left
        if all(row["deviation"] < NO_NOISE for row in records):  # side by side
            edge = place = place - STEP
        x = [max(edge, math.log10(row["deviation"] or NO_NOISE)) for row in records]
        axes.plot(x, y, markersize=SMALL, **LOOKS[name])
        axes.plot(x[-1], y[-1], markersize=LARGE, **LOOKS[name])
    return place - STEP


def _height(cosine: float) -> float:
    """Minus the angle, which separates cosines near 1."""
    return -math.acos(max(-1.0, min(1.0, cosine)))


def _in_words(rows: Sequence[Record]) -> str:
    sentences = []
    for (scores, loss), same in groupby(rows, itemgetter("scores", "loss")):
        cosines: dict[str, list[float]] = {}
        for row in same:
            cosines.setdefault(row["estimator"], []).append(row["cosine"])
        parts = (f"{name} {min(v):.2f} to {max(v):.2f}" for name, v in cosines.items())
        sentences.append(f"{scores} scores, {loss} loss: {'; '.join(parts)}.")
    return f"Cosine of the mean estimate over all settings. {' '.join(sentences)}"
