"""Curves and the figure of appendix B: what is drawn, equal bytes, light and dark pages, errors."""

import math
import re
import sys

import matplotlib
import pytest
import torch
from drawings import SVG, contrast, root_of, texts

from treelax.apps.pictures.style import PAPER
from treelax.errors import BackendError, DataError, InputError
from treelax.lab.plots import Curve, Panel, draw_curves, draw_panels, draw_relaxation
from treelax.lab.plots.plot import DARK, DARK_COLOURS, EDGE
from treelax.lab.plots.relaxation import _surfaces

RELAXED = Curve("relaxed", [1, 2, 3], [40.0, 70.0, 80.0], [[30, 65, 75], [50, 75, 85]])
STRAIGHT = Curve("straight-through", [1, 2, 3], [20.0, 30.0, 45.0])


def drawn(**options):
    return draw_curves([RELAXED, STRAIGHT], x_label="epoch", y_label="accuracy", **options)


def two_panels(**options):
    accuracy = Panel([RELAXED, STRAIGHT], "epoch", "tagging accuracy", y_range=(0, 100))
    attachment = Panel([STRAIGHT, RELAXED], "epoch", "attachment score", y_range=(0, 100))
    return draw_panels([accuracy, attachment], **options)


def flat(label, look=None):
    return Curve(label, [1, 2], [1.0, 2.0], look=look)


def looks(*curves):
    """Colour and pattern of every label."""
    (axes,) = draw_curves(curves, x_label="x", y_label="y").figure.axes
    # the pattern of the dashes is not to be had from outside
    drawn = [(line.get_color(), str(line._unscaled_dash_pattern)) for line in axes.lines]
    return dict(zip((curve.label for curve in curves), drawn, strict=True))


def test_a_label_is_shown_as_it_is():
    labels = ["_hidden", "a $ and a $", r"$\frac{1", "<&>"]
    svg = draw_curves(list(map(flat, labels)), x_label="$x$", y_label="_y", title="% $").svg()
    assert {*labels, "$x$", "_y", "% $"} <= set(texts(svg))


def test_legends_and_looks():
    """Panels share the legend and the look of a label, which stays when other curves are missing."""
    drawing = two_panels(title="Both")
    shown = texts(drawing.svg())
    assert {"tagging accuracy", "attachment score", "Both"} <= set(shown)
    assert (shown.count("relaxed"), shown.count("straight-through")) == (1, 1)
    left, right = drawing.figure.axes
    assert left.lines[0].get_color() == right.lines[1].get_color()
    assert left.get_position().x1 < right.get_position().x0
    whole = looks(*(flat(label, i) for i, label in enumerate("abcd")))
    assert looks(flat("d", 3), flat("b", 1)) == {label: whole[label] for label in "db"}
    # by default a curve gets the first free look
    mixed = looks(flat("p"), flat("q", 0), flat("r"))
    assert [mixed[label] for label in "qpr"] == [whole[label] for label in "abc"]
    # plots without a shared label have legends of their own
    one, two = (Panel([flat(name)], "epoch", "%") for name in ("one", "two"))
    apart = draw_panels([one, two]).figure
    legends = [[t.get_text() for t in axes.get_legend().get_texts()] for axes in apart.axes]
    assert (legends, apart.legends) == ([["one"], ["two"]], [])


def test_runs_as_a_band_or_as_lines():
    (banded,) = drawn().figure.axes
    assert (len(banded.collections), len(banded.lines)) == (1, 2)
    box = banded.collections[0].get_datalim(banded.transData)
    assert (box.x0, box.x1, box.y0, box.y1) == (1, 3, 30, 85)
    (lined,) = drawn(spread="lines").figure.axes
    assert (len(lined.collections), len(lined.lines)) == (0, 4)
    assert [list(line.get_ydata()) for line in lined.lines[:2]] == [[30, 65, 75], [50, 75, 85]]
    # held together by their epochs
    runs = {0: {2: 20.0, 3: 30.0, 4: 40.0}, 1: {4: 44.0, 3: 33.0, 1: 11.0}}
    curve = Curve.of_runs("both", runs, look=3)
    assert curve == Curve("both", [3, 4], [31.5, 42.0], [[30.0, 40.0], [33.0, 44.0]], look=3)


def test_files_and_equal_bytes(tmp_path):
    """Whatever is set for other figures."""
    drawing, files = drawn(), {"a.svg": b"<?xml", "a.png": b"\x89PNG", "a.PDF": b"%PDF"}
    (tmp_path / "a.svg").write_text("an older file")
    data = {name: drawing.save(tmp_path / name).read_bytes() for name in files}
    assert all(data[name].startswith(magic) for name, magic in files.items())
    settings = {"font.size": 20, "axes.facecolor": "red", "text.usetex": True}
    with matplotlib.rc_context(settings):
        assert {name: drawn().save(tmp_path / name).read_bytes() for name in files} == data
        assert {key: matplotlib.rcParams[key] for key in settings} == settings
    with pytest.raises(InputError, match=r"received the suffix '.gz'; expected .svg, .png or .pdf"):
        drawing.save(tmp_path / "a.svg.gz")
    with pytest.raises(DataError, match=r"a.svg: was not written: .*No such file or directory"):
        drawing.save(tmp_path / "nowhere" / "a.svg")


def test_colours_follow_light_and_dark():
    """Each has a rule for dark, which is bound to the drawing: in a page it would count for all."""
    curves = [Curve(f"curve {i}", [1, 2], [i, i + 1.0]) for i in range(7)]
    svg = draw_curves(curves, x_label="epoch", y_label="accuracy").svg()
    [style] = [element.text or "" for element in root_of(svg).iter(f"{SVG}style")]
    inside = style.removeprefix("@media (prefers-color-scheme:dark){").removesuffix("}")
    selectors = re.findall(r"([^{}]+)\{[^{}]+\}", inside)
    assert all(selector.startswith("svg.treelax:root") for selector in selectors)
    used = set(re.findall(r"(fill|stroke): (#[0-9a-f]{6})", svg.replace(style, "")))
    assert {colour for _, colour in used} > {"#0072b2", "#ffffff", EDGE}
    assert all(f'[style*="{what}: {colour}"]{{{what}:' in style for what, colour in used)
    # no rule reaches what <use> copies, so that must have no colour of its own
    markers = [p for defs in root_of(svg).iter(f"{SVG}defs") for p in defs.iter(f"{SVG}path")]
    assert markers
    assert not any(marker.get("style") for marker in markers)
    for light, dark in DARK_COLOURS.items():
        assert contrast(dark, PAPER[1]) >= 4.5
        assert contrast(light, PAPER[0]) >= 2  # those of Okabe and Ito; dashes tell them apart too
    assert contrast(DARK[EDGE], PAPER[1]) >= 3


def test_curves_in_words():
    accuracy = Panel([Curve("one", [1, 2], [3.0, 4.0])], "epoch", "accuracy, %")
    loss = Panel([Curve("one", [1, 2], [0.9, 0.25])], "epoch", "loss", "Loss & more")
    root = root_of(draw_panels([accuracy, loss])._repr_svg_())
    title, description = list(root)[:2]
    assert (title.text, description.text) == (
        "accuracy, % by epoch; Loss & more",
        "accuracy, % by epoch: one from 3 to 4. loss by epoch: one from 0.9 to 0.25.",
    )
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Curve("c", [1, 2], [1]), "curve 'c': received 1 values for 2 x"),
        (lambda: Curve("c", [1], [1], [[1], [1, 2]]), "curve 'c': received 2 values for 1 x"),
        (lambda: Curve.of_runs("c", {1: {1: 2.0}, 2: {}}), "received 2 runs without an x"),
        (lambda: Panel([RELAXED, RELAXED], "x", "y"), "received labels .*; .* different"),
        (lambda: drawn(spread="area"), "spread: received 'area'; expected 'band' or 'lines'"),
        (lambda: draw_relaxation(temperature=0), "temperature is"),
        (lambda: draw_relaxation(temperature=math.nan), "temperature is"),
    ],
)
def test_wrong_arguments(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BackendError, match=r'pip install "treelax\[train\]"'):
        drawn()


@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_argmax_has_two_levels_and_its_relaxation_a_slope(temperature):
    (_, _, (x1, x2, hard)), (_, _, (y1, y2, soft)) = _surfaces(temperature)
    assert torch.equal(hard, ((x1 > x2) & (x1 > 0)).to(hard))
    weights = torch.stack([y1, y2, torch.zeros_like(y1)]).div(temperature).softmax(0)
    torch.testing.assert_close(soft, weights[0])
    picture = draw_relaxation(temperature=temperature)
    shown = {"argmax", f"relaxation, temperature {temperature:g}", "x₁", "x₂"}
    assert shown <= set(texts(picture.svg()))
    assert "cliff" in picture.description
