"""The words of a run: what is saved is loaded, and damage is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from treelax.data.text.vectors import Vectors, load_vectors, random_vectors
from treelax.errors import CheckpointError
from treelax.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.tasks.text.model_files import WORDS as FILE
from treelax.tasks.text.model_files import load_words, save_words

LABELS = ("no", "yes")
some_words = st.lists(st.text(st.characters(codec=None), min_size=1), unique=True, max_size=8)


def saved(folder: Path) -> Path:
    save_words(folder / FILE, random_vectors(["a", "dog"], 4), LABELS, lower=True)
    return folder / FILE


def resaved(folder: Path, state: dict[str, object], **tensors: torch.Tensor) -> Path:
    """A file with that state, whole as a checkpoint."""
    tensors = tensors or {"vectors": random_vectors(["a", "dog"], 4).matrix}
    save_checkpoint(folder / FILE, tensors, kind="words", state=state)
    return folder / FILE


def good_state() -> dict[str, object]:
    return {
        "words": ["a", "dog"],
        "rows": [102, 103],
        "unknown": 100,
        "labels": list(LABELS),
        "lower": False,
    }


@given(words=some_words, labels=st.lists(st.text(), max_size=4), lower=st.booleans())
def test_what_is_saved_is_loaded(tmp_path_factory, words, labels, lower):
    file = tmp_path_factory.mktemp("words") / FILE
    vectors = random_vectors(words, 3, unknown=5, seed=1)
    save_words(file, vectors, tuple(labels), lower=lower)
    loaded, loaded_labels, loaded_lower = load_words(file)
    assert torch.equal(loaded.matrix, vectors.matrix)
    assert (loaded.known, loaded.unknown) == (vectors.known, vectors.unknown)
    assert loaded.ids([*words, "new"]) == vectors.ids([*words, "new"])
    assert (loaded_labels, loaded_lower) == (tuple(labels), lower)
    assert os.listdir(file.parent) == [FILE]


def test_words_that_share_a_row(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("the 1 0\ndog 0 1\n")
    vectors = load_vectors(tmp_path / "vectors.txt", ["The", "the", "dog", "bird"])
    save_words(tmp_path / FILE, vectors, LABELS, lower=False)
    loaded, _, _ = load_words(tmp_path / FILE)
    assert loaded.known == {"The": 102, "the": 102, "dog": 103}
    assert loaded.id("bird") == vectors.id("bird")


def test_a_table_of_a_half_type_stays_one(tmp_path: Path) -> None:
    matrix = random_vectors(["a"], 4).matrix.half()
    save_words(tmp_path / FILE, Vectors(matrix, {"a": 102}), LABELS, lower=False)
    loaded, _, _ = load_words(tmp_path / FILE)
    assert loaded.matrix.dtype == torch.float16
    assert torch.equal(loaded.matrix, matrix)


def test_the_state_that_the_damage_below_is_done_to(tmp_path: Path) -> None:
    vectors, labels, lower = load_words(resaved(tmp_path, good_state()))
    assert (vectors.known, labels, lower) == ({"a": 102, "dog": 103}, LABELS, False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": None}, "words are no list of str"),
        ({"words": "ad"}, "words are no list of str"),
        ({"words": ["a", 3]}, "words are no list of str"),
        ({"words": ["a"]}, "1 words with 2 rows"),
        ({"rows": [102, "103"]}, "rows are no list of int"),
        ({"rows": [102.0, 103.0]}, "rows are no list of int"),
        ({"rows": [102, 104]}, "expected 102 to 103"),
        ({"rows": [0, 103]}, "expected 102 to 103"),
        ({"labels": "no"}, "labels are no list of str"),
        ({"unknown": None}, "damaged"),
        ({"unknown": 1000}, "damaged"),
    ],
)
def test_damaged_states(tmp_path: Path, change: dict[str, object], message: str) -> None:
    file = resaved(tmp_path, good_state() | change)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_words(file)
    assert str(caught.value).startswith(f"{file}: its words are damaged")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", good_state())
def test_missing_keys(tmp_path: Path, key: str) -> None:
    state = good_state()
    del state[key]
    with pytest.raises(CheckpointError, match=f"damaged \\(without '{key}'\\)"):
        load_words(resaved(tmp_path, state))


def test_missing_vectors(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="damaged \\(without 'vectors'\\)"):
        load_words(resaved(tmp_path, good_state(), other=torch.zeros(2)))


@pytest.mark.parametrize("left", [0, 5, 100, -1])
def test_a_file_that_is_cut_off(tmp_path: Path, left: int) -> None:
    file = saved(tmp_path)
    file.write_bytes(file.read_bytes()[:left])
    with pytest.raises(CheckpointError, match=f"{FILE}: is cut off or damaged"):
        load_words(file)


def test_a_header_that_is_damaged(tmp_path: Path) -> None:
    file = saved(tmp_path)
    whole = load_checkpoint(file)
    state = {key: value for key, value in whole.state.items() if key != "lower"}
    save_checkpoint(file, whole.tensors, kind=whole.kind, state=state)
    with pytest.raises(CheckpointError, match="without 'lower'"):
        load_words(file)


def test_a_checkpoint_of_something_else(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / FILE, {}, kind="pair", state={})
    with pytest.raises(CheckpointError, match="holds a checkpoint of 'pair'; expected one of"):
        load_words(tmp_path / FILE)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="does not exist"):
        load_words(tmp_path / FILE)


def test_an_older_file_stays_if_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = saved(tmp_path)

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(CheckpointError, match="was not saved: No space left"):
        save_words(file, random_vectors(["cat"], 4), ("x",), lower=False)
    assert load_words(file)[1] == LABELS
