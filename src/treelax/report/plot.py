"""Curves for a page: SVG whose colours are those of the page, in light and in dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from treelax.pictures.series import Curve, Panel
from treelax.pictures.svg_text import number
from treelax.report.markup import Html, join, tag

__all__ = ["draw_legend", "draw_plot"]

WIDTH, HEIGHT = 440.0, 270.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 14.0, 12.0, 40.0  # margins
COLOURS, DASHES = 7, 4  # of the style; no common factor, so that 28 curves differ
TICKS = 5


def draw_plot(panel: Panel, marks: Mapping[str, float] | None = None) -> Html:
    """Draw the curves of a panel; each looks as its number says, in colour and in dashes.

    Args:
        panel: the curves, each with its look; their runs are not drawn.
        marks: for some labels an x where the curve has a dot, the best epoch say.

    Returns:
        The ``<svg>`` element.

    Example:
        >>> one = Curve("a", [1, 2], [3.0, 4.0], look=0)
        >>> "line-0" in draw_plot(Panel([one], "epoch", "loss"))
        True
    """
    x_low, x_high = _range([x for curve in panel.curves for x in curve.x])
    values = [v for curve in panel.curves for v in curve.mean if math.isfinite(v)]
    y_ticks = _ticks(*_range(values))
    x_ticks = [tick for tick in _ticks(x_low, x_high, whole=True) if x_low <= tick <= x_high]
    scale = _Scale((x_low, x_high), (y_ticks[0], y_ticks[-1]))
    parts = [*_axes(scale, x_ticks, y_ticks), _axis_title(panel.x_label)]
    for place, curve in enumerate(panel.curves):
        parts.append(_line(scale, curve, place, (marks or {}).get(curve.label)))
    size = f"0 0 {number(WIDTH)} {number(HEIGHT)}"
    return tag("svg", *parts, viewBox=size, role="img", aria_label=panel.in_words(), class_="plot")


def draw_legend(labels: Sequence[str]) -> Html:
    """The names of curves with their lines, in the order of their looks.

    Args:
        labels: that of look 0, of look 1, and so on.

    Returns:
        A list.
    """
    items = []
    for look, label in enumerate(labels):
        sample = tag("path", d="M0 6H34", class_=_classes(look))
        line = tag("svg", sample, viewBox="0 0 34 12", width=34, height=12, aria_hidden="true")
        items.append(tag("li", line, tag("bdi", label)))
    return tag("ul", *items, class_="legend")


class _Scale:
    """From values to places in the picture."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x_low, self.x_high = x
        self.y_low, self.y_high = y

    def x(self, value: float) -> float:
        share = (value - self.x_low) / (self.x_high - self.x_low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    least = max(1e-8, 1e-6 * max(abs(low), abs(high)))  # that ticks can be told apart in
    return (low, high) if high - low > least else (low - max(0.5, least), high + max(0.5, least))


def _ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Round numbers from just below the least to just above the greatest value."""
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    step = max(step, 1.0) if whole else step
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(i * step, 10) for i in range(first, last + 1)]


def _axes(scale: _Scale, x_ticks: Sequence[float], y_ticks: Sequence[float]) -> list[Html]:
    parts = []
    right, bottom = number(WIDTH - RIGHT), HEIGHT - BOTTOM
    for tick in y_ticks:
        y = scale.y(tick)
        parts.append(tag("path", d=f"M{number(LEFT)} {number(y)}H{right}", class_="grid-line"))
        parts.append(
            tag("text", f"{tick:g}", x=number(LEFT - 7), y=number(y + 4), text_anchor="end")
        )
    for tick in x_ticks:
        x = scale.x(tick)
        parts.append(
            tag("text", f"{tick:g}", x=number(x), y=number(bottom + 17), text_anchor="middle")
        )
    return parts


def _axis_title(text: str) -> Html:
    x = number(LEFT + (WIDTH - LEFT - RIGHT) / 2)
    return tag("text", text, x=x, y=number(HEIGHT - 5), text_anchor="middle", class_="axis")


def _line(scale: _Scale, curve: Curve, place: int, mark: float | None) -> Html:
    look = place if curve.look is None else curve.look
    path, dots, drawn = [], [], False
    for i, (x, value) in enumerate(zip(curve.x, curve.mean, strict=True)):
        if not math.isfinite(value):
            drawn = False
            continue
        at = f"{number(scale.x(x))} {number(scale.y(value))}"
        path.append(f"{'L' if drawn else 'M'}{at}")
        alone = not drawn and not math.isfinite([*curve.mean, math.nan][i + 1])
        drawn = True
        if alone or x == mark:
            told = f"{curve.label}: {value:.4g} at {x:g}"
            dot = {"cx": number(scale.x(x)), "cy": number(scale.y(value)), "r": "4"}
            dots.append(tag("circle", tag("title", told), **dot, class_=f"dot-{look % COLOURS}"))
    last = next((v for v in reversed(curve.mean) if math.isfinite(v)), math.nan)
    told = f"{curve.label}: {last:.4g} in the end"
    line = tag("path", tag("title", told), d="".join(path), class_=_classes(look))
    return join([line, *dots])


def _classes(look: int) -> str:
    return f"line line-{look % COLOURS} dash-{look % DASHES}"
