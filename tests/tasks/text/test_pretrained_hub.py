"""Sentence models on the hub, which a stand-in plays."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from treelax.data.text.vectors import random_vectors
from treelax.errors import BackendError, InputError
from treelax.tasks.text.config import SentenceSettings
from treelax.tasks.text.pretrained import SentenceModel

KINDS = ["classify", "pair", "tag"]
TEXTS = {
    "classify": ["A fine film.", "", "the zebra was sad", "film"],
    "pair": [("A fine film.", "fine film"), ("", "x"), ("the zebra was sad", "a bad film")],
    "tag": ["A fine film.", "", "the zebra was sad", "film"],
}


def test_a_model_from_the_hub(saved_model, tmp_path, monkeypatch):
    asked = []

    def snapshot_download(name, *, revision, allow_patterns):
        asked.append((name, revision, allow_patterns))
        return str(saved_model)

    hub = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.chdir(tmp_path)
    model = SentenceModel.from_pretrained("somebody/stars", revision="v1")
    assert model.labels == ("no", "yes")
    [(name, revision, files)] = asked
    assert (name, revision) == ("somebody/stars", "v1")
    assert {Path(file).suffix for file in files} == {".json", ".safetensors", ".txt", ".model"}
    # a folder of that name is taken first, and paths that are none are not looked for there
    shutil.copytree(saved_model, tmp_path / "somebody" / "stars")
    SentenceModel.from_pretrained("somebody/stars")
    for path in ("./somebody/moon", "nobody", "a/b/c", "/a/b"):
        with pytest.raises(InputError, match="does not exist"):
            SentenceModel.from_pretrained(path)
    assert len(asked) == 1


def test_a_hub_that_has_no_such_model(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError("404 Client Error.\n\nRepository Not Found")

    monkeypatch.chdir(tmp_path)
    hub = SimpleNamespace(snapshot_download=refuse, create_repo=refuse)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    with pytest.raises(InputError, match=r"^runs/star: is no folder here .*\(404 Client Error\)"):
        SentenceModel.from_pretrained("runs/star")
    model = SentenceModel(SentenceSettings(), random_vectors(["a"], 4), ["x"])
    with pytest.raises(InputError, match=r"^me/x: could not be published .*\(404 Client Error\)"):
        model.push_to_hub("me/x")


def test_without_the_library_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BackendError, match=r"^runs/star: .*pip install huggingface_hub$"):
        SentenceModel.from_pretrained("runs/star")
    with pytest.raises(BackendError, match="pip install huggingface_hub"):
        SentenceModel(SentenceSettings(), random_vectors(["a"], 4), ["x"]).push_to_hub("me/x")


def test_a_model_goes_to_the_hub(monkeypatch):
    done = []

    def create_repo(name, *, private, exist_ok):
        done.append((name, private, exist_ok))
        return SimpleNamespace(repo_id=f"me/{name}")

    def upload_folder(*, repo_id, folder_path, commit_message):
        model = SentenceModel.from_pretrained(folder_path)
        done.append((repo_id, model.labels, commit_message))
        return f"https://hub/{repo_id}"

    hub = SimpleNamespace(create_repo=create_repo, upload_folder=upload_folder)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    model = SentenceModel(SentenceSettings(), random_vectors(["a"], 4), ["x"])
    assert model.push_to_hub("stars", private=True, message="first") == "https://hub/me/stars"
    assert done == [("stars", True, True), ("me/stars", ("x",), "first")]
