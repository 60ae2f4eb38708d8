"""Curves: what is drawn, equal bytes for equal curves, light and dark pages, errors."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from drawings import SVG, root_of, texts
from test_svg import contrast

from treelax.apps.pictures.style import PAPER
from treelax.errors import BackendError, DataError, InputError
from treelax.lab.plots import Curve, Curves, Panel, draw_curves, draw_panels
from treelax.lab.plots.plot import DARK, DARK_COLOURS, EDGE

RELAXED = Curve("relaxed", [1, 2, 3], [40.0, 70.0, 80.0], [[30, 65, 75], [50, 75, 85]])
STRAIGHT = Curve("straight-through", [1, 2, 3], [20.0, 30.0, 45.0])


def drawn(**options: Any) -> Curves:
    return draw_curves([RELAXED, STRAIGHT], x_label="epoch", y_label="accuracy", **options)


def two_panels(**options: Any) -> Curves:
    accuracy = Panel([RELAXED, STRAIGHT], "epoch", "tagging accuracy", y_range=(0, 100))
    attachment = Panel([STRAIGHT, RELAXED], "epoch", "attachment score", y_range=(0, 100))
    return draw_panels([accuracy, attachment], **options)


def flat(label: str, look: int | None = None) -> Curve:
    return Curve(label, [1, 2], [1.0, 2.0], look=look)


def looks(*curves: Curve) -> dict[str, tuple[Any, str]]:
    """Colour and pattern of every label."""
    (axes,) = draw_curves(curves, x_label="x", y_label="y").figure.axes
    # the pattern of the dashes is not to be had from outside
    found = [(line.get_color(), str(line._unscaled_dash_pattern)) for line in axes.lines]
    return dict(zip((curve.label for curve in curves), found, strict=True))


# ------------------------------------------------------------------ what is drawn


def test_a_label_is_shown_as_it_is() -> None:
    labels = ["_hidden", "a $ and a $", r"$\frac{1", "<&>"]
    svg = draw_curves(list(map(flat, labels)), x_label="$x$", y_label="_y", title="% $").svg()
    assert {*labels, "$x$", "_y", "% $"} <= set(texts(svg))


def test_panels_share_the_legend_and_the_look_of_a_label() -> None:
    drawing = two_panels(title="Both")
    found = texts(drawing.svg())
    assert {"tagging accuracy", "attachment score", "Both"} <= set(found)
    assert (found.count("relaxed"), found.count("straight-through")) == (1, 1)
    left, right = drawing.figure.axes
    assert left.lines[0].get_color() == right.lines[1].get_color()
    assert left.lines[1].get_linestyle() == right.lines[0].get_linestyle()
    assert left.get_position().x1 < right.get_position().x0


def test_a_look_stays_when_other_curves_are_missing() -> None:
    whole = looks(*(flat(label, i) for i, label in enumerate("abcd")))
    assert looks(flat("d", 3), flat("b", 1)) == {label: whole[label] for label in "db"}
    # by default a curve gets the first free look
    mixed = looks(flat("p"), flat("q", 0), flat("r"))
    assert [mixed[label] for label in "qpr"] == [whole[label] for label in "abc"]


def test_runs_as_a_band_or_as_lines() -> None:
    (banded,) = drawn().figure.axes
    assert (len(banded.collections), len(banded.lines)) == (1, 2)
    box = banded.collections[0].get_datalim(banded.transData)
    assert (box.x0, box.x1, box.y0, box.y1) == (1, 3, 30, 85)
    (lined,) = drawn(spread="lines").figure.axes
    assert (len(lined.collections), len(lined.lines)) == (0, 4)
    assert [list(line.get_ydata()) for line in lined.lines[:2]] == [[30, 65, 75], [50, 75, 85]]


def test_runs_are_held_together_by_their_epochs() -> None:
    runs = {0: {2: 20.0, 3: 30.0, 4: 40.0}, 1: {4: 44.0, 3: 33.0, 1: 11.0}}
    curve = Curve.of_runs("both", runs, look=3)
    assert curve == Curve("both", [3, 4], [31.5, 42.0], [[30.0, 40.0], [33.0, 44.0]], look=3)


# ------------------------------------------------------------------ files


def test_files_by_their_suffix(tmp_path: Path) -> None:
    drawing = drawn()
    for name, magic in (("a.svg", b"<?xml"), ("a.png", b"\x89PNG"), ("a.PDF", b"%PDF")):
        path = tmp_path / name
        path.write_text("an older file")
        assert drawing.save(str(path)) == path
        assert path.read_bytes().startswith(magic)
    assert len(os.listdir(tmp_path)) == 3
    with pytest.raises(InputError, match=r"received the suffix '.gz'; expected .svg, .png or .pdf"):
        drawing.save(tmp_path / "a.svg.gz")
    with pytest.raises(DataError, match=r"a.svg: was not written: .*No such file or directory"):
        drawing.save(tmp_path / "nowhere" / "a.svg")


def save_all(folder: Path, name: str) -> list[bytes]:
    drawing = two_panels()
    suffixes = (".svg", ".png", ".pdf")
    return [drawing.save(folder / (name + suffix)).read_bytes() for suffix in suffixes]


def test_equal_curves_give_equal_bytes(tmp_path: Path) -> None:
    """Whatever is set for other figures; and no window is opened for them."""
    one = save_all(tmp_path, "one")
    settings = {"font.size": 20, "axes.facecolor": "red", "text.usetex": True}
    with matplotlib.rc_context(settings):
        assert save_all(tmp_path, "two") == one
        assert {key: matplotlib.rcParams[key] for key in settings} == settings


# ------------------------------------------------------------------ light, dark, in words


def test_colours_follow_light_and_dark() -> None:
    """Each has a rule for dark, which is bound to the drawing: in a page it would count for all."""
    curves = [Curve(f"curve {i}", [1, 2], [i, i + 1.0]) for i in range(7)]
    svg = draw_curves(curves, x_label="epoch", y_label="accuracy").svg()
    [style] = [element.text or "" for element in root_of(svg).iter(f"{SVG}style")]
    inside = style.removeprefix("@media (prefers-color-scheme:dark){").removesuffix("}")
    selectors = re.findall(r"([^{}]+)\{[^{}]+\}", inside)
    assert all(selector.startswith("svg.treelax:root") for selector in selectors)
    found = set(re.findall(r"(fill|stroke): (#[0-9a-f]{6})", svg.replace(style, "")))
    assert {colour for _, colour in found} > {"#0072b2", "#ffffff", EDGE}
    for what, colour in found:
        assert f'[style*="{what}: {colour}"]{{{what}:' in style
    # no rule reaches what <use> copies, so that must have no colour of its own
    markers = [p for defs in root_of(svg).iter(f"{SVG}defs") for p in defs.iter(f"{SVG}path")]
    assert markers
    assert not any(marker.get("style") for marker in markers)
    for light, dark in DARK_COLOURS.items():
        assert contrast(dark, PAPER[1]) >= 4.5
        assert contrast(light, PAPER[0]) >= 2  # those of Okabe and Ito; dashes tell them apart too
    assert contrast(DARK[EDGE], PAPER[1]) >= 3


def test_curves_are_told() -> None:
    accuracy = Panel([Curve("one", [1, 2], [3.0, 4.0])], "epoch", "accuracy, %")
    loss = Panel([Curve("one", [1, 2], [0.9, 0.25])], "epoch", "loss", "Loss & more")
    drawing = draw_panels([accuracy, loss])
    root = root_of(drawing._repr_svg_())
    title, description = list(root)[:2]
    assert (title.text, description.text) == (
        "accuracy, % by epoch; Loss & more",
        "accuracy, % by epoch: one from 3 to 4. loss by epoch: one from 0.9 to 0.25.",
    )
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert draw_panels([accuracy, loss], title="Both").title == "Both"


def test_plots_without_a_shared_label_have_legends_of_their_own() -> None:
    one, two = (Panel([Curve(name, [1, 2], [3.0, 4.0])], "epoch", "%") for name in ("one", "two"))
    apart, shared = draw_panels([one, two]).figure, draw_panels([one, one]).figure
    texts = [[t.get_text() for t in axes.get_legend().get_texts()] for axes in apart.axes]
    assert (texts, apart.legends) == ([["one"], ["two"]], [])
    [legend] = shared.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one"]
    assert all(axes.get_legend() is None for axes in shared.axes)


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Curve("c", [1, 2], [1]), "curve 'c': received 1 values for 2 x"),
        (lambda: Curve("c", [1], [1], [[1], [1, 2]]), "curve 'c': received 2 values for 1 x"),
        (lambda: Curve.of_runs("c", {1: {1: 2.0}, 2: {}}), "received 2 runs without an x"),
        (lambda: Panel([RELAXED, RELAXED], "x", "y"), "received labels .*; .* different"),
        (lambda: drawn(spread="area"), "spread: received 'area'; expected 'band' or 'lines'"),
    ],
)
def test_wrong_arguments(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()


def test_without_matplotlib_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BackendError, match=r'pip install "treelax\[train\]"'):
        drawn()
