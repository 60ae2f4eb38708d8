"""Files of word vectors: text, zipped or not, archives, and what is refused."""

import bz2
import gzip
import lzma
import os
import sys
import zipfile

import numpy as np
import pytest
import torch
from vector_texts import (
    FIRST,
    GLOVE,
    WORDS,
    archived,
    locked,
    one_array,
    rows_of,
    written,
    zipped,
)

from treelax.data.text.vector_files import LINES_BETWEEN_REPORTS, read_vectors
from treelax.data.text.vectors import load_vectors
from treelax.errors import BackendError, DataError, InputError

# ------------------------------------------------------------------ text


EXPECTED = {
    "café": [5.0, 6.0],
    "the": [3.0, 4.0],
    "1": [9.0, 9.5],
    "dog": pytest.approx([-0.5, 0.1]),
    ". . .": [7.0, 8.0],
}


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("v.txt", bytes),
        ("v.vec", bytes),
        ("v.txt.gz", gzip.compress),
        ("v.txt.xz", lzma.compress),
        ("v.txt.bz2", bz2.compress),
    ],
)
@pytest.mark.parametrize("head", ["", "5 2\n"], ids=["glove", "word2vec"])
@pytest.mark.parametrize("end", ["\n", " \n", "\r\n"], ids=["plain", "space", "return"])
def test_text(tmp_path, name, compress, head, end):
    path = written(tmp_path, compress((head + GLOVE).replace("\n", end).encode()), name)
    vectors = load_vectors(path, WORDS, normalise=False)
    assert rows_of(vectors) == EXPECTED
    assert list(vectors.known.values()) == list(range(FIRST, FIRST + 5))
    assert vectors.matrix.shape == (FIRST + 5, 2)
    assert vectors.matrix.dtype == torch.float32


def test_a_zip_with_one_file(tmp_path):
    assert rows_of(load_vectors(zipped(tmp_path, a=GLOVE), WORDS, normalise=False)) == EXPECTED


def test_a_zip_made_on_a_mac(tmp_path):
    path = zipped(tmp_path, a=GLOVE)
    with zipfile.ZipFile(path, "a") as archive:
        for name in ("__MACOSX/folder/._a.txt", "folder/.DS_Store"):
            archive.writestr(name, "x")
    assert rows_of(load_vectors(path, WORDS, normalise=False)) == EXPECTED


def test_a_zip_with_very_many_files(tmp_path):
    path = zipped(tmp_path, **{f"name{number}": GLOVE for number in range(100)})
    with pytest.raises(
        DataError, match=r"does not say which file; it has .*name7.txt, …: unpack it"
    ):
        load_vectors(path, WORDS)


def test_a_zip_with_several_files(tmp_path):
    path = zipped(tmp_path, a="the 1 2 3\n", b=GLOVE)
    vectors = load_vectors(path, WORDS, normalise=False, member="folder/b.txt")
    assert rows_of(vectors) == EXPECTED
    with pytest.raises(DataError, match=r"does not say which file; .* folder/a.txt, folder/b.txt"):
        load_vectors(path, WORDS)
    with pytest.raises(DataError, match=r"has no file 'c.txt'; it has folder/a.txt"):
        load_vectors(path, WORDS, member="c.txt")


def test_suffixes_in_capital_letters(tmp_path):
    path = zipped(tmp_path, a=GLOVE).rename(tmp_path / "V.ZIP")
    assert rows_of(load_vectors(path, WORDS, normalise=False)) == EXPECTED
    vectors = load_vectors(path, WORDS, normalise=False, member="folder/a.txt")
    assert rows_of(vectors) == EXPECTED
    path = archived(tmp_path, words=np.array(["the"]), vec=VEC[:1]).rename(tmp_path / "V.NPZ")
    assert rows_of(load_vectors(path, ["the"], normalise=False)) == {"the": [3.0, 4.0]}


def test_archives_with_a_password(tmp_path):
    path = locked(zipped(tmp_path, a=GLOVE))
    message = r"vectors.zip, after line 0: cannot be read: File 'folder/a.txt' is encrypted"
    with pytest.raises(DataError, match=message) as caught:
        load_vectors(path, WORDS)
    assert "\n" not in str(caught.value)
    path = locked(archived(tmp_path, words=np.array(["the"]), vec=VEC[:1]))
    message = r"vectors.npz: cannot be read: File 'words.npy' is encrypted.*; expected an archive"
    with pytest.raises(DataError, match=message) as caught:
        load_vectors(path, ["the"])
    assert "\n" not in str(caught.value)


def test_the_first_word_may_hold_spaces(tmp_path):
    vectors = load_vectors(
        written(tmp_path, ". . . 7 8\nat name@domain.com 1 2\nat 3 4\n"),
        [". . .", "at"],
        normalise=False,
    )
    assert rows_of(vectors) == {". . .": [7.0, 8.0], "at": [3.0, 4.0]}


def test_spaces_in_a_row_count_as_one(tmp_path):
    path = written(tmp_path, "the 1 2\ndog 3  4\ncat  5 6\n. .  7 8\n")
    vectors = load_vectors(path, ["dog", "cat", ". ."], normalise=False)
    assert rows_of(vectors) == {"dog": [3.0, 4.0], "cat": [5.0, 6.0], ". .": [7.0, 8.0]}


def test_the_first_of_two_counts(tmp_path):
    path = written(tmp_path, "the 1 2\nthe 3 4\n")
    assert rows_of(load_vectors(path, ["the"], normalise=False)) == {"the": [1.0, 2.0]}


def test_words_that_are_not_utf8_and_blank_lines_do_no_harm(tmp_path):
    path = written(tmp_path, b"caf\xe9 1 2\n\nthe 3 4\n\n")
    assert rows_of(load_vectors(path, ["the"], normalise=False)) == {"the": [3.0, 4.0]}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "the 1 2\na 1 2\ndog 3\n",
            3,
            "received 1 number behind a word; expected 2, as line 1 has it",
        ),
        ("the 1 2\na 1 2\ndog\n", 3, "received 0 numbers behind a word; expected 2"),
        ("the 1 2\na 1 2\ncat 3.5 4.5 5.5 1\n", 3, "received 4 numbers behind a word; expected 2"),
        ("the 1 2\ndog 3 x4\n", 2, "received 'x4'; expected 2 numbers behind the word 'dog'"),
        ("the 1 2\ndog 3 nan\n", 2, "received a number that is not finite"),
        ("the 1 2\ndog 3 1e39\n", 2, "received a number that is not finite"),
        ("2 3\nthe 1 2\n", 2, "received 2 numbers behind a word; expected 3"),
        ("2 0\nthe\n", 1, "received 0 dimensions"),
        ("the\n", 1, "received 1 field and no number at the end; expected a word and its numbers"),
        ("the\t1\t2 x\n", 1, "received 4 fields and no number at the end"),
        (f"1 {'9' * 5000}\n", 1, "received 2 fields and no number at the end"),
        (
            f"{'9' * 5000} 2\nthe 1 2\n",
            2,
            "received 2 numbers behind a word; expected 1, as line 1",
        ),
        ("the 1 zz 3\nsoup 4 5 6\n", 2, "received 3 numbers behind a word; expected 1, as line 1"),
    ],
)
def test_errors_name_the_line(tmp_path, text, line, message):
    with pytest.raises(DataError, match=message) as caught:
        load_vectors(written(tmp_path, text), ["the", "dog"])
    assert f"vectors.txt, line {line}: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_of_words_not_needed_are_not_parsed(tmp_path):
    path = written(tmp_path, "the 1 2\ndog 3 x4\n")
    assert rows_of(load_vectors(path, ["the"], normalise=False)) == {"the": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.txt", b"", "is empty"),
        ("v.txt", b"2 3\n", "is empty"),
        ("v.txt", b"3 2\nthe 1 2\ndog 3 4\n", "ends after 2 words; its first line announces 3"),
        ("v.txt", b"bird 1 2\n", "has none of the 2 words, such as 'the'"),
        ("v.txt.gz", GLOVE.encode(), "after line 0: cannot be read"),
        ("v.txt.xz", lzma.compress(GLOVE.encode())[:-9], r"after line \d: cannot be read"),
        (
            "v.zip",
            b"PK",
            r"v\.zip: cannot be read as a zip archive: File is not a zip file; expected a zip of one "
            "text file of vectors$",
        ),
        ("v.bin", b"", "is in word2vec's binary format; expected text"),
        ("v.bin.gz", b"", "is in word2vec's binary format"),
        ("V.BIN", b"", "is in word2vec's binary format"),
        ("v.npz", b"PK", "cannot be read as .npz"),
        ("v.npz", b"", "cannot be read as .npz"),
        (
            "v.npz",
            b"the 0.5 1\n",
            "cannot be read as .npz.*expected words and vec in it, or vectors",
        ),
        ("v.npz", one_array(), "cannot be read as .npz"),
    ],
)
def test_files_that_are_something_else(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message) as caught:
        load_vectors(written(tmp_path, content, name), ["the", "dog"])
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "pickle" not in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.txt: does not exist; expected word vectors"):
        load_vectors(tmp_path / "nowhere.txt", ["the"])
    with pytest.raises(DataError, match="is a folder; expected word vectors"):
        load_vectors(tmp_path, ["the"])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=r"pipe: is no plain file .*; expected word vectors"):
        load_vectors(tmp_path / "pipe", ["the"])


def test_a_member_of_what_is_no_zip(tmp_path):
    with pytest.raises(InputError, match=r"member: received 'a' for .*; expected none but for a"):
        load_vectors(written(tmp_path, GLOVE), ["the"], member="a")


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz", "v.zip", "v.npz"])
def test_progress_runs_up_to_the_size(tmp_path, name):
    lines = 3 * LINES_BETWEEN_REPORTS + 5
    text = "".join(f"w{i} {i} {i % 7}\n" for i in range(lines))
    if name == "v.zip":
        path = zipped(tmp_path, a=text)
    elif name == "v.npz":
        path = archived(tmp_path, words=np.array(["w1"]), vec=np.ones((1, 2)))
    else:
        path = written(tmp_path, gzip.compress(text.encode()) if "gz" in name else text, name)
    calls: list[tuple[int, int]] = []
    load_vectors(path, ["w1"], progress=lambda done, size: calls.append((done, size)))
    size = path.stat().st_size
    assert [total for _, total in calls] == [size] * (1 if name == "v.npz" else 4)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert calls[-1] == (size, size)
    assert calls[0][0] > 0


# ------------------------------------------------------------------ archives


VEC = np.array([[3, 4], [1, 2], [5, 6]], dtype=np.float16)


@pytest.mark.parametrize("words", ["the\ndog\ncafé", ["the", "dog", "café"]], ids=["one", "array"])
def test_an_archive(tmp_path, words):
    path = archived(tmp_path, words=np.array(words), vec=VEC)
    vectors = load_vectors(path, ["café", "bird", "the"], normalise=False)
    assert rows_of(vectors) == {"café": [5.0, 6.0], "the": [3.0, 4.0]}
    assert vectors.matrix.dtype == torch.float32


def test_an_archive_with_shared_rows(tmp_path):
    path = archived(
        tmp_path,
        words=np.array("dog\nhound\nthe\npup"),
        rows=np.array([2, 2, 0, 2], dtype=np.int32),
        own=np.array([True, False, True, False]),
        vec=VEC,
    )
    vectors = load_vectors(path, ["hound", "the", "dog"], normalise=False)
    assert rows_of(vectors) == {"hound": [5.0, 6.0], "the": [3.0, 4.0], "dog": [5.0, 6.0]}
    assert vectors.known["hound"] == vectors.known["dog"]
    assert len(vectors.matrix) == FIRST + 2
    own = load_vectors(path, ["hound", "the", "dog"], normalise=False, own_only=True)
    assert rows_of(own) == {"the": [3.0, 4.0], "dog": [5.0, 6.0]}


@pytest.mark.parametrize(
    "arrays",
    [
        {"vec": VEC},
        {"words": np.array("a")},
        {"words": np.arange(3), "vec": VEC},
        {"words": np.array([["the"]]), "vec": VEC},
        {"words": np.array("the"), "vec": VEC},
        {"words": np.array("the"), "vec": VEC, "rows": np.arange(3)},
        {"words": np.array("the"), "vec": VEC[0]},
        {"words": np.array("the"), "vec": VEC[0, 0]},
        {"words": np.array("the"), "vec": np.ones((1, 2), int)},
        {"words": np.array("the"), "vec": VEC, "rows": np.array([3])},
        {"words": np.array("the"), "vec": VEC, "rows": np.array([-1])},
        {"words": np.array("the"), "vec": VEC[:1], "own": np.array([1, 0])},
    ],
)
def test_archives_that_do_not_fit_together(tmp_path, arrays):
    with pytest.raises(
        DataError, match=r"vectors.npz: received the arrays .*; expected words, str"
    ):
        load_vectors(archived(tmp_path, **arrays), ["the"])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"words": np.array("the"), "vec": VEC[:1] * np.float16("inf")}, "is not finite"),
        ({"words": np.array(["the"], dtype=object), "vec": VEC[:1]}, "cannot be read as .npz"),
    ],
)
def test_archives_that_cannot_be_used(tmp_path, arrays, message):
    with pytest.raises(DataError, match=message) as caught:
        load_vectors(archived(tmp_path, **arrays), ["the"])
    assert str(caught.value).startswith(str(tmp_path))


def test_without_numpy_one_is_told_what_to_install(tmp_path, monkeypatch):
    path = archived(tmp_path, words=np.array("the"), vec=VEC[:1])
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(BackendError, match=r'needs NumPy.*pip install "treelax\[data\]"'):
        load_vectors(path, ["the"])


def test_reading_gives_the_words_as_the_file_spells_them(tmp_path):
    found, matrix = read_vectors(written(tmp_path, GLOVE), ["dog", "Dog"])
    assert found == {"dog": 0}
    assert matrix.shape == (1, 2)
    found, matrix = read_vectors(written(tmp_path, GLOVE), ["bird"])
    assert found == {}
    assert matrix.shape == (0, 2)


@pytest.mark.parametrize("more", ["1e-05 2.0 3.0 4.0", "1 2 3 4"])
def test_numbers_too_many_are_no_part_of_the_word(tmp_path, more):
    path = written(tmp_path, f"the 1 2 3\na 1 2 3\nfilm {more}\n")
    with pytest.raises(DataError, match="line 3: received 4 numbers behind a word; expected 3"):
        load_vectors(path, ["the", "film"])


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path):
    for header in ("", "1 2\n"):
        path = written(tmp_path, f"\ufeff{header}the 3 4\n")
        assert rows_of(load_vectors(path, ["the"], normalise=False)) == {"the": [3.0, 4.0]}
