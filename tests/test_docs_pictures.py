"""Pictures of the pages: they are what their scripts draw, and keep what docs/pictures.md promises."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from drawings import SVG, root_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from docs import make_explanations, make_picture

ROOT = Path(__file__).parents[1]
PICTURES = sorted([*(ROOT / "docs" / "images").glob("*.svg"), *(ROOT / "results").rglob("*.svg")])


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_pictures_follow_light_and_dark_and_tell_what_they_show(path: Path) -> None:
    root = root_of(path.read_text(encoding="utf-8"))
    assert root.get("role") == "img"
    by_id = {element.get("id"): element for element in root.iter() if element.get("id")}
    told = [by_id[name] for name in (root.get("aria-labelledby") or "").split()]
    assert [element.tag for element in told] == [f"{SVG}title", f"{SVG}desc"]
    assert all(element.text for element in told)
    styles = [element.text or "" for element in root.iter(f"{SVG}style")]
    assert any("(prefers-color-scheme:dark)" in style for style in styles)
    assert not list(root.iter(f"{SVG}script"))


def test_there_are_pictures_of_every_kind() -> None:
    names = {path.stem for path in PICTURES}
    assert {"soft-trees", "perturbed-trees", "pipeline", "eisner-items", "curves-paper"} <= names


@pytest.mark.parametrize("name", ["pipeline", "eisner-items"])
def test_drawings_are_what_the_script_draws(name: str) -> None:
    drawn = make_explanations.PICTURES[name]().svg()
    assert (ROOT / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8") == drawn


def test_trees_are_what_the_scripts_compute() -> None:
    """In words, to a hundredth: another machine may round the last digit of a place otherwise."""
    for name, draw in (
        ("soft-trees", make_picture.soft_trees),
        ("perturbed-trees", make_explanations.perturbed_trees),
    ):
        root = root_of((ROOT / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8"))
        description = root.find(f"{SVG}desc")
        assert description is not None
        assert description.text == draw().description
