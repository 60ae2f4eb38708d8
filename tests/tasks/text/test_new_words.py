"""Words that training never saw, looked up in the files of training."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from vector_runs import train_with, write_vectors

from treelax.errors import InputError
from treelax.tasks.text import new_words
from treelax.tasks.text.config import DataConfig, SentenceSettings, TextConfig
from treelax.tasks.text.new_words import vector_files
from treelax.tasks.text.pretrained import SentenceModel

TEXTS = ["the superb Film", "zzyzx was awful", "", "film"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of vectors, and the runs ``with`` and ``without`` the words of the test set."""
    folder = tmp_path_factory.mktemp("runs")
    vectors = write_vectors(folder)
    for test in (True, False):
        train_with(folder, vectors, "model.learned_words=101", test=test)
    return folder


@pytest.fixture
def files(folder: Path) -> list[Path]:
    return [folder / "big.txt", folder / "more.txt"]


@pytest.fixture
def model(folder: Path, files: list[Path]) -> SentenceModel:
    return SentenceModel.from_run(folder / "without", vectors=files)


def read_count(model: SentenceModel, ask: Any) -> int:
    """How often files are read for something that is asked."""
    with mock.patch.object(new_words, "load_joined", wraps=new_words.load_joined) as load:
        ask(model)
    return load.call_count


def test_predictions_are_those_of_a_run_that_knows_the_words(
    folder: Path, files: list[Path], model: SentenceModel
) -> None:
    expected = SentenceModel.from_run(folder / "with").predict(TEXTS)
    assert model.predict(TEXTS) == expected
    assert SentenceModel.from_run(folder / "without").predict(TEXTS) != expected
    again = SentenceModel.from_pretrained(str(folder / "without"), vectors=tuple(map(str, files)))
    assert list(again.stream(iter(TEXTS))) == expected


def test_known_words_stay_as_they_are(model: SentenceModel) -> None:
    old = deepcopy(model)
    assert model.look_up(["superb", "Film", "the", "zzyzx", "superb"]) == (3, 2)
    known, rows = old.vectors.known, len(old.vectors.matrix)
    assert {word: model.vectors.known[word] for word in known} == known
    assert set(model.vectors.known) - set(known) == {"superb", "Film"}
    assert torch.equal(model.vectors.matrix[:rows], old.vectors.matrix)
    table, before = model.network.encoder.embedding, old.network.encoder.embedding
    assert torch.equal(table.table, model.vectors.matrix)
    assert table.learned is not None
    assert before.learned is not None
    assert torch.equal(table.learned, before.learned)
    assert "zzyzx" not in model.vectors
    assert model.vectors.id("zzyzx") == old.vectors.id("zzyzx")


def test_files_are_read_when_there_are_new_words(model: SentenceModel) -> None:
    assert read_count(model, lambda m: m.predict(["the film", ""])) == 0
    assert read_count(model, lambda m: m.predict(TEXTS * 40, batch_size=1)) == 1
    assert read_count(model, lambda m: m.predict(TEXTS)) == 0  # also those that were not found


def test_a_stream_is_looked_up_a_piece_at_a_time(model: SentenceModel) -> None:
    pieces = ["superb"] * 32 + ["the"] * 32 + ["awful"]
    assert read_count(model, lambda m: list(m.stream(iter(pieces), batch_size=1))) == 2
    assert read_count(model, lambda m: m.look_up(["superb", "Film"])) == 1
    assert read_count(model, lambda m: list(m.stream(["Film"]))) == 0


def test_what_was_looked_up_is_saved(model: SentenceModel, tmp_path: Path) -> None:
    expected = model.predict(TEXTS)
    model.save_pretrained(tmp_path / "saved")
    saved = SentenceModel.from_pretrained(tmp_path / "saved")
    assert saved.predict(TEXTS) == expected
    assert saved.vectors.known == model.vectors.known
    assert saved.settings.vectors == ("big.txt", "more.txt")


def test_a_saved_model_looks_up_more_words(
    model: SentenceModel, files: list[Path], tmp_path: Path
) -> None:
    """Its learned vectors are not those of the files, which is no fault of these."""
    expected = model.predict(TEXTS)
    fresh = SentenceModel.from_run(files[0].parent / "without", vectors=files)
    fresh.look_up(["superb"])
    fresh.save_pretrained(tmp_path / "saved")
    assert (
        SentenceModel.from_pretrained(tmp_path / "saved", vectors=files).predict(TEXTS) == expected
    )


def test_other_spellings_share_a_row(model: SentenceModel) -> None:
    """FILM is not in the files; film is, and is known."""
    model.look_up(["FILM", "Superb"])
    known = model.vectors.known
    assert known["FILM"] == known["film"]
    model.look_up(["superb"])
    assert known["superb"] == known["Superb"] == len(model.vectors.matrix) - 1


def test_several_threads(folder: Path, model: SentenceModel) -> None:
    expected = SentenceModel.from_run(folder / "with").predict(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for said in pool.map(lambda _: model.predict(TEXTS), range(8)):
            assert said == expected


def test_a_model_that_is_moved_and_trained_on(model: SentenceModel) -> None:
    model.double()
    with torch.inference_mode():
        model.predict(TEXTS)
    table = model.network.encoder.embedding.table
    assert table.dtype == torch.float64
    assert not table.is_inference()
    assert len(table) == len(model.vectors.matrix)


def test_settings_name_the_files() -> None:
    data = DataConfig(vectors="/a/glove.zip", more_vectors=("b/more.npz",), normalise=False)
    settings = SentenceSettings.of(TextConfig(kind="classify", data=data), rows=200)
    assert (settings.vectors, settings.normalise) == (("glove.zip", "more.npz"), False)
    assert SentenceSettings.of(TextConfig(kind="classify"), rows=200).vectors == ()


def test_models_without_use_for_files() -> None:
    settings = SentenceSettings()
    assert vector_files(None, settings) == vector_files([], settings) == ()
    transformer = replace(settings.model, encoder="transformer", pretrained="bert")
    with pytest.raises(
        InputError, match="a transformer, which makes its word vectors; expected none"
    ):
        vector_files("glove.txt", replace(settings, model=transformer))


def test_refusals_name_the_model(
    folder: Path, files: list[Path], model: SentenceModel, tmp_path: Path
) -> None:
    run = str(folder / "without")
    with pytest.raises(InputError, match=f"big.txt for {re.escape(run)}; expected as in training"):
        SentenceModel.from_run(run, vectors=files[0])
    model.save_pretrained(tmp_path / "saved")
    swapped = SentenceModel.from_pretrained(tmp_path / "saved", vectors=files[::-1])
    with pytest.raises(
        InputError, match=f"the vector that {re.escape(str(tmp_path / 'saved'))} has"
    ):
        swapped.predict(TEXTS)
