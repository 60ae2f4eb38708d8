"""The page with as many words as there may be: it draws what can be told apart, and says so."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

from demo_browser import LEAST_WEIGHT, Visitor

from treelax.demo.messages import MOST_WORDS, Matrix

LONGEST = " ".join(f"w{i}" for i in range(1, MOST_WORDS + 1))
MOST_ARCS, MOST_DOTS = 600, 1500


def numbers(matrix: Matrix) -> dict[tuple[int, int], float]:
    return {
        (head, word): value or 0.0
        for head, row in enumerate(matrix)
        for word, value in enumerate(row)
    }


def test_only_the_heaviest_arcs_and_largest_dots_of_long_texts_are_drawn(visitor: Visitor) -> None:
    visit = visitor().open(source="zero", text=LONGEST, noise=0, samples=5, temperature=1)
    page, reply = visit.page, visit.expected()

    soft = numbers(reply.soft)
    heavy = sorted((weight for weight in soft.values() if weight >= LEAST_WEIGHT), reverse=True)
    drawn = visit.arcs("soft-arcs")
    assert len(heavy) > MOST_ARCS
    assert all(drawn[arc] == soft[arc] for arc in drawn)
    assert sorted(drawn.values(), reverse=True) == heavy[:MOST_ARCS]
    assert page.inner_text("#soft-facts").startswith(f"The {len(heavy) - MOST_ARCS} lightest of ")
    assert len(visit.arcs("best-arcs", ".arc-line:not(.below)")) == MOST_WORDS

    marginals, frequencies = numbers(reply.marginals), numbers(reply.samples.frequencies)
    sizes = [max(marginals[arc], frequencies[arc]) for arc in marginals]
    large = sorted((size for size in sizes if size >= 0.001), reverse=True)
    dots = page.locator("#scatter circle").evaluate_all(
        "all => all.map(dot => [dot.dataset.head, dot.dataset.word].map(Number))"
    )
    found = sorted((max(marginals[h, m], frequencies[h, m]) for h, m in dots), reverse=True)
    assert found == large[:MOST_DOTS]
    assert page.inner_text("#scatter-facts") == f"Without the {len(large) - MOST_DOTS} smallest."


def test_short_texts_are_drawn_whole(visitor: Visitor) -> None:
    visit = visitor().open(source="zero", text="a b c", samples=5)
    visit.shows_its_state(samples="5")
    assert visit.page.inner_text("#soft-facts") == visit.page.inner_text("#scatter-facts") == ""


def test_a_page_of_the_longest_text_stays_small(visitor: Visitor) -> None:
    visit = visitor().open(source="random", text=LONGEST, samples=20)
    assert visit.page.locator("*").count() < 10_000
