"""Curves over training, in one plot or several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from treelax.errors import InputError
from treelax.lab.plots.plot import COLOURS, Curves, plot_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# no common factor with the number of colours: 28 curves before a pair comes back
STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
PANEL_WIDTH, HEIGHT, LEGEND_ROW = 4.9, 4.0, 0.25  # inches


@dataclass(frozen=True)
class Curve:
    """A curve, and the curves of single runs behind it.

    Curves of several figures that mean the same look the same if they have the same number.
    """

    label: str  # in the legend
    x: Sequence[float]  # where the values belong, for example epochs
    mean: Sequence[float]  # the value at each x; nan leaves a gap
    runs: Sequence[Sequence[float]] = ()  # of each run; nan where it has none
    # the number of its colour and line style, from 0; by default the first that the figure has left
    look: int | None = None
    mark: float | None = None  # an x at which the curve has a dot, for example the best epoch

    @classmethod
    def of_runs(
        cls, label: str, runs: Mapping[Any, Mapping[float, float]], *, look: int | None = None
    ) -> Curve:
        """The curve of several runs: their values and their mean wherever all of them have one.

        Example:
            >>> two = {"seed 0": {1: 40.0, 2: 70.0}, "seed 1": {2: 80.0, 3: 90.0}}
            >>> curve = Curve.of_runs("relaxed", two)
            >>> curve.x, curve.mean, curve.runs
            ([2], [75.0], [[70.0], [80.0]])
        """
        x = sorted(set.intersection(*map(set, runs.values()))) if runs else []
        if not x:
            raise InputError(f"curve {label!r}: received {len(runs)} runs without an x in common")
        lines = [[values[place] for place in x] for values in runs.values()]
        return cls(label, x, [fmean(column) for column in zip(*lines, strict=True)], lines, look)

    def __post_init__(self) -> None:
        n = len(self.x)
        for values in (self.mean, *self.runs):
            if n == 0 or len(values) != n:
                given = f"curve {self.label!r}: received {len(values)} values for {n} x"
                raise InputError(f"{given}; expected one for each x, and at least one")


@dataclass(frozen=True)
class Panel:
    """One plot of a figure; a label has the same colour and style in all plots of a figure."""

    curves: Sequence[Curve]
    x_label: str
    y_label: str
    title: str | None = None
    y_range: tuple[float, float] | None = None  # by default that of the curves

    def __post_init__(self) -> None:
        labels = [curve.label for curve in self.curves]
        if not labels or len(set(labels)) < len(labels):
            raise InputError(f"curves: received labels {labels}; expected one or more, different")

    def in_words(self) -> str:
        """The plot for screen readers: where each curve begins and ends."""
        facts = []
        for curve in self.curves:
            known = [float(value) for value in curve.mean if math.isfinite(value)]
            if known:
                facts.append(f"{curve.label} from {known[0]:.4g} to {known[-1]:.4g}")
        return f"{self.y_label} by {self.x_label}: {'; '.join(facts)}"


def draw_curves(
    series: Sequence[Curve],
    *,
    x_label: str,
    y_label: str,
    title: str | None = None,
    y_range: tuple[float, float] | None = None,
    spread: Literal["band", "lines"] = "band",
) -> Curves:
    """Draw curves in one plot: `draw_panels` with a single `Panel`."""
    return draw_panels([Panel(series, x_label, y_label, title, y_range)], spread=spread)


def draw_panels(
    panels: Sequence[Panel],
    *,
    title: str | None = None,
    spread: Literal["band", "lines"] = "band",
    columns: int | None = None,
) -> Curves:
    """Draw several plots, with one legend, or one below each plot where no two share a label.

    Args:
        panels: the plots, from left to right.
        title: stands above all plots.
        spread: shows the runs of a curve as a band from their least to their greatest value, or
            as a thin line each.
        columns: plots in a row; by default all of them.
    """
    if not panels:
        raise InputError("panels: received none; expected at least one")
    if spread not in ("band", "lines"):
        raise InputError(f"spread: received {spread!r}; expected 'band' or 'lines'")
    columns = min(columns or len(panels), len(panels))
    rows = math.ceil(len(panels) / columns)
    with plot_style() as Figure:
        size = (1 + PANEL_WIDTH * columns, HEIGHT * rows)
        figure = Figure(figsize=size, layout="constrained")
        looks = _looks([curve for panel in panels for curve in panel.curves])
        handles: dict[str, Line2D] = {}
        apart = len(panels) > 1 and len(looks) == sum(len(panel.curves) for panel in panels)
        for i, panel in enumerate(panels, 1):
            axes = figure.add_subplot(rows, columns, i)
            lines = {c.label: _draw(axes, c, looks[c.label], spread) for c in panel.curves}
            _finish(axes, panel)
            if apart:
                _add_legend(axes, lines, PANEL_WIDTH)
            handles |= lines
        if title is not None:
            figure.suptitle(title)
        if not apart:
            more = _add_legend(figure, handles, figure.get_figwidth())
            figure.set_figheight(figure.get_figheight() + LEGEND_ROW * (more - 1))
    named = "; ".join(panel.title or f"{panel.y_label} by {panel.x_label}" for panel in panels)
    description = " ".join(f"{panel.in_words()}." for panel in panels)
    return Curves(figure, named if title is None else title, description)


def _looks(curves: Sequence[Curve]) -> dict[str, int]:
    """The number of the colour and line style of each label: the one chosen, or the first free one."""
    looks = {curve.label: curve.look for curve in curves}
    free = (number for number in count() if number not in looks.values())
    return {label: next(free) if number is None else number for label, number in looks.items()}


def _draw(axes: Axes, curve: Curve, number: int, spread: str) -> Line2D:
    """Draw a curve over its runs; what stands for it in the legend."""
    colour, style = COLOURS[number % len(COLOURS)], STYLES[number % len(STYLES)]
    x, mean = list(map(float, curve.x)), list(map(float, curve.mean))
    if len(curve.runs) > 0 and spread == "band":
        at_x = [
            [v for v in map(float, values) if math.isfinite(v)]
            for values in zip(*curve.runs, strict=True)
        ]
        low = [min(values, default=math.nan) for values in at_x]
        high = [max(values, default=math.nan) for values in at_x]
        axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    elif spread == "lines":
        for run in curve.runs:
            axes.plot(x, list(map(float, run)), color=colour, linewidth=0.7, alpha=0.45)
    (line,) = axes.plot(x, mean, color=colour, linestyle=style, linewidth=2)
    known = [False, *map(math.isfinite, mean), False]
    # a point without neighbours has no line that would show it
    dots = [
        i for i in range(len(x)) if x[i] == curve.mark or known[i : i + 3] == [False, True, False]
    ]
    if dots:
        line.set(marker="o", markevery=dots)
    return line


def _add_legend(place: Figure | Axes, handles: dict[str, Line2D], width: float) -> int:
    """Put a legend below plots that are so many inches wide; how many rows it has, as few as fit."""
    column = 50 + 5.5 * max(map(len, handles))  # points, about
    rows = math.ceil(len(handles) / max(1, int(72 * width / column)))
    below: dict[str, Any] = {"loc": "outside lower center"}
    if place is not place.figure:  # a plot, not the whole
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15)}
    legend = place.legend(
        list(handles.values()),
        [str(i) for i in range(len(handles))],
        ncols=math.ceil(len(handles) / rows),
        handlelength=2.8,
        columnspacing=1.5,
        frameon=False,
        **below,
    )
    # only now, as matplotlib would leave out a label that begins with _
    for text, label in zip(legend.get_texts(), handles, strict=True):
        text.set_text(label)
    return rows


def _finish(axes: Axes, panel: Panel) -> None:
    """Labels, range and ticks of a plot."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.title is not None:
        axes.set_title(panel.title)
    axes.margins(x=0.02)
    if panel.y_range is not None:
        low, high = panel.y_range
        edge = (high - low) / 50  # a line along the limit keeps its whole width
        axes.set_ylim(low - edge, high + edge)
    if all(float(x).is_integer() for curve in panel.curves for x in curve.x):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
