"""Curves over training: the loss and the figures on dev, all runs in one plot."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

from treelax.pictures import Curve, Panel, draw_panels
from treelax.report.markup import Html, scroller, tag
from treelax.report.overview import figure_name
from treelax.report.runs import RunRecord

__all__ = ["training_section"]


def training_section(runs: Sequence[RunRecord]) -> Html | None:
    """The loss and all figures on dev by epoch; None if no run has ended its first epoch."""
    begun = [run for run in runs if run.rows]
    panels = []
    for title, section, key in _figures(begun):
        curves = []
        for look, run in enumerate(begun):
            values = [_value(row, section, key) for row in run.rows]
            if any(map(math.isfinite, values)):
                epochs = [float(row["epoch"]) for row in run.rows]
                best = None if run.best_row is None else float(run.best_row["epoch"])
                curves.append(Curve(run.name, epochs, values, look=look, mark=best))
        if curves:
            panels.append(Panel(curves, "epoch", title))
    if not panels:
        return None
    drawn = draw_panels(panels, columns=2)
    # as an image: its own style counts in it, and none of its names meets one of the page
    data = base64.b64encode(drawn.svg().encode()).decode()
    image = tag("img", src=f"data:image/svg+xml;base64,{data}", alt=drawn.description)
    note = tag("p", "The dot is the epoch whose model is kept.", class_="note")
    return tag("div", scroller(image, "Training"), note, class_="plots")


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
