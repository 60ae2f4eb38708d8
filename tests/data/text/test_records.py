"""Records: streaming, checks that every reader makes, and reports of what is skipped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tokenize.treebank import TreebankWordTokenizer

from treelax.apps.data.text import tokenizer
from treelax.apps.data.text.records import Record, Records, Report, words_of
from treelax.apps.data.text.tokenizer import tokenize
from treelax.errors import BackendError, DataError


def records(*texts: str | tuple[str, ...], tokens: bool = False, **checks: Any) -> Records:
    """Records of these texts, one a line."""

    def read(report: Report) -> Iterator[Record]:
        for line, text in enumerate(texts, 1):
            yield Record((text,) if isinstance(text, str) else text, "x", line, tokens)

    return Records("a.tsv", read, **checks)


def test_records_stream_and_begin_anew() -> None:
    twice = records("a", "", "b")
    iterator = iter(twice)
    assert next(iterator).line == twice.report.count == 1
    assert list(twice) == list(twice)
    assert (twice.report.count, twice.report.dropped) == (2, {"empty sentence": [2]})


def test_empty_sentences() -> None:
    texts = ["a", "", ("full", ""), ("", "full"), "\u00a0\t"]
    assert [r.line for r in records(*texts)] == [1]
    assert [r.line for r in records(*texts, empty="keep")] == [1, 2, 3, 4, 5]


def test_too_many_words() -> None:
    long = ("few words", "w " * 33_000)
    with pytest.raises(DataError) as caught:
        list(records("a", long, advice="--unusable drop"))
    assert str(caught.value) == (
        "a.tsv, line 2: received 33,000 words; expected at most 10,000: split it or remove it; "
        "to go on without it: --unusable drop"
    )
    dropping = records("a", long, unusable="drop")
    assert [r.line for r in dropping] == [1]
    assert dropping.report.lines() == ["1 line dropped: too many words (2)"]
    with pytest.raises(DataError, match=r"line 2: received 15,000 words"):
        list(records("a", "!" * 15_000))  # as the tokeniser cuts it


def test_nothing_to_read() -> None:
    for texts, message in (
        ((), "received nothing; expected at least one record"),
        (("", " "), r"received nothing left: 2 lines dropped: empty sentence \(1, 2\); expected"),
    ):
        with pytest.raises(DataError, match=f"^a.tsv: {message}"):
            list(records(*texts))


def test_a_report_shows_some_line_numbers_and_all_reasons() -> None:
    report = Report(count=10)
    for line in range(1, 1300):
        report.drop("no gold label", line)
    report.drop("empty sentence", 7)
    assert report.lines() == [
        "1,299 lines dropped: no gold label (1, 2, 3, 4, 5, …)",
        "1 line dropped: empty sentence (7)",
    ]


LIBRARY = TreebankWordTokenizer()
WHITE = [chr(c) for c in range(sys.maxunicode + 1) if chr(c).isspace()]

# fmt: off
pieces = st.sampled_from([
    "cannot", "CanNot", "g\u0131mme", "gonna", "wannabe", "lemme.", "d'ye", "'tis", "do", "n't",
    "don't", "they'll", "U.S.", "Mr.", "e-mail", "--", "-", "...", "..", ".", "''", "``", '"', "'",
    "`", "(", ")", "[", "<", "{", "$3.88", "1,000", ",", ":", ";", "?", "!", "%", "&", "@", "#",
    "café", "naïve", "\u212aelvin", "日本語", "a", "The", "dog", "x\u200by", "«", "…", "/",
])
# fmt: on
mixed = st.lists(pieces | st.sampled_from(["", " ", "  ", "\n", *WHITE])).map("".join)
common = st.text(st.sampled_from("abnotcgmewil12\u0663 .,:?!-\n\u00a0éı"))


@settings(max_examples=60)
@given(mixed | common | st.text())
@example("")
@example("a,,b")
@example("1,000: yes,\n")
@example(" . . ")
@example("a..")
@example("a. .")
@example("G\u0130MME")
def test_the_result_is_the_library_s(text):
    typed = text.replace("\u2018", "'").replace("\u2019", "'").replace("\u2026", "...")
    typed = typed.replace("\u201c", '"').replace("\u201d", '"')
    assert tokenize(text) == LIBRARY.tokenize(typed)


def test_tokenised_texts_are_cut_at_spaces_only():
    record = Record(("It can't . -- 1\u00a01/2", " a  Hi. "), None, 1, tokens=True)
    assert words_of(record, 0) == ["It", "can't", ".", "--", "1\u00a01/2"]
    assert words_of(record, 1) == ["a", "Hi."]
    assert words_of(Record(("Hi.", "It can't."), None, 1), 1) == ["It", "ca", "n't", "."]


def test_the_library_is_loaded_only_if_its_rules_are_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk.tokenize.treebank", None)
    tokenizer._treebank.cache_clear()
    assert tokenize("A well-known man from the U.S. to Rome.")[-3:] == ["to", "Rome", "."]
    with pytest.raises(BackendError, match=r'needs the nltk library.*pip install "treelax\[data'):
        tokenize("It can't")
