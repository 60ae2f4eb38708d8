"""Bars in the look of treelax's curves: a row for each name, a bar for each series."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from treelax.errors import BackendError, InputError
from treelax.pictures.curves import COLOURS, LOOK, Curves
from treelax.pictures.matplotlib_svg import FADED

__all__ = ["Bars", "draw_bars"]

HATCHES = ("", "///", "...", "xx", "\\\\\\", "++")  # to tell bars apart in black and white
ROW, MARGIN, WIDTH = 0.26, 1.3, 6.4  # inches


@dataclass(frozen=True)
class Bars:
    """A plot of bars.

    Attributes:
        title: stands above it.
        x_label: what the values are.
        values: for each name, from top to bottom, its value in each series; None for no bar.
        series: names of the series; one that is empty has no legend.
        points: for each name single values to mark on its first bar, those of runs say.
        faded: names whose bars are grey, baselines say.

    Raises:
        InputError: there are no names or series, or a name has more or fewer values than series.

    Example:
        >>> Bars("one", "UAS, %", {"run": [50.0], "chain": [30.0]}).series
        ('',)
    """

    title: str
    x_label: str
    values: Mapping[str, Sequence[float | None]]
    series: Sequence[str] = ("",)
    points: Mapping[str, Sequence[float]] | None = None
    faded: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.values or not self.series:
            raise InputError(f"bars {self.title!r}: received no values; expected at least one")
        for name, own in self.values.items():
            if len(own) != len(self.series):
                raise InputError(
                    f"bars {self.title!r}, {name}: received {len(own)} values; expected "
                    f"{len(self.series)}, one for each series"
                )


def draw_bars(bars: Bars) -> Curves:
    """Draw bars from left to right, the first name on top.

    Args:
        bars: what to draw.

    Returns:
        The drawing, to be saved as SVG, PNG or PDF.

    Raises:
        BackendError: matplotlib is not installed.

    Example:
        >>> drawing = draw_bars(Bars("Agreement", "UAS, %", {"run": [50.0], "chain": [30.0]}))
        >>> "chain" in drawing.svg()
        True
    """
    with _look():
        from matplotlib.figure import Figure

        names, count = list(bars.values), len(bars.series)
        height = MARGIN + ROW * len(names) * max(1.0, 0.55 * count)
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        thickness = 0.72 / count
        for number, series in enumerate(bars.series):
            shown = [
                (row + (number - (count - 1) / 2) * thickness, name, value)
                for row, name in enumerate(names)
                if (value := bars.values[name][number]) is not None and math.isfinite(value)
            ]
            own = COLOURS[number % len(COLOURS)]
            axes.barh(
                [place for place, _, _ in shown],
                [value for _, _, value in shown],
                height=thickness,
                color=[FADED if name in bars.faded else own for _, name, _ in shown],
                hatch=HATCHES[number % len(HATCHES)],
                edgecolor="white",
                linewidth=0.4,
                label=series or None,
            )
            if count == 1:
                for place, name, value in shown:
                    end = max(value, *(bars.points or {}).get(name, ()), value)
                    axes.annotate(
                        f"{value:.1f}",
                        (end, place),
                        xytext=(4, 0),
                        textcoords="offset points",
                        va="center",
                        fontsize=9,
                    )
        for row, name in enumerate(names):
            points = list((bars.points or {}).get(name, ()))
            # the rim keeps a point in sight on a bar of any colour
            (marks,) = axes.plot(points, [row] * len(points), "o", color="black", markersize=3.6)
            marks.set(markeredgecolor="white", markeredgewidth=0.6)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_axisbelow(True)
        axes.margins(x=0.1, y=0.02)
        axes.set_xlim(left=0)
        axes.set_xlabel(bars.x_label)
        axes.set_title(bars.title)
        if count > 1:
            figure.legend(loc="outside lower center", ncols=min(count, 4), frameon=False)
    return Curves(figure, bars.title, _told(bars))


def _told(bars: Bars) -> str:
    """The bars in words."""
    rows = []
    for name, values in bars.values.items():
        own = [
            f"{series} {value:.1f}".strip()
            for series, value in zip(bars.series, values, strict=True)
            if value is not None and math.isfinite(value)
        ]
        rows.append(f"{name}: {', '.join(own) or 'none'}")
    return f"{bars.x_label}. {'; '.join(rows)}."


@contextmanager
def _look() -> Iterator[None]:
    """Matplotlib with its defaults and those of treelax."""
    try:
        from matplotlib import style
    except ImportError as error:
        raise BackendError(
            'bars need matplotlib, which is not installed: pip install "treelax[train]"'
        ) from error
    with style.context(["default", LOOK]):
        yield
