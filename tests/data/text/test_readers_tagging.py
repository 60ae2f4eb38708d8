"""Tagged words: CoNLL columns, CoNLL-U, comments and documents."""

from __future__ import annotations

import lzma
import zipfile
from pathlib import Path

import pytest

from treelax.apps.data.text.readers_tagging import column_of, read_tagging
from treelax.apps.data.text.records import Record
from treelax.errors import InputError

NER = """-DOCSTART- -X- O O

# a remark
EU NNP I-NP I-ORG
rejects VBZ I-VP O

-DOCSTART- -X- O O

Peter NNP I-NP I-PER
"""


def written(folder: Path, text: str | bytes, name: str = "a.txt") -> Path:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / name


def row(*cells: str) -> str:
    number, form, upos, xpos = cells
    return "\t".join([number, form, "_", upos, xpos, "_", "0", "_", "_", "_"]) + "\n"


def test_columns_between_spaces(tmp_path: Path) -> None:
    records = read_tagging(written(tmp_path, NER))
    assert list(records) == [
        Record(("EU rejects",), ("I-ORG", "O"), 4, tokens=True),
        Record(("Peter",), ("I-PER",), 9, tokens=True),
    ]
    assert records.report.dropped == {}
    chosen = read_tagging(written(tmp_path, NER), word=-4, tag=1)
    assert [r.label for r in chosen] == [("NNP", "VBZ"), ("NNP",)]


def test_the_file_of_words_in_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("in/ner.bio", NER)
        archive.writestr("README.md", "no words")
    records = read_tagging(tmp_path / "a.zip")
    assert [record.texts for record in records] == [("EU rejects",), ("Peter",)]


def test_columns_between_tabs(tmp_path: Path) -> None:
    for end in ("", "\n", "\n\n\n"):
        path = written(tmp_path, lzma.compress(b"X\tde facto\r\nY\tof" + end.encode()), "a.xz")
        (record,) = read_tagging(path, word=1, tag=0)
        assert record == Record(("de\u00a0facto of",), ("X", "Y"), 1, tokens=True)
        assert record.words() == [["de\u00a0facto", "of"]]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        # a word may begin like a comment
        ("#\tSYM\n1\tNUM\nfan\tNOUN\n", ["# 1 fan"]),
        ("Hi I\n\n#hash X\nyes X\n\n# SYM\n1 NUM\n", ["Hi", "#hash yes", "# 1"]),
        ("costs V\n# S\n9 N\n", ["costs # 9"]),
        # and a comment may look like words
        (
            "# two or more\ncosts V\n# a comment\n9 N\n\n# text = a\n#begin it now\nHi I\n",
            ["costs 9", "Hi"],
        ),
        (
            "# newdoc\nbark V\n\n# newpar\nCats N\n# X\n\n# newdoc id = 2\nsleep V\n",
            ["bark", "Cats #", "sleep"],
        ),
        ("# two columns\ncosts\tV\n# a comment\n\n#\tS\n9\tN\n", ["costs", "# 9"]),
        ("# sent_id = 3\nEU NNP I-NP I-ORG\n\n# sent_id = 4\n# # O O\n9 CD O O\n", ["EU", "# 9"]),
    ],
)
def test_words_and_comments(tmp_path: Path, text: str, sentences: list[str]) -> None:
    records = list(read_tagging(written(tmp_path, text)))
    assert [r.texts[0] for r in records] == sentences
    assert [len(r.label or ()) for r in records] == [len(s.split()) for s in sentences]


@pytest.mark.parametrize("name", ["a.conllu", "a.txt"])
def test_conllu(tmp_path: Path, name: str) -> None:
    text = (
        "# sent_id = 1\n"
        + row("1-2", "im", "_", "_")
        + row("1", "in", "ADP", "APPR")
        + row("2", "dem", "DET", "ART")
        + row("2.1", "x", "X", "X")
        + "\n# sent_id = 2\n"
        + row("1", "#", "SYM", "_")
        + "\n"
    )
    path = written(tmp_path, text, name)
    records = list(read_tagging(path))
    assert [(r.texts[0], r.label, r.line) for r in records] == [
        ("in dem", ("ADP", "DET"), 2),
        ("#", ("SYM",), 8),
    ]
    tagged = read_tagging(path, tag="XPOS")
    assert [r.label for r in tagged] == [("APPR", "ART")]
    assert tagged.report.dropped == {"no tags": [8]}


def test_a_ragged_sentence_goes_as_a_whole(tmp_path: Path) -> None:
    path = written(tmp_path, "a X\n\nb X\nc\nd X\n\ne X\n")
    records = read_tagging(path, unusable="drop")
    assert [r.texts[0] for r in records] == ["a", "e"]
    assert records.report.dropped == {"wrong number of columns": [4]}


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("-DOCSTART-\n\n# a comment\nDogs\nbark\n\n\n# another one\nHi", False),
        ("Dogs\tx\tNOUN\nbark\tx\tVERB\n\nHi\tx\tINTJ\n", True),
        (
            row("1", "Dogs", "_", "_")
            + row("2", "bark", "_", "_")
            + f"\n{row('1', 'Hi', '_', '_')}",
            False,
        ),
    ],
)
def test_words_with_and_without_tags(tmp_path: Path, text: str, tags: bool) -> None:
    records = list(read_tagging(written(tmp_path, text), need_tags=False))
    assert [record.words() for record in records] == [[["Dogs", "bark"]], [["Hi"]]]
    assert [record.label is not None for record in records] == [tags, tags]


def test_columns_as_told_to_a_command() -> None:
    assert [column_of(text) for text in ("1", "12", "XPOS", "²")] == [0, 11, "XPOS", "²"]
    for text in ("0", " ", "9" * 5000):  # the last has more digits than int() takes
        with pytest.raises(InputError, match=r"column is '.*'; expected its num") as raised:
            column_of(text)
        assert len(str(raised.value)) < 150


def test_a_missing_part_of_speech_is_no_tag(tmp_path: Path) -> None:
    rows = row("1", "Dogs", "NOUN", "NNS") + row("2", "bark", "_", "_") + "\n"
    path = written(tmp_path, rows + row("1", "Hi", "INTJ", "UH"), "a.conllu")
    records = read_tagging(path)
    assert [r.label for r in records] == [("INTJ",)]
    assert records.report.dropped == {"no tags": [1]}
    # in another column it is a value
    assert [r.label for r in read_tagging(path, tag="XPOS")] == [("NNS", "_"), ("UH",)]
