"""Trees as listings, where the words do not fit on a line."""

from __future__ import annotations

import pytest
from drawings import FOX, FOX_HEADS, HEARING, HEARING_HEADS, block

from treelax.pictures.terminal import draw_tree


def test_words_that_do_not_fit_on_a_line_are_listed() -> None:
    expected = """
    1    ╭─ The
    2    ├─ quick
    3 ╭─ fox
    4 │  │  ╭─ that
    5 │  │  ├─ I
    6 │  ╰─ saw
    7 ├─ did
    8 ├─ not
    9 jump
    """
    for width in (15, 36):
        assert draw_tree(FOX, FOX_HEADS, width=width) == block(expected)


def test_the_steps_grow_shorter_with_the_width() -> None:
    middle = """
    1   ╭─The
    2   ├─quick
    3 ╭─fox
    4 │ │ ╭─that
    5 │ │ ├─I
    6 │ ╰─saw
    7 ├─did
    8 ├─not
    9 jump
    """
    short = """
    1  +The
    2  +quick
    3 +fox
    4 ||+that
    5 ||+I
    6 |+saw
    7 +did
    8 +not
    9 jump
    """
    assert draw_tree(FOX, FOX_HEADS, width=12) == block(middle)
    assert draw_tree(FOX, FOX_HEADS, width=9, ascii=True) == block(short)


def test_a_listing_of_arcs_that_cross_keeps_the_tree_and_the_numbers() -> None:
    expected = """
    3 is
    1 │     ╭─ a
    2 │  ╭─ hearing
    5 │  │  ╰─ on
    6 │  │     │  ╭─ the
    7 │  │     ╰─ issue
    4 ╰─ scheduled
    8    ╰─ today
    """
    assert draw_tree(HEARING, HEARING_HEADS, width=30) == block(expected)


def test_a_listing_with_gold_heads() -> None:
    expected = """
     1 ╭┄ one  ✗ gold three (3)
     2 two
     3 ├─ three
     4 │  │  ╭─ four
     5 │  ╰─ five
     6 ├─ six
     7 ├─ seven
     8 ├─ eight
     9 ├─ nine
    10 ╰─ ten
    9 of 10 arcs right
    """
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    heads = [2, 0, 2, 5, 3, 2, 2, 2, 2, 2]
    assert draw_tree(words, heads, gold=[3, *heads[1:]], width=30) == block(expected)


def test_a_listing_of_a_cycle_names_the_head_of_its_first_word() -> None:
    expected = """
    1 once  (a cycle: head thrice (3))
    2 │  ╭─ twice
    3 ╰─ thrice
    4 upon
    5 ╰─ a
    6    ╰─ time, long ago
    """
    words = ["once", "twice", "thrice", "upon", "a", "time, long ago"]
    assert draw_tree(words, [3, 3, 1, 0, 4, 5], width=34) == block(expected)


def test_a_tree_too_deep_for_a_listing_is_told_in_words() -> None:
    n = 100
    drawn = draw_tree(["w"] * n, [*range(2, n + 1), 0], gold=[0] * n, width=28)
    assert drawn.splitlines()[0] == "  1 w ← w (2)  ✗ gold root …"
    assert drawn.splitlines()[n - 1 :] == ["100 w ← root (0)", "1 of 100 arcs right"]
    assert [int(line.split()[0]) for line in drawn.splitlines()[:n]] == [*range(1, n + 1)]


def test_a_very_long_sentence_is_no_burden() -> None:
    n = 5000
    assert len(draw_tree(["w"] * n, range(n), width=80).splitlines()) == n


def test_a_word_too_long_is_cut() -> None:
    drawn = draw_tree(["see", "https://example.org/" + "a" * 90, "."], [0, 1, 1], width=60)
    assert drawn.splitlines()[-1] == "see https://example.org/aaaaaaaaa… ."
    assert draw_tree(["wide" * 9], [0], width=8, ascii=True).splitlines()[-1] == "widewi.."
    assert draw_tree(["我" * 9], [0], width=6).splitlines()[-1] == "我我…"


def test_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (41, 40, 20):
        monkeypatch.setenv("COLUMNS", str(width))
        assert draw_tree(FOX, FOX_HEADS) == draw_tree(FOX, FOX_HEADS, width=width)
    assert draw_tree(FOX, FOX_HEADS) != draw_tree(FOX, FOX_HEADS, width=41)
