"""Pictures as SVG: alone or in a page, for light and dark, for those who hear them; as files."""

import json
import re
import shutil

import pytest
from drawings import SVG, contrast, root_of

from treelax.apps.pictures import draw_arcs
from treelax.apps.pictures.style import COLOURS, INK, PAPER, as_json
from treelax.errors import BackendError, DataError, InputError

ONE = draw_arcs(["Dogs", "bark"], [2, 0], title="One")


def test_it_has_a_name_and_a_description():
    root = root_of(ONE._repr_svg_())
    assert root.get("role") == "img"
    by_id = {element.get("id"): element for element in root.iter() if element.get("id")}
    named = [by_id[name] for name in root.get("aria-labelledby").split()]
    assert [(element.tag, element.text) for element in named] == [
        (f"{SVG}title", "One"),
        (f"{SVG}desc", "Dogs (1): head bark (2). bark (2): head root (0)."),
    ]


def test_its_style_is_bound_to_itself():
    """Inside a page a style counts for the whole page, so every rule asks for a root of its own."""
    style = root_of(ONE.svg()).find(f"{SVG}style").text
    selectors = re.findall(r"([^{}]+)\{[^{}]+\}", style.replace("@media", "{} @media"))
    selectors = [s for s in selectors if "@media" not in s]
    assert len(selectors) >= 6
    assert all(s.startswith("svg.treelax:root") for s in selectors)
    assert "(prefers-color-scheme:dark)" in style


def test_colours_can_be_seen_on_light_and_on_dark():
    for light, dark in COLOURS.values():
        assert contrast(light, PAPER[0]) >= 3
        assert contrast(dark, PAPER[1]) >= 3
        assert contrast(light, PAPER[1]) >= 3  # inside a page, where it cannot follow
    assert contrast(INK[0], PAPER[0]) >= 7
    assert contrast(INK[1], PAPER[1]) >= 7


def test_style_as_json_is_what_pictures_are_drawn_with():
    style = json.loads(json.dumps(as_json()))
    svg = draw_arcs(["Dogs", "bark"], [2, 0], gold=[0, 1]).svg()
    colours = {colour for pair in style["colours"].values() for colour in pair}
    assert set(re.findall(r"#[0-9A-F]{6}", svg)) <= colours
    dashes = {dash for _, dash in style["looks"].values()}
    assert set(re.findall(r'stroke-dasharray="([^"]*)"', svg)) <= dashes
    sizes = set(map(float, re.findall(r'font-size="([^"]*)"', svg)))
    assert {style["sizes"]["word"], style["sizes"]["label"]} <= sizes
    assert f'stroke-width="{style["sizes"]["widest"]}"' in svg


def test_files(tmp_path, monkeypatch):
    file = ONE.save(tmp_path / "one.SVG")
    assert file.read_text(encoding="utf-8") == ONE.svg()
    with pytest.raises(InputError, match=r"received the suffix '\.gif'; expected \.svg"):
        ONE.save(tmp_path / "one.gif")
    with pytest.raises(DataError, match="was not written"):
        ONE.save(tmp_path / "nowhere" / "one.svg")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackendError, match="png needs the program rsvg-convert"):
        ONE.save(tmp_path / "one.png")
    program = tmp_path / "rsvg-convert"
    program.write_text("#!/bin/sh\necho no memory >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(BackendError, match=r"rsvg-convert failed \(no memory\); save as \.svg"):
        ONE.save(tmp_path / "one.pdf")
    assert {*tmp_path.iterdir()} == {file, program}


@pytest.mark.skipif(not shutil.which("rsvg-convert"), reason="rsvg-convert is not installed")
def test_converted(tmp_path):
    data = ONE.save(tmp_path / "one.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") == pytest.approx(2 * ONE.width, abs=2)
    pdf = ONE.save(tmp_path / "one.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert ONE.save(tmp_path / "two.pdf").read_bytes() == pdf
