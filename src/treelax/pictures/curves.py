"""Curves over training, one or several plots side by side, as SVG, PNG or PDF.

Curves are told apart by colour and by line style, so that they also differ in black and white and
for colour-blind readers: the colours are those of Okabe and Ito, less the yellow, which is faint on
white, and on dark pages lighter ones. Figures are made without pyplot: no global state, no window, no
display needed.

Reference: M. Okabe and K. Ito (2008), Color Universal Design.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from treelax.errors import BackendError, InputError
from treelax.files import atomic_write
from treelax.pictures.matplotlib_svg import COLOURS as BOTH_COLOURS
from treelax.pictures.matplotlib_svg import EDGE, GRID, adapted
from treelax.pictures.series import Curve, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

__all__ = ["Curve", "Curves", "Panel", "draw_curves", "draw_panels"]

COLOURS = tuple(BOTH_COLOURS)
# no common factor with the number of colours: 28 curves before a pair comes back
STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
# what must not be in a file, for equal curves to give equal bytes
NOT_WRITTEN: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
}
HEIGHT = 4.0  # of a figure, in inches, and what a second row of the legend adds to it
LEGEND_ROW = 0.25
LOOK = {
    "axes.edgecolor": EDGE,
    "axes.grid": True,
    "axes.labelsize": 11,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 12,
    "figure.titlesize": 13,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.fontsize": 11,
    "savefig.bbox": "tight",  # a label too long for the figure makes it larger
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # text stays text: small files, and it can be searched and selected
    "svg.hashsalt": "treelax",  # else the names inside are random
    "text.parse_math": False,  # a $ in a label is a $
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
}


class Curves:
    """A drawing of curves, to be saved or shown in a notebook.

    Attributes:
        figure: the matplotlib figure, for changes of one's own.
        title: what it shows, in a few words.
        description: the same in full, for those who hear it read.
    """

    def __init__(self, figure: Figure, title: str = "Curves", description: str = "") -> None:
        self.figure, self.title, self.description = figure, title, description

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing to a file, whole or not at all; equal curves give equal bytes.

        Args:
            path: ends in ``.svg``, ``.png`` or ``.pdf``; replaced if it exists.

        Returns:
            The path.

        Raises:
            InputError: the name ends otherwise.
            DataError: the file cannot be written.

        Example:
            >>> import tempfile
            >>> drawing = draw_curves([Curve("one", [1, 2], [3.0, 4.0])], x_label="x", y_label="y")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     drawing.save(Path(folder, "one.png")).read_bytes()[:4]
            b'\\x89PNG'
        """
        file = Path(path)
        kind = file.suffix.lower().removeprefix(".")
        if kind not in NOT_WRITTEN:
            raise InputError(
                f"{file}: received the suffix {file.suffix!r}; expected .svg, .png or .pdf"
            )
        data = self._rendered(kind)
        with atomic_write(file) as out:
            out.write(data)
        return file

    def svg(self) -> str:
        """The drawing as SVG, to be put into a page, where it keeps its white ground.

        Returns:
            The ``<svg>`` element, with its text as text.

        Example:
            >>> drawing = draw_curves([Curve("one", [1, 2], [3.0, 4.0])], x_label="x", y_label="y")
            >>> drawing.svg().startswith("<svg")
            True
        """
        document = self._rendered("svg").decode()
        return document[document.index("<svg") :]

    def _repr_svg_(self) -> str:
        return self.svg()

    def _rendered(self, kind: str) -> bytes:
        buffer = io.BytesIO()
        with _look():
            self.figure.savefig(buffer, format=kind, metadata=NOT_WRITTEN[kind])
        if kind != "svg":
            return buffer.getvalue()
        return adapted(buffer.getvalue().decode(), self.title, self.description).encode()


def draw_curves(
    series: Sequence[Curve],
    *,
    x_label: str,
    y_label: str,
    title: str | None = None,
    y_range: tuple[float, float] | None = None,
    spread: Literal["band", "lines"] = "band",
) -> Curves:
    """Draw curves in one plot.

    Args:
        series: the curves, with different labels.
        x_label: what x is.
        y_label: what the values are.
        title: stands above the plot.
        y_range: the least and the greatest value to show; by default all that there are.
        spread: shows the runs of a curve as a band from their least to their greatest value, or
            as a thin line each.

    Returns:
        The drawing.

    Raises:
        InputError: there are no curves, two have the same label, or a range or spread is wrong.
        BackendError: matplotlib is not installed.

    Example:
        >>> one = Curve("one", x=[1, 2, 3], mean=[40.0, 60.0, 70.0])
        >>> drawing = draw_curves([one], x_label="epoch", y_label="accuracy", y_range=(0, 100))
        >>> "accuracy" in drawing.svg()
        True
    """
    return draw_panels([Panel(series, x_label, y_label, title, y_range)], spread=spread)


def draw_panels(
    panels: Sequence[Panel],
    *,
    title: str | None = None,
    spread: Literal["band", "lines"] = "band",
) -> Curves:
    """Draw several plots side by side, with one legend for all of them.

    Args:
        panels: the plots, from left to right.
        title: stands above all plots.
        spread: shows the runs of a curve as a band from their least to their greatest value, or
            as a thin line each.

    Returns:
        The drawing.

    Raises:
        InputError: there are no panels, spread is neither of the two, or the looks of the curves
            contradict each other.
        BackendError: matplotlib is not installed.

    Example:
        >>> one = Curve("one", x=[1, 2, 3], mean=[40.0, 60.0, 70.0])
        >>> two = Curve("one", x=[1, 2, 3], mean=[0.9, 0.4, 0.3])
        >>> drawing = draw_panels([Panel([one], "epoch", "accuracy"), Panel([two], "epoch", "loss")])
        >>> len(drawing.figure.axes)
        2
    """
    if not panels:
        raise InputError("panels: received none; expected at least one")
    if isinstance(panels, Mapping | Panel | str) or not all(isinstance(p, Panel) for p in panels):
        raise InputError(
            f"panels: received a {type(panels).__name__} of something else; expected a list of Panel"
        )
    if spread not in ("band", "lines"):
        raise InputError(f"spread: received {spread!r}; expected 'band' or 'lines'")
    with _look():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(1 + 4.9 * len(panels), HEIGHT), layout="constrained")
        looks = _looks([curve for panel in panels for curve in panel.curves])
        handles: dict[str, Line2D] = {}
        for i, panel in enumerate(panels, 1):
            axes = figure.add_subplot(1, len(panels), i)
            for curve in panel.curves:
                handles[curve.label] = _draw(axes, curve, looks[curve.label], spread)
            _finish(axes, panel)
        if title is not None:
            figure.suptitle(title)
        _add_legend(figure, handles)
    named = "; ".join(panel.title or f"{panel.y_label} by {panel.x_label}" for panel in panels)
    told = " ".join(f"{panel.in_words()}." for panel in panels)
    return Curves(figure, named if title is None else title, told)


def _looks(curves: Sequence[Curve]) -> dict[str, int]:
    """The number of the colour and line style of each label: its own, or the first free one."""
    own: dict[str, int] = {}
    for curve in curves:
        if curve.look is None:
            continue
        if own.setdefault(curve.label, curve.look) != curve.look:
            raise InputError(
                f"curve {curve.label!r}, look: received {own[curve.label]} and {curve.look}; "
                "expected one look for one label"
            )
    if len(set(own.values())) < len(own):
        raise InputError(f"look: received {own}; expected another one for every label")
    free = (number for number in count() if number not in own.values())
    return {
        label: own[label] if label in own else next(free)
        for label in dict.fromkeys(curve.label for curve in curves)
    }


def _draw(axes: Axes, curve: Curve, look: int, spread: str) -> Line2D:
    """Draw a curve over its runs; what stands for it in the legend."""
    colour, style = COLOURS[look % len(COLOURS)], STYLES[look % len(STYLES)]
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
    alone = [i for i in range(len(x)) if known[i : i + 3] == [False, True, False]]
    if alone:  # no line leads to them, so nothing would be seen
        line.set(marker="o", markevery=alone)
    return line


def _add_legend(figure: Figure, handles: dict[str, Line2D]) -> None:
    """Put the legend below the plots, in as few rows as fit into the figure's width."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    for rows in range(1, len(handles) + 1):
        legend = figure.legend(
            list(handles.values()),
            [str(i) for i in range(len(handles))],
            loc="outside lower center",
            ncols=math.ceil(len(handles) / rows),
            handlelength=2.8,
            columnspacing=1.5,
            frameon=False,
        )
        # only now, as matplotlib would leave out a label that begins with _
        for text, label in zip(legend.get_texts(), handles, strict=True):
            text.set_text(label)
        if legend.get_window_extent(renderer).width <= figure.bbox.width:
            break
        if rows < len(handles):
            legend.remove()
    figure.set_figheight(HEIGHT + LEGEND_ROW * (rows - 1))


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


@contextmanager
def _look() -> Iterator[None]:
    """Matplotlib with its defaults and ours, whatever the user has set for other figures."""
    try:
        from matplotlib import style
    except ImportError as error:
        raise BackendError(
            'curves need matplotlib, which is not installed: pip install "treelax[train]"'
        ) from error
    with style.context(["default", LOOK]):
        yield
