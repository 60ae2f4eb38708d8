"""Whatever tree is drawn: its arcs can be read back, and it fits."""

from __future__ import annotations

import unicodedata

import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelax.pictures.terminal import draw_tree


def columns(text: str) -> int:
    return sum(
        (unicodedata.category(c) not in ("Mn", "Me"))
        * (2 if unicodedata.east_asian_width(c) in ("W", "F") else 1)
        for c in text
    )


def read_back(drawn: str, n: int) -> list[int]:
    """The heads that a reader finds who follows each arc from its arrow to the other end."""
    lines = drawn.splitlines()
    *rows, arrows, _ = [line.ljust(max(map(len, lines)) + 1) for line in lines]
    stems = [i for i, character in enumerate(arrows) if character in "▼v"]
    assert len(stems) == n
    heads = []
    for column in stems:
        row = len(rows) - 1
        while row >= 0 and rows[row][column] in "│┼|":
            row -= 1
        if row < 0 or rows[row][column] == "╷":
            heads.append(0)
            continue
        step = 1 if rows[row][column + 1] in "─┼-" else -1
        end = column + step
        while rows[row][end] in "─┼-|":
            end += step
        # a stem for modifiers on the right stands on the right of its word's arrow
        before = sum(stem <= end for stem in stems)
        heads.append(before if step < 0 else before + 1)
    return heads


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("ascii", [False, True])
def test_every_small_tree_can_be_read_back(n: int, ascii: bool) -> None:
    for heads in oracle.all_trees(n).tolist():
        drawn = draw_tree(["w"] * n, heads, width=200, ascii=ascii)
        assert read_back(drawn, n) == heads
        assert "┼" not in drawn


def tree_over(draw: st.DrawFn, first: int, last: int, head: int, heads: list[int]) -> None:
    """Choose a projective tree: split the words into parts, each with a word that heads the rest."""
    while first <= last:
        end = draw(st.integers(first, last))
        top = draw(st.integers(first, end))
        heads[top - 1] = head
        tree_over(draw, first, top - 1, top, heads)
        tree_over(draw, top + 1, end, top, heads)
        first = end + 1


@st.composite
def projective_trees(draw: st.DrawFn) -> list[int]:
    heads = [0] * draw(st.integers(1, 25))
    tree_over(draw, 1, len(heads), 0, heads)
    return heads


@st.composite
def head_vectors(draw: st.DrawFn) -> list[int]:
    n = draw(st.integers(1, 12))
    return [draw(st.integers(0, n).filter(lambda h, m=m: h != m)) for m in range(1, n + 1)]


@given(projective_trees(), st.data())
def test_projective_trees_can_be_read_back_and_never_cross(
    heads: list[int], data: st.DataObject
) -> None:
    words = data.draw(
        st.lists(
            st.sampled_from(["a", "is", "fox", "saw it", "hearing"]),
            min_size=len(heads),
            max_size=len(heads),
        )
    )
    assert oracle.is_projective(heads)
    drawn = draw_tree(words, heads, width=1000)
    assert read_back(drawn, len(heads)) == heads
    assert "┼" not in drawn


@given(head_vectors(), st.booleans())
def test_any_heads_can_be_read_back(heads: list[int], ascii: bool) -> None:
    drawn = draw_tree(["w"] * len(heads), heads, width=1000, ascii=ascii)
    assert read_back(drawn, len(heads)) == heads


@given(head_vectors(), st.data())
def test_whatever_is_drawn_fits(heads: list[int], data: st.DataObject) -> None:
    """Every line within the width, one mark for every word, no character that could do harm."""
    n = len(heads)
    words = data.draw(st.lists(st.text(max_size=12), min_size=n, max_size=n))
    gold = data.draw(
        st.none() | st.permutations(heads).filter(lambda g: all(h != m for m, h in enumerate(g, 1)))
    )
    width, ascii = data.draw(st.integers(1, 120)), data.draw(st.booleans())
    drawn = draw_tree(words, heads, gold=gold, width=width, ascii=ascii)
    lines = drawn.split("\n")
    assert drawn.splitlines() == lines
    assert all(columns(line) <= width for line in lines)
    assert len(lines) >= n or sum(line.count("v" if ascii else "▼") for line in lines) >= n
    harmful = {unicodedata.category(c) for c in "".join(lines)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not harmful
    assert drawn.isascii() or not ascii
