"""Pictures as SVG: alone or in a page, for light and dark, for those who hear them; as files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from drawings import SVG, root_of

from treelax.apps.pictures import draw_arcs, stack_pictures
from treelax.apps.pictures.style import COLOURS, INK, PAPER
from treelax.errors import BackendError, DataError, InputError

ONE = draw_arcs(["Dogs", "bark"], [2, 0], title="One")
HAS_CONVERTER = shutil.which("rsvg-convert") is not None


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


# ------------------------------------------------------------------ what is in it


def test_it_has_a_name_and_a_description() -> None:
    root = root_of(ONE._repr_svg_())
    assert root.get("role") == "img"
    by_id = {element.get("id"): element for element in root.iter() if element.get("id")}
    named = [by_id[name] for name in (root.get("aria-labelledby") or "").split()]
    assert [element.tag for element in named] == [f"{SVG}title", f"{SVG}desc"]
    assert [element.text for element in named] == [
        "One",
        "Dogs (1): head bark (2). bark (2): head root (0).",
    ]


def test_its_style_is_bound_to_itself() -> None:
    """Inside a page a style counts for the whole page, so every rule asks for a root of its own."""
    style = root_of(ONE.svg()).find(f"{SVG}style")
    assert style is not None
    assert style.text is not None
    selectors = re.findall(r"([^{}]+)\{[^{}]+\}", style.text.replace("@media", "{} @media"))
    selectors = [s for s in selectors if "@media" not in s]
    assert len(selectors) >= 6
    assert all(s.startswith("svg.treelax:root") for s in selectors)
    assert "(prefers-color-scheme:dark)" in style.text


def test_colours_can_be_seen_on_light_and_on_dark() -> None:
    for light, dark in COLOURS.values():
        assert contrast(light, PAPER[0]) >= 3
        assert contrast(dark, PAPER[1]) >= 3
        assert contrast(light, PAPER[1]) >= 3  # inside a page, where it cannot follow
    assert contrast(INK[0], PAPER[0]) >= 7
    assert contrast(INK[1], PAPER[1]) >= 7


def test_above_each_other() -> None:
    both = stack_pictures([ONE, draw_arcs(["Hi"], [0])])
    assert both.height == ONE.height + draw_arcs(["Hi"], [0]).height
    assert both.width == ONE.width
    assert both.title == "One; Dependency tree"
    assert stack_pictures([ONE]) is ONE
    with pytest.raises(InputError, match="pictures: received none"):
        stack_pictures([])


# ------------------------------------------------------------------ files


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.skipif(not HAS_CONVERTER, reason="rsvg-convert is not installed")
def test_converted(tmp_path: Path) -> None:
    data = ONE.save(tmp_path / "one.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") == pytest.approx(2 * ONE.width, abs=2)
    pdf = ONE.save(tmp_path / "one.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert ONE.save(tmp_path / "two.pdf").read_bytes() == pdf
