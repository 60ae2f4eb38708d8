"""Curves: what is in the files, that they are equal for equal curves, and errors."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy
import pytest
import torch

from treelax.errors import BackendError, DataError, InputError
from treelax.pictures.curves import Curve, Curves, Panel, draw_curves, draw_panels

RELAXED = Curve("relaxed", [1, 2, 3], [40.0, 70.0, 80.0], [[30, 65, 75], [50, 75, 85]])
STRAIGHT = Curve("straight-through", [1, 2, 3], [20.0, 30.0, 45.0])
SVG = "{http://www.w3.org/2000/svg}"


def drawn(**options: Any) -> Curves:
    return draw_curves([RELAXED, STRAIGHT], x_label="epoch", y_label="accuracy", **options)


def two_panels(**options: Any) -> Curves:
    accuracy = Panel([RELAXED, STRAIGHT], "epoch", "tagging accuracy", y_range=(0, 100))
    attachment = Panel([STRAIGHT, RELAXED], "epoch", "attachment score", y_range=(0, 100))
    return draw_panels([accuracy, attachment], **options)


def texts(svg: str) -> list[str]:
    """All text in an SVG, in order."""
    return [
        "".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")
    ]


def size_of_png(data: bytes) -> tuple[int, int]:
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


# ------------------------------------------------------------------ what is drawn


def test_the_labels_are_text_in_the_svg() -> None:
    found = texts(drawn(title="Training").svg())
    assert {"epoch", "accuracy", "Training", "relaxed", "straight-through"} <= set(found)


def test_a_label_is_shown_as_it_is() -> None:
    labels = ["_hidden", "a $ and a $", r"$\frac{1", "<&>"]
    curves = [Curve(label, [1, 2], [1.0, 2.0]) for label in labels]
    svg = draw_curves(curves, x_label="$x$", y_label="_y", title="% $").svg()
    assert {*labels, "$x$", "_y", "% $"} <= set(texts(svg))


def test_panels_share_the_legend_and_the_look_of_a_label() -> None:
    drawing = two_panels(title="Both")
    found = texts(drawing.svg())
    assert {"tagging accuracy", "attachment score", "Both"} <= set(found)
    assert (found.count("relaxed"), found.count("straight-through")) == (1, 1)
    left, right = drawing.figure.axes

    def look(axes: Any, number: int) -> tuple[Any, Any]:
        line = axes.lines[number]
        return line.get_color(), line.get_linestyle()

    assert look(left, 0) == look(right, 1)
    assert look(left, 1) == look(right, 0)
    assert left.get_position().x1 < right.get_position().x0


def test_28_curves_all_look_different() -> None:
    curves = [Curve(str(i), [0, 1], [i, i]) for i in range(28)]
    (axes,) = draw_curves(curves, x_label="x", y_label="y").figure.axes
    # the pattern of the dashes is not to be had from outside
    looks = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in axes.lines}
    assert len(looks) == 28


def test_runs_as_a_band_or_as_lines() -> None:
    (banded,) = drawn().figure.axes
    assert (len(banded.collections), len(banded.lines)) == (1, 2)
    box = banded.collections[0].get_datalim(banded.transData)
    assert (box.x0, box.x1, box.y0, box.y1) == (1, 3, 30, 85)
    (lined,) = drawn(spread="lines").figure.axes
    assert (len(lined.collections), len(lined.lines)) == (0, 4)
    assert [list(line.get_ydata()) for line in lined.lines[:2]] == [[30, 65, 75], [50, 75, 85]]
    assert lined.lines[0].get_linewidth() < lined.lines[2].get_linewidth()


@pytest.mark.parametrize("spread", ["band", "lines"])
@pytest.mark.parametrize("kind", [numpy.array, torch.tensor, tuple])
def test_values_of_any_kind(kind: Callable[[object], Any], spread: str) -> None:
    curve = Curve("relaxed", kind([1, 2, 3]), kind(RELAXED.mean), kind(RELAXED.runs))
    both = [
        draw_curves([c], x_label="x", y_label="y", spread=spread).svg() for c in (curve, RELAXED)
    ]  # type: ignore[arg-type]
    assert both[0] == both[1]


def test_a_run_without_all_values() -> None:
    runs = [[1.0, 2.0, math.nan, math.nan], [3.0, math.nan, 5.0, math.nan]]
    curve = Curve("stopped", range(4), [2.0, 2.0, 5.0, math.nan], runs)
    for spread in ("band", "lines"):
        drawing = draw_curves([curve], x_label="x", y_label="y", spread=spread)  # type: ignore[arg-type]
        assert "stopped" in texts(drawing.svg())


@pytest.mark.parametrize(
    ("mean", "alone"),
    [([1.0], [0]), ([1.0, math.nan, 2.0, 3.0], [0]), ([math.nan, 2.0, math.nan], [1])],
)
def test_points_without_neighbours_are_marked(mean: list[float], alone: list[int]) -> None:
    (axes,) = draw_curves(
        [Curve("few", range(len(mean)), mean)], x_label="x", y_label="y"
    ).figure.axes
    assert (axes.lines[0].get_marker(), axes.lines[0].get_markevery()) == ("o", alone)


def test_other_points_are_not() -> None:
    (axes,) = drawn().figure.axes
    assert axes.lines[0].get_marker() == "None"


def test_the_range_is_shown_whole_and_epochs_are_integers() -> None:
    (axes,) = drawn(y_range=(0, 100)).figure.axes
    low, high = axes.get_ylim()
    assert -5 < low < 0
    assert 100 < high < 105
    assert all(float(tick).is_integer() for tick in axes.get_xticks())


def test_a_legend_too_wide_takes_more_rows() -> None:
    def height(length: int) -> float:
        curves = [Curve(f"{i}" + "w" * length, [0, 1], [i, i]) for i in range(4)]
        drawing = draw_curves(curves, x_label="x", y_label="y")
        assert len(drawing.figure.legends) == 1
        return float(drawing.figure.get_figheight())

    assert height(1) < height(12) < height(40)
    assert height(40) == height(200)


# ------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("name", "magic"), [("a.svg", b"<?xml"), ("a.png", b"\x89PNG"), ("a.PDF", b"%PDF")]
)
@pytest.mark.parametrize("draw", [drawn, two_panels])
def test_files_by_their_suffix(
    tmp_path: Path, name: str, magic: bytes, draw: Callable[[], Curves]
) -> None:
    path = tmp_path / name
    path.write_text("an older file")
    assert draw().save(str(path)) == path
    assert path.read_bytes().startswith(magic)
    assert os.listdir(tmp_path) == [name]


def test_the_size_of_a_picture(tmp_path: Path) -> None:
    one = size_of_png(drawn().save(tmp_path / "one.png").read_bytes())
    two = size_of_png(two_panels().save(tmp_path / "two.png").read_bytes())
    assert one[0] > 1000
    assert two[0] > 1.7 * one[0]


SUFFIXES = [".svg", ".png", ".pdf"]


def save_all(folder: Path, name: str) -> list[bytes]:
    drawing = two_panels()
    return [drawing.save(folder / (name + suffix)).read_bytes() for suffix in SUFFIXES]


def in_another_process(code: str, **environment: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True
    ).stdout.strip()


def test_equal_curves_give_equal_bytes(tmp_path: Path) -> None:
    one = save_all(tmp_path, "one")
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red", "text.usetex": True}):
        assert save_all(tmp_path, "two") == one  # whatever the user has set for other figures
    code = f"import pathlib, test_curves; test_curves.save_all(pathlib.Path({str(tmp_path)!r}), 'three')"
    in_another_process(code, PYTHONHASHSEED="7", SOURCE_DATE_EPOCH="86400")
    assert [(tmp_path / f"three{suffix}").read_bytes() for suffix in SUFFIXES] == one


def test_a_drawing_can_be_saved_twice(tmp_path: Path) -> None:
    drawing = two_panels()
    svg = drawing.svg()
    drawing.save(tmp_path / "between.png")
    assert drawing.svg() == svg


def test_the_settings_of_other_figures_stay() -> None:
    def settings() -> dict[str, Any]:
        # reading the backend would choose one
        return {key: matplotlib.rcParams[key] for key in matplotlib.rcParams if key != "backend"}

    before = settings()
    drawn().svg()
    assert settings() == before


def test_pyplot_is_never_loaded_and_matplotlib_only_when_needed() -> None:
    code = (
        "import sys, treelax.pictures; print('matplotlib' in sys.modules); import test_curves; "
        "test_curves.drawn().svg(); print('matplotlib.pyplot' in sys.modules)"
    )
    assert in_another_process(code, MPLBACKEND="agg").split() == ["False", "False"]


def test_the_drawing_in_a_notebook() -> None:
    drawing = drawn()
    assert drawing._repr_svg_() == drawing.svg()
    assert drawing.svg().startswith("<svg")


@pytest.mark.parametrize("name", ["a.gif", "a", "svg", "a.svg.gz"])
def test_a_suffix_that_is_none_of_them(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"received the suffix '.*'; expected .svg, .png or .pdf"):
        drawn().save(tmp_path / name)
    assert not os.listdir(tmp_path)


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a.svg: was not written: .*No such file or directory"):
        drawn().save(tmp_path / "nowhere" / "a.svg")


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Curve("c", [], []), "curve 'c': received no values; expected one or more: leave"),
        (
            lambda: draw_curves({"c": [1, 2]}, x_label="x", y_label="y"),  # type: ignore[arg-type]
            "curves: received a dict; expected a list of Curve: Curve\\(",
        ),
        (
            lambda: draw_curves([[1, 2]], x_label="x", y_label="y"),  # type: ignore[list-item]
            "curves: received a list with a list in it; expected a list of Curve",
        ),
        (
            lambda: draw_curves(RELAXED, x_label="x", y_label="y"),  # type: ignore[arg-type]
            "curves: received a Curve; expected a list of Curve",
        ),
        (lambda: draw_panels({"a": 1}), "panels: received a dict of"),  # type: ignore[arg-type]
        (lambda: draw_panels([RELAXED]), "panels: received a list of"),  # type: ignore[list-item]
        (lambda: Curve("c", [1, math.nan], [1, 2]), "curve 'c': received x .*nan"),
        (lambda: Curve("c", [1, 2], [1]), "curve 'c', mean: received 1 values; .* the 2 in x"),
        (lambda: Curve("c", [1], [1], [[1], [1, 2]]), "curve 'c', run 2: received 2 values"),
        (lambda: Panel([], "x", "y"), r"curves: received labels \[\]; expected one or more"),
        (lambda: Panel([RELAXED, RELAXED], "x", "y"), "received labels .*; .* all different"),
        (lambda: Panel([RELAXED], "x", "y", y_range=(1, 1)), r"y_range: received \(1, 1\)"),
        (lambda: Panel([RELAXED], "x", "y", y_range=(0, math.inf)), "y_range: received"),
        (lambda: draw_panels([]), "panels: received none; expected at least one"),
        (lambda: drawn(spread="area"), "spread: received 'area'; expected 'band' or 'lines'"),
        (lambda: drawn(y_range=(100, 0)), "y_range: received .*; expected two numbers, the lesser"),
    ],
)
def test_wrong_arguments(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()


def test_without_matplotlib_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BackendError, match=r'pip install "treelax\[train\]"'):
        drawn()
