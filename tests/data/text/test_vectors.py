"""Word vectors: which word has which row, files of vectors, and what is refused."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from treelax.apps.data.text.vectors import (
    FIRST_UNKNOWN,
    NULL,
    Vectors,
    load_joined,
    load_vectors,
    random_vectors,
)
from treelax.errors import DataError, InputError

GLOVE = "the 3 4\ndog -0.5 1e-1\n. . . 7 8\ncafé 5 6\n1 9 9.5\n"
WORDS = ["café", "the", "1", "bird", "dog", ". . ."]
FIRST = FIRST_UNKNOWN + 100
VEC = np.array([[3, 4], [1, 2], [5, 6]], dtype=np.float16)
EXPECTED = {
    "café": [5.0, 6.0],
    "the": [3.0, 4.0],
    "1": [9.0, 9.5],
    "dog": pytest.approx([-0.5, 0.1]),
    ". . .": [7.0, 8.0],
}


def written(folder: Path, content: str | bytes, name: str = "vectors.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def archived(folder: Path, **arrays: object) -> Path:
    np.savez(folder / "vectors.npz", **arrays)
    return folder / "vectors.npz"


def rows_of(vectors: Vectors) -> dict[str, list[float]]:
    return {word: vectors.matrix[row].tolist() for word, row in vectors.known.items()}


def loaded(folder: Path, text: str | bytes, words: list[str]) -> dict[str, list[float]]:
    return rows_of(load_vectors(written(folder, text), words, normalise=False))


def test_spellings(tmp_path):
    """A word's own spelling comes before its lower case, that before the mark it stands for."""
    path = written(tmp_path, "The 1\nthe 2\n( 3\n\" 4\n'' 5\n1/2 6\nand/or 7\n")
    words = ["The", "THE", "the", "-LRB-", "-lrb-", "``", "''", "1\\/2", "AND\\/OR"]
    rows = [1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    vectors = load_vectors(path, words, normalise=False)
    assert rows_of(vectors) == {word: [row] for word, row in zip(words, rows, strict=True)}


def test_unknown_words_get_the_same_row_everywhere():
    # what models were trained with must not change
    assert random_vectors([], 3).ids(["cat", "Cat", "café"]) == [21, 81, 61]


def test_normalised_vectors_have_length_one(tmp_path):
    path = written(tmp_path, GLOVE + "zero 0 0\n")
    vectors = load_vectors(path, [*WORDS, "zero"])
    lengths = vectors.matrix.norm(dim=1)
    zero = vectors.id("zero")
    ones = [row for row in range(FIRST_UNKNOWN, len(lengths)) if row != zero]
    torch.testing.assert_close(lengths[ones], torch.ones(len(ones)))
    assert lengths[[0, NULL, zero]].tolist() == [0, 0, 0]
    assert vectors.matrix[vectors.id("the")].tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_vectors([], 0), "dim: received 0; expected 1 or more"),
        (lambda: Vectors(torch.zeros(3, 2), {}), r"matrix: received shape \(3, 2\) for"),
        (lambda: random_vectors([], 2).ids("dog"), "received the string 'dog'; expected several"),
    ],
)
def test_arguments_are_checked(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_vectors_of_several_files_stand_side_by_side(tmp_path):
    one = written(tmp_path, "dog 1 2 3\nThe 4 5 6\n", "one.txt")
    two = written(tmp_path, "cat 7 8\nthe 9 10\nhound 7 8\n", "two.txt")
    both = load_joined([one, two], ["dog", "The", "cat"], normalise=False, seed=3)
    assert rows_of(both) == {
        "dog": [1, 2, 3, 0, 0],
        "The": [4, 5, 6, 9, 10],
        "cat": [0, 0, 0, 7, 8],
    }
    parts = [
        load_vectors(f, ["dog", "cat"], normalise=False, seed=s) for f, s in ((one, 3), (two, 4))
    ]
    assert torch.equal(both.matrix[:FIRST], torch.cat([p.matrix[:FIRST] for p in parts], 1))
    assert not both.matrix[:FIRST_UNKNOWN].any()
    assert both.id("bird") == parts[0].id("bird")
    lengths = load_joined([one, two], ["dog", "cat"]).matrix.norm(dim=1)
    torch.testing.assert_close(lengths[FIRST_UNKNOWN:], torch.ones(len(lengths) - FIRST_UNKNOWN))
    alone = load_joined([one], ["dog"], seed=3)
    assert torch.equal(alone.matrix, load_vectors(one, ["dog"], seed=3).matrix)


@pytest.mark.parametrize(("head", "end"), [("", "\n"), ("5 2\n", " \n"), ("\ufeff5 2\n", "\r\n")])
def test_text(tmp_path, head, end):
    path = written(tmp_path, gzip.compress((head + GLOVE).replace("\n", end).encode()), "v.vec.gz")
    vectors = load_vectors(path, WORDS, normalise=False)
    assert rows_of(vectors) == EXPECTED
    assert list(vectors.known.values()) == list(range(FIRST, FIRST + 5))
    assert vectors.matrix.shape == (FIRST + 5, 2)
    assert vectors.matrix.dtype == torch.float32


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        (". . . 7 8\nat name@domain.com 1 2\nat 3 4\n", [". . .", "at"], [[7, 8], [3, 4]]),
        ("the 1 2\ndog 3  4\n. .  7 8\n", ["dog", ". ."], [[3, 4], [7, 8]]),
        ("the 1 2\nthe 3 4\n", ["the"], [[1, 2]]),
        (b"caf\xe9 1 2\n\nthe 3 4\n\n", ["the"], [[3, 4]]),  # neither UTF-8 nor without blank lines
        ("the 1 2\ndog 3 x4\n", ["the"], [[1, 2]]),  # a number that is not needed is not parsed
    ],
)
def test_odd_lines(tmp_path, text, words, expected):
    assert list(loaded(tmp_path, text, words).values()) == expected


@pytest.mark.parametrize("words", ["the\ndog\ncafé", ["the", "dog", "café"]], ids=["one", "array"])
def test_an_archive(tmp_path, words):
    path = archived(tmp_path, words=np.array(words), vec=VEC).rename(tmp_path / "V.NPZ")
    vectors = load_vectors(path, ["café", "bird", "the"], normalise=False)
    assert rows_of(vectors) == {"café": [5.0, 6.0], "the": [3.0, 4.0]}
    assert vectors.matrix.dtype == torch.float32
    rows = np.array([0, 0, 2], dtype=np.int32)
    shared = load_vectors(
        archived(tmp_path, words=np.array(words), rows=rows, vec=VEC), ["dog", "the"]
    )
    assert shared.known == {"dog": FIRST, "the": FIRST}
    assert len(shared.matrix) == FIRST + 1


def test_archives_that_cannot_be_used(tmp_path):
    one = np.array("the")
    for arrays in (
        {"vec": VEC},
        {"words": np.array("the\na\nb\nc"), "vec": VEC},
        {"words": one, "vec": np.ones((1, 2), int)},
        {"words": one, "vec": VEC, "rows": np.array([3])},
        {"words": np.array(["the"], dtype=object), "vec": VEC[:1]},
        {"words": one, "vec": VEC[:1] * np.float16("inf")},
    ):
        path = archived(tmp_path, **arrays)
        with pytest.raises(
            DataError, match=r"vectors.npz: (cannot be read as .npz; exp|.*not fini)"
        ):
            load_vectors(path, ["the"])
