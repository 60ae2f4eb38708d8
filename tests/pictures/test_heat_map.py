"""Heat maps: a cell for every arc, numbers, forbidden arcs, what is refused."""

import re

import pytest
import torch
from drawings import FOX, FOX_HEADS, SVG, root_of, texts

import treelax as tx
from treelax.apps.pictures import draw_heat_map
from treelax.errors import InputError

SCORES = torch.randn(10, 10, generator=torch.Generator().manual_seed(3))
MARGINALS = tx.ProjectiveTrees(SCORES).marginals


def cells(svg):
    """The strength of cells by their tooltips."""
    paths = ((path, path.find(f"{SVG}title")) for path in root_of(svg).iter(f"{SVG}path"))
    return {t.text: float(path.get("fill-opacity")) for path, t in paths if t is not None}


def test_every_arc_has_a_cell_with_its_number():
    few = draw_heat_map(FOX, MARGINALS).svg()
    names = ["root (0)", *(f"{word} ({m})" for m, word in enumerate(FOX, 1))]
    assert set(cells(few)) == {
        f"{names[h]} → {names[m]}: {float(MARGINALS[h, m]):.4g}"
        for h in range(10)
        for m in range(1, 10)
        if h != m
    }
    assert f"{float(MARGINALS[0, 1]):.2f}" in texts(few)
    many = draw_heat_map(["w"] * 13, torch.zeros(14, 14)).svg()
    assert texts(many).count("0.00") == 1  # that of the legend


def test_greater_numbers_are_stronger_and_forbidden_arcs_crossed_out():
    values = SCORES.clone()
    values[2, 5] = -torch.inf
    drawn = cells(draw_heat_map(FOX, values).svg())
    assert drawn.pop("quick (2) → I (5): -inf, forbidden") == 0
    strengths = [drawn[tip] for tip in sorted(drawn, key=lambda tip: float(tip.split(": ")[1]))]
    assert strengths == sorted(strengths)
    assert (strengths[0], strengths[-1]) == (0.04, 1.0)
    everything = draw_heat_map(["a"], torch.full((2, 2), -torch.inf)).svg()
    assert list(cells(everything)) == ["root (0) → a (1): -inf, forbidden"]


def test_cells_of_a_tree_are_framed():
    svg = draw_heat_map(FOX, MARGINALS, heads=FOX_HEADS).svg()
    framed = [r for r in root_of(svg).iter(f"{SVG}rect") if r.get("stroke") == "currentColor"]
    assert len(framed) == len(FOX) + 1  # and that of the legend
    assert "tree" in texts(svg)
    assert "tree" not in texts(draw_heat_map(FOX, MARGINALS).svg())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": torch.zeros(2, 2)}, "values: received shape (2, 2); expected (3, 3)"),
        ({"values": torch.full((3, 3), torch.inf)}, "values[0, 1] is inf; expected a finite"),
        ({"values": torch.zeros(3, 3), "limits": (1, 1)}, "limits: received (1, 1)"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        draw_heat_map(["Dogs", "bark"], **arguments)
