"""ListOps files: read in all their formats, written whole or not at all."""

from __future__ import annotations

import gzip
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from listops_expressions import FLAT, NESTED, expressions

from treelax.data.listops import Expression, read_listops, write_listops
from treelax.errors import DataError, InputError

SAMPLE = Path(__file__).parent / "listops_sample.tsv"  # twelve lines of the original test set


def written(folder: Path, text: str, name: str = "file.tsv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_original_files_are_read_and_written_back(tmp_path: Path) -> None:
    sample = read_listops(SAMPLE)
    assert len(sample) == 12
    assert str(sample[1]) == "[MAX 1 5 [MIN 9 2 5 ] ]"
    assert [e.value for e in sample] == [0, 5, 1, 3, 6, 8, 8, 1, 0, 5, 9, 7]
    path = tmp_path / "copy.tsv"
    assert write_listops(path, sample) == 12
    assert path.read_bytes() == SAMPLE.read_bytes()


def test_simpler_formats(tmp_path: Path) -> None:
    text = "9\t[MAX 2 9 ]\r\n\n[SM 1 [MIN 4 7 ] 0 ]\n 9 \t ( ( ( [MAX 2 ) 9 ) ] )\n"
    found = read_listops(written(tmp_path, text))
    assert found == [FLAT, NESTED, FLAT]
    assert [e.value for e in found] == [9, None, 9]


@pytest.mark.parametrize(
    "text", ["9\t[MAX\t2 9 ]", "9\t( ( (\t[MAX\t2 ) 9\t) ] )", "9 \t\t[MAX 2\t9 ]\t"]
)
def test_tabs_in_an_expression_are_spaces(tmp_path: Path, text: str) -> None:
    assert [(e, e.value) for e in read_listops(written(tmp_path, text))] == [(FLAT, 9)]
    alone = text.partition("\t")[2].strip()
    assert [(e, e.value) for e in read_listops(written(tmp_path, alone))] == [(FLAT, None)]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_compressed_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / ("file.tsv" + suffix)
    write_listops(path, [FLAT, NESTED])
    assert path.read_bytes()[:1] != b"9"
    assert read_listops(str(path)) == [FLAT, NESTED]


def test_a_file_in_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "listops.zip", "w") as archive:
        archive.write(SAMPLE, "listops/test.tsv")
        archive.writestr("listops/README.md", "# ListOps")
    assert read_listops(tmp_path / "listops.zip") == read_listops(SAMPLE)
    with zipfile.ZipFile(tmp_path / "broken.zip", "w") as archive:
        archive.writestr("a.tsv", "9\t[MAX 2 9\n")
    with pytest.raises(DataError, match=r"broken\.zip: a\.tsv, line 1, token 4: "):
        read_listops(tmp_path / "broken.zip")
    with pytest.raises(DataError, match=r"new\.zip: received the name of an archive to write"):
        write_listops(tmp_path / "new.zip", [FLAT])
    assert not (tmp_path / "new.zip").exists()


def test_lengths(tmp_path: Path) -> None:
    path = written(tmp_path, f"{FLAT.bracketed()}\n{NESTED.bracketed()}\n")
    assert read_listops(path, max_length=4) == [FLAT]
    assert read_listops(path, min_length=5, max_length=8) == [NESTED]
    assert read_listops(path, min_length=4, max_length=8) == [FLAT, NESTED]
    with pytest.raises(
        DataError, match=r"its 2 expressions have 4 to 8 tokens; expected some of 5 to 7 tokens"
    ):
        read_listops(path, min_length=5, max_length=7)
    with pytest.raises(DataError, match="expected some of 9 to any tokens"):
        read_listops(path, min_length=9)


@pytest.mark.parametrize(("low", "high"), [(0, None), (5, 4), (1, 0)])
def test_lengths_that_leave_none(tmp_path: Path, low: int, high: int | None) -> None:
    path = written(tmp_path, str(FLAT))
    with pytest.raises(InputError, match=f"received {low} and {high}; expected 1 or more"):
        read_listops(path, min_length=low, max_length=high)


def test_lone_digits_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, f"7\t7\n{FLAT}\n3\n")
    assert read_listops(path) == [FLAT]
    assert [str(e) for e in read_listops(path, keep_digits=True)] == ["7", str(FLAT), "3"]
    with pytest.raises(DataError, match="its 1 expressions have 1 to 1 tokens"):
        read_listops(written(tmp_path, "7\t7\n"))
    with pytest.raises(DataError, match="line 1: received the value 8; expected 7"):
        read_listops(written(tmp_path, f"8\t7\n{FLAT}\n"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("8\t[MAX 2 9 ]", "line 2: received the value 8; expected 9, which the expression"),
        ("x\t[MAX 2 9 ]", "line 2: received the value 'x'; expected a digit, a tab and"),
        ("19\t[MAX 2 9 ]", "line 2: received the value '19'"),
        ("\t[MAX 2 9 ]", "line 2: received the value ''"),
        ("9\t9\t[MAX 2 9 ]", r"line 2, token 2: received \[MAX after the end"),
        ("8\t[MAX\t2 9 ]", "line 2: received the value 8; expected 9, which the expression"),
        ("9\t[MAX\t2\ty ]", "line 2, token 3: received 'y'"),
        ("[MAX\t2 9", "line 2, token 4: received the end"),
        ("9 [MAX 2 9 ]", r"line 2, token 2: received \[MAX after the end"),
        ("9\t", "line 2: received ''; expected an expression"),
        ("9\t[MAX 2 y ]", "line 2, token 3: received 'y'"),
        ("9\t( ( ( [MAX 2 ) 9 ) ]", "line 2, token 10: received the end"),
    ],
)
def test_lines_that_are_wrong(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_listops(written(tmp_path, f"9\t[MAX 2 9 ]\n{line}\n[MIN 3 4 ]\n"))
    assert "file.tsv, line 2" in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_empty_files(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"file.tsv: is empty; expected lines of value, tab"):
        read_listops(written(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: does not exist; expected a ListOps file"):
        read_listops(tmp_path / "nowhere")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(SAMPLE.read_bytes())[:-9])
    with pytest.raises(DataError, match=r"cut.gz, after line \d+: cannot be read"):
        read_listops(tmp_path / "cut.gz")
    (tmp_path / "latin").write_bytes(b"9\t[MAX 2 9 ]\n\xe9\n")
    with pytest.raises(DataError, match="latin, line 2: is not UTF-8"):
        read_listops(tmp_path / "latin")


def test_writing_is_all_or_nothing(tmp_path: Path) -> None:
    def interrupted() -> Iterator[Expression]:
        yield FLAT
        raise KeyboardInterrupt

    path = written(tmp_path, "older")
    with pytest.raises(KeyboardInterrupt):
        write_listops(path, interrupted())
    with pytest.raises(DataError, match="expression 2: received the value 3; expected 9"):
        write_listops(path, [FLAT, Expression(FLAT.tokens, 3)])
    assert path.read_text() == "older"
    assert os.listdir(tmp_path) == ["file.tsv"]


@given(st.lists(expressions(), min_size=1, max_size=4))
def test_whatever_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, batch: list[Expression]
) -> None:
    path = tmp_path_factory.mktemp("round-trip") / "file.tsv"
    assert write_listops(path, batch) == len(batch)
    found = read_listops(path, keep_digits=True)
    assert found == batch
    assert [e.value for e in found] == [e.evaluate() for e in batch]
