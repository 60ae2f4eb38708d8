"""Sentence models from runs and saved folders: the same predictions, and errors that say why not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors import safe_open
from sentence_runs import figures, sentences, train, write_files

from treelax.data.text.readers_table import read_table
from treelax.data.text.readers_tagging import read_tagging
from treelax.data.text.tokenizer import words_of
from treelax.data.text.vectors import Vectors, random_vectors
from treelax.errors import BackendError, CheckpointError, InputError
from treelax.tasks.text.prediction import Prediction, SentenceSettings
from treelax.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.training.pretrained import SentenceModel

KINDS = ["classify", "pair", "tag"]
TEXTS: dict[str, Any] = {
    "classify": ["A fine film.", "", "the zebra was sad", "film"],
    "pair": [("A fine film.", "fine film"), ("", "x"), ("the zebra was sad", "a bad film")],
    "tag": ["A fine film.", "", "the zebra was sad", "film"],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each kind, whose data are gone; only to be looked at."""
    found = {}
    for kind in KINDS:
        folder = tmp_path_factory.mktemp(kind)
        run = train(kind, folder)
        for file in folder.iterdir():
            if file.is_file():
                file.unlink()
        shutil.rmtree(folder / "cache")
        found[kind] = run.rename(folder / "moved")
    return found


@pytest.fixture
def saved(runs: dict[str, Path], tmp_path: Path) -> Path:
    folder = tmp_path / "saved"
    SentenceModel.from_run(runs["classify"]).save_pretrained(folder)
    return folder


# ------------------------------------------------------------------ predictions


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_predicts_with_the_accuracy_that_it_says(
    runs: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    files = write_files(kind, tmp_path)
    model = SentenceModel.from_run(runs[kind])
    for split in ("dev", "test"):
        file = files[files.index(f"--{split}") + 1]
        if kind == "tag":
            records = list(read_tagging(file))
        else:
            label = "liked" if kind == "classify" else "label"
            records = list(read_table(file, model.settings.text, label))
        words = [[words_of(record, i) for i in range(model.settings.texts)] for record in records]
        texts = words if kind == "pair" else [first for first, *_ in words]
        for soft, name in ((False, "accuracy"), (True, "soft_accuracy")):
            said = model.predict(texts, soft=soft)
            pairs = [
                (one, two)
                for record, each in zip(records, said, strict=True)
                for one, two in (
                    zip(record.label, each.label, strict=True)  # type: ignore[arg-type]
                    if kind == "tag"
                    else [(record.label, each.label)]
                )
            ]
            accuracy = 100 * sum(one == two for one, two in pairs) / len(pairs)
            assert accuracy == pytest.approx(figures(runs[kind])[split][name])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("soft", [False, True])
def test_a_saved_model_predicts_exactly_as_the_run(
    runs: dict[str, Path], tmp_path: Path, kind: str, soft: bool
) -> None:
    model = SentenceModel.from_run(runs[kind])
    model.save_pretrained(tmp_path / "new" / "model")
    loaded = SentenceModel.from_pretrained(tmp_path / "new" / "model")
    expected = model.predict(TEXTS[kind], soft=soft)
    assert loaded.predict(TEXTS[kind], soft=soft) == expected
    assert (
        SentenceModel.from_pretrained(str(runs[kind])).predict(TEXTS[kind], soft=soft) == expected
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


def test_another_process_predicts_the_same(saved: Path) -> None:
    code = (
        "import sys; from treelax.training.pretrained import SentenceModel\n"
        "model = SentenceModel.from_pretrained(sys.argv[1])\n"
        "print(repr(model.predict(['A fine film.', 'the zebra was sad'])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(saved)], capture_output=True, text=True, check=True
    )
    model = SentenceModel.from_pretrained(saved)
    assert done.stdout == f"{model.predict(['A fine film.', 'the zebra was sad'])!r}\n"


def test_a_model_can_be_trained_further_and_saved(saved: Path, tmp_path: Path) -> None:
    model = SentenceModel.from_pretrained(saved)
    before = model.predict(TEXTS["classify"])
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1)
    after = model.predict(TEXTS["classify"])
    assert after[0].probability != before[0].probability
    model.save_pretrained(tmp_path / "further")
    assert SentenceModel.from_pretrained(tmp_path / "further").predict(TEXTS["classify"]) == after
    model.save_pretrained(saved)  # over the old one
    assert SentenceModel.from_pretrained(saved).predict(TEXTS["classify"]) == after


def test_pretrained_vectors_stay_and_learned_rows_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    words = sorted({word for seed in range(3) for ws, _ in sentences(seed, 50) for word in ws})
    lines = [f"{word} {i} {i % 3} 1 {i % 5}" for i, word in enumerate(words)]
    file.write_text("\n".join([*lines, ""]))
    run = train("pair", tmp_path / "pair", data__vectors=file, model__learned_words=101)
    file.unlink()
    model = SentenceModel.from_run(run)
    assert model.settings.model.learned_words == 101
    model.save_pretrained(tmp_path / "saved")
    loaded = SentenceModel.from_pretrained(tmp_path / "saved")
    assert loaded.predict(TEXTS["pair"]) == model.predict(TEXTS["pair"])
    rows = model.vectors.matrix
    assert torch.equal(loaded.vectors.matrix[102:], rows[102:])
    assert not torch.equal(loaded.vectors.matrix[1:102], rows[1:102])  # learned


def test_loading_draws_no_random_number(runs: dict[str, Path], saved: Path) -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    SentenceModel.from_run(runs["tag"])
    SentenceModel.from_pretrained(saved)
    assert torch.equal(torch.rand(1), expected)


def test_nothing_in_a_saved_model_points_elsewhere(runs: dict[str, Path], saved: Path) -> None:
    assert sorted(file.name for file in saved.iterdir()) == [
        *("config.json", "model.safetensors", "words.safetensors")
    ]
    folder = str(runs["classify"].parent).encode()
    assert folder in (runs["classify"] / "config.toml").read_bytes()
    assert not any(folder in file.read_bytes() for file in saved.iterdir())
    told = json.loads((saved / "config.json").read_text())
    assert told["labels"] == ["no", "yes"]
    assert told["settings"]["kind"] == "classify"
    with safe_open(saved / "model.safetensors", "pt") as weights:
        assert "encoder.embedding.learned" not in weights.keys()  # noqa: SIM118


# ------------------------------------------------------------------ texts


def test_a_text_is_a_string_or_its_words(runs: dict[str, Path]) -> None:
    model = SentenceModel.from_run(runs["classify"])
    said = model.predict(["The film's fine.", ["The", "film", "'s", "fine", "."]])
    assert said[0] == said[1]
    assert said[0].words == (("The", "film", "'s", "fine", "."),)
    [whole] = model.predict(["The film's  fine."], tokens=True)
    assert whole.words == (("The", "film's", "fine."),)
    assert model.predict([]) == []
    assert model.predict(["  ", []]) == [Prediction(((),))] * 2
    assert list(model.stream(iter(["film"]))) == model.predict(["film"])


def test_a_model_of_tokenised_texts_does_not_tokenise() -> None:
    settings = SentenceSettings(tokens=True)
    model = SentenceModel(settings, random_vectors(["a"], 4), ["x"])
    assert model.predict(["The film's fine."])[0].words == (("The", "film's", "fine."),)
    assert model.predict(["It's fine."], tokens=False)[0].words == (("It", "'s", "fine", "."),)


@pytest.mark.parametrize(
    ("kind", "texts", "message"),
    [
        ("classify", "one text", "texts: received 'one text'; expected a list of texts"),
        ("classify", 3, "texts: received 3; expected a list"),
        ("classify", ["a", None], r"texts\[1\]: received None; expected a text or a list of its"),
        ("classify", [("a b", "c d")], r"texts\[0\]: received 'a b' as a word; .* as one string"),
        ("classify", [["a", ""]], r"texts\[0\]: received '' as a word"),
        ("classify", [["a", 3]], r"texts\[0\]: received 3 as a word"),
        ("pair", ["one text"], r"texts\[0\]: received 'one text'; expected two texts"),
        ("pair", [("a", "b"), ("a", "b", "c")], r"texts\[1\]: received \('a', 'b', 'c'\)"),
        ("pair", [("a", 4)], r"texts\[0\]: received 4; expected a text"),
        ("tag", [b"bytes"], r"texts\[0\]: received b'bytes'"),
    ],
)
def test_what_is_no_text(runs: dict[str, Path], kind: str, texts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SentenceModel.from_run(runs[kind]).predict(texts)


def test_logits_as_of_any_module(runs: dict[str, Path]) -> None:
    from treelax.tasks.text.model import Sentences

    model = SentenceModel.from_run(runs["classify"])
    batch = Sentences(torch.tensor([[102, 103]]), torch.tensor([2]))
    assert torch.equal(model(batch), model.network(batch))


# ------------------------------------------------------------------ folders that are refused


def test_runs_that_cannot_be_used(runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; expected the folder of a run"):
        SentenceModel.from_run(tmp_path / "nowhere")
    copy = shutil.copytree(runs["tag"], tmp_path / "copy")
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


def test_a_run_of_other_words(runs: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(runs["tag"], tmp_path / "copy")
    shutil.copy(runs["classify"] / "words.safetensors", copy)
    with pytest.raises(
        CheckpointError, match=r"best/model.safetensors: does not fit.*size mismatch"
    ):
        SentenceModel.from_run(copy)


def test_settings_that_are_newer_than_a_file_have_their_defaults(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    copy = shutil.copytree(runs["classify"], tmp_path / "copy")
    file = copy / "best" / "model.safetensors"
    saved = load_checkpoint(file)
    older = dict(saved.state["config"])
    del older["model.temperature"], older["train.pool"]
    save_checkpoint(file, saved.tensors, kind=saved.kind, state={"config": older})
    model = SentenceModel.from_run(copy)
    assert model.settings == SentenceModel.from_run(runs["classify"]).settings
    newer = saved.state["config"] | {"model.depth": 3}
    save_checkpoint(file, saved.tensors, kind=saved.kind, state={"config": newer})
    with pytest.raises(CheckpointError, match=r"does not fit this version.*model.depth"):
        SentenceModel.from_run(copy)
    save_checkpoint(file, saved.tensors, kind=saved.kind, state={})
    with pytest.raises(CheckpointError, match="says nothing of its settings"):
        SentenceModel.from_run(copy)


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
    saved: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    edited(saved / "config.json", change)
    with pytest.raises(CheckpointError, match=message):
        SentenceModel.from_pretrained(saved)


def test_folders_that_hold_no_model(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds neither config.toml of a run nor config.json"):
        SentenceModel.from_pretrained(tmp_path)
    with pytest.raises(InputError, match="is a file; expected the folder of a run or of a saved"):
        SentenceModel.from_pretrained(saved / "config.json")
    with pytest.raises(InputError, match="does not exist; expected the folder"):
        SentenceModel.from_pretrained(tmp_path / "nowhere")
    (saved / "model.safetensors").rename(saved / "other")
    with pytest.raises(CheckpointError, match=r"model.safetensors: does not exist"):
        SentenceModel.from_pretrained(saved)
    (saved / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config.json: cannot be read as JSON"):
        SentenceModel.from_pretrained(saved)


def test_files_of_two_models(saved: Path, tmp_path: Path) -> None:
    """As they are left when saving over an older model is interrupted."""
    model = SentenceModel.from_pretrained(saved)
    with torch.no_grad():
        model.network.encoder.embedding.learned.add_(1)  # type: ignore[union-attr]
    model.save_pretrained(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "words.safetensors", saved)
    with pytest.raises(CheckpointError, match=r"words.safetensors: is not the file that model"):
        SentenceModel.from_pretrained(saved)


def test_where_a_model_cannot_be_saved(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SentenceModel.from_run(runs["classify"])
    with pytest.raises(InputError, match="holds a run; expected another folder"):
        model.save_pretrained(runs["classify"])
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="is a file; expected a folder for a saved model"):
        model.save_pretrained(file)
    with pytest.raises(CheckpointError, match=r"file/x: was not saved \(.*\); mend that and save"):
        model.save_pretrained(file / "x")


def test_settings_and_vectors_that_do_not_fit() -> None:
    settings = SentenceSettings()
    with pytest.raises(InputError, match="row 0 that is not 0"):
        SentenceModel(settings, Vectors(torch.ones(104, 4), {}, unknown=100), ["x"])


# ------------------------------------------------------------------ transformers


@pytest.mark.parametrize("rate", [0, 0.02])
def test_a_transformer_goes_with_its_model(tmp_path: Path, rate: float) -> None:
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


# ------------------------------------------------------------------ the hub


def test_a_model_from_the_hub(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def snapshot_download(name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append((name, revision, allow_patterns))
        return str(saved)

    hub = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.chdir(tmp_path)
    model = SentenceModel.from_pretrained("somebody/stars", revision="v1")
    assert model.labels == ("no", "yes")
    [(name, revision, files)] = asked
    assert (name, revision) == ("somebody/stars", "v1")
    assert files[:3] == ["config.json", "model.safetensors", "words.safetensors"]
    assert {Path(file).suffix for file in files} == {".json", ".safetensors", ".txt", ".model"}
    # a folder of that name is taken first, and paths that are none are not looked for there
    shutil.copytree(saved, tmp_path / "somebody" / "stars")
    SentenceModel.from_pretrained("somebody/stars")
    for path in ("./somebody/moon", "nobody", "a/b/c", "/a/b"):
        with pytest.raises(InputError, match="does not exist"):
            SentenceModel.from_pretrained(path)
    assert len(asked) == 1


def test_a_hub_that_has_no_such_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> str:
        raise OSError("404 Client Error.\n\nRepository Not Found")

    monkeypatch.chdir(tmp_path)
    hub = SimpleNamespace(snapshot_download=refuse, create_repo=refuse)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    with pytest.raises(InputError, match=r"^runs/star: is no folder here .*\(404 Client Error\)"):
        SentenceModel.from_pretrained("runs/star")
    model = SentenceModel(SentenceSettings(), random_vectors(["a"], 4), ["x"])
    with pytest.raises(InputError, match=r"^me/x: could not be published .*\(404 Client Error\)"):
        model.push_to_hub("me/x")


def test_without_the_library_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BackendError, match=r"^runs/star: .*pip install huggingface_hub$"):
        SentenceModel.from_pretrained("runs/star")
    with pytest.raises(BackendError, match="pip install huggingface_hub"):
        SentenceModel(SentenceSettings(), random_vectors(["a"], 4), ["x"]).push_to_hub("me/x")


def test_a_model_goes_to_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []

    def create_repo(name: str, *, private: bool, exist_ok: bool) -> SimpleNamespace:
        done.append((name, private, exist_ok))
        return SimpleNamespace(repo_id=f"me/{name}")

    def upload_folder(*, repo_id: str, folder_path: Path, commit_message: str) -> str:
        model = SentenceModel.from_pretrained(folder_path)
        done.append((repo_id, model.labels, commit_message))
        return f"https://hub/{repo_id}"

    hub = SimpleNamespace(create_repo=create_repo, upload_folder=upload_folder)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    model = SentenceModel(SentenceSettings(), random_vectors(["a"], 4), ["x"])
    assert model.push_to_hub("stars", private=True, message="first") == "https://hub/me/stars"
    assert done == [("stars", True, True), ("me/stars", ("x",), "first")]
