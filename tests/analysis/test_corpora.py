"""Corpora: what is read from files and from the data of runs, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from treelax.apps.data.conllu import Sentence, write_conllu
from treelax.apps.data.listops import parse_expression
from treelax.apps.tasks.base import Example, Examples, Source
from treelax.apps.tasks.listops.parser import listops_examples
from treelax.apps.tasks.sentences.inputs import read_examples
from treelax.apps.tasks.text.config import SentenceSettings
from treelax.errors import InputError
from treelax.lab.analysis.corpora import Corpus, check_same_sentences, punctuation

DOGS = Sentence(("Dogs", "bark", "!"), (2, 0, 2), ("NOUN", "VERB", "PUNCT"))
HI = Sentence(("Hi",))


def test_what_is_known_of_all_sentences() -> None:
    whole, mixed = Corpus("whole", (DOGS, DOGS)), Corpus("mixed", (DOGS, HI))
    assert whole.gold == [(2, 0, 2), (2, 0, 2)]
    assert whole.tags == [DOGS.tags, DOGS.tags]
    assert (mixed.gold, mixed.tags) == (None, None)
    assert mixed.words == [("Dogs", "bark", "!"), ("Hi",)]


def test_pairs_stay_together() -> None:
    examples = Examples(
        "pairs", [Example((HI, DOGS), 1, "no"), Example((HI, HI), 2, "yes"), Example((HI, ()), 3)]
    )
    pairs = Corpus.of(examples)
    assert pairs.examples == [(HI, DOGS), (HI, HI)]
    assert pairs.labels == ("no", "yes")
    assert Corpus.of(examples, max_length=1).labels == ("yes",)
    assert Corpus.of(examples, limit=1).labels == ("no",)


def test_a_corpus_that_cannot_be() -> None:
    with pytest.raises(InputError, match="none: received 0 sentences"):
        Corpus("none", ())
    with pytest.raises(InputError, match="odd: received 3 sentences; expected at least 2"):
        Corpus("odd", (HI, HI, HI), texts=2)
    with pytest.raises(InputError, match="two: received 1 labels; expected 2"):
        Corpus("two", (HI, HI), labels=("x",))
    with pytest.raises(InputError, match=r"dogs: received no sentences.* the shortest has 3"):
        Corpus.of(Examples("dogs", [Example((DOGS,))]), max_length=2)


def corpus_of(file: Path, limit: int | None = None, **settings: str) -> Corpus:
    read = read_examples(SentenceSettings(**settings), Source(file=str(file)))  # type: ignore[arg-type]
    return Corpus.of(read, limit=limit)


def test_a_treebank(tmp_path: Path) -> None:
    """A word with a space stays one word."""
    wide = Sentence(("10 000", "dogs"), (2, 0), ("NUM", "NOUN"))
    file = tmp_path / "bank.conllu.xz"
    write_conllu(file, [DOGS, wide])
    corpus = corpus_of(file)
    assert corpus.words == [DOGS.words, ("10\u00a0000", "dogs")]
    assert corpus.gold == [DOGS.heads, (2, 0)]
    assert corpus.labels == (DOGS.tags, ("NUM", "NOUN"))
    assert len(corpus_of(file, limit=1).sentences) == 1


def test_listops_has_gold_heads_and_kinds() -> None:
    corpus = Corpus.of(listops_examples([parse_expression("[MAX 2 9 ]")], "one"))
    assert (corpus.gold, corpus.has_punctuation) == ([(0, 1, 1, 1)], False)
    assert corpus.tags == [("operator", "argument", "argument", "bracket")]
    assert corpus.labels == ((2, None, None, None),)


def test_punctuation_by_tag_or_by_characters() -> None:
    assert punctuation(Corpus("a", (DOGS,))) == [[False, False, True]]
    plain = Sentence(("Dogs", "...", "-", "$", "a."))
    assert punctuation(Corpus("a", (plain,))) == [[False, True, True, False, False]]
    tagged = Sentence(("-", "!"), tags=("X", "PUNCT"))  # a dash that is none
    assert punctuation(Corpus("a", (tagged,))) == [[False, True]]
    brackets = Corpus.of(listops_examples([parse_expression("[MAX 2 ]")], "one"))
    assert punctuation(brackets) == [[False, False, False]]


def test_sentences_of_two_runs() -> None:
    one, two = Corpus("one", (HI, DOGS)), Corpus("two", (HI, HI))
    check_same_sentences(one, Corpus("again", (Sentence(("Hi",), (0,)), DOGS)))
    with pytest.raises(
        InputError, match="two: sentence 2 is 'Hi' and that of one is 'Dogs bark !'"
    ):
        check_same_sentences(one, two)
    with pytest.raises(InputError, match="short: has 1 sentences and one 2; expected the same"):
        check_same_sentences(one, Corpus("short", (HI,)))
