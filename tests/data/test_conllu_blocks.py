"""Sentences of CoNLL-U with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from treelax.data.conllu import read_conllu
from treelax.data.conllu_blocks import Block, read_blocks
from treelax.errors import DataError, InputError

ROWS = ("1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_", "2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_")
TEXT = (
    "\n\n#sent_id=a=b\n# note\n" + "\n".join(ROWS) + "\n \n" + ROWS[0].replace("2", "0", 1) + "\n"
)


def blocks(folder: Path, text: str = TEXT) -> list[Block]:
    file = folder / "file.conllu"
    file.write_text(text)
    return list(read_blocks(file))


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    first, second = blocks(tmp_path)
    assert (first.line, second.line) == (3, 8)
    assert first.lines == ("#sent_id=a=b", "# note", *ROWS)
    assert [first.sentence, second.sentence] == list(read_conllu(tmp_path / "file.conllu"))


def test_comments_are_replaced_in_place_or_added(tmp_path: Path) -> None:
    first = blocks(tmp_path)[0]
    told = first.with_tree([0, 1], comments={"sent_id": "c", "label": "yes"})
    assert told[:3] == ["# sent_id = c", "# note", "# label = yes"]
    assert [row.split("\t")[6:8] for row in told[3:]] == [["0", "_"], ["1", "_"]]
    assert first.lines[0] == "#sent_id=a=b"


def test_other_columns_are_replaced_and_trees_may_stay(tmp_path: Path) -> None:
    first = blocks(tmp_path)[0]
    told = [row.split("\t") for row in first.with_tree(None, columns={"UPOS": ["A", "B"]})[2:]]
    assert [cells[3] for cells in told] == ["A", "B"]
    kept = [row.split("\t") for row in ROWS]
    assert [cells[:3] + cells[4:] for cells in told] == [cells[:3] + cells[4:] for cells in kept]


def test_numbers_that_do_not_fit(tmp_path: Path) -> None:
    first = blocks(tmp_path)[0]
    with pytest.raises(InputError, match="heads: received 1; expected one for each of the 2 words"):
        first.with_tree([0])
    with pytest.raises(InputError, match="XPOS: received 1"):
        first.with_tree(None, columns={"XPOS": ["a"]})
    with pytest.raises(InputError, match="Tag: received 3"):
        first.with_tree([0, 1], misc={"Tag": ["a", "b", "c"]})


def test_errors_are_those_of_the_reader(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"file.conllu, line 5: received 9 columns"):
        blocks(tmp_path, TEXT.replace("2\tnsubj", "2"))
    with pytest.raises(DataError, match="does not exist"):
        read_blocks(tmp_path / "none.conllu")
