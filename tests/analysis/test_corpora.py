"""Corpora: what is known of examples, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.listops import parse_expression
from treelax.apps.tasks.base import Example, Examples
from treelax.apps.tasks.listops.parser import listops_examples
from treelax.errors import InputError
from treelax.lab.analysis.corpora import Corpus, check_same_sentences, punctuation

DOGS = Sentence(("Dogs", "bark", "!"), (2, 0, 2), ("NOUN", "VERB", "PUNCT"))
HI = Sentence(("Hi",))
LISTOPS = Corpus.of(listops_examples([parse_expression("[MAX 2 9 ]")], "one"))


def test_what_is_known_of_all_sentences() -> None:
    whole, mixed = Corpus("whole", (DOGS, DOGS)), Corpus("mixed", (DOGS, HI))
    assert whole.gold == [(2, 0, 2), (2, 0, 2)]
    assert whole.tags == [DOGS.tags, DOGS.tags]
    assert (mixed.gold, mixed.tags) == (None, None)
    assert mixed.words == [("Dogs", "bark", "!"), ("Hi",)]
    assert (LISTOPS.gold, LISTOPS.labels) == ([(0, 1, 1, 1)], ((2, None, None, None),))
    assert LISTOPS.tags == [("operator", "argument", "argument", "bracket")]


def test_pairs_stay_together() -> None:
    examples = Examples(
        "pairs", [Example((HI, DOGS), 1, "no"), Example((HI, HI), 2, "yes"), Example((HI, ()), 3)]
    )
    pairs = Corpus.of(examples)
    assert pairs.examples == [(HI, DOGS), (HI, HI)]
    assert pairs.labels == ("no", "yes")
    assert Corpus.of(examples, max_length=1).labels == ("yes",)
    assert Corpus.of(examples, limit=1).labels == ("no",)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Corpus("none", ()), "none: received 0 sentences"),
        (
            lambda: Corpus("odd", (HI, HI, HI), texts=2),
            "odd: received 3 sentences; expected at least 2",
        ),
        (
            lambda: Corpus("two", (HI, HI), labels=("x",)),
            "two: received 1 labels; expected 2",
        ),
        (
            lambda: Corpus.of(Examples("dogs", [Example((DOGS,))]), max_length=2),
            r"dogs: received no sentences.* the shortest has 3",
        ),
        (
            lambda: check_same_sentences(Corpus("one", (HI, DOGS)), Corpus("two", (HI, HI))),
            "two: sentence 2 is 'Hi' and that of one is 'Dogs bark !'",
        ),
        (
            lambda: check_same_sentences(Corpus("one", (HI, DOGS)), Corpus("short", (HI,))),
            "short: has 1 sentences and one 2; expected the same",
        ),
    ],
)
def test_what_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_punctuation_by_tag_or_by_characters() -> None:
    plain = Sentence(("Dogs", "...", "-", "$", "a."))
    tagged = Sentence(("-", "!"), tags=("X", "PUNCT"))  # a dash that is none
    assert punctuation(Corpus("a", (DOGS,))) == [[False, False, True]]
    assert punctuation(Corpus("a", (plain,))) == [[False, True, True, False, False]]
    assert punctuation(Corpus("a", (tagged,))) == [[False, True]]
    assert punctuation(LISTOPS) == [[False] * 4]
