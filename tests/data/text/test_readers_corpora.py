"""SNLI, MultiNLI and SST: official files, plain tables, and what is skipped."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from treelax.apps.data.text.ptb import unescape
from treelax.apps.data.text.readers_corpora import SST_CLASSES, read_multinli, read_snli, read_sst
from treelax.apps.data.text.readers_table import write_table
from treelax.apps.data.text.records import Record
from treelax.errors import DataError, InputError

SAMPLE = Path(__file__).parent / "snli_sample.jsonl"
OBJECTS = [json.loads(line) for line in SAMPLE.read_text().splitlines()]
FIELDS = ["gold_label", "sentence1_binary_parse", "sentence2_binary_parse", "sentence1", "pairID"]
CHURCH = (
    "This church choir sings to the masses as they sing joyous songs from the book at a church .",
    "The church has cracks in the ceiling .",
)
LABELS = ["neutral", "entailment", "contradiction", "entailment"]


def pair(label: str = "neutral", **fields: Any) -> dict[str, Any]:
    return {
        "gold_label": label,
        "sentence1_binary_parse": "( ( He ( -LRB- runs ) ) . )",
        "sentence2_binary_parse": "( He walks )",
        "genre": "fiction",
        **fields,
    }


def official_table(path: Path, annotators: int = 5) -> Path:
    names = [*FIELDS, *(f"label{i}" for i in range(1, 6))]
    rows = [[*(o[name] for name in FIELDS), *o["annotator_labels"][:annotators]] for o in OBJECTS]
    return as_text(path, *("\t".join(row) for row in [names, *rows]))


def as_json(path: Path, *objects: object) -> Path:
    return as_text(path, *map(json.dumps, objects))


def as_text(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_official_json_lines() -> None:
    records = read_snli(SAMPLE)
    pairs = list(records)
    assert pairs[0] == Record(CHURCH, "neutral", 1, tokens=True)
    assert [r.label for r in pairs] == LABELS
    assert [r.line for r in pairs] == [1, 3, 4, 5]
    assert records.report.lines() == ["1 line dropped: no gold label (2)"]
    assert records.source == str(SAMPLE)


@pytest.mark.parametrize("annotators", [5, 0])
def test_official_table(tmp_path: Path, annotators: int) -> None:
    records = read_snli(official_table(tmp_path / "snli_1.0_dev.txt", annotators))
    assert list(records) == [replace(record, line=record.line + 1) for record in read_snli(SAMPLE)]
    assert records.report.dropped == {"no gold label": [3]}


def test_official_archive_and_folder(tmp_path: Path) -> None:
    archive = tmp_path / "snli_1.0.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("snli_1.0/", "")
        out.writestr("snli_1.0/snli_1.0_dev.txt", "not read: the other format is there")
        out.writestr("snli_1.0/snli_1.0_dev.jsonl", SAMPLE.read_text())
        out.writestr("__MACOSX/snli_1.0/._snli_1.0_dev.jsonl", b"\xff")
        out.writestr("snli_1.0/snli_1.0_test.txt", official_table(tmp_path / "tmp").read_text())
    for split in ("dev", "test"):
        assert [r.label for r in read_snli(archive, split)] == LABELS
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
    assert (first.extra, last.extra) == ({"genre": "fiction"}, {})
    assert records.report.dropped == {"no gold label": [2]}
    assert [r.label for r in read_multinli(folder, "dev_matched")] == ["entailment"]
    assert [r.label for r in read_multinli(folder, "dev_mismatched")] == ["contradiction"]


@pytest.mark.parametrize("label", ["hidden", "-", None])
def test_test_sets_have_no_labels(tmp_path: Path, label: str | None) -> None:
    hidden = {k: v for k, v in pair(label or "").items() if k != "gold_label" or label}
    file = as_json(tmp_path / "multinli_0.9_test_matched_unlabeled.jsonl", hidden)
    assert [r.label for r in read_multinli(tmp_path, "test_matched")] == [None]
    assert [r.label for r in read_multinli(file)] == [None]


def test_plain_table(tmp_path: Path) -> None:
    (tmp_path / "x_unlabel").mkdir()  # only the name of the file tells of labels
    path = as_text(
        tmp_path / "x_unlabel" / "train_29k.tsv",
        "neutral\tA -LRB- small -RRB-  dog .\tA dog .",
        "-\tA dog .\tA cat .",
        "",
        "entailment\tA \\/ dog .\tA dog .\ttravel",
        "contradiction\t\tA dog .\t-",
        "neutral",
    )
    records = read_multinli(path.parent, "train", unusable="drop")
    assert records.source == str(path)
    assert list(records) == [
        Record(("A ( small ) dog .", "A dog ."), "neutral", 1, tokens=True),
        Record(("A / dog .", "A dog ."), "entailment", 4, tokens=True, extra={"genre": "travel"}),
    ]
    assert records.report.dropped == {
        "no gold label": [2],
        "empty sentence": [3, 5],
        "wrong number of columns": [6],
    }


def test_other_splits_and_classes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"split is 'tset'; .* Did you mean 'test'"):
        read_snli(tmp_path, "tset")
    with pytest.raises(InputError, match=r"split is 'dev'; expected one of .*'dev_matched'"):
        read_multinli(tmp_path, "dev")
    with pytest.raises(InputError, match=r"classes is 'two'; expected one of 'binary', 'five'"):
        read_sst(tmp_path, "dev", "two")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="split is None"):
        read_snli(tmp_path)


TREES = [
    "(0 (1 (2 A) (1 mess)) (2 .))",
    "(1 (2 Not) (2 (2 much) (2 fun)))",
    "(2 (2 It) (2 (2 is) (2 (2 a) (2 film))))",
    "(3 (3 Good) (2 (2 -LRB-) (2 (3 (2 3\u00a01\\/2) (2 of)) (2 (2 5) (2 -RRB-)))))",
    "(4 Superb)",
]
WORDS = ["A mess .", "Not much fun", "It is a film", "Good ( 3\u00a01/2 of 5 )", "Superb"]


def test_two_classes_and_five(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "trainDevTestTrees_PTB.zip", "w") as out:
        out.writestr("trees/dev.txt", "\n".join([*TREES, "", " "]))
    records = read_sst(tmp_path / "trainDevTestTrees_PTB.zip", "dev")
    assert records.source.endswith("PTB.zip: trees/dev.txt")
    assert [(r.texts, r.label, r.line) for r in records] == [
        ((WORDS[0],), "negative", 1),
        ((WORDS[1],), "negative", 2),
        ((WORDS[3],), "positive", 4),
        ((WORDS[4],), "positive", 5),
    ]
    assert all(r.tokens for r in records)
    assert records.report.dropped == {"neutral": [3], "empty sentence": [6, 7]}
    five = list(read_sst(tmp_path, "dev", classes="five"))
    assert [r.texts[0] for r in five] == WORDS
    assert tuple(r.label for r in five) == SST_CLASSES["five"]


@pytest.mark.parametrize("classes", SST_CLASSES)
def test_a_written_treebank_is_read_again(
    tmp_path: Path, classes: Literal["binary", "five"]
) -> None:
    trees = list(read_sst(as_text(tmp_path / "train.txt", *TREES), classes=classes))
    write_table(tmp_path / "dev.tsv.gz", trees, ("sentence",))
    again = list(read_sst(tmp_path, "dev", classes))
    assert [(r.texts, r.label, r.tokens) for r in again] == [
        (r.texts, r.label, r.tokens) for r in trees
    ]
    if classes == "five":
        two = read_sst(tmp_path, "dev")
        assert [r.label for r in two] == ["negative", "negative", "positive", "positive"]
        assert two.report.dropped == {"neutral": [4]}
    else:
        with pytest.raises(
            DataError, match=r"tsv.gz: received negative and positive only; .* --cl"
        ):
            list(read_sst(tmp_path, "dev", "five"))


def test_escapes() -> None:
    assert unescape("-LRB- -RRB- -LSB- -RSB- -LCB- -RCB- -lrb-") == "( ) [ ] { } ("
    assert unescape(r"and\/or 5\* back\slash") == r"and/or 5* back\slash"
    other = "-LRB--RRB- x-LRB- -LRB-x -Lrb-"
    assert unescape(other) == other
