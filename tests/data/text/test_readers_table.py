"""Tables and lines of text: one's own TSV, CSV, JSON lines and plain files."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest

from treelax.apps.data.text.readers_table import read_lines_of_text, read_table, write_table
from treelax.apps.data.text.records import EMPTY, Record
from treelax.errors import DataError, InputError

ROWS = [("1", "It works .", "yes"), ("2", 'Say "no" , please', "no")]
TSV = "id\tsentence\tlabel\n" + "".join("\t".join(row) + "\n" for row in ROWS)
CSV = 'id,sentence,label\n1,It works .,yes\n2,"Say ""no"" , please",no\n'
JSONL = "".join(
    json.dumps(dict(zip(("id", "sentence", "label"), row, strict=True))) + "\n" for row in ROWS
)
FORMATS = {"tsv": TSV, "csv": CSV, "jsonl": JSONL}
EXPECTED = [("It works .", "yes"), ('Say "no" , please', "no")]


def written(folder: Path, text: str | bytes, name: str = "a.tsv") -> Path:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / name


@pytest.mark.parametrize("name", FORMATS)
def test_formats(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, gzip.compress(FORMATS[name].encode()), f"a.{name}.gz")
    records = list(read_table(path))
    assert [(r.texts[0], r.label) for r in records] == EXPECTED
    assert [r.line for r in records] == ([1, 2] if name == "jsonl" else [2, 3])
    assert not any(r.tokens for r in records)
    other = written(tmp_path, FORMATS[name], "a.data")
    assert list(read_table(other, format=name)) == records  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a.data.*: received a file in '.data'; expected .tsv, "):
        read_table(other)


def test_pairs_and_extra_columns(tmp_path: Path) -> None:
    path = written(tmp_path, "b\ta\tkind\tgenre\nsecond\tfirst\tx\tfiction\n")
    (record,) = read_table(path, ("a", "b"), "kind", extra=["genre", "missing"])
    assert record == Record(("first", "second"), "x", 2, extra={"genre": "fiction"})
    path = written(tmp_path, '{"a": "1", "b": "2", "n": 3, "c": null}', "a.jsonl")
    (record,) = read_table(path, ("a", "b"), "n", extra=["c", "n", "missing"])
    assert record == Record(("1", "2"), "3", 1, extra={"c": "", "n": "3"})
    assert [r.label for r in read_table(path, "a", None)] == [None]


def test_tokens(tmp_path: Path) -> None:
    path = written(tmp_path, "sentence\tlabel\n It  works -LRB- . \tx\n")
    (record,) = read_table(path, tokens=True)
    assert record == Record(("It works -LRB- .",), "x", 2, tokens=True)
    text = '{"sentence": ["It", "is", "n\'t", "New York"], "label": 1}\n'
    text += '{"sentence": "It isn\'t", "label": 0}\n{"sentence": [], "label": 0}\n'
    listed, plain = read_table(written(tmp_path, text, "a.jsonl"))
    assert listed.words() == [["It", "is", "n't", "New\u00a0York"]]
    assert (listed.tokens, plain.tokens) == (True, False)


def test_lines_without_a_label_or_a_sentence(tmp_path: Path) -> None:
    records = read_table(written(tmp_path, "sentence\tlabel\na\tx\nb\t \n\n\tx\nc\ty"))
    assert [r.line for r in records] == [2, 6]
    assert records.report.dropped == {"no label": [3], "empty sentence": [4, 5]}
    labels = [("a", "x"), ("b", None), ("b", ""), (None, "x"), ("b", float("nan"))]
    rows = [json.dumps({"sentence": text, "label": label}) for text, label in labels]
    records = read_table(written(tmp_path, "\n".join([*rows, " ", ""]), "a.jsonl"))
    assert [r.line for r in records] == [1]
    assert records.report.dropped == {"no label": [2, 3, 5], "empty sentence": [4, 6]}


def test_ragged_rows_may_be_dropped(tmp_path: Path) -> None:
    records = read_table(written(tmp_path, TSV + "a\n"), unusable="drop")
    assert [r.line for r in records] == [2, 3]
    assert records.report.dropped == {"wrong number of columns": [4]}


def test_what_is_asked_is_checked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"text: received .*; expected the name of one column"):
        read_table(written(tmp_path, TSV), ("a", "b", "c"))
    with pytest.raises(InputError, match=r"format is 'xml'; expected one of 'tsv', 'csv', 'jsonl'"):
        read_table(written(tmp_path, TSV), format="xml")  # type: ignore[arg-type]


def test_quotes_in_tsv_are_literal_unless_asked(tmp_path: Path) -> None:
    path = written(tmp_path, 'sentence\tlabel\n"a ""b"""\tx\n')
    assert [r.texts[0] for r in read_table(path)] == ['"a ""b"""']
    assert [r.texts[0] for r in read_table(path, quoted=True)] == ['a "b"']
    path = written(tmp_path, 'sentence,label\n"a,x\n', "a.csv")
    assert [r.texts[0] for r in read_table(path, quoted=False)] == ['"a']


def test_cells_over_several_lines_and_long_ones(tmp_path: Path) -> None:
    text = f'sentence,label\n"one\r\n\r\ntwo",x\n"{"x" * 200_000}",y\n'
    records = list(read_table(written(tmp_path, text, "a.csv")))
    assert [(r.texts[0][:10], r.line) for r in records] == [("one\n\ntwo", 2), ("x" * 10, 5)]


def test_what_cannot_be_written(tmp_path: Path) -> None:
    good, bad = Record(("a", "b"), None, 1), Record(("a", "b\n"), "x", 2)
    with pytest.raises(DataError, match=r"a.tsv, record 2: received .*; expected text without ta"):
        write_table(tmp_path / "a.tsv", [good, bad], ("premise", "hypothesis"))
    assert list(tmp_path.iterdir()) == []
    write_table(tmp_path / "a.tsv", [good], ("premise", "hypothesis"))
    assert (tmp_path / "a.tsv").read_text() == "label\tpremise\thypothesis\n-\ta\tb\n"


def test_lines_with_their_numbers(tmp_path: Path) -> None:
    file = written(tmp_path, "\ufeffDogs bark.\r\n\n  Cats\tsleep \n", "a.txt")
    records = read_lines_of_text(file)
    assert list(records) == [
        Record(("Dogs bark.",), None, 1),
        Record(("  Cats\tsleep ",), None, 3),
    ]
    assert records.report.dropped == {EMPTY: [2]}
    tokens = [r.words() for r in read_lines_of_text(file, tokens=True)]
    assert tokens == [[["Dogs", "bark."]], [["Cats", "sleep"]]]


def test_two_texts_a_line(tmp_path: Path) -> None:
    file = written(tmp_path, "Dogs bark.\tCats  do.\n\t\none \t\n", "a.txt")
    records = read_lines_of_text(file, texts=2, tokens=True)
    assert list(records) == [Record(("Dogs bark.", "Cats do."), None, 1, True)]
    assert records.report.dropped == {EMPTY: [2, 3]}
    with pytest.raises(DataError, match=r"line 1: received 3 columns; expected 2 texts with a tab"):
        list(read_lines_of_text(written(tmp_path, "a\tb\tc\n"), texts=2))


def test_a_stream() -> None:
    records = read_lines_of_text(io.BytesIO("Hündin\r\n\nbellt".encode()))
    assert [(r.line, r.texts) for r in records] == [(1, ("Hündin",)), (3, ("bellt",))]
    with pytest.raises(DataError, match=r"standard input, line 2: is not UTF-8"):
        list(read_lines_of_text(io.BytesIO(b"one\n\xff\n")))
    with pytest.raises(DataError, match="standard input: received nothing; expected at least one"):
        list(read_lines_of_text(io.BytesIO(b"")))
