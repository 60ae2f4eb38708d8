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


def test_names_with_other_marks_are_names(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("what, when\tlabel\nfine\tyes\n")
    with pytest.raises(DataError) as caught:
        list(read_table(path, text="text"))
    assert str(caught.value).endswith("no column 'text'; it has: what, when, label")


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
