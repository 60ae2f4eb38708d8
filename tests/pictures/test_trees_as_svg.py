"""Arcs and brackets as SVG: which there are, where they stand, how right, wrong and light ones look."""

import re
from collections import defaultdict
from itertools import combinations, permutations
from random import Random
from typing import NamedTuple

import pytest
import torch
from drawings import (
    DASHES,
    FOX,
    FOX_HEADS,
    MAX,
    MAX_FOUND,
    MAX_GOLD,
    PTB,
    SVG,
    arcs,
    assert_inside,
    label_boxes,
    random_tree,
    root_of,
    size_of,
    texts,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import treelax as tx
from treelax.apps.pictures import align_pictures, draw_arcs, draw_brackets, stack_pictures
from treelax.apps.pictures.svg import text_width
from treelax.errors import InputError
from treelax.trees import heads_to_tree, read_brackets, tree_to_heads

SEEDS = st.integers(0, 1000)
HEBREW = ["ראיתי", "את", "הכלב", "!"]


class Bracket(NamedTuple):
    title: str
    look: str
    left: float
    right: float
    y: float
    opacity: float
    width: float


def brackets(svg):
    """The brackets of a drawing."""
    drawn = []
    for group in root_of(svg).iter(f"{SVG}g"):
        title, path = group.find(f"{SVG}title"), group.find(f"{SVG}path")
        if title is None or path is None:
            continue
        ends = re.search(r"M(\S+) .*A\S+ \S+ 0 0 . \S+ (\S+)H.* (\S+) \S+V", path.get("d"))
        left, y, right = map(float, ends.groups())
        look = DASHES[path.get("stroke-dasharray")]
        rest = (float(group.get("opacity", "1")), float(path.get("stroke-width", "0")))
        drawn.append(Bracket(title.text or "", look, left, right, y, *rest))
    return drawn


def places(svg, words):
    """The middles of words, all different."""
    at = {element.text: element.get("x") for element in root_of(svg).iter(f"{SVG}text")}
    return [float(at[word]) for word in words]


def projective(n, seed):
    """The heads of a tree drawn from all projective ones."""
    generator = torch.Generator().manual_seed(seed)
    tree = tx.ops.sample_tree(torch.zeros(n + 1, n + 1), generator=generator)
    return [int(head) for head in tree_to_heads(tree)]


# ------------------------------------------------------------------ where lines stand


@settings(max_examples=50)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=9), SEEDS)
def test_any_words_and_labels(words, seed):
    """Whatever they are, the file is well-formed and nothing is outside of it."""
    n, random = len(words), Random(seed)
    heads = [random.choice([h for h in range(n + 1) if h != m]) for m in range(1, n + 1)]
    svg = draw_arcs(words, heads, labels=words, tags=words, title=words[0]).svg()
    width, height = size_of(svg)
    assert len(arcs(svg)) == n
    for arc in arcs(svg):
        assert 0 <= min(arc.head_x, arc.modifier_x) <= max(arc.head_x, arc.modifier_x) <= width
        assert 0 <= arc.y < arc.base <= height
    assert_inside(svg)
    spans = [(i, j, words[i]) for i, j in random_tree(n, seed).nonzero().tolist()]
    gold = random_tree(n, seed + 1)
    svg = draw_brackets(words, spans, gold=gold, show_weights=True, title=words[0]).svg()
    width, height = size_of(svg)
    for bracket in brackets(svg):
        assert 0 < bracket.left < bracket.right < width
        assert 0 < bracket.y < height
    assert_inside(svg)


@given(st.integers(1, 14), SEEDS)
def test_arcs_of_a_projective_tree_meet_in_the_stem_of_their_head_only(n, seed):
    drawn = arcs(draw_arcs(["w"] * n, projective(n, seed)).svg())
    for one, other in permutations(drawn, 2):
        stem = {one.head_x} & {other.head_x} if one.head == other.head else set()
        left, right = sorted((other.head_x, other.modifier_x))
        crossing = {one.head_x, one.modifier_x} - stem
        assert not any(left <= x <= right and one.y <= other.y for x in crossing)


@given(st.integers(1, 9), SEEDS)
def test_arcs_leave_their_head_in_one_stem_on_each_side_and_end_in_one_arrow(n, seed):
    """All of them above the word, however many there are."""
    torch.manual_seed(seed)
    weights = tx.ops.soft_tree(torch.randn(n + 1, n + 1), temperature=3.0)
    words = [f"w{m}" for m in range(1, n + 1)]
    svg = draw_arcs(words, weights=weights, least=1e-6).svg()
    starts, arrows = defaultdict(set), defaultdict(set)
    for arc in arcs(svg):
        arrows[arc.modifier.split()[0]].add(arc.modifier_x)
        if not arc.head.startswith("root"):
            starts[arc.head.split()[0], arc.head_x < arc.modifier_x].add(arc.head_x)
    middles = dict(zip(words, places(svg, words), strict=True))
    assert all(ends == {middles[word]} for word, ends in arrows.items())
    for (word, _), stems in starts.items():
        [stem] = stems
        assert abs(stem - middles[word]) <= text_width(word, 16) / 2


@given(st.integers(2, 10), SEEDS)
def test_brackets_stand_over_their_words_and_above_inner_ones(n, seed):
    tree, words = random_tree(n, seed), [f"w{m}" for m in range(n)]
    svg = draw_brackets(words, tree).svg()
    x = places(svg, words)
    over = {
        (min(inside), max(inside)): bracket
        for bracket in brackets(svg)
        if (inside := [m for m in range(n) if bracket.left < x[m] < bracket.right])
    }
    assert sorted(over) == [(i, j) for i, j in tree.nonzero().tolist() if i < j]
    for (one, above), (other, below) in combinations(sorted(over.items()), 2):
        if one[0] <= other[0] and other[1] <= one[1]:
            assert above.y < below.y


@settings(max_examples=50)
@given(st.integers(2, 12), SEEDS)
def test_nothing_runs_through_a_label(n, seed):
    labels = [f"label:{m}" for m in range(1, n + 1)]
    svg = draw_arcs(["w"] * n, projective(n, seed), labels=labels).svg()
    boxes = label_boxes(svg)
    assert len(boxes) == n
    for arc in arcs(svg):
        left, right = sorted((arc.head_x, arc.modifier_x))
        for a, b, top, bottom in boxes:
            assert not (a < right and left < b and top < arc.y < bottom)
            assert not any(a < x < b and arc.y < bottom and x != (a + b) / 2 for x in (left, right))
    spans = [(i, j, f"label:{i}-{j}") for i, j in random_tree(n, seed).nonzero().tolist() if i < j]
    svg = draw_brackets(["w"] * n, spans).svg()
    boxes = label_boxes(svg)
    assert len(boxes) == n - 1
    for bracket in brackets(svg):
        for a, b, top, bottom in boxes:
            if a < bracket.right and bracket.left < b:
                assert not top < bracket.y < bottom
                assert not (bracket.y < top < bracket.y + 6 and a < bracket.left < b)


@pytest.mark.parametrize("right_to_left", [False, True])
def test_words_of_compared_trees_keep_their_places(right_to_left):
    soft = tx.ops.soft_tree(3 * heads_to_tree(torch.tensor(FOX_HEADS)), temperature=3.0)
    chain, options = list(range(len(FOX))), {"right_to_left": right_to_left}
    pictures = [
        draw_arcs(FOX, FOX_HEADS, labels=["a long label"] * 9, **options),
        draw_arcs(FOX, weights=soft, title="A title much wider than the words" * 5, **options),
        draw_arcs(FOX, chain, gold=FOX_HEADS, tags=["a tag wider than words"] * 9, **options),
        draw_brackets(FOX, [(0, 1, "a label wider than two words")], **options),
    ]
    assert len({tuple(places(picture.svg(), FOX)) for picture in pictures}) > 1
    aligned = align_pictures(pictures)
    assert len({(picture.width, *places(picture.svg(), FOX)) for picture in aligned}) == 1
    assert [picture.title for picture in aligned] == [picture.title for picture in pictures]
    whole = stack_pictures(pictures)
    assert places(whole.svg(), FOX) == places(aligned[0].svg(), FOX)
    assert whole.height == sum(picture.height for picture in aligned)
    others = [draw_arcs(["Hi"], [0]), draw_arcs(FOX, FOX_HEADS)]
    assert align_pictures(others) == others
    assert stack_pictures(others[:1]) is others[0]
    with pytest.raises(InputError, match="pictures: received none"):
        stack_pictures([])


# ------------------------------------------------------------------ words


@pytest.mark.parametrize("word", ["<script>alert(1)</script>", "&lt;", "]]>"])
def test_markup_is_text(word):
    svg = draw_arcs([word, "b"], [0, 1], labels=[None, word], tags=[word, ""], title=word).svg()
    assert texts(svg).count(word) == 4
    assert not list(root_of(svg).iter(f"{SVG}script"))
    assert next(root_of(svg).iter(f"{SVG}title")).text == word


def test_what_xml_cannot_hold_is_replaced():
    svg = draw_arcs(["a\ud800b", "\x00", "\x1b[2J"], [0, 1, 1]).svg()
    assert texts(svg)[-3:] == ["a�b", "�", "�[2J"]
    turned = draw_arcs(["a\u202eb", "c\u2067d"], [0, 1]).svg()
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", turned)


def test_words_from_right_to_left():
    """Each is a text of its own, and the sentence begins where its words do."""
    svg = draw_arcs(HEBREW, [0, 3, 1, 1]).svg()
    for element in root_of(svg).iter(f"{SVG}text"):
        if element.text in HEBREW:
            expected = (None, None) if element.text == "!" else ("rtl", "isolate")
            assert (element.get("direction"), element.get("unicode-bidi")) == expected
    assert (
        sorted(HEBREW, key=dict(zip(HEBREW, places(svg, HEBREW), strict=True)).get) == HEBREW[::-1]
    )
    back = draw_arcs(HEBREW, [0, 3, 1, 1], right_to_left=False).svg()
    assert places(back, HEBREW) == sorted(places(back, HEBREW))
    assert texts(draw_arcs(["a", "ב"], [0, 1]).svg())[-2:] == ["a", "ב"]
    svg = draw_brackets(HEBREW, [(0, 3, None), (1, 2, None)]).svg()
    inner, x = brackets(svg)[1], places(svg, HEBREW)
    assert [inner.left < place < inner.right for place in x] == [False, True, True, False]


# ------------------------------------------------------------------ right, wrong, light


def test_right_wrong_and_missed_lines_differ_without_colour():
    svg = draw_arcs(MAX, MAX_FOUND, gold=MAX_GOLD).svg()
    looks = {arc.title.rpartition(", ")[2]: arc.look for arc in arcs(svg)}
    assert looks == {"right": "solid", "wrong": "wrong", "missed": "missed"}
    missed = [arc for arc in arcs(svg) if arc.look == "missed"]
    assert [arc.head for arc in missed] == ["[MAX (1)"] * 3
    others = [arc for arc in arcs(svg) if arc.look != "missed"]
    assert max(arc.base for arc in others) < min(arc.base for arc in missed)
    assert all(arc.y > arc.base for arc in missed)  # below the words
    assert {"6 of 9 arcs right", "right", "wrong", "missed"} <= set(texts(svg))
    gold = read_brackets("((a b) (c d))")[1]
    svg = draw_brackets(list("abcd"), read_brackets("(a (b (c d)))")[1], gold=gold).svg()
    assert {bracket.title: bracket.look for bracket in brackets(svg)} == {
        "a b c d (0 to 3): right": "solid",
        "b c d (1 to 3): wrong": "wrong",
        "c d (2 to 3): right": "solid",
        "a b (0 to 1): missed": "missed",
    }
    assert {"2 of 3 spans right", "right", "wrong", "missed"} <= set(texts(svg))
    other = draw_brackets(["a", "b"], [(0, 1, "VP")], gold=[(0, 1, "NP")])
    assert other.description == "a b (0 to 1): VP, wrong. a b (0 to 1): NP, missed."


def test_heavier_lines_are_stronger_and_wider():
    svg = draw_arcs(["Dogs", "bark"], weights=[[0, 0.04, 1], [0, 0, 0], [0, 0.96, 0]]).svg()
    assert {arc.title for arc in arcs(svg)} == {
        *("root (0) → bark (2)", "bark (2) → Dogs (1), 0.960")
    }
    arcs_svg = draw_arcs(["a", "b"], weights=[[0, 0.3, 0.05], [0, 0, 0.95], [0, 0.7, 0]]).svg()
    weights = torch.tensor([[1.0, 0.3, 1.0], [0, 1, 0.7], [0, 0, 1]])
    spans_svg = draw_brackets(["a", "b", "c"], weights, show_weights=True).svg()
    for svg, drawn, shares in (
        (arcs_svg, arcs(arcs_svg), ["0.050", "0.300", "0.700", "0.950"]),
        (spans_svg, brackets(spans_svg), ["0.300", "0.700", "a b c (0 to 2)"]),
    ):
        drawn.sort(key=lambda line: line.opacity)
        assert [re.split(", |: ", line.title)[-1] for line in drawn] == shares
        assert [line.width for line in drawn] == sorted({line.width for line in drawn})
        assert "weight" in texts(svg)
    assert drawn[0].y != drawn[1].y  # they cross, so neither hides the other
    assert {"0.30", "0.70", "1.00"} <= set(texts(spans_svg))
    assert len(brackets(draw_brackets(["a", "b", "c"], weights, least=0.5).svg())) == 2


def test_other_heads_beside_a_tree():
    soft = 0.7 * heads_to_tree(torch.tensor(FOX_HEADS)) + 0.3 * heads_to_tree(torch.arange(9))
    looks = {arc.title: arc.look for arc in arcs(draw_arcs(FOX, FOX_HEADS, weights=soft).svg())}
    assert looks["fox (3) → The (1), 0.700"] == "solid"
    assert looks["root (0) → The (1), 0.300"] == "other"
    # that of the tree is drawn however little it weighs
    assert len(arcs(draw_arcs(FOX, FOX_HEADS, weights=torch.zeros(10, 10)).svg())) == len(FOX)


def test_a_labelled_tree_of_spans():
    picture = draw_brackets(*PTB)
    assert (texts(picture.svg()).count("NP"), texts(picture.svg()).count("DT")) == (2, 2)
    assert "The quick fox (0 to 2): NP. " in picture.description
    names = sorted({label for *_, label in PTB[1] if label})
    tensor = torch.zeros(8, 8, len(names))
    for i, j, label in PTB[1]:
        tensor[i, j, names.index(label)] = 1
    assert draw_brackets(PTB[0], tensor, labels=names) == picture
    chain = draw_brackets(["Go", "!"], read_brackets("(S (VP (VB Go)) (. !))")[1])
    assert "VP+VB" in texts(chain.svg())


@pytest.mark.parametrize(
    ("draw", "arguments", "message"),
    [
        (draw_arcs, {}, "neither heads nor weights"),
        (draw_arcs, {"heads": [0, 1], "labels": ["a"]}, "labels: received 1; expected one for"),
        (
            draw_arcs,
            {"weights": torch.zeros(3, 3), "labels": ["a", "b"]},
            "received labels without heads",
        ),
        (draw_arcs, {"weights": torch.zeros(2, 3)}, "weights: received shape (2, 3); expected (3"),
        (draw_arcs, {"weights": torch.full((3, 3), 2.0)}, "weights[0, 1] is 2.0; expected 0 to 1"),
        (
            draw_brackets,
            {"tree": torch.zeros(3, 3)},
            "tree has shape (3, 3); expected (2, 2) or (2",
        ),
        (
            draw_brackets,
            {"tree": torch.full((2, 2), torch.nan)},
            "tree[0, 0] is nan; expected 0 to",
        ),
        (draw_brackets, {"tree": [(0, 2, None)]}, "tree holds (0, 2, None); expected a tensor, or"),
        (draw_brackets, {"tree": [[1, 1], [0, 1]]}, "tree holds [1, 1]; expected a tensor, or"),
        (
            draw_brackets,
            {"tree": torch.eye(2), "labels": ["a"]},
            "labels has 1 names; expected one",
        ),
        (draw_brackets, {"tree": torch.eye(2), "gold": torch.eye(3)}, "gold has shape (3, 3)"),
        (draw_brackets, {"tree": torch.eye(2), "least": 0}, "least: received 0"),
    ],
)
def test_wrong_arguments(draw, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        draw(["Dogs", "bark"], **arguments)
