"""Curves over training: the loss and the figures on dev, all runs in one plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from treelax.pictures.series import Curve, Panel
from treelax.report.markup import Html, join, tag
from treelax.report.overview import figure_name
from treelax.report.plot import draw_legend, draw_plot
from treelax.report.runs import RunRecord

__all__ = ["training_section"]


def training_section(runs: Sequence[RunRecord]) -> Html | None:
    """Plots of the loss and of all figures on dev, with one legend.

    Args:
        runs: of the report.

    Returns:
        The plots; None if no run has ended its first epoch.
    """
    begun = [run for run in runs if run.rows]
    if not begun:
        return None
    labels = [run.name for run in begun]
    marks = {run.name: float(run.best_row["epoch"]) for run in begun if run.best_row is not None}
    plots = []
    for title, section, key in _figures(begun):
        curves = []
        for look, run in enumerate(begun):
            values = [_value(row, section, key) for row in run.rows]
            if any(map(math.isfinite, values)):
                epochs = [float(row["epoch"]) for row in run.rows]
                curves.append(Curve(run.name, epochs, values, look=look))
        if curves:
            drawn = draw_plot(Panel(curves, "epoch", title), marks)
            plots.append(tag("figure", tag("figcaption", title), drawn))
    legend = draw_legend(labels) if len(labels) > 1 else None
    note = tag("p", "The dot is the epoch whose model is kept.", class_="note")
    return join([tag("div", *plots, class_="grid plots"), legend, note])


def _figures(runs: Sequence[RunRecord]) -> list[tuple[str, str | None, str]]:
    """Title, section and key of all that was measured; the score only repeats another figure."""
    keys = dict.fromkeys(
        key for run in runs for row in run.rows for key in _section(row, "dev") if key != "score"
    )
    return [
        ("training loss", None, "loss"),
        *((f"dev: {figure_name(key)}, %", "dev", key) for key in keys),
    ]


def _section(row: Mapping[str, Any], name: str | None) -> Mapping[str, Any]:
    found = row if name is None else row.get(name)
    return found if isinstance(found, Mapping) else {}


def _value(row: Mapping[str, Any], section: str | None, key: str) -> float:
    value = _section(row, section).get(key)
    return float(value) if isinstance(value, int | float) else math.nan
