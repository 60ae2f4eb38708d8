"""Arcs as SVG: which there are, where they stand, how right and wrong and light ones look."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import permutations
from typing import Any

import pytest
import torch
from drawings import (
    FOX,
    FOX_HEADS,
    MAX,
    MAX_FOUND,
    MAX_GOLD,
    SVG,
    arcs,
    assert_inside,
    label_boxes,
    root_of,
    size_of,
    texts,
)
from hypothesis import given
from hypothesis import strategies as st

import treelax as tx
from treelax.apps.pictures import draw_arcs
from treelax.apps.pictures.svg import text_width
from treelax.errors import InputError
from treelax.trees import heads_to_tree, tree_to_heads


def projective(n: int, seed: int) -> list[int]:
    """The heads of a tree drawn from all projective ones."""
    generator = torch.Generator().manual_seed(seed)
    tree = tx.ops.sample_tree(torch.zeros(n + 1, n + 1), generator=generator)
    return [int(head) for head in tree_to_heads(tree)]


@st.composite
def words_and_heads(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """Any words, and for each any head but itself."""
    words = draw(st.lists(st.text(max_size=40), min_size=1, max_size=12))
    heads = [
        draw(st.integers(0, len(words)).filter(lambda h, m=m: h != m))
        for m in range(1, len(words) + 1)
    ]
    return words, heads


# ------------------------------------------------------------------ which arcs there are


@given(words_and_heads())
def test_any_words_and_heads(given: tuple[list[str], list[int]]) -> None:
    """Whatever they are, the file is well-formed and nothing is outside of it."""
    words, heads = given
    svg = draw_arcs(words, heads, labels=words, tags=words, title=words[0]).svg()
    drawn = arcs(svg)
    assert len(drawn) == len(words)
    width, height = size_of(svg)
    for arc in drawn:
        assert 0 <= min(arc.head_x, arc.modifier_x) <= max(arc.head_x, arc.modifier_x) <= width
        assert 0 <= arc.y < arc.base <= height
    assert_inside(svg)


@given(st.integers(1, 14), st.integers(0, 1000))
def test_arcs_of_a_projective_tree_meet_in_the_stem_of_their_head_only(n: int, seed: int) -> None:
    drawn = arcs(draw_arcs(["w"] * n, projective(n, seed)).svg())
    for one, other in permutations(drawn, 2):
        stem = {one.head_x} & {other.head_x} if one.head == other.head else set()
        left, right = sorted((other.head_x, other.modifier_x))
        crossing = {one.head_x, one.modifier_x} - stem
        assert not any(left <= x <= right and one.y <= other.y for x in crossing)


@given(st.integers(1, 9), st.integers(0, 1000))
def test_arcs_leave_their_head_in_one_stem_on_each_side_and_end_in_one_arrow(
    n: int, seed: int
) -> None:
    """All of them above the word, however many there are."""
    torch.manual_seed(seed)
    weights = tx.ops.soft_tree(torch.randn(n + 1, n + 1), temperature=3.0)
    words = [f"w{m}" for m in range(1, n + 1)]
    svg = draw_arcs(words, weights=weights, least=1e-6).svg()
    starts, arrows = defaultdict(set), defaultdict(set)
    for arc in arcs(svg):
        arrows[arc.modifier].add(arc.modifier_x)
        if not arc.head.startswith("root"):
            starts[arc.head, arc.head_x < arc.modifier_x].add(arc.head_x)
    middles = {e.text: float(e.get("x", "nan")) for e in root_of(svg).iter(f"{SVG}text")}
    assert all(found == {middles[name.split()[0]]} for name, found in arrows.items())
    for (name, _), found in starts.items():
        word = name.split()[0]
        assert len(found) == 1
        assert abs(found.pop() - middles[word]) <= text_width(word, 16) / 2


@given(st.integers(2, 12), st.integers(0, 1000))
def test_nothing_runs_through_a_label(n: int, seed: int) -> None:
    heads = projective(n, seed)
    labels = [f"label:{m}" for m in range(1, n + 1)]
    svg = draw_arcs(["w"] * n, heads, labels=labels).svg()
    boxes = label_boxes(svg)
    assert len(boxes) == n
    for arc in arcs(svg):
        for a, b, top, bottom in boxes:
            left, right = sorted((arc.head_x, arc.modifier_x))
            assert not (a < right and left < b and top < arc.y < bottom)
            assert not any(a < x < b and arc.y < bottom and x != (a + b) / 2 for x in (left, right))


# ------------------------------------------------------------------ words


@pytest.mark.parametrize("word", ["<script>alert(1)</script>", "&lt;", "]]>"])
def test_markup_is_text(word: str) -> None:
    svg = draw_arcs([word, "b"], [0, 1], labels=[None, word], tags=[word, ""], title=word).svg()
    assert texts(svg).count(word) == 4
    assert not list(root_of(svg).iter(f"{SVG}script"))
    assert next(root_of(svg).iter(f"{SVG}title")).text == word


def test_words_from_right_to_left() -> None:
    """Each is a text of its own, and the sentence begins where its words do."""
    words = ["ראיתי", "את", "הכלב", "!"]
    svg = draw_arcs(words, [0, 3, 1, 1]).svg()
    places = {}
    for element in root_of(svg).iter(f"{SVG}text"):
        if element.text in words:
            places[element.text] = float(element.get("x", "nan"))
            is_word = element.text != "!"
            assert element.get("direction") == ("rtl" if is_word else None)
            assert element.get("unicode-bidi") == ("isolate" if is_word else None)
    assert sorted(words, key=places.__getitem__) == words[::-1]
    back = draw_arcs(words, [0, 3, 1, 1], right_to_left=False).svg()
    assert [text for text in texts(back) if text in words] == words
    assert texts(draw_arcs(["a", "ב"], [0, 1]).svg())[-2:] == ["a", "ב"]


def test_what_xml_cannot_hold_is_replaced() -> None:
    svg = draw_arcs(["a\ud800b", "\x00", "\x1b[2J"], [0, 1, 1]).svg()
    assert texts(svg)[-3:] == ["a�b", "�", "�[2J"]
    turned = draw_arcs(["a\u202eb", "c\u2067d"], [0, 1]).svg()
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", turned)


# ------------------------------------------------------------------ right, wrong, light


def test_right_wrong_and_missed_arcs_differ_without_colour() -> None:
    svg = draw_arcs(MAX, MAX_FOUND, gold=MAX_GOLD).svg()
    looks = {arc.told.rpartition(", ")[2]: arc.look for arc in arcs(svg)}
    assert looks == {"right": "solid", "wrong": "wrong", "missed": "missed"}
    missed = [arc for arc in arcs(svg) if arc.look == "missed"]
    assert [arc.told.split(" → ")[0] for arc in missed] == ["[MAX (1)"] * 3
    others = [arc for arc in arcs(svg) if arc.look != "missed"]
    assert max(arc.base for arc in others) < min(arc.base for arc in missed)
    assert all(arc.y > arc.base for arc in missed)  # below the words
    assert {"6 of 9 arcs right", "right", "wrong", "missed"} <= set(texts(svg))


def test_heavier_arcs_are_stronger_and_wider() -> None:
    weights = [[0, 0.04, 1.0], [0, 0, 0.0], [0, 0.96, 0]]
    svg = draw_arcs(["Dogs", "bark"], weights=weights).svg()
    assert {arc.told for arc in arcs(svg)} == {"root (0) → bark (2)", "bark (2) → Dogs (1), 0.960"}
    weights = [[0, 0.3, 0.05], [0, 0, 0.95], [0, 0.7, 0]]
    drawn = sorted(arcs(draw_arcs(["a", "b"], weights=weights).svg()), key=lambda arc: arc.opacity)
    found = [float(arc.told.rpartition(", ")[2]) for arc in drawn]
    assert found == [0.05, 0.3, 0.7, 0.95]
    assert [arc.width for arc in drawn] == sorted({arc.width for arc in drawn})
    assert "weight" in texts(draw_arcs(["a", "b"], weights=weights).svg())


def test_other_heads_beside_a_tree() -> None:
    soft = 0.7 * heads_to_tree(torch.tensor(FOX_HEADS)) + 0.3 * heads_to_tree(torch.arange(9))
    looks = {arc.told: arc.look for arc in arcs(draw_arcs(FOX, FOX_HEADS, weights=soft).svg())}
    assert looks["fox (3) → The (1), 0.700"] == "solid"
    assert looks["root (0) → The (1), 0.300"] == "other"
    # that of the tree is drawn however little it weighs
    assert len(arcs(draw_arcs(FOX, FOX_HEADS, weights=torch.zeros(10, 10)).svg())) == len(FOX)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "neither heads nor weights"),
        ({"heads": [0, 1], "labels": ["a"]}, "labels: received 1; expected one for each"),
        ({"weights": torch.zeros(3, 3), "labels": ["a", "b"]}, "received labels without heads"),
        ({"weights": torch.zeros(2, 3)}, "weights: received shape (2, 3); expected (3, 3)"),
        ({"weights": torch.full((3, 3), 2.0)}, "weights[0, 1] is 2.0; expected 0 to 1"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        draw_arcs(["Dogs", "bark"], **arguments)
