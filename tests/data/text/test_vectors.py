"""Which word has which row, and vectors for words that have none."""

import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from vector_texts import FIRST, GLOVE, WORDS, rows_of, written

from treelax.data.text.vectors import FIRST_UNKNOWN, NULL, Vectors, load_vectors, random_vectors
from treelax.errors import InputError


@pytest.mark.parametrize(
    ("word", "row"),
    [
        ("The", [1.0]),  # its own
        ("THE", [2.0]),  # its lower case
        ("the", [2.0]),
        ("-LRB-", [3.0]),
        ("-lrb-", [3.0]),
        ("``", [4.0]),
        ("''", [5.0]),  # its own, not that of "
        ("1\\/2", [6.0]),
        ("AND\\/OR", [7.0]),
    ],
)
def test_spellings(tmp_path, word, row):
    path = written(tmp_path, "The 1\nthe 2\n( 3\n\" 4\n'' 5\n1/2 6\nand/or 7\n")
    assert rows_of(load_vectors(path, [word], normalise=False)) == {word: row}


def test_words_of_one_spelling_share_a_row(tmp_path):
    vectors = load_vectors(written(tmp_path, GLOVE), ["DOG", "Dog", "dog"])
    assert set(vectors.known.values()) == {FIRST}
    assert len(vectors.matrix) == FIRST + 1


def test_every_word_has_a_row():
    vectors = Vectors(torch.zeros(FIRST + 1, 3), {"dog": FIRST})
    assert vectors.id("dog") == vectors.id("DOG") == FIRST
    assert vectors.ids(["dog", "Dog", "cat"]) == [FIRST, FIRST, vectors.id("cat")]
    assert "Dog" in vectors
    assert "cat" not in vectors


def test_unknown_words_get_the_same_row_everywhere():
    vectors = random_vectors([], 3)
    words = ["cat", "Cat", "café", "日本語", "\ud800", ""]
    rows = vectors.ids(words)
    code = (
        "from treelax.data.text.vectors import random_vectors; "
        f"print(random_vectors([], 3).ids({words!a}))"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        )
        assert done.stdout.strip() == str(rows)
    assert rows[:3] == [21, 81, 61]  # what models were trained with must not change


@given(st.text())
def test_unknown_words_have_rows_for_unknown_words(word):
    assert FIRST_UNKNOWN <= random_vectors([], 2).id(word) < FIRST


def test_unknown_words_are_spread():
    rows = random_vectors([], 2).ids([f"word{i}" for i in range(10_000)])
    counts = torch.bincount(torch.tensor(rows), minlength=FIRST)[FIRST_UNKNOWN:]
    # 100 expected in each, standard deviation 10
    assert len(counts) == 100
    assert int(counts.min()) > 50
    assert int(counts.max()) < 150


def test_unknown_vectors_are_normal(tmp_path):
    text = "the " + " ".join(["1"] * 300)
    matrix = load_vectors(written(tmp_path, text), ["the"], normalise=False).matrix
    drawn = matrix[FIRST_UNKNOWN:FIRST]
    assert abs(float(drawn.mean())) < 0.02
    assert abs(float(drawn.std()) - 1) < 0.02
    assert matrix[[0, NULL]].count_nonzero() == 0


def test_the_seed_decides(tmp_path):
    path = written(tmp_path, GLOVE)
    one, same, other = (load_vectors(path, WORDS, seed=seed).matrix for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one[FIRST_UNKNOWN:FIRST], other[FIRST_UNKNOWN:FIRST])
    assert torch.equal(one[FIRST:], other[FIRST:])
    few = load_vectors(path, ["the"]).matrix
    assert torch.equal(one[:FIRST], few[:FIRST])


def test_normalised_vectors_have_length_one(tmp_path):
    path = written(tmp_path, GLOVE + "zero 0 0\n")
    vectors = load_vectors(path, [*WORDS, "zero"])
    lengths = vectors.matrix.norm(dim=1)
    zero = vectors.id("zero")
    ones = [row for row in range(FIRST_UNKNOWN, len(lengths)) if row != zero]
    torch.testing.assert_close(lengths[ones], torch.ones(len(ones)))
    assert lengths[[0, NULL, zero]].tolist() == [0, 0, 0]
    assert vectors.matrix[vectors.id("the")].tolist() == pytest.approx([0.6, 0.8])


def test_no_words_at_all(tmp_path):
    vectors = load_vectors(written(tmp_path, GLOVE), [])
    assert vectors.matrix.shape == (FIRST, 2)


def test_random_vectors():
    vectors = random_vectors(["a", "dog", "a"], 200, seed=3)
    assert vectors.known == {"a": FIRST, "dog": FIRST + 1}
    assert vectors.matrix.shape == (FIRST + 2, 200)
    assert abs(float(vectors.matrix[FIRST:].std()) - 1) < 0.15
    assert torch.equal(vectors.matrix, random_vectors(["a", "dog"], 200, seed=3).matrix)
    lengths = random_vectors(["a"], 5, normalise=True, unknown=7).matrix.norm(dim=1)
    torch.testing.assert_close(lengths, torch.tensor([0.0, 0, *[1] * 8]))


def test_vectors_are_restored_from_their_parts():
    old = random_vectors(["a", "dog"], 4, unknown=7)
    new = Vectors(old.matrix, old.known, unknown=old.unknown)
    words = ["a", "Dog", "bird", "cat"]
    assert new.ids(words) == old.ids(words)
    assert (new.dim, repr(new)) == (4, "Vectors(2 known words, dim=4, unknown=7)")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_vectors([], 0), "dim: received 0; expected 1 or more"),
        (lambda: random_vectors([], 2, unknown=0), "unknown: received 0; expected 1 or more"),
        (lambda: Vectors(torch.zeros(3, 2), {}, unknown=0), "unknown: received 0"),
        (lambda: Vectors(torch.zeros(3, 2), {}), r"matrix: received shape \(3, 2\); expected"),
        (lambda: Vectors(torch.zeros(200), {}), r"matrix: received shape \(200,\)"),
        (lambda: Vectors(torch.zeros(9, 2), {"a": 3}, unknown=2), "received rows 3 to 3; expected"),
        (
            lambda: Vectors(torch.zeros(9, 2), {"a": 9}, unknown=2),
            "received rows 9 to 9; .* 4 to 8",
        ),
        (lambda: random_vectors([], 2).ids("dog"), "received the string 'dog'; use id"),
    ],
)
def test_arguments_are_checked(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_unknown_is_checked_when_loading(tmp_path):
    with pytest.raises(InputError, match="unknown: received 0"):
        load_vectors(written(tmp_path, GLOVE), ["the"], unknown=0)
