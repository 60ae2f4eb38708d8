"""Argmax against its relaxation: the surfaces are those of the functions."""

from __future__ import annotations

import math
import re

import pytest
from svg_parts import SVG, root_of, texts

from treelax.errors import InputError
from treelax.pictures import draw_relaxation
from treelax.pictures.relaxation import CELLS, REACH, _edges, _outputs


def colours(svg: str) -> tuple[list[str], list[str]]:
    """Of the faces of both surfaces."""
    panels = [g for g in root_of(svg).iter(f"{SVG}g") if "translate" in g.get("transform", "")]
    found = []
    for panel in panels:
        paths = [p.get("fill", "") for p in panel.iter(f"{SVG}path")]
        found.append([fill for fill in paths if re.fullmatch(r"#[0-9A-F]{6}", fill)])
    return found[0], found[1]


def test_argmax_has_two_levels_and_its_relaxation_a_slope() -> None:
    hard, soft = colours(draw_relaxation().svg())
    assert len(set(hard)) == 2
    assert len(hard) == CELLS**2 + CELLS // 2  # cells that the border runs through are cut
    assert len(soft) == CELLS**2
    assert len(set(soft)) > 100


def test_outputs_are_those_of_the_two_functions() -> None:
    points = [(x1, x2) for x1 in (-3.0, 0.5, 2.0) for x2 in (-1.0, 1.0, 3.0)]
    for temperature in (0.3, 1.0):
        expected = [
            math.exp(a / temperature) / (math.exp(a / temperature) + math.exp(b / temperature) + 1)
            for a, b in points
        ]
        assert _outputs(points, temperature) == pytest.approx(expected)
    assert _outputs(points, None) == [float(a > b and a > 0) for a, b in points]


def test_a_low_temperature_is_nearly_argmax() -> None:
    soft = colours(draw_relaxation(temperature=0.01).svg())[1]
    flat = [soft.count(colour) for colour in sorted(set(soft), key=soft.count)[-2:]]
    assert sum(flat) > 0.85 * len(soft)  # all but those along the border


def test_the_border_runs_along_the_cells() -> None:
    assert 0.0 in _edges()
    assert (_edges()[0], _edges()[-1]) == (-REACH, REACH)


def test_what_it_says() -> None:
    picture = draw_relaxation(temperature=0.5)
    assert {"argmax", "relaxation, temperature 0.5", "x₁", "x₂"} <= set(texts(picture.svg()))
    assert "cliff" in picture.description
    assert picture.svg() == draw_relaxation(temperature=0.5).svg()


@pytest.mark.parametrize("temperature", [0, -1, math.nan, math.inf])
def test_wrong_temperatures(temperature: float) -> None:
    with pytest.raises(InputError, match="temperature: received"):
        draw_relaxation(temperature=temperature)
