"""Words that training never saw, looked up in the files of training."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from unittest import mock

import pytest
import torch
from sentence_runs import train_with, write_vectors

from treelax.apps.tasks.sentences import word_vectors
from treelax.apps.tasks.text.pretrained import SentenceModel

TEXTS = ["the superb Film", "zzyzx was awful", "", "film"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of vectors, and the runs ``with`` and ``without`` the words of the test set."""
    folder = tmp_path_factory.mktemp("runs")
    vectors = write_vectors(folder)
    for test in (True, False):
        train_with(folder, vectors, "model.learned_words=101", test=test)
    return folder


@pytest.fixture
def files(folder):
    return [folder / "big.txt", folder / "more.txt"]


@pytest.fixture
def model(folder, files):
    return SentenceModel.from_run(folder / "without", vectors=files)


def read_count(model, call):
    """How often a call reads files."""
    with mock.patch.object(word_vectors, "load_joined", wraps=word_vectors.load_joined) as load:
        call(model)
    return load.call_count


def test_known_words_stay_as_they_are(model):
    old = deepcopy(model)
    assert model.look_up(["superb", "Film", "the", "zzyzx", "superb"]) == (3, 2)
    known, rows = old.vectors.known, len(old.vectors.matrix)
    assert {word: model.vectors.known[word] for word in known} == known
    assert set(model.vectors.known) - set(known) == {"superb", "Film"}
    assert torch.equal(model.vectors.matrix[:rows], old.vectors.matrix)
    table, first = model.network.encoder.embedding, old.network.encoder.embedding
    assert torch.equal(table.table, model.vectors.matrix)
    assert torch.equal(table.learned, first.learned)
    assert "zzyzx" not in model.vectors
    assert model.vectors.id("zzyzx") == old.vectors.id("zzyzx")


def test_what_was_looked_up_is_saved(model, tmp_path):
    expected = model.predict(TEXTS)
    model.save_pretrained(tmp_path / "saved")
    saved = SentenceModel.from_pretrained(tmp_path / "saved")
    assert saved.predict(TEXTS) == expected
    assert saved.vectors.known == model.vectors.known
    assert saved.settings.vectors == ("big.txt", "more.txt")


def test_other_spellings_share_a_row(model):
    """FILM is not in the files; film is, and is known."""
    model.look_up(["FILM", "Superb"])
    known = model.vectors.known
    assert known["FILM"] == known["film"]
    model.look_up(["superb"])
    assert known["superb"] == known["Superb"] == len(model.vectors.matrix) - 1


def test_a_model_that_is_moved_and_trained_on(model):
    model.double()
    with torch.inference_mode():
        model.predict(TEXTS)
    table = model.network.encoder.embedding.table
    assert table.dtype == torch.float64
    assert not table.is_inference()
    assert len(table) == len(model.vectors.matrix)


def test_files_are_read_when_there_are_new_words(model):
    assert read_count(model, lambda m: m.predict(["the film", ""])) == 0
    # of a stream, a piece at a time
    pieces = ["superb"] * 32 + ["the"] * 32 + ["awful"]
    assert read_count(model, lambda m: list(m.stream(iter(pieces), batch_size=1))) == 2
    assert read_count(model, lambda m: m.predict(TEXTS * 40, batch_size=1)) == 1
    assert read_count(model, lambda m: m.predict(TEXTS)) == 0  # also those that were not found


def test_predictions_are_those_of_a_run_that_knows_the_words(folder, files, model):
    """From several threads, too."""
    expected = SentenceModel.from_run(folder / "with").predict(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(model.predict, [TEXTS] * 8)) == [expected] * 8
    assert SentenceModel.from_run(folder / "without").predict(TEXTS) != expected
    again = SentenceModel.from_pretrained(str(folder / "without"), vectors=tuple(map(str, files)))
    assert list(again.stream(iter(TEXTS))) == expected
