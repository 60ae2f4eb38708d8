"""The texts of a config: every format, mixing, long texts, vectors, and what is refused."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_texts import (
    PAIRS,
    SNLI_SAMPLE,
    class_data,
    multinli_data,
    pair_data,
    sst_data,
    written,
)

from treelax.apps.data.text.readers_corpora import SST_CLASSES
from treelax.apps.data.text.vectors import FIRST_UNKNOWN, UNKNOWN
from treelax.apps.tasks.text.config import DataConfig
from treelax.apps.tasks.text.data import load_text
from treelax.errors import DataError, InputError

FIRST_KNOWN = FIRST_UNKNOWN + UNKNOWN


def words_of(data, split, example, which=0):
    """The words of a text by the rows of their vectors; None where the word is unknown."""
    names = {row: word for word, row in data.vectors.known.items()}
    text = data.splits[split]
    begin, end = text.offsets[example * text.texts + which :][:2].tolist()
    return [names.get(row) for row in text.ids[begin:end].tolist()]


def labels_of(data, split):
    labels = data.splits[split].labels
    assert labels is not None
    return [data.labels[number] for number in labels.tolist()]


# ------------------------------------------------------------------ every format


def test_snli(tmp_path):
    for split in ("train", "dev", "test"):
        name = f"snli_1.0_{split}.jsonl"
        written(tmp_path / "snli_1.0" / name, *SNLI_SAMPLE.read_text("utf-8").splitlines())
    config = DataConfig(format="snli", path=str(tmp_path / "snli_1.0"), vector_size=4)
    data = load_text(config)
    assert list(data.splits) == ["train", "dev", "test"]
    assert {name: len(split) for name, split in data.splits.items()} == dict.fromkeys(
        data.splits, 4
    )
    assert data.labels == ("entailment", "neutral", "contradiction")
    assert labels_of(data, "dev") == ["neutral", "entailment", "contradiction", "entailment"]
    assert words_of(data, "train", 1) == ["A", "woman", "working", "long", "hours", "."]
    assert words_of(data, "train", 1, 1) == ["A", "woman", "is", "working", "."]
    assert data.notes["train"] == ("1 line dropped: no gold label (2)",)
    assert data.mixed == 0


@pytest.mark.parametrize(("classes", "sizes"), [("binary", [3, 2, 1]), ("five", [4, 3, 1])])
def test_sst(tmp_path, classes, sizes):
    data = load_text(sst_data(tmp_path, classes=classes))
    assert [len(split) for split in data.splits.values()] == sizes
    if classes == "binary":
        assert data.labels == ("negative", "positive")
        assert labels_of(data, "train") == ["negative", "positive", "positive"]
        assert words_of(data, "train", 1) == ["Good", "(", "3\u00a01/2", "of", "5", ")"]
        assert data.notes["dev"] == ("1 line dropped: neutral (2)",)
    else:
        assert data.labels == SST_CLASSES["five"]
        assert labels_of(data, "dev") == ["very negative", "neutral", "very positive"]


def test_tables(tmp_path):
    data = load_text(pair_data(tmp_path))
    assert [len(split) for split in data.splits.values()] == [10, 5, 2]
    assert labels_of(data, "test") == ["yes", "no"]
    assert words_of(data, "train", 1, 1) == ["cats", "sleep"]
    assert data.splits["train"].texts == 2
    data = load_text(class_data(tmp_path))
    assert (data.labels, data.splits["train"].texts) == (("asleep", "awake"), 1)


def test_columns_of_tags_by_number_and_by_name(tmp_path):
    file = written(
        tmp_path / "ner.txt", "Dogs NNS B-NP O", "bark VBP B-VP O", "", "Ed NNP I-NP PER"
    )
    config = DataConfig(format="tagging", train=file, dev=file, vector_size=4)
    assert load_text(config).labels == ("O", "PER")
    assert load_text(replace(config, tag="2")).labels == ("NNP", "NNS", "VBP")
    swapped = load_text(replace(config, word="2", tag="1"))
    assert swapped.labels == ("Dogs", "Ed", "bark")
    assert words_of(swapped, "train", 0) == ["NNS", "VBP"]
    row = "\t".join(["1", "Dogs", "dog", "NOUN", "NNS", "_", "0", "root", "_", "_"])
    other = row.replace("NNS", "NNP").replace("1\t", "2\t", 1)
    universal = written(tmp_path / "a.conllu", row, other)
    named = replace(config, train=universal, dev=universal, word="LEMMA", tag="XPOS")
    assert load_text(named).labels == ("NNP", "NNS")
    assert words_of(load_text(named), "train", 0) == ["dog", "dog"]
    with pytest.raises(DataError, match=r"line 1: received 4 columns; expected at least 7"):
        load_text(replace(config, tag="7"))
    with pytest.raises(InputError, match=r"data.tag is '0'; expected the number"):
        replace(config, tag="0")


def test_the_same_contents_under_another_suffix_are_read_anew(tmp_path):
    lines = ["text\tlabel", '"a\tyes', 'b"\tno']
    tsv = written(tmp_path / "a.tsv", *lines)
    data = load_text(DataConfig(train=tsv, dev=tsv, vector_size=4, tokens=True))
    assert len(data.splits["train"]) == 2
    csv = written(tmp_path / "a.csv", *lines)
    with pytest.raises(DataError, match=r"a\.csv, line 1: no column 'text'"):
        load_text(DataConfig(train=csv, dev=csv, vector_size=4, tokens=True))


# ------------------------------------------------------------------ mixing


def test_snli_mixed_into_multinli(tmp_path):
    plain = load_text(multinli_data(tmp_path))
    data = load_text(multinli_data(tmp_path, mix=str(SNLI_SAMPLE), mix_share=0.5))
    assert list(data.splits) == ["train", "dev", "test"]
    assert (len(data.splits["train"]), data.mixed) == (7, 4)
    assert labels_of(data, "train")[:3] == labels_of(plain, "train")
    assert labels_of(data, "train")[3:] == ["neutral", "entailment", "contradiction", "entailment"]
    for example in range(3):
        assert words_of(data, "train", example) == words_of(plain, "train", example)
    assert words_of(data, "train", 4, 1) == ["A", "woman", "is", "working", "."]
    assert data.splits["train"].lines.tolist() == [1, 2, 3, 1, 3, 4, 5]
    assert data.notes["mix"] == ("1 line dropped: no gold label (2)",)
    assert data.splits["train"].offsets[-1] == len(data.splits["train"].ids)


# ------------------------------------------------------------------ long texts


def test_long_training_examples_are_left_out_and_others_kept(tmp_path):
    data = load_text(pair_data(tmp_path, max_length=3))
    kept = [i for i, (_, a, b) in enumerate(PAIRS) if len(a.split()) <= 3 and len(b.split()) <= 3]
    assert [words_of(data, "train", i) for i in range(len(data.splits["train"]))] == [
        PAIRS[i][1].split() for i in kept
    ]
    assert labels_of(data, "train") == [PAIRS[i][0] for i in kept]
    assert data.splits["train"].lines.tolist() == [i + 2 for i in kept]
    assert len(data.splits["dev"]) == 5
    assert data.notes["train"] == (
        f"{len(PAIRS) - len(kept)} examples of more than 3 words left out; "
        "--set data.max_length=N keeps more",
    )
    assert data.notes["dev"] == ()


# ------------------------------------------------------------------ vectors


def test_random_vectors_are_for_words_of_the_training_data_only(tmp_path):
    rows = ["a b\tyes", "c\tno", "much too long this\tno"]
    train = written(tmp_path / "train.tsv", "text\tlabel", *rows)
    dev = written(tmp_path / "dev.tsv", "text\tlabel", "a new c\tno")
    config = DataConfig(train=train, dev=dev, tokens=True, max_length=2, vector_size=5)
    data = load_text(config)
    assert data.vectors.known == {"a": FIRST_KNOWN, "b": FIRST_KNOWN + 1, "c": FIRST_KNOWN + 2}
    assert data.vectors.matrix.shape == (FIRST_KNOWN + 3, 5)
    assert words_of(data, "dev", 0) == ["a", None, "c"]
    assert FIRST_UNKNOWN <= int(data.splits["dev"].ids[1]) < FIRST_KNOWN


def test_vectors_from_a_file_are_for_all_words(tmp_path):
    vectors = written(tmp_path / "vectors.txt", "the 3 4", "cat 0 2", "sings 1 0", "extra 1 1")
    config = class_data(tmp_path, vectors=vectors)
    dev = written(tmp_path / "dev.csv", "state,words", "awake,the cat sings")
    data = load_text(replace(config, dev=dev))
    assert words_of(data, "dev", 0) == ["the", "cat", "sings"]
    assert sorted(data.vectors.known) == ["cat", "sings", "the"]
    row = data.vectors.matrix[data.vectors.known["the"]]
    assert torch.allclose(row, torch.tensor([0.6, 0.8]))
    assert data.coverage == (3, 13)
    raw = load_text(replace(config, dev=dev, normalise=False)).vectors
    assert raw.matrix[raw.known["the"]].tolist() == [3, 4]


# ------------------------------------------------------------------ kept between calls


def test_runs_of_a_sweep_share_the_data(tmp_path):
    config = class_data(tmp_path)
    data = load_text(config, lambda split, done, total: None)
    assert load_text(replace(config)) is data
    assert load_text(replace(config, seed=1)) is not data


def test_a_changed_file_is_read_again(tmp_path):
    config = class_data(tmp_path)
    before = load_text(config)
    assert config.dev is not None
    written(Path(config.dev), "state,words", "asleep,the cat")
    os.utime(config.dev, ns=(1, 1))
    after = load_text(config)
    assert (len(before.splits["dev"]), len(after.splits["dev"])) == (5, 1)


# ------------------------------------------------------------------ the same data or others


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_the_fingerprint_tells_data_apart_that_training_depends_on(tmp_path, vectors, whole):
    config = pair_data(tmp_path)
    if vectors and not whole:
        file = written(tmp_path / "v.txt", "dogs 1 2", "cats 3 1", "sleep 2 2", "owls 2 3", "a 1 0")
        config = replace(config, vectors=file)
    before = load_text(config, whole_words=whole).fingerprint()

    def changed(split, old, new):
        path = Path(str(getattr(config, split)))
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        other = load_text(config, whole_words=whole).fingerprint()
        path.write_text(text)
        assert load_text(config, whole_words=whole).fingerprint() == before
        return other != before

    assert changed("train", "dogs bark loudly", "cats bark loudly")
    assert changed("train", "yes\tdogs", "no\tdogs")
    assert changed("dev", "no\tcats sleep", "no\tcats cats")
    # words of the test set have rows too, but no part in training
    assert not changed("test", "dogs bark", "owls bark")
