"""Corpora: what is read from files and from the data of runs, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from treelax.apps.data.conllu import Sentence, write_conllu
from treelax.apps.data.listops import parse_expression
from treelax.apps.tasks.base import Example, Examples, Source
from treelax.apps.tasks.listops.parser import listops_examples
from treelax.apps.tasks.text.config import DataConfig, SentenceSettings, TextConfig
from treelax.apps.tasks.text.inputs import own_examples, read_examples
from treelax.errors import DataError, InputError
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


def test_records_with_classes_and_with_tags(tmp_path: Path) -> None:
    table = tmp_path / "a.tsv"
    table.write_text("text\tlabel\nDogs bark.\tyes\n\t no\nHi\tno\n")
    read = read_examples(SentenceSettings(label="label"), Source(file=str(table)))
    corpus = Corpus.of(read)
    assert corpus.words == [("Dogs", "bark", "."), ("Hi",)]
    assert (corpus.labels, corpus.tags, corpus.gold) == (("yes", "no"), None, None)
    assert read.notes() == ["1 line dropped: empty sentence (3)"]
    tags = tmp_path / "a.conll"
    tags.write_text("Dogs\tN\nbark\tV\n")
    assert corpus_of(tags, kind="tag").tags == [("N", "V")]


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


def labels_of(data: DataConfig, split: str = "dev") -> list[object]:
    config = TextConfig(kind="tag" if data.format == "tagging" else "classify", data=data)
    settings = SentenceSettings.of(config, rows=2)
    return [each.label for each in own_examples(config, settings, split, {})]


def test_the_data_of_a_run(tmp_path: Path) -> None:
    table = tmp_path / "dev.tsv"
    table.write_text("text\tlabel\nDogs bark.\tyes\n")
    data = DataConfig(dev=str(table))
    assert labels_of(data) == ["yes"]
    with pytest.raises(InputError, match=r"without test data; expected .*--split dev"):
        labels_of(data, "test")
    with pytest.raises(InputError, match="split is 'none'"):
        labels_of(data, "none")
    table.unlink()
    with pytest.raises(DataError, match=r"dev\.tsv: does not exist; .*--data FILE"):
        labels_of(data)
