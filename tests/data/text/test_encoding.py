"""Text as flat tensors, and batches gathered from them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from treelax.apps.data.text.encoding import NO_TAG, encode_records
from treelax.apps.data.text.records import Record, Records, Report
from treelax.apps.data.text.vectors import random_vectors
from treelax.apps.data.text.vocabulary import Vocabulary
from treelax.errors import DataError, InputError


def record(*texts, label="x", line=1):
    return Record(texts, label, line, tokens=True)


PAIRS = [
    record("a dog barks", "a dog", label="yes", line=3),
    record("no", "a cat barks", label="no", line=7),
]
TAGGED = [
    record("a dog", label=("DET", "NOUN"), line=1),
    record("dogs bark now", label=("NOUN", "VERB", "ADV"), line=4),
]


def read_as(records, source="file.tsv", dropped=()):
    def read(report: Report):
        for line in dropped:
            report.drop("no gold label", line)
        yield from records

    return Records(source, read)


# ------------------------------------------------------------------ the flat tensors


def test_pairs():
    data = encode_records(PAIRS, Vocabulary())
    assert data.ids.tolist() == [1, 2, 3, 1, 2, 4, 1, 5, 3]
    assert data.offsets.tolist() == [0, 3, 5, 6, 9]
    assert data.lengths.tolist() == [[3, 2], [1, 3]]
    assert data.labels.tolist() == [1, 0]
    assert data.label_names == ("no", "yes")
    assert data.lines.tolist() == [3, 7]
    assert (len(data), data.texts, data.tagged) == (2, 2, False)
    assert data.ids.dtype == torch.int32
    assert data.offsets.dtype == data.labels.dtype == data.lines.dtype == torch.int64
    assert data.words(1, 1) == ["a", "cat", "barks"]
    with pytest.raises(DataError, match="records: received no record; expected at least one"):
        encode_records([], Vocabulary())


def test_tags():
    data = encode_records(TAGGED, Vocabulary())
    assert data.tagged
    assert data.label_names == ("ADV", "DET", "NOUN", "VERB")
    assert data.labels.tolist() == [1, 2, 2, 3, 0]
    assert data.targets(torch.tensor([1, 0]), 4).tolist() == [[2, 3, 0, NO_TAG], [1, 2, -1, -1]]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["10", "9", "-1", "2"], ("-1", "2", "9", "10")),
        (["10", "9", "x"], ("10", "9", "x")),
        (["b", "a", "B"], ("B", "a", "b")),
        (["9" * 5000, "10", "8"], ("10", "8", "9" * 5000)),  # more digits than int() takes
    ],
)
def test_labels_are_sorted(names, expected):
    data = encode_records([record("a", label=name) for name in names], Vocabulary())
    assert data.label_names == expected
    assert [data.label_names[i] for i in data.labels.tolist()] == names


@settings(max_examples=25)
@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", "D"]), min_size=1), min_size=1))
def test_another_table_gives_the_same_as_encoding_with_it(sentences):
    records = [record(" ".join(words)) for words in sentences]
    vectors = random_vectors(["c", "a"], 2)
    direct = encode_records(records, vectors)
    changed = encode_records(records, Vocabulary()).with_table(vectors)
    assert torch.equal(changed.ids, direct.ids)
    assert changed.ids.dtype == torch.int32
    assert changed.table is vectors


# ------------------------------------------------------------------ batches


@st.composite
def batches(draw):
    texts = draw(st.integers(1, 2))
    sentence = st.lists(st.sampled_from("abcde"), min_size=1, max_size=6)
    examples = draw(st.lists(st.lists(sentence, min_size=texts, max_size=texts), min_size=1))
    indices = draw(st.lists(st.integers(0, len(examples) - 1), max_size=5))
    return examples, indices, draw(st.integers(0, texts - 1)), draw(st.integers(0, 8))


@settings(max_examples=25)
@given(batches())
def test_padded_batches(batch):
    examples, indices, which, length = batch
    vocabulary = Vocabulary()
    data = encode_records(
        [record(*(" ".join(words) for words in example)) for example in examples], vocabulary
    )
    got = data.padded(torch.tensor(indices, dtype=torch.int64), which, length)
    expected = [(vocabulary.ids(examples[i][which]) + [0] * length)[:length] for i in indices]
    assert got.tolist() == expected
    assert got.shape == (len(indices), length)
    assert got.dtype == torch.int64


def test_gathering_asks_nothing_of_the_device():
    """A tensor on the device "meta" has no values: reading one on the host is an error."""
    pairs, tagged = (encode_records(r, Vocabulary()).to("meta") for r in (PAIRS, TAGGED))
    indices = torch.tensor([1, 0, 1], device="meta")
    assert pairs.padded(indices, 1, 7).shape == (3, 7)
    assert pairs.targets(indices, 7).shape == (3,)
    assert tagged.targets(indices, 7).shape == (3, 7)
    assert pairs.lengths.shape == (2, 2)


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    "records",
    [
        [*PAIRS, record("a", line=9)],
        [record("a"), record("b", label=None, line=9)],
        [*TAGGED, record("b", line=9)],
        [record("a b", label=("X",), line=9)],
        [record("a", "", line=9)],
    ],
)
def test_records_that_do_not_fit(records):
    with pytest.raises(DataError, match=r"^records, line 9: received texts or a label of another"):
        encode_records(records, Vocabulary())


def test_labels_of_the_training_data():
    data = encode_records(read_as(PAIRS), Vocabulary())
    assert data.with_labels(["yes", "perhaps", "no"]).labels.tolist() == [0, 2]
    with pytest.raises(DataError) as caught:
        data.with_labels(["maybe", "yes"])
    assert str(caught.value) == (
        "file.tsv, line 7: received the label 'no'; expected one of the training data: "
        "'maybe', 'yes'"
    )
    with pytest.raises(DataError, match=r"'label19', … \(100 in all\)"):
        data.with_labels([f"label{i}" for i in range(100)])
    tagged = encode_records(read_as(TAGGED), Vocabulary())
    for names, place in ((["ADV", "DET", "NOUN"], 4), (["ADV", "NOUN", "VERB"], 1)):
        with pytest.raises(DataError, match=rf"file.tsv, line {place}: received the label"):
            tagged.with_labels(names)


# ------------------------------------------------------------------ words and their numbers


@settings(max_examples=30)
@given(st.lists(st.text()), st.booleans())
def test_words_and_ids_answer_each_other(words, lower):
    vocabulary = Vocabulary(lower=lower)
    numbers = vocabulary.ids(words)
    assert [vocabulary.word(number) for number in numbers] == [
        word.lower() if lower else word for word in words
    ]
    assert sorted(set(numbers)) == list(range(1, len(vocabulary) + 1))
    assert [vocabulary.get(word) for word in words] == numbers
    assert Vocabulary(list(vocabulary), lower=lower).ids(words) == numbers


def test_new_words_get_the_next_id():
    vocabulary = Vocabulary(["b"])
    assert vocabulary.ids(["a", "b", "c", "a"]) == [2, 1, 3, 2]
    assert vocabulary.get("d") is None
    assert list(vocabulary) == ["b", "a", "c"]
    with pytest.raises(InputError, match="received the string 'dog'; expected several"):
        vocabulary.ids("dog")
