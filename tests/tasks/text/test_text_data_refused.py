"""Data of a config that are missing, of another kind, or named in no option."""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_texts import (
    DATA,
    SNLI_SAMPLE,
    class_data,
    multinli_data,
    sst_data,
    tag_data,
    written,
)

from treelax.errors import DataError, InputError
from treelax.tasks.text.config import DataConfig
from treelax.tasks.text.data import load_text


def test_a_corpus_that_was_fetched_needs_no_path(tmp_path: Path) -> None:
    expected = load_text(sst_data(tmp_path))
    cache = Path(os.environ["TREELAX_CACHE"])
    with zipfile.ZipFile(cache / "trainDevTestTrees_PTB.zip", "w") as archive:
        for file in (tmp_path / "sst").iterdir():
            archive.write(file, f"trees/{file.name}")
    fetched = load_text(sst_data(tmp_path, path=None))
    assert set(fetched.splits) == {"train", "dev", "test"}
    assert torch.equal(fetched.splits["test"].ids, expected.splits["test"].ids)
    # one's own files are not mixed with it
    own = str(tmp_path / "sst" / "train.txt")
    with pytest.raises(InputError, match="fetch it with treelax data sst"):
        load_text(sst_data(tmp_path, path=None, train=own))


@pytest.mark.parametrize("name", ["snli", "multinli", "sst"])
def test_a_missing_path_names_the_option(name: str) -> None:
    with pytest.raises(InputError, match=f"fetch it with treelax data {name}, or give --from"):
        load_text(DataConfig(format=name))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["table", "tagging"])
@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_missing_file_names_the_option(tmp_path: Path, name: str, split: str) -> None:
    make = class_data if name == "table" else tag_data
    with pytest.raises(InputError, match=rf"data\.{split} is none; .* --{split} FILE"):
        load_text(make(tmp_path, **{split: None}))


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: does not exist"):
        load_text(DataConfig(format="sst", path=str(tmp_path / "nowhere")))


def test_one_file_is_not_taken_for_all_splits() -> None:
    with pytest.raises(InputError, match=r"one file, which would serve as every split; .* --train"):
        load_text(DataConfig(format="snli", path=str(SNLI_SAMPLE)))


def test_a_distribution_without_dev(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="for dev_matched"):
        load_text(multinli_data(tmp_path, "train"))


def test_an_unknown_label_in_dev_names_file_and_line(tmp_path: Path) -> None:
    dev = written(tmp_path / "other.csv", "state,words", "awake,a cat", "dizzy,a dog")
    message = r"other\.csv, line 3: received the label 'dizzy'; expected .* 'asleep', 'awake'"
    with pytest.raises(DataError, match=message):
        load_text(class_data(tmp_path, dev=dev))


def test_an_unknown_tag_in_dev_names_file_and_line(tmp_path: Path) -> None:
    dev = written(tmp_path / "other.txt", "Dogs NOUN\n", "Hi INTJ\nthere ADVERB")
    with pytest.raises(DataError, match=r"other\.txt, line 3: received the label 'ADVERB'"):
        load_text(tag_data(tmp_path, dev=dev))


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_data_without_labels(tmp_path: Path, split: str) -> None:
    file = written(
        tmp_path / "multinli_0.9_test_matched_unlabeled.txt",
        "sentence1_binary_parse\tsentence2_binary_parse",
        "( A dog )\t( A cat )",
    )
    config = replace(multinli_data(tmp_path), **{split: file})
    with pytest.raises(DataError, match=f"has no labels; expected labelled data for {split}"):
        load_text(config)


UNUSABLE = {  # of each kind a line that no reader can use, behind the good ones
    "pair": "yes\tonly one text",
    "classify": "awake,one,too many",
    "tag": "Dogs NOUN extra\n",
}


@pytest.mark.parametrize("kind", DATA)
def test_unusable_lines_are_refused_or_counted(tmp_path: Path, kind: str) -> None:
    config = DATA[kind](tmp_path)
    good = load_text(config)
    train = Path(str(config.train))
    lines = train.read_text().splitlines()
    train.write_text("\n".join([*lines, UNUSABLE[kind], ""]))
    number = len(lines) + 1
    with pytest.raises(DataError, match=rf"line {number}: .* --set data.unusable=drop"):
        load_text(config)
    data = load_text(replace(config, unusable="drop"))
    assert torch.equal(data.splits["train"].ids, good.splits["train"].ids)
    assert data.notes["train"] == (f"1 line dropped: wrong number of columns ({number})",)
    # what was kept is kept under another name: an error stays one
    with pytest.raises(DataError, match=f"line {number}"):
        load_text(config)


def test_a_text_without_end_may_be_left_out(tmp_path: Path) -> None:
    config = class_data(tmp_path)
    train = Path(str(config.train))
    train.write_text(train.read_text() + "awake," + "w " * 33_000 + "\n")
    with pytest.raises(DataError, match=r"33,000 words.* --set data.unusable=drop"):
        load_text(config)
    assert load_text(replace(config, unusable="drop")).notes["train"] == (
        "1 line dropped: too many words (8)",
    )
