"""Text without labels: a sentence a line, or a word a line."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from treelax.data.text.readers_plain import read_lines_of_text, read_stream, read_words
from treelax.data.text.records import EMPTY, Record
from treelax.errors import DataError


def written(folder: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def row(*cells: str) -> str:
    """A line of CoNLL-U from ``id form upos``."""
    number, form, upos = cells
    return "\t".join([number, form, "_", upos, "_", "_", "_", "_", "_", "_"])


# ------------------------------------------------------------------ a sentence a line


def test_lines_with_their_numbers(tmp_path: Path) -> None:
    file = written(tmp_path, "\ufeffDogs bark.\r\n\n  Cats\tsleep \n")
    records = read_lines_of_text(file)
    assert list(records) == [
        Record(("Dogs bark.",), None, 1),
        Record(("  Cats\tsleep ",), None, 3),
    ]
    assert records.report.dropped == {EMPTY: [2]}
    assert [r.words() for r in read_lines_of_text(file, tokens=True)] == [
        [["Dogs", "bark."]],
        [["Cats", "sleep"]],
    ]


def test_compressed_lines(tmp_path: Path) -> None:
    file = written(tmp_path, gzip.compress(b"Dogs bark.\n"), "file.txt.gz")
    assert [record.texts for record in read_lines_of_text(file)] == [("Dogs bark.",)]
    with zipfile.ZipFile(tmp_path / "file.zip", "w") as archive:
        archive.writestr("a.txt", "Cats sleep.")
    assert [r.texts for r in read_lines_of_text(tmp_path / "file.zip")] == [("Cats sleep.",)]


def test_two_texts_a_line(tmp_path: Path) -> None:
    file = written(tmp_path, "Dogs bark.\tCats  do.\n\t\none \t\n")
    records = read_lines_of_text(file, texts=2, tokens=True)
    assert list(records) == [Record(("Dogs bark.", "Cats do."), None, 1, True)]
    assert records.report.dropped == {EMPTY: [2, 3]}
    for text, count in (("a\n", 1), ("a\tb\tc\n", 3)):
        with pytest.raises(DataError, match=rf"line 1: received {count} texts?; expected 2 with a"):
            list(read_lines_of_text(written(tmp_path, text), texts=2))


def test_a_stream() -> None:
    records = read_stream(io.BytesIO("Hündin\r\n\nbellt".encode()))
    assert [(r.line, r.texts) for r in records] == [(1, ("Hündin",)), (3, ("bellt",))]
    with pytest.raises(DataError, match=r"standard input, line 2: is not UTF-8"):
        list(read_stream(io.BytesIO(b"one\n\xff\n")))
    with pytest.raises(DataError, match="standard input: received nothing; expected at least one"):
        list(read_stream(io.BytesIO(b"")))


def test_bad_files_of_lines(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.txt: does not exist; expected a file of text"):
        read_lines_of_text(tmp_path / "nowhere.txt")
    with pytest.raises(DataError, match=r"file.txt: received nothing; expected at least one line"):
        list(read_lines_of_text(written(tmp_path, "")))
    with pytest.raises(DataError, match="received nothing left: 2 lines dropped: empty sentence"):
        list(read_lines_of_text(written(tmp_path, "\n \n")))
    with pytest.raises(DataError, match=r"file.txt, line 2: is not UTF-8"):
        list(read_lines_of_text(written(tmp_path, b"one\n\xff\n")))


# ------------------------------------------------------------------ a word a line


@pytest.mark.parametrize(
    "text",
    [
        "Dogs\nbark\n\nHi\n",
        "# a comment\nDogs\nbark\n\n\n# another one\nHi",
        "-DOCSTART-\n\nDogs\nbark\n\nHi\n\n",
        "Dogs NOUN\nbark VERB\n\nHi INTJ\n",
        "Dogs\tx\tNOUN\nbark\tx\tVERB\n\nHi\tx\tINTJ\n",
        "\n".join([row("1", "Dogs", "_"), row("2", "bark", "_"), "", row("1", "Hi", "_"), ""]),
        "\n".join([row("1", "Dogs", "NOUN"), row("2", "bark", "VERB"), "", row("1", "Hi", "X")]),
    ],
)
def test_words_with_and_without_tags(tmp_path: Path, text: str) -> None:
    records = list(read_words(written(tmp_path, text)))
    assert [record.words() for record in records] == [[["Dogs", "bark"]], [["Hi"]]]
    lines = text.splitlines()
    assert [lines[record.line - 1].split()[0] for record in records] in (
        ["Dogs", "Hi"],
        ["1", "1"],
    )


def test_words_that_are_signs(tmp_path: Path) -> None:
    [record] = read_words(written(tmp_path, "no\n#\n#1\nNew\u00a0York\n"))
    assert record.texts[0].split(" ") == ["no", "#", "#1", "New\u00a0York"]


def test_ten_columns_that_are_not_conllu(tmp_path: Path) -> None:
    cells = "\t".join(["Dogs", "a", "b", "c", "d", "e", "f", "g", "h", "NOUN"])
    [record] = read_words(written(tmp_path, cells + "\n"))
    assert record.texts == ("Dogs",)


def test_bad_files_of_words(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"file.txt, line 2: received 3 columns; expected 1, a word"
    ):
        list(read_words(written(tmp_path, "One\na second line\n")))
    with pytest.raises(DataError, match=r"file.txt, line 2: received 3 columns; expected 2"):
        list(read_words(written(tmp_path, "a line\nwith a third\n")))
    with pytest.raises(DataError, match=r"file.txt: received nothing; expected at least one sent"):
        list(read_words(written(tmp_path, "\n# nothing\n")))
    with pytest.raises(DataError, match=r"file.txt, line 1: is not UTF-8"):
        list(read_words(written(tmp_path, b"\xff\n")))
    with pytest.raises(DataError, match="is a folder; expected a file with a word a line"):
        read_words(tmp_path)
