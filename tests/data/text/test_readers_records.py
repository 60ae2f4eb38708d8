"""Records: streaming, checks that every reader makes, and reports of what is left out."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelax.data.text.records import Checks, Record, Records, Report
from treelax.errors import DataError, InputError


def records(*texts: str | tuple[str, ...], **checks: object) -> Records:
    """Records of these texts, one a line."""

    def read(report: Report) -> Iterator[Record]:
        for line, text in enumerate(texts, 1):
            yield Record((text,) if isinstance(text, str) else text, "x", line)

    return Records("a.tsv", read, checks=Checks(**checks))  # type: ignore[arg-type]


def test_records_stream() -> None:
    begun = 0

    def read(report: Report) -> Iterator[Record]:
        nonlocal begun
        for begun in range(1, 4):
            yield Record(("text",), None, begun)

    endless = Records("a.tsv", read)
    iterator = iter(endless)
    assert begun == 0
    assert next(iterator).line == begun == 1
    assert endless.report.kept == 1


def test_every_iteration_begins_anew() -> None:
    twice = records("a", "", "b")
    assert list(twice) == list(twice)
    assert (twice.report.read, twice.report.kept) == (3, 2)
    next(iter(twice))
    assert (twice.report.read, twice.report.kept) == (1, 1)


@pytest.mark.parametrize("empty", ["", " ", "\u00a0\t", ("full", ""), ("", "full")])
def test_empty_sentences(empty: str | tuple[str, ...]) -> None:
    some = records("a", empty, "b", empty)
    assert [r.line for r in some] == [1, 3]
    assert some.report.dropped == {"empty sentence": [2, 4]}
    assert some.report.lines() == ["2 lines dropped: empty sentence (2, 4)"]
    with pytest.raises(DataError, match=r"^a.tsv, line 2: received an empty sentence; pass empty="):
        list(records("a", empty, empty="error"))
    kept = records(empty, empty, empty="keep")
    assert [r.line for r in kept] == [1, 2]
    assert (kept.report.kept, kept.report.dropped) == (2, {})


@pytest.mark.parametrize(
    ("advice", "end"),
    [
        ("--unusable drop", "take it out; to go on without it: --unusable drop"),
        ("", "split it or take it out"),
    ],
)
def test_messages_name_the_option_of_who_reads(advice: str, end: str) -> None:
    with pytest.raises(DataError) as caught:
        list(records("a b c", max_words=2, advice=advice))
    assert str(caught.value).endswith(end)


@pytest.mark.parametrize("where", [0, 1])
def test_too_many_words(where: int) -> None:
    long = ["few words", "few words"]
    long[where] = "w " * 33_000
    with pytest.raises(DataError) as caught:
        list(records("a", tuple(long)))
    assert str(caught.value) == (
        "a.tsv, line 2: received 33,000 words; expected at most 10,000: split it or take it out; "
        'to go on without it: in Python too_long="drop"'
    )
    dropping = records("a", tuple(long), too_long="drop")
    assert [r.line for r in dropping] == [1]
    assert dropping.report.lines() == ["1 line dropped: too many words (2)"]
    assert len(list(records(tuple(long), max_words=33_000))) == 1


@given(st.lists(st.text("ab  \u00a0", max_size=12), min_size=1), st.integers(1, 5))
def test_the_limit_is_on_words(texts: list[str], limit: int) -> None:
    some = records("a", *texts, max_words=limit, too_long="drop")
    assert [r.texts[0] for r in some] == ["a", *(t for t in texts if 0 < len(t.split()) <= limit)]
    assert some.report.read == 1 + len(texts)


def test_the_limit_counts_tokens_as_the_record_has_them() -> None:
    def read(report: Report) -> Iterator[Record]:
        yield Record(("2\u00a01/2 stars",), "x", 1, tokens=True)

    assert len(list(Records("a.tsv", read, checks=Checks(max_words=2)))) == 1
    assert next(read(Report())).words() == [["2\u00a01/2", "stars"]]


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
    assert report.read == 1310
    assert report.lines() == [
        "1,299 lines dropped: no gold label (1, 2, 3, 4, 5, …)",
        "1 line dropped: empty sentence (7)",
    ]


def test_records_are_values() -> None:
    record = Record(("a b",), "x", 1, extra={"genre": "fiction"})
    same = copy.deepcopy(record)
    assert same == record
    assert len({record, same, Record(("a b",), "y", 1)}) == 2
    assert record.words() == [["a", "b"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_words": 0}, "max_words: received 0; expected at least 1"),
        ({"max_words": 2.5}, "max_words: received 2.5; expected an integer"),
        ({"max_words": True}, "max_words: received True"),
        ({"empty": "ignore"}, "empty: received 'ignore'; expected 'error' or 'drop' or 'keep'"),
        ({"too_long": None}, "too_long: received None"),
        ({"ragged": "skip"}, "ragged: received 'skip'"),
    ],
)
def test_checks_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Checks(**options)  # type: ignore[arg-type]


def test_words_are_counted_as_they_are_cut() -> None:
    with pytest.raises(DataError, match=r"line 2: received 15,000 words"):
        list(records("a", "!" * 15_000))
    assert len(list(records("a" * 15_000))) == 1
