"""Sentence models from runs and saved folders: the same predictions, of any texts."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors import safe_open
from sentence_runs import train

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.text.vectors import random_vectors
from treelax.apps.tasks.base import Prediction
from treelax.apps.tasks.text.config import ModelConfig, SentenceSettings
from treelax.apps.tasks.text.pretrained import SentenceModel
from treelax.apps.training.checkpoint import load_checkpoint
from treelax.errors import BackendError, InputError

KINDS = ["classify", "pair", "tag"]
TEXTS = {
    "classify": ["A fine film.", "", "the zebra was sad", "film"],
    "pair": [("A fine film.", "fine film"), ("", "x"), ("the zebra was sad", "a bad film")],
    "tag": ["A fine film.", "", "the zebra was sad", "film"],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("soft", [False, True])
def test_a_saved_model_predicts_exactly_as_the_run(moved_runs, tmp_path, kind, soft):
    model = SentenceModel.from_run(moved_runs[kind])
    model.save_pretrained(tmp_path / "new" / "model")
    loaded = SentenceModel.from_pretrained(tmp_path / "new" / "model")
    expected = model.predict(TEXTS[kind], soft=soft)
    assert loaded.predict(TEXTS[kind], soft=soft) == expected
    assert (
        SentenceModel.from_pretrained(str(moved_runs[kind])).predict(TEXTS[kind], soft=soft)
        == expected
    )
    assert expected[1] == Prediction(((),) if kind != "pair" else ((), ("x",)))
    assert not loaded.training
    # what was saved from what was loaded holds the same
    loaded.save_pretrained(tmp_path / "again")
    one, two = tmp_path / "new" / "model", tmp_path / "again"
    assert (one / "config.json").read_bytes() == (two / "config.json").read_bytes()
    for name in ("model.safetensors", "words.safetensors"):
        first, second = load_checkpoint(one / name), load_checkpoint(two / name)
        assert first.tensors.keys() == second.tensors.keys()
        assert all(torch.equal(first.tensors[key], second.tensors[key]) for key in first.tensors)


def test_a_model_can_be_trained_further_and_saved(saved_model, tmp_path):
    model = SentenceModel.from_pretrained(saved_model)
    before = model.predict(TEXTS["classify"])
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1)
    after = model.predict(TEXTS["classify"])
    assert after[0].probability != before[0].probability
    model.save_pretrained(tmp_path / "further")
    assert SentenceModel.from_pretrained(tmp_path / "further").predict(TEXTS["classify"]) == after
    model.save_pretrained(saved_model)  # over the old one
    assert SentenceModel.from_pretrained(saved_model).predict(TEXTS["classify"]) == after


def test_nothing_in_a_saved_model_points_elsewhere(moved_runs, saved_model):
    assert sorted(file.name for file in saved_model.iterdir()) == [
        *("config.json", "model.safetensors", "words.safetensors")
    ]
    folder = str(moved_runs["classify"].parent).encode()
    assert folder in (moved_runs["classify"] / "config.toml").read_bytes()
    assert not any(folder in file.read_bytes() for file in saved_model.iterdir())
    told = json.loads((saved_model / "config.json").read_text())
    assert told["labels"] == ["no", "yes"]
    assert told["settings"]["kind"] == "classify"
    with safe_open(saved_model / "model.safetensors", "pt") as weights:
        assert "encoder.embedding.learned" not in weights.keys()  # noqa: SIM118


# ------------------------------------------------------------------ texts


def test_a_text_is_a_string_or_its_words(moved_runs):
    model = SentenceModel.from_run(moved_runs["classify"])
    said = model.predict(["The film's fine.", ["The", "film", "'s", "fine", "."]])
    assert said[0] == said[1]
    assert said[0].words == (("The", "film", "'s", "fine", "."),)
    [whole] = model.predict(["The film's  fine."], tokens=True)
    assert whole.words == (("The", "film's", "fine."),)
    assert model.predict([]) == []
    assert model.predict(["  ", []]) == [Prediction(((),))] * 2
    assert list(model.stream(iter(["film"]))) == model.predict(["film"])


def test_any_white_space_parts_tokens_but_what_holds_a_word_together():
    model = SentenceModel(SentenceSettings(tokens=True), random_vectors(["a"], 4), ["x"])
    [said] = model.predict(["a\nline\tof  10\u00a0000\u2028words\u3000. "])
    assert said.words == (("a", "line", "of", "10\u00a0000", "words", "."),)


def test_words_with_spaces_are_known_as_readers_give_them():
    """A space in a word of a treebank or a list is a no-break space, as it was in training."""
    vectors = random_vectors(["in", "New\u00a0York"], 4)
    model = SentenceModel(SentenceSettings(), vectors, ["x", "y"])
    words = ("in", "New York")
    known = ("in", "New\u00a0York")
    said = model.predict([list(words), Sentence(words), list(known), known])
    assert said[0].words == (known,)
    assert said == said[:1] * 4
    assert model.predict([("in", "New York", "in")]) == model.predict([["in", "New York", "in"]])
    given = SentenceSettings(model=ModelConfig(trees="given"))
    [tree] = SentenceModel(given, vectors, ["x", "y"]).predict([Sentence(words, (0, 1))])
    assert (tree.words, tree.heads) == (said[0].words, ((0, 1),))


PAIR = (
    r"\('A fine film.', 'It was.'\), which reads as a pair of texts; expected one text, as a string"
)


@pytest.mark.parametrize(
    ("kind", "texts", "message"),
    [
        ("classify", "one text", "texts: received 'one text'; expected a list of texts"),
        ("classify", 3, "texts: received 3; expected a list"),
        ("classify", ["a", None], r"texts\[1\]: received None; expected a text or a list of its"),
        ("classify", [["a", " "]], r"texts\[0\]: received ' ' as a word; .* as one string"),
        ("classify", [["a", 3]], r"texts\[0\]: received 3 as a word"),
        ("pair", ["one text"], r"texts\[0\]: received 'one text'; expected two texts"),
        ("pair", [("a", "b"), ("a", "b", "c")], r"texts\[1\]: received \('a', 'b', 'c'\)"),
        ("classify", ["a film", ("A fine film.", "It was.")], rf"texts\[1\]: received {PAIR}"),
        ("tag", [("Yes.", "a\tfilm")], r"texts\[0\]: .* reads as a pair of texts"),
    ],
)
def test_what_is_no_text(moved_runs, kind, texts, message):
    with pytest.raises(InputError, match=message):
        SentenceModel.from_run(moved_runs[kind]).predict(texts)


# ------------------------------------------------------------------ transformers


@pytest.mark.parametrize("rate", [0, 0.02])
def test_a_transformer_goes_with_its_model(tmp_path, rate):
    pytest.importorskip("transformers")
    from tiny_transformers import bert

    source = bert(tmp_path / "bert")
    changes = {"model__encoder": "transformer", "model__pretrained": source}
    run = train("pair", tmp_path / "pair", model__pretrained_rate=rate, **changes)
    shutil.rmtree(source)
    model = SentenceModel.from_run(run)
    model.save_pretrained(tmp_path / "saved")
    shutil.rmtree(run)
    loaded = SentenceModel.from_pretrained(tmp_path / "saved")
    expected = model.predict(TEXTS["pair"])
    assert loaded.predict(TEXTS["pair"]) == expected
    told = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert told["settings"]["model.pretrained"] == "transformer"
    loaded.save_pretrained(tmp_path / "saved")  # over itself, then over another
    loaded.save_pretrained(tmp_path / "other")
    SentenceModel.from_pretrained(tmp_path / "saved").save_pretrained(tmp_path / "other")
    assert SentenceModel.from_pretrained(tmp_path / "other").predict(TEXTS["pair"]) == expected
    shutil.rmtree(tmp_path / "other" / "transformer")
    with pytest.raises(InputError, match=r"^model.pretrained is .*transformer, which is no folder"):
        SentenceModel.from_pretrained(tmp_path / "other")


# ------------------------------------------------------------------ the hub, played by a stand-in


def new_model():
    return SentenceModel(SentenceSettings(), random_vectors(["a"], 4), ["x"])


def test_a_model_from_the_hub(saved_model, tmp_path, monkeypatch):
    asked = []

    def snapshot_download(name, *, revision, allow_patterns):
        asked.append((name, revision, {Path(file).suffix for file in allow_patterns}))
        return str(saved_model)

    hub = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.chdir(tmp_path)
    model = SentenceModel.from_pretrained("somebody/stars", revision="v1")
    assert model.labels == ("no", "yes")
    # a folder of that name is taken first, and paths that are none are not looked for there
    shutil.copytree(saved_model, tmp_path / "somebody" / "stars")
    SentenceModel.from_pretrained("somebody/stars")
    for path in ("./somebody/moon", "nobody", "a/b/c", "/a/b"):
        with pytest.raises(InputError, match="does not exist"):
            SentenceModel.from_pretrained(path)
    assert asked == [("somebody/stars", "v1", {".json", ".safetensors", ".txt", ".model"})]


def test_a_hub_that_refuses_and_one_that_is_not_there(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError("404 Client Error.\n\nRepository Not Found")

    monkeypatch.chdir(tmp_path)
    hub = SimpleNamespace(snapshot_download=refuse, create_repo=refuse)
    said = r"\(404 Client Error\)"
    for library, error, message in ((hub, InputError, said), (None, BackendError, "pip install")):
        monkeypatch.setitem(sys.modules, "huggingface_hub", library)
        with pytest.raises(error, match=rf"^runs/star: is no folder here.*{message}"):
            SentenceModel.from_pretrained("runs/star")
        with pytest.raises(error, match=message):
            new_model().push_to_hub("me/x")


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
    said = new_model().push_to_hub("stars", private=True, message="first")
    assert said == "https://hub/me/stars"
    assert done == [("stars", True, True), ("me/stars", ("x",), "first")]
