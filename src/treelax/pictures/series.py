"""What a figure of curves shows: the values, and in which plot they stand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from treelax.errors import InputError

__all__ = ["Curve", "Panel"]


@dataclass(frozen=True)
class Curve:
    """A curve, and the curves of single runs behind it.

    Attributes:
        label: what the legend says.
        x: where the values belong, epochs say.
        mean: the value at each x; nan leaves a gap.
        runs: for each run the value at each x; nan where it has none.
        look: the number of its colour and line style, from 0. Curves of several figures that mean
            the same look the same if they have the same number; by default the first one that no
            other curve of the figure has.

    Raises:
        InputError: there are no values, an x is not finite, a number of values is another than
            that of x, or the look is negative.

    Example:
        >>> Curve("relaxed", x=[1, 2], mean=[50.0, 75.0], runs=[[40.0, 70.0], [60.0, 80.0]]).label
        'relaxed'
    """

    label: str
    x: Sequence[float]
    mean: Sequence[float]
    runs: Sequence[Sequence[float]] = ()
    look: int | None = None

    @classmethod
    def of_runs(
        cls, label: str, runs: Mapping[Any, Mapping[float, float]], *, look: int | None = None
    ) -> Curve:
        """The curve of several runs: their values and their mean wherever all of them have one.

        Args:
            label: what the legend says.
            runs: by name, each with its values by x, accuracies by epoch say.
            look: as above.

        Returns:
            The curve.

        Raises:
            InputError: there are no runs, one of them has no values, or they have no x in common.

        Example:
            >>> Curve.of_runs("relaxed", {"seed 0": {1: 40.0, 2: 70.0}, "seed 1": {2: 80.0, 3: 90.0}})
            Curve(label='relaxed', x=[2], mean=[75.0], runs=[[70.0], [80.0]], look=None)
        """
        if not runs:
            raise InputError(f"curve {label!r}: received no runs; expected at least one")
        for name, values in runs.items():
            if not values:
                raise InputError(
                    f"curve {label!r}, run {name}: received no values; expected one or more: leave "
                    "out a run that has not ended its first epoch"
                )
        x = sorted(set.intersection(*(set(values) for values in runs.values())))
        if not x:
            spans = ", ".join(f"{name} {min(v):g} to {max(v):g}" for name, v in runs.items())
            raise InputError(
                f"curve {label!r}: received runs that have no x in common ({spans}); expected some"
            )
        lines = [[values[place] for place in x] for values in runs.values()]
        return cls(label, x, [fmean(column) for column in zip(*lines, strict=True)], lines, look)

    def __post_init__(self) -> None:
        if self.look is not None and self.look < 0:
            raise InputError(
                f"curve {self.label!r}, look: received {self.look}; expected 0 or more"
            )
        n = len(self.x)
        if n == 0:
            raise InputError(
                f"curve {self.label!r}: received no values; expected one or more: leave out a curve "
                "of runs that have not ended their first epoch"
            )
        if not all(map(math.isfinite, self.x)):
            raise InputError(
                f"curve {self.label!r}: received x {list(self.x)}; expected finite numbers"
            )
        for name, values in [
            ("mean", self.mean),
            *((f"run {i}", r) for i, r in enumerate(self.runs, 1)),
        ]:
            if len(values) != n:
                raise InputError(
                    f"curve {self.label!r}, {name}: received {len(values)} values; expected one "
                    f"for each of the {n} in x (nan where there is none)"
                )


@dataclass(frozen=True)
class Panel:
    """One plot of a figure.

    Attributes:
        curves: what to draw; a label has the same colour and style in all panels of a figure.
        x_label: what x is.
        y_label: what the values are.
        title: stands above the plot.
        y_range: the least and the greatest value to show; by default all that there are.

    Raises:
        InputError: there are no curves, two have the same label, or the range is empty.

    Example:
        >>> Panel([Curve("one", [1], [2.0])], x_label="epoch", y_label="loss").y_range is None
        True
    """

    curves: Sequence[Curve]
    x_label: str
    y_label: str
    title: str | None = None
    y_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.curves, Mapping | Curve | str) or not all(
            isinstance(curve, Curve) for curve in self.curves
        ):
            raise InputError(
                f"curves: received {_kind(self.curves)}; expected a list of Curve: "
                'Curve("dev", x=[1, 2], mean=[0.5, 0.7])'
            )
        labels = [curve.label for curve in self.curves]
        if not labels or len(set(labels)) < len(labels):
            raise InputError(
                f"curves: received labels {labels}; expected one or more, all different"
            )
        if self.y_range is not None:
            low, high = self.y_range
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise InputError(
                    f"y_range: received {self.y_range}; expected two numbers, the lesser one first"
                )

    def in_words(self) -> str:
        """The plot for those who hear it read: where each curve begins and ends.

        Example:
            >>> Panel([Curve("one", [1, 2], [2.0, 0.5])], x_label="epoch", y_label="loss").in_words()
            'loss by epoch: one from 2 to 0.5'
        """
        told = []
        for curve in self.curves:
            known = [float(value) for value in curve.mean if math.isfinite(value)]
            if known:
                told.append(f"{curve.label} from {known[0]:.4g} to {known[-1]:.4g}")
        return f"{self.y_label} by {self.x_label}: {'; '.join(told)}"


def _kind(given: object) -> str:
    """What was given, in a few words."""
    name = type(given).__name__
    if isinstance(given, Mapping | str) or not isinstance(given, Sequence):
        return f"a {name}"
    other = next(type(each).__name__ for each in given if not isinstance(each, Curve))
    return f"a {name} with a {other} in it"
