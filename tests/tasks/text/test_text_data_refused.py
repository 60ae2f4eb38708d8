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
    pair_data,
    sst_data,
    tag_data,
    written,
)

from treelax.errors import DataError, InputError
from treelax.nn.transformer import SubwordTransformer
from treelax.tasks.text.config import DataConfig
from treelax.tasks.text.data import check_files, encoded_splits, load_text
from treelax.tasks.text.subwords import subword_lengths


def test_a_corpus_that_was_fetched_needs_no_path(tmp_path: Path) -> None:
    expected = load_text(sst_data(tmp_path))
    cache = Path(os.environ["TREELAX_CACHE"])
    with zipfile.ZipFile(cache / "trainDevTestTrees_PTB.zip", "w") as archive:
        for file in (tmp_path / "sst").iterdir():
            archive.write(file, f"trees/{file.name}")
    fetched = load_text(sst_data(tmp_path, path=None))
    assert set(fetched.splits) == {"train", "dev", "test"}
    assert torch.equal(fetched.splits["test"].ids, expected.splits["test"].ids)
    # one's own files are not mixed with it, unless that is asked for
    own = str(tmp_path / "sst" / "train.txt")
    there = cache / "trainDevTestTrees_PTB.zip"
    message = rf"data\.dev is none beside --train; .* give --dev FILE, or --from {there} to take it"
    with pytest.raises(InputError, match=message):
        load_text(sst_data(tmp_path, path=None, train=own))
    assert load_text(sst_data(tmp_path, path=str(there), train=own)).splits["dev"].source == (
        f"{there}: trees/dev.txt"
    )


@pytest.mark.parametrize("name", ["snli", "multinli", "sst"])
def test_a_missing_path_names_the_option(name: str) -> None:
    with pytest.raises(InputError, match=f"fetch it with treelax data {name}, or give --from"):
        load_text(DataConfig(format=name))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["snli", "multinli", "sst"])
@pytest.mark.parametrize(
    ("given", "missing"), [(["train"], "dev"), (["dev"], "train"), (["dev", "test"], "train")]
)
def test_one_file_of_a_corpus_wants_the_others(name: str, given: list[str], missing: str) -> None:
    files = {split: str(SNLI_SAMPLE) for split in given}
    beside = " and ".join(f"--{split}" for split in given)
    message = (
        f"data.{missing} is none beside {beside}; expected a file too: give --{missing} FILE, or "
        f"--from PATH to take it from {name}"
    )
    with pytest.raises(InputError) as caught:
        load_text(DataConfig(format=name, **files))  # type: ignore[arg-type]
    assert str(caught.value) == message


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
    hint = ": leave out --test" if split == "test" else ""
    with pytest.raises(
        DataError, match=f"has no labels; expected labelled data for {split}{hint}$"
    ):
        load_text(config)


def test_a_table_of_test_data_without_labels(tmp_path: Path) -> None:
    test = written(tmp_path / "test.tsv", "words\tindex", "a cat\t1")
    message = r"test\.tsv, line 1: no column 'state'; .*; test data need labels: leave out --test"
    with pytest.raises(DataError, match=message):
        check_files(class_data(tmp_path, test=test))
    # not where training data have no such column either: then its name is wrong
    with pytest.raises(
        DataError, match=r"train\.csv, line 1: no column 'stat'; did you mean"
    ) as told:
        load_text(class_data(tmp_path, test=test, label="stat"))
    assert "--test" not in str(told.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"label": "kind"}, "'kind'; it has: state, words; name the column with --label"),
        ({"text": ("word",)}, "'word'; did you mean 'words'.* name the column with --text"),
    ],
)
def test_a_missing_column_names_the_option(
    tmp_path: Path, changes: dict[str, object], told: str
) -> None:
    with pytest.raises(DataError, match=f"line 1: no column {told}"):
        load_text(class_data(tmp_path, **changes))


def test_a_column_that_only_training_data_have(tmp_path: Path) -> None:
    """No option helps, for it would name the column of all files."""
    dev = written(tmp_path / "dev.tsv", "words", "a cat")
    with pytest.raises(DataError) as caught:
        load_text(class_data(tmp_path, dev=dev))
    assert str(caught.value) == (
        f"{dev}, line 1: no column 'state'; it has: words; expected it here too, for the training data "
        "have it"
    )
    rows = ['{"words": "a cat", "state": "awake"}', '{"words": "a dog"}']
    train = written(tmp_path / "train.jsonl", *rows)
    with pytest.raises(DataError, match=r"line 2: no column 'state'; .*; expected it here too"):
        load_text(class_data(tmp_path, train=train))


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("state;words", "expected commas in .csv, tabs in .tsv"),
        ('"words"\tstate', "or a file in CSV"),
    ],
)
def test_one_advice_about_columns_is_enough(tmp_path: Path, head: str, told: str) -> None:
    train = written(tmp_path / "train.tsv", head, "awake;a cat")
    with pytest.raises(DataError, match=rf"{told}$"):
        load_text(class_data(tmp_path, train=train))


def test_columns_of_a_corpus_are_named_by_no_option(tmp_path: Path) -> None:
    mix = written(tmp_path / "mix.jsonl", '{"gold_label": "neutral"}')
    with pytest.raises(DataError, match=r"no column 'sentence1\w*'; .*it has: gold_label$"):
        load_text(pair_data(tmp_path, mix=mix))


@pytest.mark.parametrize("cached", [False, True])
def test_a_member_of_an_archive_is_named(tmp_path: Path, cached: bool) -> None:
    config = multinli_data(tmp_path)
    with zipfile.ZipFile(tmp_path / "multinli_1.0.zip", "w") as archive:
        for file in (tmp_path / "multinli").iterdir():
            archive.write(file, f"multinli/{file.name}")
    config = replace(config, path=str(tmp_path / "multinli_1.0.zip"))
    for _ in range(1 + cached):
        splits = encoded_splits(config)
    for split, name in (("train", "train"), ("test", "dev_mismatched")):
        member = f"{tmp_path / 'multinli_1.0.zip'}: multinli/{name}.tsv"
        assert splits[split].source == member
        assert splits[split].where(0) == f"{member}, line 1"


def test_mixed_in_examples_name_their_own_file(tmp_path: Path) -> None:
    train = load_text(multinli_data(tmp_path, mix=str(SNLI_SAMPLE))).splits["train"]
    own = f"{tmp_path}/multinli/train.tsv"
    assert [train.where(index) for index in range(len(train))] == [
        *(f"{own}, line {line}" for line in (1, 2, 3)),
        *(f"{SNLI_SAMPLE}, line {line}" for line in (1, 3, 4, 5)),
    ]
    assert train.source == f"{own} and {SNLI_SAMPLE}"
    # a transformer that takes three words
    layer = SubwordTransformer(torch.nn.Identity(), 4, limit=3)
    layer.set_pieces([[1]] * (int(train.ids.max()) + 1))
    longest = int(train.lengths.amax(1).argmax())
    assert longest > 2
    with pytest.raises(
        DataError, match=rf"^{SNLI_SAMPLE}, line {train.lines[longest]}: the text has"
    ):
        subword_lengths(layer, train)


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
