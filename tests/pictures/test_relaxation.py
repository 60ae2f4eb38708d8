"""The figure of appendix B: both functions, and what it says."""

from __future__ import annotations

import math

import pytest
import torch
from drawings import texts

from treelax.errors import InputError
from treelax.lab.plots import draw_relaxation
from treelax.lab.plots.relaxation import _surfaces


@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_argmax_has_two_levels_and_its_relaxation_a_slope(temperature: float) -> None:
    (_, _, (x1, x2, hard)), (_, _, (y1, y2, soft)) = _surfaces(temperature)
    assert torch.equal(hard, ((x1 > x2) & (x1 > 0)).to(hard))
    weights = torch.stack([y1, y2, torch.zeros_like(y1)]).div(temperature).softmax(0)
    torch.testing.assert_close(soft, weights[0])


def test_what_it_says() -> None:
    picture = draw_relaxation(temperature=0.5)
    svg = picture.svg()
    assert {"argmax", "relaxation, temperature 0.5", "x₁", "x₂"} <= set(texts(svg))
    assert "cliff" in picture.description
    assert svg == draw_relaxation(temperature=0.5).svg()


@pytest.mark.parametrize("temperature", [0, -1, math.nan, math.inf])
def test_wrong_temperatures(temperature: float) -> None:
    with pytest.raises(InputError, match="temperature is"):
        draw_relaxation(temperature=temperature)
