"""Data of a config that are missing, of another kind, or named in no option."""

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

from treelax.apps.tasks.text.config import DataConfig
from treelax.apps.tasks.text.data import encoded_splits, load_text
from treelax.errors import DataError, InputError

ONE = str(SNLI_SAMPLE)
UNLABELLED = ("sentence1_binary_parse\tsentence2_binary_parse", "( A dog )\t( A cat )")


def table(make, name, *lines, split="dev", **changes):
    """A config of small data with one split in another file."""
    return lambda f: make(f, **{split: written(f / name, *lines)}, **changes)


def both(make, *lines, **changes):
    """A config of small data whose training and dev data are one file."""
    return lambda f: make(
        f, **dict.fromkeys(["train", "dev"], written(f / "a.csv", *lines)), **changes
    )


REFUSED = [
    (lambda f: DataConfig(format="snli"), "fetch it with treelax data snli, or give --from"),
    (
        lambda f: DataConfig(format="sst", train=ONE),
        "data.dev is none beside --train; .* --from PA",
    ),
    (lambda f: DataConfig(format="snli", dev=ONE, test=ONE), "none beside --dev and --test; exp"),
    (lambda f: class_data(f, dev=None), "data.dev is none; .* --dev FILE"),
    (lambda f: tag_data(f, train=None), "data.train is none; .* --train FILE"),
    (lambda f: DataConfig(format="sst", path=str(f / "no")), "no: does not exist"),
    (lambda f: DataConfig(format="snli", path=ONE), "one file, which would serve as every split"),
    (lambda f: multinli_data(f, "train"), "for dev_matched"),
    (
        table(class_data, "a.csv", "state,words", "awake,a cat", "dizzy,a dog"),
        r"a\.csv, line 3: received the label 'dizzy'; expected .* 'asleep', 'awake'",
    ),
    (
        table(tag_data, "a.txt", "Dogs NOUN\n", "Hi INTJ\nthere ADVERB"),
        r"a\.txt, line 3: received the label 'ADVERB'",
    ),
    (
        table(multinli_data, "multinli_0.9_test_matched_unlabeled.txt", *UNLABELLED, split="test"),
        "has no labels; expected labelled data for test: leave out --test",
    ),
    (table(class_data, "a.tsv", "words", "a cat"), r"a\.tsv, line 1: no column 'state'; it has"),
    (lambda f: class_data(f, label="kind"), "no column 'kind'; .*; --text and --label name the"),
    (lambda f: class_data(f, text=("word",)), "no column 'word'; did you mean 'words'"),
    (
        table(class_data, "a.tsv", "state;words", "awake;a"),
        "expected commas in .csv, tabs in .tsv$",
    ),
    (table(pair_data, "a.jsonl", '{"gold_label": "neutral"}', split="mix"), "it has: gold_label$"),
    (lambda f: pair_data(f, mix=ONE), r"snli_sample\.jsonl, line 1: received the label 'neutral'"),
    (both(class_data, "state,words", "a,b", "a,c"), "received one label, 'a', .* at least two"),
    (both(tag_data, "a X\nb Y", max_length=1), "a text of more than data.max_length=1"),
    (
        lambda f: class_data(f, trees=str(f / "{split}.conllu")),
        r"\.conllu: does not exist; expected a CoNLL-U file",
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_data_that_are_refused(tmp_path, make, message):
    with pytest.raises((DataError, InputError), match=message) as caught:
        load_text(make(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_corpus_that_was_fetched_needs_no_path(tmp_path):
    expected = load_text(sst_data(tmp_path))
    there = Path(os.environ["TREELAX_CACHE"]) / "trainDevTestTrees_PTB.zip"
    with zipfile.ZipFile(there, "w") as archive:
        for file in (tmp_path / "sst").iterdir():
            archive.write(file, f"trees/{file.name}")
    fetched = load_text(sst_data(tmp_path, path=None))
    assert set(fetched.splits) == {"train", "dev", "test"}
    assert torch.equal(fetched.splits["test"].ids, expected.splits["test"].ids)
    # one's own files are not mixed with it, unless that is asked for
    own = str(tmp_path / "sst" / "train.txt")
    with pytest.raises(InputError, match=rf"data\.dev is none beside --train; .* --from {there}$"):
        load_text(sst_data(tmp_path, path=None, train=own))
    data = load_text(sst_data(tmp_path, path=str(there), train=own))
    assert data.splits["dev"].source == f"{there}: trees/dev.txt"


def test_a_member_of_an_archive_is_named(tmp_path):
    config = multinli_data(tmp_path)
    with zipfile.ZipFile(tmp_path / "multinli_1.0.zip", "w") as archive:
        for file in (tmp_path / "multinli").iterdir():
            archive.write(file, f"multinli/{file.name}")
    config = replace(config, path=str(tmp_path / "multinli_1.0.zip"))
    for _ in ("read", "cached"):
        splits = encoded_splits(config)
        member = f"{tmp_path / 'multinli_1.0.zip'}: multinli/dev_mismatched.tsv"
        assert splits["test"].where(0) == f"{member}, line 1"
        assert [len(split) for split in splits.values()] == [3, 1, 2]


def test_mixed_in_examples_name_their_own_file(tmp_path):
    train = load_text(multinli_data(tmp_path, mix=ONE)).splits["train"]
    own = f"{tmp_path}/multinli/train.tsv"
    assert [train.where(index) for index in range(len(train))] == [
        *(f"{own}, line {line}" for line in (1, 2, 3)),
        *(f"{ONE}, line {line}" for line in (1, 3, 4, 5)),
    ]
    assert train.source == f"{own} and {ONE}"


@pytest.mark.parametrize(
    ("kind", "line", "found"),
    [
        ("pair", "yes\tonly one text", "wrong number of columns"),
        ("classify", "awake,one,too many", "wrong number of columns"),
        ("tag", "Dogs NOUN extra\n", "wrong number of columns"),
        ("classify", "awake," + "w " * 33_000, "too many words"),
    ],
)
def test_unusable_lines_are_refused_or_counted(tmp_path, kind, line, found):
    config = DATA[kind](tmp_path)
    good = load_text(config)
    train = Path(str(config.train))
    lines = train.read_text().splitlines()
    train.write_text("\n".join([*lines, line, ""]))
    number = len(lines) + 1
    data = load_text(replace(config, unusable="drop"))
    assert torch.equal(data.splits["train"].ids, good.splits["train"].ids)
    assert data.notes["train"] == (f"1 line dropped: {found} ({number})",)
    with pytest.raises(DataError, match=rf"line {number}: .* --set data.unusable=drop"):
        load_text(config)  # though the cache has the lines without it
