"""Records: streaming, checks that every reader makes, and reports of what is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from treelax.apps.data.text.records import Record, Records, Report, TextStatistics
from treelax.errors import DataError


def records(*texts: str | tuple[str, ...], tokens: bool = False, **checks: Any) -> Records:
    """Records of these texts, one a line."""

    def read(report: Report) -> Iterator[Record]:
        for line, text in enumerate(texts, 1):
            yield Record((text,) if isinstance(text, str) else text, "x", line, tokens)

    return Records("a.tsv", read, **checks)


def test_records_stream_and_begin_anew() -> None:
    twice = records("a", "", "b")
    iterator = iter(twice)
    assert next(iterator).line == twice.report.kept == 1
    assert list(twice) == list(twice)
    assert (twice.report.kept, twice.report.dropped) == (2, {"empty sentence": [2]})


@pytest.mark.parametrize("empty", ["", "\u00a0\t", ("full", ""), ("", "full")])
def test_empty_sentences(empty: str | tuple[str, ...]) -> None:
    some = records("a", empty, "b", empty)
    assert [r.line for r in some] == [1, 3]
    assert some.report.lines() == ["2 lines dropped: empty sentence (2, 4)"]
    kept = records(empty, empty, empty="keep")
    assert [r.line for r in kept] == [1, 2]


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
    assert len(list(records(long, max_words=33_000))) == 1


def test_the_limit_counts_tokens_as_the_record_has_them() -> None:
    (record,) = records("2\u00a01/2 stars", tokens=True, max_words=2)
    assert record.words() == [["2\u00a01/2", "stars"]]
    with pytest.raises(DataError, match=r"line 2: received 15,000 words"):
        list(records("a", "!" * 15_000))  # as the tokeniser cuts it


def test_nothing_to_read() -> None:
    with pytest.raises(DataError, match=r"^a.tsv: received nothing; expected at least one record$"):
        list(records())
    message = r"received nothing left: 2 lines dropped: empty sentence \(1, 2\); expected"
    with pytest.raises(DataError, match=message):
        list(records("", " "))


def test_a_report_shows_some_line_numbers_and_all_reasons() -> None:
    report = Report(kept=10)
    for line in range(1, 1300):
        report.drop("no gold label", line)
    report.drop("empty sentence", 7)
    assert report.lines() == [
        "1,299 lines dropped: no gold label (1, 2, 3, 4, 5, …)",
        "1 line dropped: empty sentence (7)",
    ]


def test_statistics_of_records_that_pass() -> None:
    statistics = TextStatistics()
    some = [Record(("a b", "c"), "x", 1), Record(("a b c d", "e f g"), "y", 2)]
    assert list(statistics.watch([*some, some[0]])) == [*some, some[0]]
    assert statistics.summary() == {
        "records": 3,
        "labels": {"x": 2, "y": 1},
        "length_mean": [8 / 3, 5 / 3],
        "length_max": [4, 3],
    }
