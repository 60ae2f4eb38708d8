"""The seeds of the paper's table 1, one by one, beside the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treelax.errors import InputError
from treelax.lab.analysis.tables import read_rows
from treelax.lab.listops.table import ESTIMATORS, PAPER, as_trained
from treelax.lab.plots.plot import COLOURS, EDGE, Curves, plot_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRESETS = tuple(f"paper-{cell}" for cell in ("mc", "zero", "mc-st", "zero-st"))
DISCRETE, ATTACHMENT = "operator_accuracy", "attachment"
COLUMNS: dict[str, Callable[[str], Any]] = {
    **{"preset": str, "seed": int},
    **dict.fromkeys((DISCRETE, "soft_operator_accuracy", ATTACHMENT), float),
}
Runs = Sequence[Mapping[str, Any]]


def read_runs(file: Path) -> Runs:
    """The runs of the four cells in a ``runs.csv``."""
    runs = [row for row in read_rows(file, COLUMNS) if row["preset"] in PRESETS]
    if not runs:
        raise InputError(f"{file}: has no run of table 1; expected rows of {', '.join(PRESETS)}")
    return runs


def draw_seeds(runs: Runs) -> Curves:
    """A strip of dots for each of the four cells, accuracy on the left, attachment on the right.

    The seeds of a cell are in the same order, from top to bottom, in both plots.
    """
    by_seed = sorted(runs, key=lambda run: run["seed"])
    cells = {
        preset: seeds
        for preset in PRESETS
        if (seeds := [run for run in by_seed if run["preset"] == preset])
    }
    names = [ESTIMATORS[preset.removeprefix("paper-")] for preset in cells]
    facts = []
    with plot_style() as Figure:
        figure = Figure(figsize=(9.6, 0.9 + 0.85 * len(cells)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, what, trees in (
            (left, "accuracy", "trees as trained"),
            (right, "attachment", "discrete trees"),
        ):
            axes.set(
                title=f"{what.capitalize()}, {trees}", xlabel=f"test {what}, %", xlim=(-3, 103)
            )
            axes.set_yticks(range(len(cells)), names)
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="y", visible=False)
        left.invert_yaxis()
        for place, (preset, seeds) in enumerate(cells.items()):
            trained = as_trained(preset)
            accuracy, attachment = (PAPER[preset] or "").split(" / ")
            _dots(left, place, seeds, trained, "one seed")
            if trained != DISCRETE:
                _dots(left, place, seeds, DISCRETE, "the same with discrete trees", filled=False)
            _dots(right, place, seeds, ATTACHMENT, "one seed")
            for axes, what, key, paper in (
                (left, "accuracy as trained", trained, accuracy),
                (right, "attachment", ATTACHMENT, attachment),
            ):
                axes.plot(
                    [float(paper)] * 2,
                    [place - 0.42, place + 0.42],
                    color=COLOURS[1],
                    linewidth=2.5,
                    label="paper",
                    zorder=1,
                )
                facts.append(f"{names[place]}: {what} {_range(seeds, key)}, paper {paper}.")
        handles = dict(zip(*left.get_legend_handles_labels()[::-1], strict=True))
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=3, frameon=False)
    return Curves(figure, "Table 1: every seed beside the paper's figures", " ".join(facts))


def _dots(
    axes: Axes, place: int, runs: Runs, column: str, label: str, *, filled: bool = True
) -> None:
    """The seeds of a cell, each at a different height."""
    step = 0.64 / max(len(runs) - 1, 1)
    axes.plot(
        [run[column] for run in runs],
        [place + (number - (len(runs) - 1) / 2) * step for number in range(len(runs))],
        color=COLOURS[0] if filled else EDGE,
        linestyle="none",
        marker="o",
        markersize=5,
        markerfacecolor=COLOURS[0] if filled else "none",
        label=label,
    )


def _range(runs: Runs, column: str) -> str:
    values = [run[column] for run in runs]
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{min(values):.1f} to {max(values):.1f} over {len(values)} seeds"
