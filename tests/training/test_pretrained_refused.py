"""Folders that hold no sentence model, or a damaged one: errors that say why not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from treelax.data.text.vectors import Vectors
from treelax.errors import CheckpointError, InputError
from treelax.tasks.text.prediction import SentenceSettings
from treelax.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.tasks.text.pretrained import SentenceModel

KINDS = ["classify", "pair", "tag"]
TEXTS: dict[str, Any] = {
    "classify": ["A fine film.", "", "the zebra was sad", "film"],
    "pair": [("A fine film.", "fine film"), ("", "x"), ("the zebra was sad", "a bad film")],
    "tag": ["A fine film.", "", "the zebra was sad", "film"],
}


def test_runs_that_cannot_be_used(moved_runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; expected the folder of a run"):
        SentenceModel.from_run(tmp_path / "nowhere")
    copy = shutil.copytree(moved_runs["tag"], tmp_path / "copy")
    (copy / "words.safetensors").unlink()
    with pytest.raises(InputError, match=r"holds no words.safetensors; expected it beside config"):
        SentenceModel.from_run(copy)
    (copy / "best" / "model.safetensors").unlink()
    with pytest.raises(InputError, match="holds no model yet"):
        SentenceModel.from_pretrained(copy)
    config = copy / "config.toml"
    config.write_text(config.read_text().replace('task = "tag"', 'task = "listops"'))
    with pytest.raises(
        InputError, match="is a run of listops; expected one of pair, classify, tag"
    ):
        SentenceModel.from_pretrained(copy)


def test_a_run_of_other_words(moved_runs: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(moved_runs["tag"], tmp_path / "copy")
    shutil.copy(moved_runs["classify"] / "words.safetensors", copy)
    with pytest.raises(
        CheckpointError, match=r"best/model.safetensors: does not fit.*size mismatch"
    ):
        SentenceModel.from_run(copy)


def test_settings_that_are_newer_than_a_file_have_their_defaults(
    moved_runs: dict[str, Path], tmp_path: Path
) -> None:
    copy = shutil.copytree(moved_runs["classify"], tmp_path / "copy")
    file = copy / "best" / "model.safetensors"
    saved = load_checkpoint(file)
    older = dict(saved.state["config"])
    del older["model.temperature"], older["train.pool"]
    save_checkpoint(file, saved.tensors, kind=saved.kind, state={"config": older})
    model = SentenceModel.from_run(copy)
    assert model.settings == SentenceModel.from_run(moved_runs["classify"]).settings
    newer = saved.state["config"] | {"model.depth": 3}
    save_checkpoint(file, saved.tensors, kind=saved.kind, state={"config": newer})
    with pytest.raises(CheckpointError, match=r"does not fit this version.*model.depth"):
        SentenceModel.from_run(copy)
    save_checkpoint(file, saved.tensors, kind=saved.kind, state={})
    with pytest.raises(CheckpointError, match="received None; expected settings by name"):
        SentenceModel.from_run(copy)


def test_saved_models_without_newer_settings_have_their_defaults(saved_model: Path) -> None:
    newer = {"quoted", "unusable"}
    file = saved_model / "model.safetensors"
    saved = load_checkpoint(file)
    assert newer < saved.state["settings"].keys()
    older = {key: value for key, value in saved.state["settings"].items() if key not in newer}
    save_checkpoint(file, saved.tensors, kind=saved.kind, state=saved.state | {"settings": older})
    edited(saved_model / "config.json", lambda told: told.update(settings=older))
    settings = SentenceModel.from_pretrained(saved_model).settings
    assert (settings.quoted, settings.unusable) == (None, "error")


def edited(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    told = json.loads(file.read_text())
    change(told)
    file.write_text(json.dumps(told))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda told: told.update(format="bert"), "config.json: is the config of something else"),
        (lambda told: told.pop("settings"), "config.json: has no settings"),
        (
            lambda told: told["settings"].update({"model.gcn_size": 7}),
            r"config.json: does not say what model.safetensors and words.safetensors say "
            r"\(model.gcn_size 6 → 7\)",
        ),
        (lambda told: told["labels"].reverse(), r"say \(labels\); restore it"),
    ],
)
def test_a_config_that_was_changed(
    saved_model: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    edited(saved_model / "config.json", change)
    with pytest.raises(CheckpointError, match=message):
        SentenceModel.from_pretrained(saved_model)


def test_folders_that_hold_no_model(saved_model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds neither config.toml of a run nor config.json"):
        SentenceModel.from_pretrained(tmp_path)
    with pytest.raises(InputError, match="is a file; expected the folder of a run or of a saved"):
        SentenceModel.from_pretrained(saved_model / "config.json")
    with pytest.raises(InputError, match="does not exist; expected the folder"):
        SentenceModel.from_pretrained(tmp_path / "nowhere")
    (saved_model / "model.safetensors").rename(saved_model / "other")
    with pytest.raises(CheckpointError, match=r"model.safetensors: does not exist"):
        SentenceModel.from_pretrained(saved_model)
    (saved_model / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config.json: cannot be read as JSON"):
        SentenceModel.from_pretrained(saved_model)


def test_files_of_two_models(saved_model: Path, tmp_path: Path) -> None:
    """As they are left when saving over an older model is interrupted."""
    model = SentenceModel.from_pretrained(saved_model)
    with torch.no_grad():
        model.network.encoder.embedding.learned.add_(1)  # type: ignore[union-attr]
    model.save_pretrained(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "words.safetensors", saved_model)
    with pytest.raises(CheckpointError, match=r"words.safetensors: is not the file that model"):
        SentenceModel.from_pretrained(saved_model)


def test_where_a_model_cannot_be_saved(
    moved_runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SentenceModel.from_run(moved_runs["classify"])
    with pytest.raises(InputError, match="holds a run; expected another folder"):
        model.save_pretrained(moved_runs["classify"])
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="is a file; expected a folder for a saved model"):
        model.save_pretrained(file)
    with pytest.raises(CheckpointError, match=r"file/x: was not saved \(.*\); mend that and save"):
        model.save_pretrained(file / "x")


@pytest.mark.parametrize("config", ['{"model_type": "bert"}', "[]", "no JSON", "\ud800"])
def test_a_model_of_another_program_is_not_overwritten(
    moved_runs: dict[str, Path], tmp_path: Path, config: str
) -> None:
    (tmp_path / "config.json").write_bytes(config.encode(errors="surrogatepass"))
    (tmp_path / "model.safetensors").write_bytes(b"theirs")
    with pytest.raises(InputError, match=r"config.json: is of another program, whose model would"):
        SentenceModel.from_run(moved_runs["classify"]).save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == b"theirs"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["config.json", "model.safetensors"]


def test_settings_and_vectors_that_do_not_fit() -> None:
    settings = SentenceSettings()
    with pytest.raises(InputError, match="row 0 that is not 0"):
        SentenceModel(settings, Vectors(torch.ones(104, 4), {}, unknown=100), ["x"])
