"""Brackets as SVG and as text: which there are, where they stand, and how they look."""

from __future__ import annotations

import re
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

import pytest
import torch
from drawings import DASHES, SVG, assert_inside, block, label_boxes, root_of, size_of, texts
from hypothesis import given, settings
from hypothesis import strategies as st

from treelax.apps.pictures import draw_binary_tree, draw_brackets, list_brackets
from treelax.apps.pictures.text import columns
from treelax.errors import InputError
from treelax.trees import read_brackets, spans_to_tensor

PLAIN = read_brackets("((The cat) ((sat down) (on (the mat))))")
PTB = read_brackets(
    "(S (NP (DT The) (JJ quick) (NN fox)) (VP (VBD jumped) (PP (IN over) (NP (DT the) (NN dog)))) (. .))"
)


class Drawn(NamedTuple):
    told: str
    look: str
    left: float
    right: float
    y: float
    opacity: float
    width: float


def drawn(svg: str) -> list[Drawn]:
    """The brackets of a drawing."""
    found = []
    for group in root_of(svg).iter(f"{SVG}g"):
        title, path = group.find(f"{SVG}title"), group.find(f"{SVG}path")
        if title is None or path is None:
            continue
        ends = re.search(r"M(\S+) .*A\S+ \S+ 0 0 . \S+ (\S+)H.* (\S+) \S+V", path.get("d") or "")
        assert ends is not None
        left, y, right = map(float, ends.groups())
        look = DASHES[path.get("stroke-dasharray")]
        rest = (float(group.get("opacity", "1")), float(path.get("stroke-width", "0")))
        found.append(Drawn(title.text or "", look, left, right, y, *rest))
    return found


def places(svg: str, words: list[str]) -> list[float]:
    """The middles of words, all different."""
    at = {element.text: element.get("x", "nan") for element in root_of(svg).iter(f"{SVG}text")}
    return [float(at[word]) for word in words]


def random_tree(n: int, seed: int) -> torch.Tensor:
    """A binary tree by random splits."""
    random, todo, spans = Random(seed), [(0, n - 1)], []
    for i, j in todo:
        spans.append((i, j))
        if i < j:
            split = random.randrange(i, j)
            todo += [(i, split), (split + 1, j)]
    return spans_to_tensor(spans, n)


# ------------------------------------------------------------------ SVG


@given(st.integers(2, 10), st.integers(0, 1000))
def test_brackets_stand_over_their_words_and_above_inner_ones(n: int, seed: int) -> None:
    tree = random_tree(n, seed)
    words = [f"w{m}" for m in range(n)]
    svg = draw_brackets(words, tree).svg()
    x = places(svg, words)
    over = {
        (min(inside), max(inside)): bracket
        for bracket in drawn(svg)
        if (inside := [m for m in range(n) if bracket.left < x[m] < bracket.right])
    }
    assert sorted(over) == [(i, j) for i, j in tree.nonzero().tolist() if i < j]
    for (one, above), (other, below) in combinations(sorted(over.items()), 2):
        if one[0] <= other[0] and other[1] <= one[1]:
            assert above.y < below.y


@given(st.lists(st.text(max_size=40), min_size=1, max_size=9), st.integers(0, 1000))
def test_any_words_and_labels(words: list[str], seed: int) -> None:
    """Whatever they are, the file is well-formed and nothing is outside of it."""
    n = len(words)
    spans = [(i, j, words[i]) for i, j in random_tree(n, seed).nonzero().tolist()]
    gold = random_tree(n, seed + 1)
    svg = draw_brackets(words, spans, gold=gold, show_weights=True, title=words[0]).svg()
    width, height = size_of(svg)
    for bracket in drawn(svg):
        assert 0 < bracket.left < bracket.right < width
        assert 0 < bracket.y < height
    assert_inside(svg)


@given(st.integers(2, 9), st.integers(0, 1000))
def test_nothing_runs_through_a_label(n: int, seed: int) -> None:
    spans = [(i, j, f"label:{i}-{j}") for i, j in random_tree(n, seed).nonzero().tolist() if i < j]
    svg = draw_brackets(["w"] * n, spans).svg()
    boxes = label_boxes(svg)
    assert len(boxes) == n - 1
    for bracket in drawn(svg):
        for a, b, top, bottom in boxes:
            if a < bracket.right and bracket.left < b:
                assert not top < bracket.y < bottom
                assert not (bracket.y < top < bracket.y + 6 and a < bracket.left < b)


def test_a_labelled_tree() -> None:
    picture = draw_brackets(*PTB)
    assert texts(picture.svg()).count("NP") == 2
    assert texts(picture.svg()).count("DT") == 2  # below the words
    assert "The quick fox (0 to 2): NP. " in picture.description
    names = sorted({label for *_, label in PTB[1] if label})
    tensor = torch.zeros(8, 8, len(names))
    for i, j, label in PTB[1]:
        tensor[i, j, names.index(label or "")] = 1
    assert draw_brackets(PTB[0], tensor, labels=names) == picture
    chain = draw_brackets(["Go", "!"], read_brackets("(S (VP (VB Go)) (. !))")[1])
    assert "VP+VB" in texts(chain.svg())


def test_heavier_brackets_are_stronger_and_wider() -> None:
    weights = torch.tensor([[1.0, 0.3, 1.0], [0, 1, 0.7], [0, 0, 1]])
    svg = draw_brackets(["a", "b", "c"], weights, show_weights=True).svg()
    found = sorted(drawn(svg), key=lambda own: own.opacity)
    assert [own.told for own in found] == [
        "a b (0 to 1): 0.300",
        "b c (1 to 2): 0.700",
        "a b c (0 to 2)",
    ]
    assert [own.width for own in found] == sorted({own.width for own in found})
    assert found[0].y != found[1].y  # they cross, so neither hides the other
    assert {"0.30", "0.70", "1.00", "weight"} <= set(texts(svg))
    assert len(drawn(draw_brackets(["a", "b", "c"], weights, least=0.5).svg())) == 2


def test_right_wrong_and_missed_brackets_differ_without_colour() -> None:
    gold = read_brackets("((a b) (c d))")[1]
    svg = draw_brackets(list("abcd"), read_brackets("(a (b (c d)))")[1], gold=gold).svg()
    looks = {own.told: own.look for own in drawn(svg)}
    assert looks == {
        "a b c d (0 to 3): right": "solid",
        "b c d (1 to 3): wrong": "wrong",
        "c d (2 to 3): right": "solid",
        "a b (0 to 1): missed": "missed",
    }
    missed = [own.y for own in drawn(svg) if own.look == "missed"]
    assert min(missed) > max(own.y for own in drawn(svg) if own.look != "missed")
    assert {"2 of 3 spans right", "right", "wrong", "missed"} <= set(texts(svg))
    other = draw_brackets(["a", "b"], [(0, 1, "VP")], gold=[(0, 1, "NP")])
    assert other.description == "a b (0 to 1): VP, wrong. a b (0 to 1): NP, missed."


def test_words_from_right_to_left() -> None:
    words = ["ראיתי", "את", "הכלב", "!"]
    svg = draw_brackets(words, [(0, 3, None), (1, 2, None)]).svg()
    x = places(svg, words)
    assert x == sorted(x, reverse=True)
    inner = drawn(svg)[1]
    assert [inner.left < place < inner.right for place in x] == [False, True, True, False]


@pytest.mark.parametrize(
    ("tree", "options", "message"),
    [
        (torch.zeros(3, 3), {}, "tree has shape (3, 3); expected (2, 2) or (2, 2, labels)"),
        (torch.full((2, 2), 2.0), {}, "tree[0, 0] is 2; expected 0 to 1"),
        (torch.full((2, 2), torch.nan), {}, "tree[0, 0] is nan; expected 0 to 1"),
        ([(0, 2, None)], {}, "tree holds (0, 2, None); expected a tensor, or spans (i, j, label)"),
        ([[1, 1], [0, 1]], {}, "tree holds [1, 1]; expected a tensor, or spans"),
        (torch.eye(2), {"labels": ["a"]}, "labels has 1 names; expected one for each label"),
        (torch.eye(2), {"gold": torch.eye(3)}, "gold has shape (3, 3)"),
        (torch.eye(2), {"least": 0}, "least: received 0"),
    ],
)
def test_wrong_arguments(tree: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        draw_brackets(["Dogs", "bark"], tree, **options)


# ------------------------------------------------------------------ text


def test_a_tree_above_its_words() -> None:
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


def test_labels_in_ascii() -> None:
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


def test_wide_characters_and_labels_wider_than_their_words() -> None:
    expected = """
         X
    ╭────┴─────╮
    │   LongLabelledNode
    │    ╭─────┴──────╮
    我  喜欢          🍎
    """
    tree = [(0, 2, "X"), (1, 2, "LongLabelledNode")]
    assert draw_binary_tree(["我", "喜欢", "🍎"], tree) == block(expected)


def test_a_tree_on_its_side() -> None:
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


def test_a_narrow_terminal_shows_brackets() -> None:
    assert draw_binary_tree(*PLAIN, width=11).splitlines() == [
        "((The cat)",
        "((sat do…)",
        "(on (the",
        "mat))))",
    ]


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(0, 1000), st.integers(1, 60), st.booleans())
def test_any_tree_fits(n: int, seed: int, width: int, ascii: bool) -> None:
    spans = [(i, j, "Label é") for i, j in random_tree(n, seed).nonzero().tolist()]
    words = ["New York", "", "w\n", "日本"] * 3
    for tree in (random_tree(n, seed), spans):
        text = draw_binary_tree(words[:n], tree, width=width, ascii=ascii)
        assert max(map(columns, text.splitlines())) <= width
        assert text.isascii() or not ascii


def test_spans_by_weight() -> None:
    weights = torch.tensor([[1.0, 0.3, 1.0], [0, 1, 0.7], [0, 0, 1]])
    expected = ["1.00  0-2  a b c", "0.70  1-2  b c", "0.30  0-1  a b"]
    assert list_brackets(list("abc"), weights).splitlines() == expected
    assert list_brackets(list("abc"), weights, least=0.5, width=13).splitlines() == [
        "1.00  0-2  a…",
        "0.70  1-2  b…",
    ]
    labelled = torch.stack([0.2 * weights, 0.8 * weights], -1)
    assert "0.70  1-2  VP  b c" in list_brackets(list("abc"), labelled, labels=["NP", "VP"])
    assert list_brackets(["a"], torch.ones(1, 1)) == ""


def test_trees_that_cannot_be_drawn() -> None:
    with pytest.raises(
        InputError, match=re.escape("tree[0, 1] is 0.5; expected 0 or 1 (for a soft")
    ):
        draw_binary_tree(["a", "b"], torch.tensor([[1, 0.5], [0, 1]]))
    with pytest.raises(InputError, match=re.escape("tree holds (0, 1) and (1, 2)")):
        draw_binary_tree(list("abc"), [(0, 1, None), (1, 2, None)])
