"""Curves and bars as SVG: their colours on light and dark pages, and what is told of them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from browsing import a_browser
from svg_parts import SVG, root_of
from test_svg import contrast

from treelax.analysis.bars import Bars, draw_bars
from treelax.errors import BackendError
from treelax.pictures import Curve, Curves, Panel, draw_curves, draw_panels
from treelax.pictures.matplotlib_svg import COLOURS, DARK, EDGE, adapted
from treelax.pictures.svg import INK, PAPER

ACCURACY = Panel([Curve("one", [1, 2], [3.0, 4.0], [[2, 3], [4, 5]])], "epoch", "accuracy, %")
LOSS = Panel([Curve("one", [1, 2], [0.9, 0.25])], "epoch", "loss", "Loss & more")


def many() -> Curves:
    """Seven curves, so that every colour is there."""
    curves = [Curve(f"curve {i}", [1, 2], [i, i + 1.0]) for i in range(7)]
    return draw_curves(curves, x_label="epoch", y_label="accuracy")


def hatched() -> Curves:
    values = {"NOUN": [50.0, 30.0], "VERB": [None, 10.0]}
    return draw_bars(Bars("By tag", "UAS, %", values, series=["run", "chain"]))


# ------------------------------------------------------------------ colours


@pytest.mark.parametrize("draw", [many, hatched])
def test_every_colour_has_a_rule_for_dark(draw: object) -> None:
    svg = draw().svg()  # type: ignore[operator]
    [style] = [element.text or "" for element in root_of(svg).iter(f"{SVG}style")]
    drawn = svg.replace(style, "")
    found = set(re.findall(r"(fill|stroke): (#[0-9a-f]{6})", drawn))
    assert {colour for _, colour in found} > {"#0072b2", "#ffffff", EDGE}
    for what, colour in found:
        assert f'[style*="{what}: {colour}"]{{{what}:' in style
    for colour in re.findall(r' fill="(#[0-9a-f]{6})"', drawn):
        assert f'[fill="{colour}"]' in style


def test_colours_can_be_seen_on_light_and_on_dark() -> None:
    assert len(set(COLOURS.values())) == len(COLOURS)
    for light, dark in COLOURS.items():
        assert contrast(dark, PAPER[1]) >= 4.5
        assert contrast(light, PAPER[0]) >= 2  # those of Okabe and Ito; dashes tell them apart too
    assert contrast(DARK[EDGE], PAPER[1]) >= 3


def test_rules_are_bound_to_the_drawing() -> None:
    """Inside a page a style counts for the whole page."""
    [style] = [element.text or "" for element in root_of(many().svg()).iter(f"{SVG}style")]
    inside = style.removeprefix("@media (prefers-color-scheme:dark){").removesuffix("}")
    selectors = re.findall(r"([^{}]+)\{[^{}]+\}", inside)
    assert len(selectors) > 10
    assert all(selector.startswith("svg.treelax:root") for selector in selectors)


def test_a_marker_takes_the_colour_of_its_place() -> None:
    """No rule reaches what <use> copies, so that must have no colour of its own."""
    root = root_of(many().svg())
    places = list(root.iter(f"{SVG}use"))
    assert places
    assert all("stroke: #" in place.get("style", "") for place in places)
    markers = [path for defs in root.iter(f"{SVG}defs") for path in defs.iter(f"{SVG}path")]
    assert markers
    assert not any(marker.get("style") for marker in markers)


@pytest.mark.parametrize(("scheme", "number"), [("light", 0), ("dark", 1)])
def test_in_a_browser(tmp_path: Path, scheme: str, number: int) -> None:
    def rgb(colour: str) -> str:
        parts = ", ".join(str(int(a + b, 16)) for a, b in list(pairwise(colour))[1::2])
        return f"rgb({parts})"

    file = many().save(tmp_path / "many.svg")
    with a_browser() as browser:
        page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(file.as_uri())
        paper, text = page.evaluate(
            "['path', 'text'].map(name => getComputedStyle(document.querySelector(name)).fill)"
        )
        tick = page.evaluate("getComputedStyle(document.querySelector('use')).stroke")
    ink = ("#000000", INK[1])[number]
    assert (paper, text, tick) == (rgb(PAPER[number]), rgb(ink), rgb(ink))


# ------------------------------------------------------------------ words


def told(drawing: Curves) -> tuple[str, str]:
    """Title and description, as they are named by the root."""
    root = root_of(drawing.svg())
    assert root.get("role") == "img"
    title, description = list(root)[:2]
    assert (title.tag, description.tag) == (f"{SVG}title", f"{SVG}desc")
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    return title.text or "", description.text or ""


def test_curves_are_told() -> None:
    assert told(draw_panels([ACCURACY, LOSS])) == (
        "accuracy, % by epoch; Loss & more",
        "accuracy, % by epoch: one from 3 to 4. loss by epoch: one from 0.9 to 0.25.",
    )
    assert told(draw_panels([ACCURACY, LOSS], title="Both"))[0] == "Both"


def test_bars_are_told() -> None:
    assert told(hatched()) == ("By tag", "UAS, %. NOUN: run 50.0, chain 30.0; VERB: chain 10.0.")
    alone = Bars("Agreement", "UAS, %", {"run": [50.0], "chain": [None]})
    assert told(draw_bars(alone))[1] == "UAS, %. run: 50.0; chain: none."


def test_two_drawings_in_a_page_share_no_title() -> None:
    names = [root_of(drawing.svg()).get("aria-labelledby") for drawing in (many(), hatched())]
    assert names[0] != names[1]


def test_what_is_no_svg() -> None:
    with pytest.raises(BackendError, match=r"matplotlib gave no <svg> element; install another"):
        adapted("%PDF", "a plot", "")
