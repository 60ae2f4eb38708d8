"""SNLI and MultiNLI: official files, plain tables, and what is left out."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from treelax.data.text.readers_nli import read_multinli, read_snli
from treelax.data.text.records import Record
from treelax.data.text.writer import write_table
from treelax.errors import DataError, InputError

SAMPLE = Path(__file__).parent / "snli_sample.jsonl"
OBJECTS = [json.loads(line) for line in SAMPLE.read_text().splitlines()]
FIELDS = [
    "gold_label",
    "sentence1_binary_parse",
    "sentence2_binary_parse",
    "sentence1_parse",
    "sentence2_parse",
    "sentence1",
    "sentence2",
    "captionID",
    "pairID",
]
ANNOTATORS = [f"label{i}" for i in range(1, 6)]
CHURCH = (
    "This church choir sings to the masses as they sing joyous songs from the book at a church .",
    "The church has cracks in the ceiling .",
)
LABELS = ["neutral", "entailment", "contradiction", "entailment"]
LINES = [1, 3, 4, 5]


def pair(label: str = "neutral", **fields: Any) -> dict[str, Any]:
    return {
        "gold_label": label,
        "sentence1_binary_parse": "( ( He ( -LRB- runs ) ) . )",
        "sentence2_binary_parse": "( He walks )",
        "sentence1": "He (runs.",
        "sentence2": "He walks",
        "genre": "fiction",
        **fields,
    }


def official_table(path: Path, objects: list[dict[str, Any]], annotators: int = 5) -> Path:
    names = [*FIELDS, *ANNOTATORS]
    rows = [[*(o[name] for name in FIELDS), *o["annotator_labels"][:annotators]] for o in objects]
    path.write_text("\n".join("\t".join(row) for row in [names, *rows]) + "\n")
    return path


def as_json(path: Path, *objects: object) -> Path:
    path.write_text("".join(json.dumps(o) + "\n" for o in objects))
    return path


def as_text(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


# ------------------------------------------------------------------ official files


def test_official_json_lines() -> None:
    records = read_snli(SAMPLE)
    found = list(records)
    assert found[0] == Record(CHURCH, "neutral", 1, tokens=True)
    assert [r.label for r in found] == LABELS
    assert [r.line for r in found] == LINES
    assert records.report.lines() == ["1 line dropped: no gold label (2)"]
    assert records.source == str(SAMPLE)


@pytest.mark.parametrize("annotators", [5, 1, 0])
def test_official_table(tmp_path: Path, annotators: int) -> None:
    path = official_table(tmp_path / "snli_1.0_dev.txt", OBJECTS, annotators)
    records = read_snli(path)
    expected = [Record(r.texts, r.label, r.line + 1, r.tokens, r.extra) for r in read_snli(SAMPLE)]
    assert list(records) == expected
    assert records.report.dropped == {"no gold label": [3]}


def test_sentences_as_they_were_written(tmp_path: Path) -> None:
    raw = list(read_snli(SAMPLE, raw=True))
    assert raw[0].texts[1] == "The church has cracks in the ceiling."
    assert not raw[0].tokens
    table = official_table(tmp_path / "a.txt", OBJECTS)
    assert [r.texts for r in read_snli(table, raw=True)] == [r.texts for r in raw]


def test_official_archive_and_folder(tmp_path: Path) -> None:
    dev = official_table(tmp_path / "dev.tmp", OBJECTS[:1]).read_text()
    archive = tmp_path / "snli_1.0.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("snli_1.0/", "")
        out.writestr("snli_1.0/snli_1.0_dev.txt", "not read: the other format is there")
        out.writestr("snli_1.0/snli_1.0_dev.jsonl", SAMPLE.read_text())
        out.writestr("__MACOSX/snli_1.0/._snli_1.0_dev.jsonl", b"\xff")
        out.writestr("snli_1.0/snli_1.0_test.txt", dev)
        out.writestr("snli_1.0/Icon\r", "")
    assert [r.label for r in read_snli(archive, "dev")] == LABELS
    assert [r.label for r in read_snli(archive, "test")] == LABELS[:1]
    assert read_snli(archive, "dev").source == f"{archive}: snli_1.0/snli_1.0_dev.jsonl"
    with pytest.raises(DataError, match=r"expected snli_1.0_train.jsonl for train"):
        read_snli(archive, "train")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path / "unpacked", ["snli_1.0/snli_1.0_dev.jsonl"])
    for folder in (tmp_path, tmp_path / "unpacked", tmp_path / "unpacked" / "snli_1.0"):
        assert [r.label for r in read_snli(folder, "dev")] == LABELS


def test_multinli(tmp_path: Path) -> None:
    folder = tmp_path / "multinli_1.0"
    folder.mkdir()
    as_json(folder / "multinli_1.0_train.jsonl", pair(), pair("-"), pair("entailment", genre="-"))
    as_json(folder / "multinli_1.0_dev_matched.jsonl", pair("entailment"))
    as_json(folder / "multinli_1.0_dev_mismatched.jsonl", pair("contradiction"))
    records = read_multinli(tmp_path, "train")
    first, last = records
    assert first.texts == ("He ( runs .", "He walks")
    assert first.extra == {"genre": "fiction"}
    assert last.extra == {}
    assert records.report.dropped == {"no gold label": [2]}
    assert [r.label for r in read_multinli(folder, "dev_matched")] == ["entailment"]
    assert [r.label for r in read_multinli(folder, "dev_mismatched")] == ["contradiction"]
    with pytest.raises(InputError, match=r"split is 'dev'; expected one of .*'dev_matched'"):
        read_multinli(folder, "dev")


@pytest.mark.parametrize("label", ["hidden", "-", ""])
def test_test_sets_have_no_labels(tmp_path: Path, label: str) -> None:
    as_json(tmp_path / "multinli_0.9_test_matched_unlabeled.jsonl", pair(label))
    assert [r.label for r in read_multinli(tmp_path, "test_matched")] == [None]
    file = tmp_path / "multinli_0.9_test_matched_unlabeled.jsonl"
    assert [r.label for r in read_multinli(file)] == [None]
    without = pair()
    del without["gold_label"]
    as_json(file, without)
    assert [r.label for r in read_multinli(file)] == [None]


def test_the_name_of_a_folder_says_nothing_of_labels(tmp_path: Path) -> None:
    folder, lines = tmp_path / "x_unlabel", [f"{label}\ta .\tb .\tx" for label in ("neutral", "-")]
    folder.mkdir()
    records = read_multinli(as_text(folder / "dev_matched.tsv", *lines))
    assert [r.label for r in records] == ["neutral"]
    assert records.report.dropped == {"no gold label": [2]}
    with zipfile.ZipFile(folder / "all_unlabelled.zip", "w") as archive:
        archive.write(folder / "dev_matched.tsv", "x_unlabelled/dev_matched.tsv")
    packed = read_multinli(folder / "all_unlabelled.zip", "dev_matched")
    assert [r.label for r in packed] == ["neutral"]


# ------------------------------------------------------------------ plain tables


def test_plain_table(tmp_path: Path) -> None:
    path = as_text(
        tmp_path / "train_29k.tsv",
        "neutral\tA -LRB- small -RRB-  dog .\tA dog .",
        "-\tA dog .\tA cat .",
        "",
        "entailment\tA \\/ dog .\tA dog .\ttravel",
        "contradiction\t\tA dog .\t-",
    )
    records = read_multinli(tmp_path, "train")
    assert records.source == str(path)
    assert list(records) == [
        Record(("A ( small ) dog .", "A dog ."), "neutral", 1, tokens=True),
        Record(("A / dog .", "A dog ."), "entailment", 4, tokens=True, extra={"genre": "travel"}),
    ]
    assert records.report.dropped == {"no gold label": [2], "empty sentence": [3, 5]}


def test_a_plain_table_with_names(tmp_path: Path) -> None:
    written = [
        Record(("A dog .", "An animal ."), "entailment", 2, True, {"genre": "travel"}),
        Record(("A dog .", "A cat ."), "contradiction", 3, True),
    ]
    path = tmp_path / "dev_matched.tsv.gz"
    assert write_table(path, written, ("premise", "hypothesis"), extra=["genre"]) == 2
    assert list(read_multinli(tmp_path, "dev_matched")) == written


def test_a_plain_table_holds_tokens_only(tmp_path: Path) -> None:
    path = as_text(tmp_path / "a.tsv", "neutral\tA dog .\tA cat .")
    with pytest.raises(DataError, match=r"a.tsv: holds tokens only; .* leave out raw"):
        list(read_snli(path, raw=True))


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("neutral\tA dog .", r"line 2: received 2 columns; expected 3 or 4 \(label, premise"),
        ("neutral\ta\tb\tc\td", "line 2: received 5 columns"),
        ("maybe\ta\tb", "line 2: received the label 'maybe'; expected entailment, neutral, "),
        ("\ta\tb", "line 2: received the label ''"),
    ],
)
def test_errors_in_a_plain_table(tmp_path: Path, text: str, message: str) -> None:
    path = as_text(tmp_path / "a.tsv", "neutral\tA dog .\tA cat .", text)
    with pytest.raises(DataError, match=rf"a.tsv, {message}"):
        list(read_snli(path))


def test_ragged_lines_may_be_left_out(tmp_path: Path) -> None:
    path = as_text(tmp_path / "a.tsv", "neutral\tA dog .\tA cat .", "neutral", "neutral\ta\tb")
    records = read_snli(path, ragged="drop")
    assert [r.line for r in records] == [1, 3]
    assert records.report.lines() == ["1 line dropped: wrong number of columns (2)"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"gold_label": ', "line 2, column 16: is no JSON: Expecting value"),
        ("[1]", r"line 2: received \[1\]; expected an object in {}"),
        ("[" * 100_000, "line 2: is no JSON: "),
        ('{"gold_label": ' + "9" * 5000 + "}", "line 2: is no JSON: "),
        (json.dumps(pair("perhaps")), "line 2: received the label 'perhaps'"),
        (json.dumps(pair(sentence2_binary_parse=None)), "received None as sentence2_binary_parse"),
        (json.dumps({"gold_label": "-"}), "line 2: no column 'sentence1_binary_parse'; it has: "),
        (json.dumps({"sentence1_binary": "a"}), "did you mean 'sentence1_binary'?"),
        (json.dumps({k: v for k, v in pair().items() if k != "gold_label"}), "no column 'gold_lab"),
    ],
)
def test_errors_in_json_lines(tmp_path: Path, line: str, message: str) -> None:
    path = as_text(tmp_path / "a.jsonl", json.dumps(pair()), line)
    with pytest.raises(DataError, match=message) as caught:
        list(read_snli(path))
    assert str(caught.value).startswith(f"{path}, line 2")


def test_errors_in_an_official_table(tmp_path: Path) -> None:
    path = official_table(tmp_path / "a.txt", OBJECTS)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], "\t".join(lines[3].split("\t")[:8])]))
    with pytest.raises(DataError, match=r"a.txt, line 4: received 8 columns; expected 14"):
        list(read_snli(path))
    path.write_text("\n".join([lines[0], lines[1] + "\tmore"]))
    with pytest.raises(DataError, match=r"a.txt, line 2: received 15 columns; expected 14"):
        list(read_snli(path))
    path.write_text(lines[0].replace("sentence1_binary_parse", "sentence_binary_parse"))
    with pytest.raises(DataError, match=r"line 1: no column .*; did you mean 'sentence_binary_par"):
        list(read_snli(path))
    path.write_text(lines[0])
    with pytest.raises(DataError, match=r"a.txt: received nothing; expected at least one pair"):
        list(read_snli(path))


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a.tsv: received nothing; expected at least one pair"):
        list(read_snli(as_text(tmp_path / "a.tsv")))
    with pytest.raises(DataError, match=r"nothing left: 1 line dropped: no gold label \(1\)"):
        list(read_snli(as_text(tmp_path / "a.tsv", "-\ta\tb")))
    (tmp_path / "a.tsv").write_bytes(b"neutral\ta\tb\nneutral\tna\xefve\tb\n")
    with pytest.raises(DataError, match=r"a.tsv, line 2: is not UTF-8"):
        list(read_snli(tmp_path / "a.tsv"))
    with pytest.raises(InputError, match=r"split is 'tset'; .* Did you mean 'test'"):
        read_snli(tmp_path, "tset")
    with pytest.raises(InputError, match="split: received None"):
        read_snli(tmp_path)
    long = as_text(tmp_path / "a.tsv", "neutral\ta\tb", "neutral\ta\t" + "b " * 33_000)
    with pytest.raises(DataError, match=r"a.tsv, line 2: received 33,000 words; expected at most"):
        list(read_snli(long))


# ------------------------------------------------------------------ writing


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Record(("a",), "x", 1), "received 1 text with the label 'x'; expected 2"),
        (Record(("a", "b"), ("X",), 1), r"received 2 texts with the label \('X',\); expected"),
        (Record(("a\tb", "c"), "x", 1), r"received 'a\\tb'; expected text without tabs"),
        (Record(("a", "b\n"), "x", 1), r"received 'b\\n'"),
        (Record(("a", "b"), "x\r", 1), r"received 'x\\r'"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, record: Record, message: str) -> None:
    good = Record(("a", "b"), None, 1)
    with pytest.raises(DataError, match=rf"a.tsv, record 2: {message}"):
        write_table(tmp_path / "a.tsv", [good, record], ("premise", "hypothesis"))
    assert list(tmp_path.iterdir()) == []
    write_table(tmp_path / "a.tsv", [good], ("premise", "hypothesis"))
    assert (tmp_path / "a.tsv").read_text() == "label\tpremise\thypothesis\n-\ta\tb\n"
