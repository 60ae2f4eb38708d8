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
        ("a.csv", "review;stars", "it has: review;stars; the columns look separated by semicolons"),
        ("a.csv", "review\tid", "it has: review\tid; the columns look separated by tabs"),
        ("a.tsv", "review,id", "it has: 'review,id'; the columns look separated by commas"),
        ("a.tsv", "reviews, raw\tid", "did you mean 'reviews, raw'? It has: 'reviews, raw', id"),
        ("a.csv", "what; when,id", "it has: what; when, id"),
    ],
)
def test_columns_separated_by_something_else(
    tmp_path: Path, name: str, head: str, told: str
) -> None:
    path = tmp_path / name
    path.write_text(f"{head}\nfine,yes\n")
    with pytest.raises(DataError) as caught:
        list(read_table(path, text="review", label=None))
    assert str(caught.value).startswith(f"{path}, line 1: no column 'review'; {told}")


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
