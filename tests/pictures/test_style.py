"""Palette and geometry as a page takes them over."""

from __future__ import annotations

import json
import re

from treelax.apps.pictures import draw_arcs
from treelax.apps.pictures.style import as_json


def test_style_as_json_is_what_pictures_are_drawn_with() -> None:
    style = json.loads(json.dumps(as_json()))
    svg = draw_arcs(["Dogs", "bark"], [2, 0], gold=[0, 1]).svg()
    colours = {colour for pair in style["colours"].values() for colour in pair}
    assert set(re.findall(r"#[0-9A-F]{6}", svg)) <= colours
    dashes = {dash for _, dash in style["looks"].values()}
    assert set(re.findall(r'stroke-dasharray="([^"]*)"', svg)) <= dashes
    sizes = set(map(float, re.findall(r'font-size="([^"]*)"', svg)))
    assert {style["sizes"]["word"], style["sizes"]["label"]} <= sizes
    assert f'stroke-width="{style["sizes"]["widest"]}"' in svg
