"""SST: trees in brackets, their words and labels."""

from __future__ import annotations

import gzip
import lzma
import zipfile
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from treelax.data.text.ptb import binary_parse_words, labelled_tree, single_spaces, unescape
from treelax.data.text.readers_sst import SST_CLASSES, read_sst
from treelax.data.text.writer import write_table
from treelax.errors import DataError, InputError

TREES = [
    "(0 (1 (2 A) (1 mess)) (2 .))",
    "(1 (2 Not) (2 (2 much) (2 fun)))",
    "(2 (2 It) (2 (2 is) (2 (2 a) (2 film))))",
    "(3 (3 Good) (2 (2 -LRB-) (2 (3 (2 3\u00a01\\/2) (2 of)) (2 (2 5) (2 -RRB-)))))",
    "(4 Superb)",
]
WORDS = ["A mess .", "Not much fun", "It is a film", "Good ( 3\u00a01/2 of 5 )", "Superb"]


def written(folder: Path, *lines: str, name: str = "dev.txt") -> Path:
    (folder / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return folder / name


# ------------------------------------------------------------------ the reader


def test_two_classes(tmp_path: Path) -> None:
    records = read_sst(written(tmp_path, *TREES))
    assert [(r.texts, r.label, r.line) for r in records] == [
        ((WORDS[0],), "negative", 1),
        ((WORDS[1],), "negative", 2),
        ((WORDS[3],), "positive", 4),
        ((WORDS[4],), "positive", 5),
    ]
    assert all(r.tokens for r in records)
    assert records.report.dropped == {"neutral": [3]}
    assert records.report.read == 5


def test_five_classes(tmp_path: Path) -> None:
    records = read_sst(written(tmp_path, *TREES), classes="five")
    assert [r.texts[0] for r in records] == WORDS
    assert tuple(r.label for r in records) == SST_CLASSES["five"]
    assert records.report.dropped == {}


def test_folder_and_archive(tmp_path: Path) -> None:
    (tmp_path / "trees").mkdir()
    (tmp_path / "trees" / "train.txt.xz").write_bytes(lzma.compress(TREES[0].encode()))
    written(tmp_path / "trees", TREES[4])
    with zipfile.ZipFile(tmp_path / "trainDevTestTrees_PTB.zip", "w") as out:
        for name, tree in (("train", TREES[1]), ("dev", TREES[3]), ("test", TREES[4])):
            out.writestr(f"trees/{name}.txt", tree)
    archive = tmp_path / "trainDevTestTrees_PTB.zip"
    assert [r.texts[0] for r in read_sst(tmp_path / "trees", "train")] == [WORDS[0]]
    assert [r.texts[0] for r in read_sst(tmp_path, "dev")] == [WORDS[4]]
    assert [r.texts[0] for r in read_sst(archive, "dev")] == [WORDS[3]]
    assert [r.texts[0] for r in read_sst(tmp_path, "test")] == [WORDS[4]]  # in the archive there
    assert read_sst(archive, "dev").source == f"{archive}: trees/dev.txt"


def table(folder: Path, *rows: str) -> Path:
    (folder / "dev.tsv.gz").write_bytes(
        gzip.compress("\n".join(["label\tsentence", *rows]).encode())
    )
    return folder


@pytest.mark.parametrize("classes", SST_CLASSES)
def test_what_was_written_is_read_again(tmp_path: Path, classes: Literal["binary", "five"]) -> None:
    trees = list(read_sst(written(tmp_path, *TREES), classes=classes))
    out = tmp_path / "out"
    out.mkdir()
    assert write_table(out / "dev.tsv.gz", trees) == len(trees)
    for path in (out, out / "dev.tsv.gz"):
        again = list(read_sst(path, "dev", classes))
        assert [(r.texts, r.label, r.tokens) for r in again] == [
            (r.texts, r.label, r.tokens) for r in trees
        ]


def test_tables_of_five_classes_serve_for_two(tmp_path: Path) -> None:
    rows = [f"{name}\tsome words" for name in SST_CLASSES["five"]]
    records = read_sst(table(tmp_path, *rows), "dev")
    assert [r.label for r in records] == ["negative", "negative", "positive", "positive"]
    assert records.report.dropped == {"neutral": [4]}


def test_tables_of_two_classes_do_not_serve_for_five(tmp_path: Path) -> None:
    path = table(tmp_path, "negative\tbad", "positive\tgood")
    with pytest.raises(
        DataError, match=r"tsv.gz: received negative and positive only; .* --classes"
    ):
        list(read_sst(path, "dev", "five"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1\tgood", "received the label '1'; expected very negative, .* treelax train classify"),
        ("good", "received 1 column; expected 2: mend it"),
        ("positive\tgood\tx", "received 3 columns; expected 2: mend it"),
    ],
)
def test_tables_of_another_kind(tmp_path: Path, row: str, message: str) -> None:
    path = table(tmp_path, "positive\tgood", row, "", "negative\tbad")
    with pytest.raises(DataError, match=rf"dev\.tsv\.gz, line 3: {message}"):
        list(read_sst(path, "dev"))
    if "column" in message:
        records = read_sst(path, "dev", ragged="drop")
        assert [r.line for r in records] == [2, 5]
        assert records.report.dropped == {
            "wrong number of columns": [3],
            "empty sentence": [4],
        }


def test_blank_lines_are_counted(tmp_path: Path) -> None:
    records = read_sst(written(tmp_path, TREES[0], "", "  ", TREES[4]))
    assert [r.line for r in records] == [1, 4]
    assert records.report.dropped == {"empty sentence": [2, 3]}
    with pytest.raises(DataError, match=r"dev.txt, line 2: received an empty sentence"):
        list(read_sst(records.source, empty="error"))


@pytest.mark.parametrize(
    "line",
    [
        *("(3 (2 It) (4 fun)", "(3 It) (4 fun)", "(3 It fun)", "(3 It (4 fun))", "((3 It))"),
        *("(3 ( It) (4 fun))", "(3 (2 It) (4 ))", "It is fun", ")", "x" * 99),
    ],
)
def test_lines_that_are_no_trees(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, TREES[0], line)
    with pytest.raises(DataError) as caught:
        list(read_sst(path))
    assert str(caught.value).startswith(f"{path}, line 2: received '{line[:40]}")
    assert "; expected one tree, as in (3 (2 It) (4 works))" in str(caught.value)


@pytest.mark.parametrize("label", ["5", "10", "9" * 5000])
def test_a_label_that_is_none(tmp_path: Path, label: str) -> None:
    path = written(tmp_path, f"({label} (9 It) (4 fun))")
    with pytest.raises(DataError, match=rf"line 1: received the label {label} at the root"):
        list(read_sst(path))


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"dev.txt: received nothing; expected at least one tree"):
        list(read_sst(written(tmp_path)))
    with pytest.raises(DataError, match=r"nothing left: 1 line dropped: neutral \(1\)"):
        list(read_sst(written(tmp_path, TREES[2])))
    (tmp_path / "dev.txt").write_bytes(b"(3 It)\n(2 na\xefve)\n")
    with pytest.raises(DataError, match=r"dev.txt, line 2: is not UTF-8"):
        list(read_sst(tmp_path, "dev"))
    with pytest.raises(InputError, match=r"split is 'validation'; expected one of 'train', 'dev'"):
        read_sst(tmp_path, "validation")
    with pytest.raises(InputError, match=r"classes is 'two'; expected one of 'binary', 'five'"):
        read_sst(tmp_path, "dev", "two")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"line 1: received 20,000 words"):
        list(read_sst(written(tmp_path, "(3 " + "(2 a) " * 20_000 + ")")))


# ------------------------------------------------------------------ trees

words = st.text(st.characters(exclude_characters=" ()\n\r", exclude_categories=["Cs"]), min_size=1)
trees = st.recursive(
    st.tuples(st.integers(0, 4), words),
    lambda inner: st.tuples(st.integers(0, 4), st.lists(inner, min_size=1, max_size=3)),
)


def drawn(tree: tuple[int, str | list]) -> str:
    label, inside = tree
    return f"({label} {inside if isinstance(inside, str) else ' '.join(map(drawn, inside))})"


def leaves(tree: tuple[int, str | list]) -> list[str]:
    _, inside = tree
    return [inside] if isinstance(inside, str) else [w for t in inside for w in leaves(t)]


@given(trees)
def test_the_words_of_any_tree(tree: tuple[int, str | list]) -> None:
    label, text = labelled_tree(drawn(tree), "here")
    assert label == str(tree[0])
    assert text == unescape(" ".join(leaves(tree)))


def is_tree(text: str) -> bool:
    """Whether a text is a tree, by taking innermost brackets away one by one."""
    import re

    text = re.sub(r"\(\d+ +[^ ()]+ *\)", "T", text.replace("T", "t"))
    while (less := re.sub(r"\(\d+ *(?:T *)+\)", "T", text)) != text:
        text = less
    return text.strip(" ") == "T"


@given(
    st.text("(((())))22a T ")
    | trees.map(drawn).flatmap(
        lambda text: st.integers(0, len(text)).map(lambda i: text[:i] + text[i + 1 :])
    )
)
@example("(2(3 a))")
@example("(2 (3 a)(3 b) )")
@example("(2 (3 a)T)")
def test_only_trees_are_read(text: str) -> None:
    try:
        labelled_tree(text, "here")
    except DataError:
        assert not is_tree(text)
    else:
        assert is_tree(text)


def test_a_deep_tree_is_no_trouble() -> None:
    deep = 20_000
    assert labelled_tree("(3 " * deep + "deep" + ")" * deep, "here") == ("3", "deep")
    with pytest.raises(DataError, match=r"here: .*; expected one tree"):
        labelled_tree("(3 " * deep + "deep" + ")" * (deep - 1), "here")


# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("escaped", "meant"),
    [
        ("-LRB- -RRB- -LSB- -RSB- -LCB- -RCB-", "( ) [ ] { }"),
        ("a -lrb- b -rrb-", "a ( b )"),
        ("-LRB--RRB-", "-LRB--RRB-"),
        ("x-LRB- -LRB-x -Lrb-", "x-LRB- -LRB-x -Lrb-"),
        (r"and\/or 5\*", "and/or 5*"),
        (r"back\slash", r"back\slash"),
    ],
)
def test_escapes(escaped: str, meant: str) -> None:
    assert unescape(escaped) == meant


def test_words_of_a_binary_parse() -> None:
    assert binary_parse_words("( ( A  ( dog\u00a0s ) ) -LRB- . )") == "A dog\u00a0s ( ."
    assert binary_parse_words("( )") == binary_parse_words("") == ""
    assert binary_parse_words("word") == "word"


@given(st.text("ab \u00a0"))
def test_single_spaces(text: str) -> None:
    assert single_spaces(text).split(" ") == ([w for w in text.split(" ") if w] or [""])
