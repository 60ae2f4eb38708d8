"""The texts of a config: every format, mixing, long texts, vectors, and what is refused."""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_texts import (
    DATA,
    PAIRS,
    SNLI_SAMPLE,
    class_data,
    multinli_data,
    pair_data,
    sst_data,
    tag_data,
    written,
)

from treelax.apps.data.text.encoding import encode_records
from treelax.apps.data.text.readers_corpora import SST_CLASSES
from treelax.apps.data.text.records import Record
from treelax.apps.data.text.vectors import FIRST_UNKNOWN, UNKNOWN
from treelax.apps.data.text.vocabulary import Vocabulary
from treelax.apps.tasks.text.config import DataConfig
from treelax.apps.tasks.text.data import encoded_splits, joined, load_text, without_long
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
    data = load_text(config, lambda done, split: None)
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


# ------------------------------------------------------------------ sets made of others

sentences = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 5)).map(
        lambda sizes: tuple(" ".join("abcde"[:n]) for n in sizes)
    ),
    min_size=1,
    max_size=6,
)


@given(sentences, st.integers(1, 5))
def test_without_long_keeps_what_a_filter_of_records_keeps(texts, longest):
    records = [Record(pair, str(i), i) for i, pair in enumerate(texts)]
    short = [r for r in records if all(len(t.split()) <= longest for t in r.texts)]
    data = encode_records(records, Vocabulary(list("abcde")))
    if not short:
        with pytest.raises(InputError):
            without_long(data, longest)
        return
    kept, left_out = without_long(data, longest)
    expected = encode_records(short, Vocabulary(list("abcde"))).with_labels(data.label_names)
    for name in ("ids", "offsets", "labels", "lines"):
        assert torch.equal(getattr(kept, name), getattr(expected, name))
    assert left_out == len(records) - len(short)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_without_long_keeps_tags_with_their_words(sizes):
    records = [
        Record((" ".join("abcd"[:n]),), tuple("ABCD"[:n]), i, tokens=True)
        for i, n in enumerate([*sizes, 1])
    ]
    kept, _ = without_long(encode_records(records, Vocabulary()), 2)
    for i in range(len(kept)):
        tags = [kept.label_names[t] for t in kept.targets(torch.tensor([i]), 2)[0] if t >= 0]
        assert [tag.lower() for tag in tags] == kept.words(i)


def test_joined_sets_are_gathered_as_each_alone():
    vocabulary = Vocabulary()
    sets = [
        encode_records(
            [Record((f"{name} {'x ' * i}", f"{name} y"), "l", i) for i in range(3)], vocabulary
        )
        for name in ("a", "b")
    ]
    both = joined(*sets)
    for which in (0, 1):
        expected = torch.cat([data.padded(torch.arange(3), which, 4) for data in sets])
        assert torch.equal(both.padded(torch.arange(6), which, 4), expected)


# ------------------------------------------------------------------ data that are refused

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
