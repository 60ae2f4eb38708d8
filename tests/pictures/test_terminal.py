"""Trees as arcs above the words, exactly as drawn; gold arcs below them."""

from __future__ import annotations

from drawings import (
    FOX,
    FOX_HEADS,
    HEARING,
    HEARING_HEADS,
    MAX,
    MAX_FOUND,
    MAX_GOLD,
    block,
)

from treelax.pictures.terminal import draw_tree

# ------------------------------------------------------------------ arcs


def test_an_expression() -> None:
    expected = """
     ╷
     │ ╭──────────────────╮
     │ ├────────────────╮ │
     │ ├──────╮ ╭─────╮ │ │
     │ ├───╮  │ ├───╮ │ │ │
     │ ├─╮ │  │ ├─╮ │ │ │ │
     ▼ │ ▼ ▼  ▼ │ ▼ ▼ ▼ ▼ ▼
    [MAX 2 9 [MIN 4 7 ] 0 ]
    """
    assert draw_tree(MAX, MAX_GOLD) == block(expected)


def test_modifiers_on_both_sides() -> None:
    expected = """
                                           ╷
                 ╭───────────────────────╮ │
                 │ ╭───────────╮         │ │
     ╭─────────╮ │ │   ╭─────╮ │  ╭──────┤ │
     │    ╭────┤ │ │   │   ╭─┤ │  │   ╭──┤ │
     ▼    ▼    │ ▼ │   ▼   ▼ │ ▼  ▼   ▼  │ ▼
    The quick   fox   that I saw did not jump
    """
    assert draw_tree(FOX, FOX_HEADS, width=41) == block(expected)


def test_with_less_room_the_stems_come_together() -> None:
    expected = """
                                       ╷
               ╭─────────────────────╮ │
               │╭─────────╮          │ │
     ╭────────╮││  ╭─────╮│   ╭──────┤ │
     │    ╭───┤││  │   ╭─┤│   │   ╭──┤ │
     ▼    ▼   │▼│  ▼   ▼ │▼   ▼   ▼  │ ▼
    The quick fox that I saw did not jump
    """
    for width in (37, 40):
        assert draw_tree(FOX, FOX_HEADS, width=width) == block(expected)


def test_arcs_that_cross() -> None:
    expected = """
              ╷
              │            ╭──────────────────╮
            ╭─┼────────────┼─╮                │
         ╭──┼─┼────╮       │ │ ╭────────╮     │
    ╭─╮  │  │ │ ╭──┼───╮   │ │ │   ╭──╮ │     │
    ▼ │  ▼  │ ▼ │  │   ▼   │ ▼ │   ▼  │ ▼     ▼
    a hearing is   scheduled on   the issue today
    """
    assert draw_tree(HEARING, HEARING_HEADS, width=60) == block(expected)


def test_ascii() -> None:
    expected = """
              |
              |            +------------------+
            +-|------------|-+                |
         +--|-|----+       | | +--------+     |
    +-+  |  | | +--|---+   | | |   +--+ |     |
    v |  v  | v |  |   v   | v |   v  | v     v
    a hearing is   scheduled on   the issue today
    """
    assert draw_tree(HEARING, HEARING_HEADS, width=60, ascii=True) == block(expected)


def test_two_roots_and_a_cycle() -> None:
    expected = """
             ╷ ╷
      ╭────╮ │ │
    ╭─┼──╮ │ │ │
    ▼ │  │ ▼ ▼ ▼
    a      b c d
    """
    assert draw_tree(list("abcd"), [2, 1, 0, 0]) == block(expected)


def test_a_single_word() -> None:
    assert draw_tree(["Hi"], [0]) == "╷\n▼\nHi"


def test_wide_characters_keep_the_arcs_above_their_words() -> None:
    expected = """
          ╷
    ╭───╮ │ ╭─╮ ╭──╮
    ▼   │ ▼ │ ▼ │  ▼
    我   喜欢 吃   🍎
    """
    assert draw_tree(["我", "喜欢", "吃", "🍎"], [2, 0, 2, 3]) == block(expected)


# ------------------------------------------------------------------ gold heads


def test_wrong_arcs_are_dashed_and_the_gold_ones_below() -> None:
    expected = """
     ╷                      ╷
     │            ╭┄┄┄┄┄┄┄╮ ┆
     │            ├─────╮ ┆ ┆
     │ ╭────────╮ ├───╮ │ ┆ ┆
     │ ├─╮ ╭┄┄╮ │ ├─╮ │ │ ┆ ┆
     ▼ │ ▼ ▼  ┆ ▼ │ ▼ ▼ ▼ ▼ ▼
    [MAX 2 9   [MIN 4 7 ] 0 ]
       │   ▲              ▲ ▲
       ├───╯              │ │
       ├──────────────────╯ │
       ╰────────────────────╯
    ✗ 9 (3): gold [MAX (1)
    ✗ 0 (8): gold [MAX (1)
    ✗ ] (9): gold [MAX (1)
    6 of 9 arcs right
    """
    assert draw_tree(MAX, MAX_FOUND, gold=MAX_GOLD) == block(expected)


def test_a_word_that_should_hang_off_the_root() -> None:
    expected = """
     |
     | +..+
     v :  v
    Dogs bark
          ^
          |
    x bark (2): gold root (0)
    1 of 2 arcs right
    """
    assert draw_tree(["Dogs", "bark"], [0, 1], gold=[0, 0], ascii=True) == block(expected)


def test_an_arc_that_is_right_keeps_the_stem_it_shares_solid() -> None:
    expected = """
      ╷
      │ ╭┄┄┄╮
      │ ├─╮ ┆
      ▼ │ ▼ ▼
    """
    drawn = draw_tree(["abcde", "f", "g"], [0, 1, 1], gold=[0, 1, 0])
    assert drawn.splitlines()[:4] == block(expected).splitlines()


def test_with_the_right_arcs_only_the_score_is_new() -> None:
    assert (
        draw_tree(MAX, MAX_GOLD, gold=MAX_GOLD) == draw_tree(MAX, MAX_GOLD) + "\n9 of 9 arcs right"
    )
