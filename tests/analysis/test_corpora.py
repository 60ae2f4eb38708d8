"""Corpora: what is read from files and from the data of runs, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from treelax.analysis.corpora import Corpus, check_same_sentences, punctuation
from treelax.analysis.corpus_readers import (
    listops_corpus,
    read_treebank,
    split_records,
    text_corpus,
)
from treelax.data.conllu import Sentence, write_conllu
from treelax.data.listops import parse_expression
from treelax.data.text.readers_table import read_table
from treelax.data.text.readers_tagging import read_tagging
from treelax.errors import DataError, InputError
from treelax.tasks.text.config import DataConfig

DOGS = Sentence(("Dogs", "bark", "!"), (2, 0, 2), ("NOUN", "VERB", "PUNCT"))
HI = Sentence(("Hi",))


def test_what_is_known_of_all_sentences() -> None:
    whole, mixed = Corpus("whole", (DOGS, DOGS)), Corpus("mixed", (DOGS, HI))
    assert whole.gold == [(2, 0, 2), (2, 0, 2)]
    assert whole.tags == [DOGS.tags, DOGS.tags]
    assert (mixed.gold, mixed.tags) == (None, None)
    assert mixed.words == [("Dogs", "bark", "!"), ("Hi",)]


def test_pairs_stay_together() -> None:
    pairs = Corpus("pairs", (HI, DOGS, HI, HI), texts=2, labels=("no", "yes"))
    assert pairs.examples == [(HI, DOGS), (HI, HI)]
    short = pairs.part(max_length=1)
    assert (short.sentences, short.labels) == ((HI, HI), ("yes",))
    assert pairs.part(limit=1).labels == ("no",)
    assert pairs.part() == pairs


def test_a_corpus_that_cannot_be() -> None:
    with pytest.raises(InputError, match="none: received 0 sentences"):
        Corpus("none", ())
    with pytest.raises(InputError, match="odd: received 3 sentences; expected at least 2"):
        Corpus("odd", (HI, HI, HI), texts=2)
    with pytest.raises(InputError, match="two: received 1 labels; expected 2"):
        Corpus("two", (HI, HI), labels=("x",))
    with pytest.raises(InputError, match="received 2 as the most words; expected at least 3"):
        Corpus("dogs", (DOGS,)).part(max_length=2)


def test_a_treebank(tmp_path: Path) -> None:
    """A word with a space stays one word."""
    wide = Sentence(("10 000", "dogs"), (2, 0), ("NUM", "NOUN"))
    file = tmp_path / "bank.conllu.xz"
    write_conllu(file, [DOGS, wide])
    corpus = read_treebank(file)
    assert corpus.words == [DOGS.words, ("10\u00a0000", "dogs")]
    assert corpus.gold == [DOGS.heads, (2, 0)]
    assert corpus.labels == (DOGS.tags, ("NUM", "NOUN"))
    assert len(read_treebank(file, limit=1).sentences) == 1


def test_a_treebank_without_heads_or_sentences(tmp_path: Path) -> None:
    write_conllu(tmp_path / "plain.conllu", [HI])
    corpus = read_treebank(tmp_path / "plain.conllu")
    assert (corpus.gold, corpus.tags, corpus.labels) == (None, None, None)
    (tmp_path / "empty.conllu").write_text("")
    with pytest.raises(DataError, match=r"empty\.conllu: has no sentences"):
        read_treebank(tmp_path / "empty.conllu")


def test_records_with_classes_and_with_tags(tmp_path: Path) -> None:
    table = tmp_path / "a.tsv"
    table.write_text("text\tlabel\nDogs bark.\tyes\n\t no\nHi\tno\n")
    records = read_table(table, "text", "label")
    corpus = text_corpus(records, "a.tsv")
    assert corpus.words == [("Dogs", "bark", "."), ("Hi",)]
    assert (corpus.labels, corpus.tags, corpus.gold) == (("yes", "no"), None, None)
    assert records.report.lines() == ["1 line dropped: empty sentence (3)"]
    assert text_corpus(records, "a.tsv", limit=1).labels == ("yes",)
    tags = tmp_path / "a.conll"
    tags.write_text("Dogs\tN\nbark\tV\n")
    assert text_corpus(read_tagging(tags), "a.conll").tags == [("N", "V")]


def test_listops_has_gold_heads_and_kinds() -> None:
    corpus = listops_corpus([parse_expression("[MAX 2 9 ]")], "one")
    assert (corpus.gold, corpus.listops) == ([(0, 1, 1, 1)], True)
    assert corpus.tags == [("operator", "argument", "argument", "bracket")]


def test_punctuation_by_tag_or_by_characters() -> None:
    assert punctuation(Corpus("a", (DOGS,))) == [[False, False, True]]
    plain = Sentence(("Dogs", "...", "-", "$", "a."))
    assert punctuation(Corpus("a", (plain,))) == [[False, True, True, False, False]]
    tagged = Sentence(("-", "!"), tags=("X", "PUNCT"))  # a dash that is none
    assert punctuation(Corpus("a", (tagged,))) == [[False, True]]
    brackets = listops_corpus([parse_expression("[MAX 2 ]")], "one")
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


def test_the_data_of_a_run(tmp_path: Path) -> None:
    table = tmp_path / "dev.tsv"
    table.write_text("text\tlabel\nDogs bark.\tyes\n")
    data = DataConfig(dev=str(table))
    assert [record.label for record in split_records(data, "dev")] == ["yes"]
    with pytest.raises(InputError, match=r"data\.test is none; expected a split .*--split dev"):
        split_records(data, "test")
    with pytest.raises(InputError, match="split is 'none'"):
        split_records(data, "none")
    table.unlink()
    with pytest.raises(DataError, match=r"dev\.tsv: does not exist; .*--data FILE"):
        split_records(data, "dev")


def test_the_data_of_a_run_on_sst(tmp_path: Path) -> None:
    (tmp_path / "dev.txt").write_text("(3 (2 Dogs) (2 bark))\n(2 (2 so) (2 so))\n")
    binary = DataConfig(format="sst", path=str(tmp_path))
    five = DataConfig(format="sst", path=str(tmp_path), classes="five")
    counts = [len(list(split_records(data, "dev"))) for data in (binary, five)]
    assert counts == [1, 2]


def test_the_tags_of_a_run_are_those_of_its_column(tmp_path: Path) -> None:
    file = tmp_path / "dev.conll"
    file.write_text("Dogs NNS O\nbark VBP O\n")
    data = DataConfig(format="tagging", dev=str(file), tag="2")
    assert [record.label for record in split_records(data, "dev")] == [("NNS", "VBP")]
