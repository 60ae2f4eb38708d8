"""Tables: one's own TSV, CSV and JSON lines."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelax.data.text.delimited import quoted_rows
from treelax.data.text.readers_table import read_table
from treelax.data.text.records import Record
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


# ------------------------------------------------------------------ formats


@pytest.mark.parametrize(
    ("suffix", "compress"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
@pytest.mark.parametrize("name", FORMATS)
def test_formats(
    tmp_path: Path, name: str, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    path = written(tmp_path, compress(FORMATS[name].encode()), f"a.{name}{suffix}")
    records = list(read_table(path))
    assert [(r.texts[0], r.label) for r in records] == EXPECTED
    assert [r.line for r in records] == ([1, 2] if name == "jsonl" else [2, 3])
    assert not any(r.tokens for r in records)
    other = written(tmp_path, compress(FORMATS[name].encode()), f"a.data{suffix}")
    assert list(read_table(other, format=name)) == records  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a.data.*: received a file in '.data'; expected .tsv, "):
        read_table(other)


def test_in_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as out:
        for name, text in FORMATS.items():
            out.writestr(f"in/train.{name}", text)
        out.writestr("in/dev.tsv", TSV)
    assert [r.label for r in read_table(path, format="csv")] == ["yes", "no"]
    records = read_table(path, member="train.tsv")
    assert [r.label for r in records] == ["yes", "no"]
    assert records.source == f"{path}: in/train.tsv"
    with pytest.raises(DataError, match=r"holds 2 files that fit \(in/train.tsv, in/dev.tsv\)"):
        read_table(path, format="tsv")


def test_pairs_and_extra_columns(tmp_path: Path) -> None:
    path = written(tmp_path, "b\ta\tkind\tgenre\nsecond\tfirst\tx\tfiction\n")
    (record,) = read_table(path, ("a", "b"), "kind", extra=["genre"])
    assert record == Record(("first", "second"), "x", 2, extra={"genre": "fiction"})
    path = written(tmp_path, '{"a": "1", "b": "2", "n": 3, "c": null}', "a.jsonl")
    (record,) = read_table(path, ("a", "b"), "n", extra=["c", "n"])
    assert record == Record(("1", "2"), "3", 1, extra={"c": "", "n": "3"})


def test_without_labels(tmp_path: Path) -> None:
    assert [r.label for r in read_table(written(tmp_path, TSV), label=None)] == [None, None]
    jsonl = written(tmp_path, JSONL, "a.jsonl")
    assert [r.label for r in read_table(jsonl, label=None)] == [None, None]


def test_tokens(tmp_path: Path) -> None:
    path = written(tmp_path, "sentence\tlabel\n It  works -LRB- . \tx\n")
    (record,) = read_table(path, tokens=True)
    assert record == Record(("It works -LRB- .",), "x", 2, tokens=True)


@pytest.mark.parametrize(
    ("value", "label"), [("yes", "yes"), (1, "1"), (True, "true"), (0.5, "0.5"), (" a b ", "a b")]
)
def test_labels_in_json(tmp_path: Path, value: object, label: str) -> None:
    path = written(tmp_path, json.dumps({"sentence": "x", "label": value}), "a.jsonl")
    assert [r.label for r in read_table(path)] == [label]


def test_lines_without_a_label_or_a_sentence(tmp_path: Path) -> None:
    tsv = written(tmp_path, "sentence\tlabel\na\tx\nb\t \n\n\tx\nc\ty")
    records = read_table(tsv)
    assert [r.line for r in records] == [2, 6]
    assert records.report.dropped == {"no label": [3], "empty sentence": [4, 5]}
    with pytest.raises(DataError, match=r"a.tsv, line 4: received an empty sentence"):
        list(read_table(tsv, empty="error"))
    rows = [{"sentence": "a", "label": "x"}, {"sentence": "b", "label": None}]
    rows += [{"sentence": "b", "label": ""}, {"sentence": None, "label": "x"}]
    jsonl = written(tmp_path, "\n".join([*map(json.dumps, rows), " ", ""]), "a.jsonl")
    records = read_table(jsonl)
    assert [r.line for r in records] == [1]
    assert records.report.dropped == {"no label": [2, 3], "empty sentence": [4, 5]}


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("name", FORMATS)
def test_a_missing_column(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, FORMATS[name], f"a.{name}")
    with pytest.raises(DataError) as caught:
        list(read_table(path, label="lable"))
    assert str(caught.value) == (
        f"{path}, line 1: no column 'lable'; did you mean 'label'? It has: id, sentence, label"
    )
    with pytest.raises(DataError, match=r"no column 'premise'; it has: id, sentence, label$"):
        list(read_table(path, ("premise", "hypothesis")))


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: received several columns 'label'; expected one"):
        list(read_table(written(tmp_path, "sentence\tlabel\tlabel\na\tb\tc\n")))


def test_messages_stay_short(tmp_path: Path) -> None:
    path = written(tmp_path, "\t".join("x" * 1000 for _ in range(1000)))
    with pytest.raises(DataError, match="no column 'sentence'") as caught:
        list(read_table(path))
    assert len(str(caught.value)) < 2500


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [("tsv", "a\tb\tc\n", 3), ("tsv", "a\n", 1), ("csv", "a,b,c\n", 3), ("csv", '"a"\n', 1)],
)
def test_ragged_rows(tmp_path: Path, name: str, text: str, count: int) -> None:
    header = "sentence\tlabel\na\tx\n" if name == "tsv" else "sentence,label\na,x\n"
    path = written(tmp_path, header + text, f"a.{name}")
    with pytest.raises(
        DataError, match=rf"a.{name}, line 3: received {count} columns?; expected 2"
    ):
        list(read_table(path))
    records = read_table(path, ragged="drop")
    assert [r.line for r in records] == [2]
    assert records.report.dropped == {"wrong number of columns": [3]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2, column 2: is no JSON"),
        ("7", "line 2: received 7; expected an object in {}"),
        ('{"sentence": 7, "label": "x"}', "line 2: received 7 as 'sentence'; expected text"),
        ('{"sentence": "a", "label": ["x"]}', r"line 2: received \['x'\] as 'label'; expected te"),
        ('{"sentence": "a"}', "line 2: no column 'label'; it has: sentence"),
    ],
)
def test_errors_in_json_lines(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, JSONL.splitlines()[0] + "\n" + line, "a.jsonl")
    with pytest.raises(DataError, match=rf"a.jsonl, {message}"):
        list(read_table(path))


@pytest.mark.parametrize("name", FORMATS)
def test_other_errors(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, "", f"a.{name}")
    with pytest.raises(DataError, match=rf"a.{name}: received nothing; expected at least one rec"):
        list(read_table(path))
    path = written(tmp_path, FORMATS[name].encode() + b"na\xefve", f"a.{name}")
    with pytest.raises(DataError, match=rf"a.{name}, line [34]: is not UTF-8"):
        list(read_table(path))
    long = FORMATS[name].replace("works .", "w " * 33_000)
    path = written(tmp_path, long, f"a.{name}")
    with pytest.raises(
        DataError, match=r"line [12]: received 33,001 words; expected at most 10,00"
    ):
        list(read_table(path))
    assert len(list(read_table(path, too_long="drop"))) == 1
    assert len(list(read_table(path, max_words=40_000))) == 2


@pytest.mark.parametrize("text", [(), ("a", "b", "c")])
def test_one_text_or_two(tmp_path: Path, text: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"text: received .*; expected the name of one column"):
        read_table(written(tmp_path, TSV), text)


def test_formats_that_are_not_known(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"format is 'xml'; expected one of 'tsv', 'csv', 'jsonl'"):
        read_table(written(tmp_path, TSV), format="xml")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"nowhere.tsv: does not exist; expected a table"):
        read_table(tmp_path / "nowhere.tsv")


# ------------------------------------------------------------------ quotes


def test_quotes_in_tsv_are_literal_unless_asked(tmp_path: Path) -> None:
    path = written(tmp_path, 'sentence\tlabel\n"a ""b"""\tx\n')
    assert [r.texts[0] for r in read_table(path)] == ['"a ""b"""']
    assert [r.texts[0] for r in read_table(path, quoted=True)] == ['a "b"']
    path = written(tmp_path, 'sentence,label\n"a,x\n', "a.csv")
    assert [r.texts[0] for r in read_table(path, quoted=False)] == ['"a']


def test_a_cell_over_several_lines(tmp_path: Path) -> None:
    text = 'sentence,label\n"one\r\n\r\ntwo",x\nthree,y\n'
    records = list(read_table(written(tmp_path, text, "a.csv")))
    assert [(r.texts[0], r.line) for r in records] == [("one\n\ntwo", 2), ("three", 5)]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('a,x\n"b,x\nc,x\n', "lines 3 to 4"),
        ('"b" c,x\n', "line 2"),
        ('"unclosed,x\nb,y\n"c, d",x\n', "lines 2 to 4"),
    ],
)
def test_broken_quotes(tmp_path: Path, text: str, where: str) -> None:
    path = written(tmp_path, f"sentence,label\n{text}", "a.csv")
    with pytest.raises(DataError, match=rf"a.csv, {where}: not a valid row .*; expected cells sep"):
        list(read_table(path))


def test_long_cells_are_read_in_quotes_too(tmp_path: Path) -> None:
    path = written(tmp_path, f'sentence,label\n"{"x" * 200_000}",y\n', "a.csv")
    assert [len(r.texts[0]) for r in read_table(path)] == [200_000]


cells = st.lists(st.text('ab",; \t\n'), min_size=1, max_size=4)


@given(st.lists(cells, min_size=1), st.sampled_from(",;\t"))
def test_what_the_csv_module_writes_is_read(rows: list[list[str]], separator: str) -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(rows)
    lines = enumerate(out.getvalue().removesuffix("\n").split("\n"), 1)
    assert [cells for _, cells in quoted_rows(lines, "here", separator)] == rows


# ------------------------------------------------------------------ lists of words, columns perhaps


def test_lists_of_words_are_tokens(tmp_path: Path) -> None:
    text = '{"sentence": ["It", "is", "n\'t", "New York"], "label": 1}\n'
    text += '{"sentence": "It isn\'t", "label": 0}\n{"sentence": [], "label": 0}\n'
    listed, plain = read_table(written(tmp_path, text, "a.jsonl"))
    assert listed.tokens
    assert listed.words() == [["It", "is", "n't", "New\u00a0York"]]
    assert not plain.tokens


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ('["a"]', '"b"', "received 'b' as 'second', and the other text is a list; expected two"),
        ('["a", ""]', '["b"]', "received '' as a word of 'first'; expected text"),
        ('["a", 3]', '["b"]', "received 3 as a word of 'first'; expected text"),
    ],
)
def test_lists_that_are_none_of_words(tmp_path: Path, one: str, other: str, message: str) -> None:
    path = written(tmp_path, f'{{"first": {one}, "second": {other}}}\n', "a.jsonl")
    with pytest.raises(DataError) as caught:
        list(read_table(path, ("first", "second"), None))
    assert str(caught.value).startswith(f"{path}, line 1: {message}")


@pytest.mark.parametrize("name", ["tsv", "jsonl"])
def test_a_column_that_may_be_missing(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, FORMATS[name], f"a.{name}")
    records = list(read_table(path, label=None, optional=["label", "genre"]))
    assert [record.extra for record in records] == [{"label": "yes"}, {"label": "no"}]
    assert [record.label for record in records] == [None, None]


def test_a_number_that_is_none_is_no_label(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"sentence": "a", "label": NaN}\n{"sentence": "b", "label": 1.0}\n')
    records = read_table(path)
    assert [r.label for r in records] == ["1.0"]
    assert records.report.dropped == {"no label": [1]}
