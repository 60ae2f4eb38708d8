"""Curves of several runs: values that belong together, and looks that stay from figure to figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelax.errors import InputError
from treelax.pictures.curves import draw_curves, draw_panels
from treelax.pictures.series import Curve, Panel

by_epoch = st.dictionaries(st.integers(1, 6), st.floats(0, 100), min_size=1)


def looks(*panels: Panel) -> dict[str, tuple[Any, Any]]:
    """Colour and pattern of every label, which must be the same in all panels."""
    drawing = draw_panels(panels)
    found: dict[str, tuple[Any, Any]] = {}
    for panel, axes in zip(panels, drawing.figure.axes, strict=True):
        for curve, line in zip(panel.curves, axes.lines, strict=True):
            look = line.get_color(), str(line._unscaled_dash_pattern)
            assert found.setdefault(curve.label, look) == look
    return found


def flat(label: str, look: int | None = None) -> Curve:
    return Curve(label, [1, 2], [1.0, 2.0], look=look)


# ------------------------------------------------------------------ values of several runs


def test_runs_are_held_together_by_their_epochs() -> None:
    runs = {0: {2: 20.0, 3: 30.0, 4: 40.0}, 1: {4: 44.0, 3: 33.0, 1: 11.0}}
    curve = Curve.of_runs("both", runs, look=3)
    assert curve == Curve("both", [3, 4], [31.5, 42.0], [[30.0, 40.0], [33.0, 44.0]], look=3)


@given(st.lists(by_epoch, min_size=1, max_size=4))
def test_every_value_is_that_of_its_epoch(logs: list[dict[int, float]]) -> None:
    shared = set.intersection(*map(set, logs))
    if not shared:
        with pytest.raises(InputError, match="no x in common"):
            Curve.of_runs("c", dict(enumerate(logs)))
        return
    curve = Curve.of_runs("c", dict(enumerate(logs)))
    assert list(curve.x) == sorted(shared)
    for log, values in zip(logs, curve.runs, strict=True):
        assert list(values) == [log[x] for x in curve.x]  # type: ignore[index]
    for x, mean in zip(curve.x, curve.mean, strict=True):
        assert mean == pytest.approx(sum(log[x] for log in logs) / len(logs))  # type: ignore[index]


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ({}, "curve 'c': received no runs; expected at least one"),
        ({3: {1: 2.0}, 4: {}}, "curve 'c', run 4: received no values; expected one or more: leave"),
        (
            {"a": {1: 2.0, 2: 3.0}, "b": {5: 1.0}},
            r"received runs that have no x in common \(a 1 to 2, b 5 to 5\)",
        ),
    ],
)
def test_runs_without_a_curve(runs: dict[Any, dict[float, float]], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Curve.of_runs("c", runs)


# ------------------------------------------------------------------ looks


def test_a_look_stays_when_other_curves_are_missing() -> None:
    whole = looks(Panel([flat(label, i) for i, label in enumerate("abcd")], "x", "y"))
    assert len(set(whole.values())) == 4
    part = looks(Panel([flat("d", 3), flat("b", 1)], "x", "y"), Panel([flat("b", 1)], "x", "y"))
    assert part == {label: whole[label] for label in "db"}


def test_by_default_a_curve_gets_the_first_free_look() -> None:
    plain = looks(Panel([flat(label) for label in "abc"], "x", "y"))
    mixed = looks(Panel([flat("p"), flat("q", 0), flat("r")], "x", "y"))
    assert (mixed["q"], mixed["p"], mixed["r"]) == (plain["a"], plain["b"], plain["c"])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: flat("a", -1), "curve 'a', look: received -1; expected 0 or more"),
        (
            lambda: draw_curves([flat("a", 1), flat("b", 1)], x_label="x", y_label="y"),
            "look: received {'a': 1, 'b': 1}; expected another one for every label",
        ),
        (
            lambda: looks(Panel([flat("a", 1)], "x", "y"), Panel([flat("a", 2)], "x", "y")),
            "curve 'a', look: received 1 and 2; expected one look for one label",
        ),
    ],
)
def test_looks_that_contradict_each_other(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        wrong()
