"""Trees as text, exactly as drawn; whatever tree it is, its arcs can be read back, and it fits."""

import io
import re
import unicodedata

import oracle
import pytest
import torch
from drawings import (
    FOX,
    FOX_HEADS,
    HEARING,
    HEARING_HEADS,
    MAX,
    MAX_FOUND,
    MAX_GOLD,
    PTB,
    block,
    random_tree,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from treelax.apps.pictures import (
    draw_binary_tree,
    draw_tree,
    list_brackets,
    list_weights,
    supports_unicode,
)
from treelax.apps.pictures.text import columns
from treelax.errors import InputError
from treelax.trees import read_brackets, spans_to_tensor

WEIGHTS = [[0, 0.25, 0.04], [0, 0, 0.96], [0, 0.75, 0]]
PLAIN = read_brackets("((The cat) ((sat down) (on (the mat))))")

# ------------------------------------------------------------------ arcs


def test_modifiers_on_both_sides():
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


def test_arcs_that_cross_in_ascii():
    expected = """
              |
              |          +--------------------+
           +--|----------|---+                |
         +-|--|------+   |   | +--------+     |
    +--+ | |  | +----|-+ |   | |   +--+ |     |
    v  | v |  v |    | v |   v |   v  | v     v
    a hearing is   scheduled on   the issue today
    """
    assert draw_tree(HEARING, HEARING_HEADS, width=60, ascii=True) == block(expected)


def test_wide_characters_and_labels():
    expected = """
          ╷
    ╭───╮ │ ╭─╮ ╭──╮
    ▼   │ ▼ │ ▼ │  ▼
    我   喜欢 吃   🍎
    """
    assert draw_tree(["我", "喜欢", "吃", "🍎"], [2, 0, 2, 3]) == block(expected)
    expected = """
             ╷
      ╭────╮ │ ╭─╮
      ▼    │ ▼ │ ▼
     Dogs   bark .
    nsubj   root
    """
    drawn = draw_tree(["Dogs", "bark", "."], [2, 0, 2], labels=["nsubj", "root", None])
    assert drawn == block(expected)


def test_wrong_arcs_are_dashed_and_the_gold_ones_below():
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


def test_words_that_do_not_fit_on_a_line_are_listed():
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
    assert draw_tree(FOX, FOX_HEADS, width=36) == block(expected)
    words = ["once", "twice", "thrice", "upon", "a", "time, long ago"]
    expected = """
    1 once  (a cycle: head thrice (3))
    2 │  ╭─ twice
    3 ╰─ thrice
    4 upon
    5 ╰─ a  det
    6    ╰─ time, long…
    """
    labels = [None, None, None, "", "det", None]
    assert draw_tree(words, [3, 3, 1, 0, 4, 5], labels=labels, width=34) == block(expected)


# ------------------------------------------------------------------ any heads


def read_back(drawn, n):
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
        passed = sum(stem <= end for stem in stems)
        heads.append(passed if step < 0 else passed + 1)
    return heads


@st.composite
def head_vectors(draw):
    n = draw(st.integers(1, 12))
    return [draw(st.integers(0, n).filter(lambda h, m=m: h != m)) for m in range(1, n + 1)]


@given(head_vectors(), st.booleans())
def test_any_heads_can_be_read_back(heads, ascii):
    drawn = draw_tree(["w"] * len(heads), heads, width=1000, ascii=ascii)
    assert read_back(drawn, len(heads)) == heads


def test_arcs_of_projective_trees_never_cross():
    for i, heads in enumerate(oracle.all_trees(4).tolist()):
        drawn = draw_tree(["w"] * 4, heads, width=200, ascii=bool(i % 2))
        assert read_back(drawn, 4) == heads
        assert "┼" not in drawn


@given(head_vectors(), st.data())
def test_whatever_is_drawn_fits(heads, data):
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


@given(head_vectors(), st.data())
def test_labels_never_run_into_each_other(heads, data):
    """Words and labels have their middles in one column, or next to it, and a space between."""
    n = len(heads)
    texts = st.lists(st.text("abcdefghij", min_size=1, max_size=9), min_size=n, max_size=n)
    words, labels = data.draw(texts), data.draw(texts)
    *_, first, second = draw_tree(words, heads, labels=labels, width=1000).split("\n")
    assert (first.split(), second.split()) == (words, labels)
    spans = ([match.span() for match in re.finditer(r"\S+", line)] for line in (first, second))
    for (a, b), (c, d) in zip(*spans, strict=True):
        assert a <= c < b or c <= a < d


# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("word", "shown", "in_ascii"),
    [
        ("a\x1b[2Jb", "a�[2Jb", "a?[2Jb"),
        ("a\nb\tc\r", "a�b�c�", "a?b?c?"),
        ("a\u202eb", "ab", "ab"),  # would turn the direction of writing
        ("\ud800", "�", "?"),
        ("", "_", "_"),
        ("e\u0301te\u0301", "été", "\\xe9t\\xe9"),
        ("❤\ufe0f", "❤", "\\u2764"),
    ],
)
def test_words_cannot_harm_the_terminal(word, shown, in_ascii):
    assert draw_tree([word], [0]).splitlines()[-1] == shown
    assert draw_tree([word], [0], ascii=True).splitlines()[-1] == in_ascii


def test_a_long_word_is_cut_to_a_third_of_the_width():
    drawn = draw_tree(["see", "https://example.org/" + "a" * 90, "."], [0, 1, 1], width=60)
    assert drawn.splitlines()[-1] == "see https://example.org… ."
    assert draw_tree(["我" * 9], [0], width=18).splitlines()[-1] == "我我…"


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([0], "received 1; expected one for each of the 2 words"),
        ([0, 2], "word 2 has head 2; expected 0 to 2, but not 2"),
        (torch.tensor([0.0, 1.0]), "word 1 has head 0.0"),
    ],
)
def test_wrong_heads(heads, message):
    with pytest.raises(InputError, match="^heads: " + message):
        draw_tree(["Dogs", "bark"], heads)
    with pytest.raises(InputError, match="^gold: " + message):
        draw_tree(["Dogs", "bark"], [2, 0], gold=heads)
    with pytest.raises(InputError, match=r"^words: received one string; expected a list"):
        draw_tree("Dogs bark", [2, 0])


@pytest.mark.parametrize(
    ("encoding", "answer"), [("utf-8", True), ("ascii", False), ("cp437", False)]
)
def test_streams_by_their_encoding(encoding, answer):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert supports_unicode(stream) == answer
    stream.write(draw_tree(MAX, MAX_FOUND, gold=MAX_GOLD, ascii=not answer))
    stream.flush()
    assert not supports_unicode(io.StringIO())


# ------------------------------------------------------------------ soft trees


def test_the_heaviest_head_first_and_no_light_ones():
    assert list_weights(["Dogs", "b"], WEIGHTS, width=60).splitlines() == [
        "1 Dogs  b (2) 0.75  root (0) 0.25",
        "2 b     Dogs (1) 0.96",
    ]
    assert "root (0) 0.04" in list_weights(["Dogs", "b"], WEIGHTS, width=60, least=0.01)
    assert list_weights(["été", "b"], WEIGHTS, width=60, ascii=True).startswith("1 \\xe9t\\xe9  b")
    # a word always has a head
    assert list_weights(["a"], torch.full((2, 2), 0.01), width=60) == "1 a  root (0) 0.01"


def test_a_head_of_the_tree_that_is_not_the_heaviest_has_a_star():
    weights = [[0, 0.5, 0.48, 0.4], [0, 0, 0.5, 0.57], [0, 0.49, 0, 0.03], [0, 0.01, 0.02, 0]]
    assert list_weights(["a", "b", "c"], weights, heads=[2, 1, 2], width=60).splitlines() == [
        "1 a  root (0) 0.50  b (2) 0.49*",
        "2 b  a (1) 0.50  root (0) 0.48",
        "3 c  a (1) 0.57  b (2) 0.03*  root (0) 0.40",
        "* in the tree: the best tree as a whole need not have the",
        "heaviest head of every word",
    ]
    assert "*" not in list_weights(["a", "b", "c"], weights, heads=[0, 1, 1])


# ------------------------------------------------------------------ trees of spans


def test_a_tree_above_its_words():
    expected = """
       ╭──────┴───────╮
       │         ╭────┴─────╮
       │         │       ╭──┴───╮
     ╭─┴──╮    ╭─┴──╮    │    ╭─┴──╮
    The  cat  sat  down  on  the  mat
    """
    assert draw_binary_tree(*PLAIN, width=33) == block(expected)
    tensor = spans_to_tensor(PLAIN[1], 7)
    assert draw_binary_tree(PLAIN[0], tensor, width=33) == block(expected)
    expected = """
                        S
          +-------------+-------------+
          |             VP            |
          |         +---+----+        |
          |         |        PP       |
          |         |     +--+---+    |
          NP        |     |      NP   |
     +----+----+    |     |    +-+-+  |
     DT   JJ   NN  VBD    IN   DT  NN .
    The quick fox jumped over the dog .
    """
    assert draw_binary_tree(*PTB, width=40, ascii=True) == block(expected)
    expected = """
         X
    ╭────┴─────╮
    │   LongLabelledNode
    │    ╭─────┴──────╮
    我  喜欢          🍎
    """
    tree = [(0, 2, "X"), (1, 2, "LongLabelledNode")]
    assert draw_binary_tree(["我", "喜欢", "🍎"], tree) == block(expected)


def test_a_tree_of_spans_on_its_side_and_in_brackets():
    expected = """
    S─┬─NP─┬─ DT The
      │    ├─ JJ quick
      │    ╰─ NN fox
      ├─VP─┬─ VBD jumped
      │    ╰─PP─┬─ IN over
      │         ╰─NP─┬─ DT the
      │              ╰─ NN dog
      ╰─ . .
    """
    assert draw_binary_tree(*PTB, width=26) == block(expected)
    expected = """
    +-+- The
    | +- cat
    +-+-+- sat
      | +- down
      +-+- on
        +-+- the
          +- mat
    """
    assert draw_binary_tree(*PLAIN, width=20, ascii=True) == block(expected)
    assert draw_binary_tree(*PLAIN, width=11).splitlines() == [
        *("((The cat)", "((sat do…)", "(on (the", "mat))))")
    ]


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(0, 1000), st.integers(1, 60), st.booleans())
def test_any_tree_of_spans_fits(n, seed, width, ascii):
    spans = [(i, j, "Label é") for i, j in random_tree(n, seed).nonzero().tolist()]
    words = ["New York", "", "w\n", "日本"] * 3
    for tree in (random_tree(n, seed), spans):
        text = draw_binary_tree(words[:n], tree, width=width, ascii=ascii)
        assert max(map(columns, text.splitlines())) <= width
        assert text.isascii() or not ascii


def test_spans_by_weight():
    weights = torch.tensor([[1.0, 0.3, 1.0], [0, 1, 0.7], [0, 0, 1]])
    expected = ["1.00  0-2  a b c", "0.70  1-2  b c", "0.30  0-1  a b"]
    assert list_brackets(list("abc"), weights).splitlines() == expected
    narrow = list_brackets(list("abc"), weights, least=0.5, width=13)
    assert narrow.splitlines() == ["1.00  0-2  a…", "0.70  1-2  b…"]
    labelled = torch.stack([0.2 * weights, 0.8 * weights], -1)
    assert "0.70  1-2  VP  b c" in list_brackets(list("abc"), labelled, labels=["NP", "VP"])
    assert list_brackets(["a"], torch.ones(1, 1)) == ""


def test_trees_that_cannot_be_drawn():
    soft = re.escape("tree[0, 1] is 0.5; expected 0 or 1 (for a soft")
    with pytest.raises(InputError, match=soft):
        draw_binary_tree(["a", "b"], torch.tensor([[1, 0.5], [0, 1]]))
    with pytest.raises(InputError, match=re.escape("tree holds (0, 1) and (1, 2)")):
        draw_binary_tree(list("abc"), [(0, 1, None), (1, 2, None)])
