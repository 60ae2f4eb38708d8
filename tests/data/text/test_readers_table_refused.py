"""What is said of a file that is no table, or one of another kind than its name says."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from treelax.data.text.readers_table import read_table
from treelax.errors import DataError, InputError


@pytest.mark.parametrize(
    ("name", "head", "told"),
    [
        ("a.csv", "text;label", "semicolons between columns; expected commas, or tabs in .tsv"),
        ("a.csv", '"text";"label"', "semicolons between columns"),
        ("a.csv", "review;verdict", "semicolons between columns"),
        ("a.csv", "id;text, as it is;label", "semicolons between columns"),
        ("a.tsv", "text;label", "semicolons between columns"),
        ("a.tsv", "text;when, why;label", "semicolons between columns"),
        ("a.tsv", "text, label", "commas between columns"),
        ("a.csv", "what; when\tlabel", "tabs between columns"),
        ("a.csv", "text\tlabel", "tabs between columns; expected commas: rename it to .tsv"),
        ("a.tsv", "text,label", "commas between columns; expected tabs: rename it to .csv"),
        ("a.csv", "sep=,\ntext,label", "a note for spreadsheets; expected names of the columns"),
        ("a.csv", "sep=;\ntext;label", "a note for spreadsheets"),
        ("a.tsv", "sep=,\ntext,label", "a note for spreadsheets"),
        ("a.csv", "\n\ntext,label", "line 1: no column 'label': the line is blank; expected names"),
        ("a.tsv", " \ntext\tlabel", "the line is blank"),
    ],
)
def test_columns_that_are_cut_elsewhere(tmp_path: Path, name: str, head: str, told: str) -> None:
    path = tmp_path / name
    path.write_text(f"{head}\nfine,yes\n")
    with pytest.raises(DataError) as caught:
        list(read_table(path, text="label", label=None))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "head", "told"),
    [
        ("a.csv", "review;stars", "it has: review;stars: that looks like semicolons between"),
        ("a.csv", "review\tid", "it has: review\tid: that looks like tabs between columns"),
        ("a.tsv", "review,stars", "it has: 'review,stars': that looks like commas between columns"),
        ("a.tsv", "sep=,review", "it has: 'sep=,review': that is a note for spreadsheets"),
    ],
)
def test_no_cell_of_such_a_line_is_offered(tmp_path: Path, name: str, head: str, told: str) -> None:
    path = tmp_path / name
    path.write_text(f"{head}\nfine,yes\n")
    with pytest.raises(DataError) as caught:
        list(read_table(path, text="review", label=None))
    assert str(caught.value).startswith(f"{path}, line 1: no column 'review'; {told}")


@pytest.mark.parametrize(
    ("name", "head", "text", "told"),
    [
        ("a.tsv", "what, when\tlabel", "text", "it has: 'what, when', label"),
        ("a.tsv", "what, when\tlabel", "what", "it has: 'what, when', label"),
        (
            "a.tsv",
            "what,when\tlabel",
            "when",
            "did you mean 'what,when'? It has: 'what,when', label",
        ),
        ("a.tsv", "text, raw\tid", "text", "did you mean 'text, raw'? It has: 'text, raw', id"),
        ("a.tsv", "what; when\tlabel", "what", "it has: what; when, label"),
        ("a.tsv", "what, when", "text", "it has: 'what, when'"),
        (
            "a.csv",
            '"what,when",label',
            "what",
            "did you mean 'what,when'? It has: 'what,when', label",
        ),
        ("a.csv", "what; when,label", "what", "it has: what; when, label"),
    ],
)
def test_names_with_other_marks_are_names(
    tmp_path: Path, name: str, head: str, text: str, told: str
) -> None:
    path = tmp_path / name
    path.write_text(f"{head}\nfine\tyes\n")
    with pytest.raises(DataError) as caught:
        list(read_table(path, text=text, label=None))
    assert str(caught.value) == f"{path}, line 1: no column '{text}'; {told}"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.xlsx", "received a file in '.xlsx'; expected .tsv, .*: export it as CSV$"),
        ("a.parquet", "received a file in '.parquet'; expected .tsv, .*: export it as CSV$"),
        ("a.txt", "received a file in '.txt'; expected .tsv, .*: rename it, or"),
        ("a.gz", "received a name without a suffix; expected .tsv, .*: rename it, or"),
        ("a", "received a name without a suffix"),
    ],
)
def test_names_that_are_none_of_tables(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b""))
    with pytest.raises(InputError, match=told):
        read_table(tmp_path / name)
