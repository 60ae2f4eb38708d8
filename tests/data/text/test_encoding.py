"""Text as flat tensors, and batches gathered from them."""

import pytest
import torch

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


def test_another_table_gives_the_same_as_encoding_with_it():
    vectors = random_vectors(["c", "a"], 2)
    direct = encode_records(PAIRS, vectors)
    changed = encode_records(PAIRS, Vocabulary()).with_table(vectors)
    assert torch.equal(changed.ids, direct.ids)
    assert changed.ids.dtype == torch.int32
    assert changed.table is vectors


def test_padded_batches():
    data = encode_records(PAIRS, Vocabulary())
    for which, length, expected in (
        (0, 4, [[4, 0, 0, 0], [1, 2, 3, 0], [4, 0, 0, 0]]),
        (1, 2, [[1, 5], [1, 2], [1, 5]]),
        (1, 0, [[], [], []]),
    ):
        padded = data.padded(torch.tensor([1, 0, 1]), which, length)
        assert padded.tolist() == expected
        assert padded.dtype == torch.int64
    assert data.padded(torch.tensor([], dtype=torch.int64), 1, 3).shape == (0, 3)


def test_gathering_asks_nothing_of_the_device():
    """A tensor on the device "meta" has no values: reading one on the host is an error."""
    pairs, tagged = (encode_records(r, Vocabulary()).to("meta") for r in (PAIRS, TAGGED))
    indices = torch.tensor([1, 0, 1], device="meta")
    assert pairs.padded(indices, 1, 7).shape == (3, 7)
    assert pairs.targets(indices, 7).shape == (3,)
    assert tagged.targets(indices, 7).shape == (3, 7)
    assert pairs.lengths.shape == (2, 2)


def test_records_that_do_not_fit():
    for records in (
        [*PAIRS, record("a", line=9)],
        [record("a"), record("b", label=None, line=9)],
        [*TAGGED, record("b", line=9)],
        [record("a b", label=("X",), line=9)],
        [record("a", "", line=9)],
    ):
        with pytest.raises(DataError, match=r"^records, line 9: received texts or a label of anot"):
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


@pytest.mark.parametrize("lower", [False, True])
def test_words_and_their_numbers(lower):
    vocabulary = Vocabulary(["b"], lower=lower)
    assert vocabulary.ids(["a", "b", "É", "a", ""]) == [2, 1, 3, 2, 4]
    assert list(vocabulary) == ["b", "a", "é" if lower else "É", ""]
    assert vocabulary.word(3) == ("é" if lower else "É")
    assert Vocabulary(list(vocabulary), lower=lower).ids(vocabulary) == [1, 2, 3, 4]
    with pytest.raises(InputError, match="received the string 'dog'; expected several"):
        vocabulary.ids("dog")
