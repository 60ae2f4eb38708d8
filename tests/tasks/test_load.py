"""Trained models by name: runs, saved folders, files, the model in the box; and what is refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from listops_runs import tiny

import treelax
from treelax.apps.data.listops import encode_listops, parse_expression
from treelax.apps.data.text.vectors import random_vectors
from treelax.apps.tasks.listops.model import ListOpsTagger
from treelax.apps.tasks.listops.parser import ListOpsParser
from treelax.apps.tasks.text.model_files import WORDS, load_words, save_words
from treelax.apps.tasks.text.pretrained import SentenceModel
from treelax.apps.training.checkpoint import save_checkpoint
from treelax.apps.training.config import flatten
from treelax.apps.training.run import Run
from treelax.errors import CheckpointError, InputError

TEXT = "[MAX 2 [MIN 4 7 ] 0 ]"


def loaded(name):
    parser = treelax.load(name)
    assert isinstance(parser, ListOpsParser)
    return parser


def saved_run(folder, config=None):
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
    run, model = saved_run(tmp_path / "run", config)
    batch = encode_listops([parse_expression(TEXT)])
    before = torch.get_rng_state(), run.best_model.read_bytes()
    for name in (run.path, str(run.path), run.best_model):
        parser = loaded(name)
        assert parser.config == config
        assert torch.equal(parser.model(batch), model(batch))
        assert not any(module.training for module in parser.model.modules())
    assert torch.equal(torch.get_rng_state(), before[0])
    assert run.best_model.read_bytes() == before[1]


def test_the_model_that_comes_with_treelax(tmp_path, monkeypatch):
    parser = treelax.load("listops")
    [said] = parser.parse([TEXT])
    assert said.heads == (parse_expression(TEXT).heads,)
    assert said.label == parse_expression(TEXT).valencies
    monkeypatch.chdir(tmp_path)  # a folder of the same name is asked for by its path
    saved_run(Path("listops"))
    assert loaded("./listops").config == loaded(Path("listops").absolute()).config == tiny()
    assert loaded("listops").config != tiny()


def test_names_of_nothing(tmp_path):
    with pytest.raises(InputError, match=r"nowhere: does not exist; expected .* listops"):
        treelax.load(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"holds neither config.toml nor config.json"):
        treelax.load(tmp_path)
    run = Run.create(tmp_path / "new", tiny(), task="listops")
    with pytest.raises(InputError, match=r"new: holds no model yet; .* continue it with --resume"):
        treelax.load(run.path)
    with pytest.raises(InputError, match=r"received v.txt, and listops is a model of ListOps"):
        treelax.load("listops", vectors="v.txt")


def test_taggers_of_another_version_or_size(tmp_path):
    run, model = saved_run(tmp_path / "run")
    weights, right = model.state_dict(), flatten(tiny())
    for name, tensors, config, message in (
        ("wide", weights, flatten(tiny(model__gcn_size=16)), "composer.*train again"),
        ("later", weights, right | {"model.colour": "red"}, "config: model.colour: no such key"),
        ("bare", weights, {}, "state_dict"),
    ):
        save_checkpoint(tmp_path / name, tensors, kind="listops", state={"config": config})
        with pytest.raises(CheckpointError, match=f"{name}: does not fit .*{message}") as caught:
            treelax.load(tmp_path / name)
        assert "\n" not in str(caught.value)
    os.truncate(run.best_model, 3000)
    with pytest.raises(CheckpointError, match=r"model.safetensors: is cut off or damaged"):
        treelax.load(run.path)


# ------------------------------------------------------------------ sentence models


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
    with pytest.raises(InputError, match="is a run of listops; expected one of pair, classify"):
        SentenceModel.from_pretrained(saved_run(tmp_path / "listops")[0].path)


def edited(file, change):
    told = json.loads(file.read_text())
    change(told)
    file.write_text(json.dumps(told))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda told: told.update(format="bert"), "config.json: is of another program"),
        (lambda told: told.pop("settings"), "config.json: has no settings.kind; restore it"),
        (lambda told: told["settings"].update({"model.gcn_size": 7}), "contradicts model"),
        (lambda told: told["labels"].reverse(), "contradicts model.*; restore it"),
    ],
)
def test_a_config_that_was_changed(saved_model, change, message):
    edited(saved_model / "config.json", change)
    with pytest.raises(CheckpointError, match=message):
        treelax.load(saved_model)


def test_files_of_two_models(saved_model, tmp_path):
    """As they are left when saving over an older model is interrupted."""
    model = SentenceModel.from_pretrained(saved_model)
    with torch.no_grad():
        model.network.encoder.embedding.learned.add_(1)
    model.save_pretrained(tmp_path / "other")
    shutil.copy(tmp_path / "other" / WORDS, saved_model)
    with pytest.raises(CheckpointError, match=r"words.safetensors: is not the file that model"):
        treelax.load(saved_model)
    (saved_model / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model.safetensors: does not exist"):
        treelax.load(saved_model)


def test_where_a_model_cannot_be_saved(moved_runs, tmp_path):
    model = SentenceModel.from_run(moved_runs["classify"])
    with pytest.raises(InputError, match="holds a run; expected another folder"):
        model.save_pretrained(moved_runs["classify"])
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="is a file; expected a folder for a saved model"):
        model.save_pretrained(file)
    with pytest.raises(CheckpointError, match=r"file/x: was not saved \(.*\); mend that and save"):
        model.save_pretrained(file / "x")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for config in ('{"model_type": "bert"}', "[]", "no JSON"):
        (theirs / "config.json").write_text(config)
        with pytest.raises(CheckpointError, match=r"config.json: "):
            model.save_pretrained(theirs)
    assert [part.name for part in theirs.iterdir()] == ["config.json"]


some_words = st.lists(st.text(st.characters(codec=None), min_size=1), unique=True, max_size=8)


@given(words=some_words, labels=st.lists(st.text(), max_size=4))
def test_saved_words_are_loaded(tmp_path_factory, words, labels):
    file = tmp_path_factory.mktemp("words") / WORDS
    vectors = random_vectors(words, 3, seed=1)
    save_words(file, vectors, tuple(labels))
    found, found_labels = load_words(file)
    assert torch.equal(found.matrix, vectors.matrix)
    assert found.ids([*words, "new"]) == vectors.ids([*words, "new"])
    assert found_labels == tuple(labels)


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
