"""Trained models by name: runs, saved folders, files, the hub, the models that come with treelax."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from commands import saved
from hypothesis import given
from hypothesis import strategies as st
from listops_runs import tiny
from safetensors import safe_open
from sentence_runs import train

import treelax
from treelax.apps.data.listops import encode_listops, parse_expression
from treelax.apps.data.text.vectors import random_vectors
from treelax.apps.tasks.listops.model import ListOpsTagger
from treelax.apps.tasks.text.model_files import WORDS, load_words, save_words
from treelax.apps.tasks.text.pretrained import SentenceModel
from treelax.apps.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.apps.training.config import flatten
from treelax.apps.training.run import Run
from treelax.errors import BackendError, CheckpointError, InputError

EXPRESSION = "[MAX 2 [MIN 4 7 ] 0 ]"
TEXTS = {
    "classify": ["A fine film.", "", "the zebra was sad", "film"],
    "pair": [("A fine film.", "fine film"), ("", "x"), ("the zebra was sad", "a bad film")],
    "tag": ["A fine film.", "", "the zebra was sad", "film"],
}


# ------------------------------------------------------------------ ListOps


def listops_run(folder, config=None):
    config = config or tiny()
    run = Run.create(folder, config, task="listops")
    model = ListOpsTagger(config.model)
    state = {"config": flatten(config), "epoch": 3}
    save_checkpoint(run.best_model, model.state_dict(), kind="listops", state=state)
    return run, model.eval()


@pytest.mark.parametrize("preset", ["balanced-mc", "gold"])
def test_a_tagger_comes_back_from_folder_and_file(tmp_path, preset):
    # None in the config: JSON keeps it, TOML does not
    config = tiny(preset, model__distances="none", model__left_head_bias=0)
    run, model = listops_run(tmp_path / "run", config)
    batch = encode_listops([parse_expression(EXPRESSION)])
    state = torch.get_rng_state(), run.best_model.read_bytes()
    for name in (run.path, str(run.path), run.best_model):
        parser = treelax.load(name)
        assert parser.config == config
        assert torch.equal(parser.model(batch), model(batch))
        assert not any(module.training for module in parser.model.modules())
    assert torch.equal(torch.get_rng_state(), state[0])
    assert run.best_model.read_bytes() == state[1]


def test_the_model_that_comes_with_treelax(tmp_path, monkeypatch):
    [prediction] = treelax.load("listops").parse([EXPRESSION])
    assert prediction.heads == (parse_expression(EXPRESSION).heads,)
    assert prediction.label == parse_expression(EXPRESSION).valencies
    monkeypatch.chdir(tmp_path)  # a folder of the same name is asked for by its path
    listops_run(Path("listops"))
    for name in ("./listops", Path("listops").absolute()):
        assert treelax.load(name).config == tiny()
    assert treelax.load("listops").config != tiny()


def test_taggers_of_another_version_or_size(tmp_path):
    run, model = listops_run(tmp_path / "run")
    for name, config, message in (
        ("wide", flatten(tiny(model__gcn_size=16)), "composer.*train again"),
        ("later", flatten(tiny()) | {"model.colour": "red"}, "config: model.colour: no such key"),
        ("bare", {}, "state_dict"),
    ):
        weights = model.state_dict()
        save_checkpoint(tmp_path / name, weights, kind="listops", state={"config": config})
        with pytest.raises(CheckpointError, match=f"{name}: does not fit .*{message}") as caught:
            treelax.load(tmp_path / name)
        assert "\n" not in str(caught.value)
    os.truncate(run.best_model, 3000)
    with pytest.raises(CheckpointError, match=r"model.safetensors: is cut off or damaged"):
        treelax.load(run.path)


def test_names_of_nothing(tmp_path):
    run = Run.create(tmp_path / "new", tiny(), task="listops")
    for name, message in (
        (tmp_path / "nowhere", r"nowhere: does not exist; expected .* listops"),
        (tmp_path, r"holds neither config.toml nor config.json"),
        (run.path, r"new: holds no model yet; .* continue it with --resume"),
    ):
        with pytest.raises(InputError, match=message):
            treelax.load(name)
    with pytest.raises(InputError, match=r"received v.txt, and listops is a model of ListOps"):
        treelax.load("listops", vectors="v.txt")
    with pytest.raises(InputError, match="is a run of listops; expected one of pair, classify"):
        SentenceModel.from_pretrained(listops_run(tmp_path / "listops")[0].path)


# ------------------------------------------------------------------ sentence models


@pytest.mark.parametrize("kind", TEXTS)
def test_a_saved_model_predicts_exactly_as_the_run(moved_runs, tmp_path, kind):
    run, one, two = moved_runs[kind], tmp_path / "new" / "model", tmp_path / "again"
    model = SentenceModel.from_run(run)
    model.save_pretrained(one)
    loaded = SentenceModel.from_pretrained(one)
    assert not loaded.training
    for soft in (False, True):
        expected = model.predict(TEXTS[kind], soft=soft)
        assert loaded.predict(TEXTS[kind], soft=soft) == expected
        assert treelax.load(str(run)).predict(TEXTS[kind], soft=soft) == expected
    # what was saved from what was loaded holds the same, and nothing points elsewhere
    loaded.save_pretrained(two)
    names = ["config.json", "model.safetensors", "words.safetensors"]
    assert sorted(file.name for file in one.iterdir()) == names
    assert (one / names[0]).read_bytes() == (two / names[0]).read_bytes()
    for name in names[1:]:
        first, second = (load_checkpoint(folder / name).tensors for folder in (one, two))
        assert first.keys() == second.keys()
        assert all(torch.equal(first[key], second[key]) for key in first)
    folder = str(run.parent).encode()
    assert folder in (run / "config.toml").read_bytes()
    assert not any(folder in file.read_bytes() for file in one.iterdir())
    with safe_open(one / "model.safetensors", "pt") as weights:
        assert "encoder.embedding.learned" not in weights.keys()  # noqa: SIM118


def test_a_model_can_be_trained_further_and_saved(tmp_path):
    path = saved(tmp_path)
    model = SentenceModel.from_pretrained(path)
    first = model.predict(TEXTS["classify"])
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1)
    second = model.predict(TEXTS["classify"])
    assert second[0].probability != first[0].probability
    for folder in (tmp_path / "further", path):  # the last over the old one
        model.save_pretrained(folder)
        assert treelax.load(folder).predict(TEXTS["classify"]) == second


@pytest.mark.parametrize("rate", [0, 0.02])
def test_a_transformer_goes_with_its_model(tmp_path, rate):
    pytest.importorskip("transformers")
    from tiny_transformers import bert

    source = bert(tmp_path / "bert")
    changes = {"model__encoder": "transformer", "model__pretrained": source, "train__epochs": 1}
    run = train("pair", tmp_path / "pair", model__pretrained_rate=rate, **changes)
    shutil.rmtree(source)
    model = SentenceModel.from_run(run)
    model.save_pretrained(tmp_path / "saved")
    shutil.rmtree(run)
    loaded = SentenceModel.from_pretrained(tmp_path / "saved")
    expected = model.predict(TEXTS["pair"])
    assert loaded.predict(TEXTS["pair"]) == expected
    written = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert written["settings"]["model.pretrained"] == "transformer"
    for folder in ("saved", "other", "other"):  # over itself, then over another
        loaded.save_pretrained(tmp_path / folder)
    assert treelax.load(tmp_path / "other").predict(TEXTS["pair"]) == expected
    shutil.rmtree(tmp_path / "other" / "transformer")
    with pytest.raises(InputError, match=r"^model.pretrained is .*transformer, which is no folder"):
        treelax.load(tmp_path / "other")


def test_runs_that_cannot_be_used(moved_runs, tmp_path):
    copy = shutil.copytree(moved_runs["tag"], tmp_path / "copy")
    shutil.copy(moved_runs["classify"] / WORDS, copy)
    with pytest.raises(CheckpointError, match=r"best/model.safetensors: does not fit.*size mism"):
        treelax.load(copy)
    (copy / WORDS).unlink()
    with pytest.raises(CheckpointError, match=r"words.safetensors: does not exist"):
        treelax.load(copy)
    (copy / "best" / "model.safetensors").unlink()
    with pytest.raises(InputError, match="holds no model yet"):
        treelax.load(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda config: config.update(format="bert"), "config.json: is of another program"),
        (lambda config: config.pop("settings"), "config.json: has no settings.kind; restore it"),
        (lambda config: config["settings"].update({"model.gcn_size": 7}), "contradicts model"),
        (lambda config: config["labels"].reverse(), "contradicts model.*; restore it"),
    ],
)
def test_a_config_that_was_changed(tmp_path, change, message):
    folder = saved(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=message):
        treelax.load(folder)


def test_files_of_two_models(tmp_path):
    """As they are left when saving over an older model is interrupted."""
    folder = saved(tmp_path)
    model = SentenceModel.from_pretrained(folder)
    with torch.no_grad():
        model.network.encoder.embedding.learned.add_(1)
    model.save_pretrained(tmp_path / "other")
    shutil.copy(tmp_path / "other" / WORDS, folder)
    with pytest.raises(CheckpointError, match=r"words.safetensors: is not the file that model"):
        treelax.load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model.safetensors: does not exist"):
        treelax.load(folder)


def test_where_a_model_cannot_be_saved(moved_runs, tmp_path):
    model = SentenceModel.from_pretrained(saved(tmp_path))
    (tmp_path / "file").write_text("")
    for folder, error, message in (
        (moved_runs["classify"], InputError, "holds a run; expected another folder"),
        (tmp_path / "file", InputError, "is a file; expected a folder for a saved model"),
        (tmp_path / "file" / "x", CheckpointError, r"file/x: was not saved \(.*\); mend that and"),
    ):
        with pytest.raises(error, match=message):
            model.save_pretrained(folder)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for config in ('{"model_type": "bert"}', "[]", "no JSON"):
        (theirs / "config.json").write_text(config)
        with pytest.raises(CheckpointError, match=r"config.json: "):
            model.save_pretrained(theirs)
    assert [part.name for part in theirs.iterdir()] == ["config.json"]


@given(
    st.lists(st.text(st.characters(codec=None), min_size=1), unique=True, max_size=8),
    st.lists(st.text(), max_size=4),
)
def test_saved_words_are_loaded(tmp_path_factory, words, labels):
    file = tmp_path_factory.mktemp("words") / WORDS
    vectors = random_vectors(words, 3, seed=1)
    save_words(file, vectors, tuple(labels))
    loaded, loaded_labels = load_words(file)
    assert torch.equal(loaded.matrix, vectors.matrix)
    assert loaded.ids([*words, "new"]) == vectors.ids([*words, "new"])
    assert loaded_labels == tuple(labels)


@pytest.mark.parametrize(
    "change", [{"words": None}, {"rows": [1]}, {"rows": ["x", "y"]}, {"labels": 3}]
)
def test_damaged_words(tmp_path, change):
    state = {
        "words": ["a", "b"],
        "rows": [102, 103],
        "unknown": 100,
        "labels": ["x"],
        "lower": False,
    }
    tensors = {"vectors": random_vectors(["a", "b"], 4).matrix}
    save_checkpoint(tmp_path / WORDS, tensors, kind="words", state=state | change)
    with pytest.raises(CheckpointError, match=r"words.safetensors: its words are damaged"):
        load_words(tmp_path / WORDS)


# ------------------------------------------------------------------ the hub, played by a stand-in


def test_a_model_from_the_hub(tmp_path, monkeypatch):
    folder, asked = saved(tmp_path), []

    def snapshot_download(name, *, revision, allow_patterns):
        asked.append((name, revision, {Path(file).suffix for file in allow_patterns}))
        return str(folder)

    hub = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.chdir(tmp_path)
    model = SentenceModel.from_pretrained("somebody/stars", revision="v1")
    assert model.labels == ("no", "yes")
    # a folder of that name is taken first, and paths that are none are not looked for there
    shutil.copytree(folder, tmp_path / "somebody" / "stars")
    SentenceModel.from_pretrained("somebody/stars")
    for path in ("./somebody/moon", "nobody", "a/b/c", "/a/b"):
        with pytest.raises(InputError, match="does not exist"):
            SentenceModel.from_pretrained(path)
    assert asked == [("somebody/stars", "v1", {".json", ".safetensors", ".txt", ".model"})]


def test_a_hub_that_refuses_and_one_that_is_not_there(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError("404 Client Error.\n\nRepository Not Found")

    model = SentenceModel.from_pretrained(saved(tmp_path))
    monkeypatch.chdir(tmp_path)
    hub = SimpleNamespace(snapshot_download=refuse, create_repo=refuse)
    refused = r"\(404 Client Error\)"
    for library, error, message in (
        (hub, InputError, refused),
        (None, BackendError, "pip install"),
    ):
        monkeypatch.setitem(sys.modules, "huggingface_hub", library)
        with pytest.raises(error, match=rf"^runs/star: is no folder here.*{message}"):
            SentenceModel.from_pretrained("runs/star")
        with pytest.raises(error, match=message):
            model.push_to_hub("me/x")


def test_a_model_goes_to_the_hub(tmp_path, monkeypatch):
    done = []

    def create_repo(name, *, private, exist_ok):
        done.append((name, private, exist_ok))
        return SimpleNamespace(repo_id=f"me/{name}")

    def upload_folder(*, repo_id, folder_path, commit_message):
        done.append((repo_id, SentenceModel.from_pretrained(folder_path).labels, commit_message))
        return f"https://hub/{repo_id}"

    hub = SimpleNamespace(create_repo=create_repo, upload_folder=upload_folder)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    model = SentenceModel.from_pretrained(saved(tmp_path))
    assert model.push_to_hub("stars", private=True, message="first") == "https://hub/me/stars"
    assert done == [("stars", True, True), ("me/stars", ("no", "yes"), "first")]
