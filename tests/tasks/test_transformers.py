"""Sentence models and parsers over pre-trained transformers, compared with the transformers library."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from listops_runs import metrics, result
from sentence_runs import interrupted_after_an_epoch, prepared
from tiny_transformers import MODELS, POSITIONS, SIZE
from treebank_runs import train as train_parser
from treebank_runs import write_treebanks

import treelax
from treelax.__main__ import main
from treelax.apps.tasks.sentences import transformer as subwords_module
from treelax.apps.tasks.sentences.transformer import (
    check_folder,
    copy_folder,
    whole_words,
    with_own_copy,
)
from treelax.apps.tasks.text.config import ModelConfig
from treelax.apps.tasks.text.model import SentenceEncoder, Sentences
from treelax.apps.tasks.text.presets import preset
from treelax.apps.training.checkpoint import load_checkpoint
from treelax.apps.training.config import override
from treelax.errors import BackendError, CheckpointError, DataError, InputError

transformers = pytest.importorskip("transformers")
BATCH = [
    ["The", "dogs", "bark", "unbelievably", "loudly", "."],
    ["It", "'s", "fun"],
    ["caf\u00e9", "3\u00a01/2", "\u2014", "dogs"],
]
TRANSFORMER = {"model.encoder": "transformer"}  # of sentence models; parsers have it always


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in MODELS.items()}


@pytest.fixture(params=list(MODELS))
def folder(request, folders):
    return folders[request.param]


@pytest.fixture
def copied(folders, tmp_path):
    """One that a test may spoil."""
    return Path(shutil.copytree(folders["bert"], tmp_path / "model"))


def settings(folder, **changes):
    return ModelConfig(encoder="transformer", pretrained=str(folder), trees="none", **changes)


def encoder(folder, words, **changes):
    vectors = whole_words(words)
    model = SentenceEncoder(
        settings(folder, projection_size=None, **changes), vectors.matrix
    ).eval()
    return model, model.read(vectors)


def sentences(table, batch):
    ids = [torch.tensor(table.ids(words)) for words in batch]
    lengths = torch.tensor([len(words) for words in batch])
    return Sentences(torch.nn.utils.rnn.pad_sequence(ids, batch_first=True), lengths)


def expected_vectors(folder, words, subwords="mean"):
    """What the library itself computes for one sentence that is cut into words."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    hidden = model(**encoded).last_hidden_state[0]
    owner = torch.tensor([-1 if i is None else i for i in encoded.word_ids(0)])
    rows = [hidden[owner == i] for i in range(len(words))]
    return torch.stack([row.mean(0) if subwords == "mean" else row[0] for row in rows])


@pytest.mark.parametrize("subwords", ["mean", "first"])
@torch.no_grad()
def test_word_vectors_are_those_of_the_library(folder, subwords, monkeypatch):
    """Words that come later are known by their letters; the table of words does not grow forever."""
    model, table = encoder(folder, ["dogs", "It"], subwords=subwords)
    vectors, tree, _ = model(sentences(table, BATCH))
    assert (tree, vectors.shape) == (None, (3, 6, SIZE))
    for row, sentence in zip(vectors, BATCH, strict=True):
        expected = expected_vectors(folder, sentence, subwords)
        torch.testing.assert_close(row[: len(sentence)], expected, rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(subwords_module, "MOST_NEW", 3)
    started = len(model.transformer.starts)
    for number in range(20):
        table.forget()
        table.ids(["dogs", f"new{number}", "It"])
        assert len(model.transformer.starts) <= max(started, 3) + 10
    table.forget()
    torch.testing.assert_close(model(sentences(table, BATCH))[0], vectors)


# ------------------------------------------------------------------ experiments


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["classify", "pair", "tag", "parser"])
def test_a_transformer_is_fine_tuned_at_its_rate_or_frozen(kind, folder, tmp_path, rate):
    changes = {"model.pretrained": folder, "model.pretrained_rate": rate}
    if kind != "parser":
        changes |= TRANSFORMER | {"train.weight_decay": 0.1}
    task = prepared(kind, tmp_path, **changes)
    groups = {id(p): group for group in task.groups() for p in group["params"]}
    assert groups.keys() == {id(p) for p in task.model.parameters()}
    task.loss(*task.batches(0)[0], torch.Generator().manual_seed(0)).backward()
    slow = {name: p for name, p in task.model.named_parameters() if "transformer.model" in name}
    assert bool(slow) == bool(rate)
    for name, parameter in task.model.named_parameters():
        assert parameter.grad is not None, name
        assert groups[id(parameter)]["rate"] == (rate if name in slow else 1.0), name
        if kind != "parser" and name in slow:  # the tables of words and positions do not shrink
            shrinks = parameter.dim() > 1 and "embeddings" not in name
            assert (groups[id(parameter)]["weight_decay"] > 0) == shrinks, name
    if rate and kind != "parser":  # whose scorer starts at 0
        assert sum(bool(p.grad.any()) for p in slow.values()) > 20
    assert bool(rate) == any("transformer.model" in name for name in task.model.state_dict())


def test_a_text_that_is_too_long_is_named(tmp_path, folder):
    for count in (POSITIONS - 1, POSITIONS - 2):
        train = tmp_path / "long.tsv"
        train.write_text(f"review\tliked\na cat\tyes\n{'dogs ' * count}\tno\n")
        changes = TRANSFORMER | {"model.pretrained": folder, "data.train": train}
        changes |= {"data.dev": train, "data.test": "none", "train.batch_size": 2}
        if count == POSITIONS - 2:
            task = prepared("classify", tmp_path, **changes)
            assert task.loss(*task.batches(0)[0], torch.Generator()).isfinite()
            break
        message = rf"long\.tsv, line 3: the text has {count} words, {POSITIONS + 1} sub-words "
        with pytest.raises(DataError, match=message + rf".*expected at most {POSITIONS},"):
            prepared("classify", tmp_path, **changes)


# ------------------------------------------------------------------ parsers


def test_neighbours_do_not_know_a_hidden_word(tmp_path, folder):
    task = prepared("parser", tmp_path, **{"model.pretrained": folder, "train.batch_size": 4})
    (length, _), indices = task.batches(seed=0)[0]
    task.model.eval()
    batch = task.everything.batch(indices, length)
    hidden = torch.zeros_like(batch.forms, dtype=torch.bool)
    hidden[:, 1] = True
    other = batch._replace(forms=torch.where(hidden, batch.forms.flip(0), batch.forms))
    assert not torch.equal(other.forms, batch.forms)
    words = task.model.words
    assert torch.equal(words(batch, task.forms, hidden), words(other, task.forms, hidden))
    assert not torch.equal(words(batch, task.forms), words(other, task.forms))


@pytest.mark.parametrize("rate", ["1", "0"])
def test_a_parser_that_lost_its_transformer_is_resumed_and_used(copied, tmp_path, rate):
    write_treebanks(tmp_path)
    # nothing but the transformer tells one word from another
    changes = ["data.min_count=1000", "model.filters=0", f"model.pretrained={copied}"]
    changes += [f"model.pretrained_rate={rate}", "train.epochs=2"]
    options = [part for change in changes for part in ("--set", change)]
    run, whole = tmp_path / "run", tmp_path / "whole"
    assert train_parser(tmp_path, *options) == 0
    run.rename(whole)
    with interrupted_after_an_epoch():
        assert train_parser(tmp_path, *options) == 130
    shutil.rmtree(copied)
    assert main(["train", "parser", "--out", str(run), "--resume"]) == 0
    assert metrics(run) == metrics(whole)
    assert result(run) == result(whole)
    # weights that never change are in the copy, those that do in every checkpoint
    weights = load_checkpoint(run / "best" / "model.safetensors").tensors
    assert any(name.startswith("words.transformer.model.") for name in weights) == (rate == "1")
    parser = treelax.load(run)
    figures = parser.evaluate(list(parser.own_examples("dev")))
    assert figures.las == result(run)["splits"]["dev"]["las"] > 20
    with pytest.raises(InputError, match="has a transformer"):
        parser.save(tmp_path / "parser.safetensors", {})


# ------------------------------------------------------------------ settings and folders


def test_the_page_on_encoders_names_settings_that_exist():
    page = (Path(__file__).parents[2] / "docs" / "encoders.md").read_text()
    given = re.findall(r"--set (\S+=\S+)|^\| `(model\.\w+=\w+\.?\d*)`", page, re.MULTILINE)
    assert len(given) >= 7
    config = override(preset("classify"), [one or other for one, other in given])
    # the values in the table are the defaults
    default = preset("classify").model
    assert config.model == replace(default, encoder="transformer", pretrained="FOLDER")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(compile(code, "encoders.md", "exec"), names)
    assert names["config"].model.pretrained_rate == 0


def changed(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "config.json").write_text("{"), "cannot be loaded"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), r"tokenizer cannot .*'added_"),
        (lambda f: (f / "model.safetensors").write_bytes(b"12345678"), "weights cannot be loaded"),
        (
            lambda f: changed(f, hidden_size=32),
            r"not fit its config.json: embeddings.* shape \(16,\), expected \(32,\); take",
        ),
        (lambda f: changed(f, num_hidden_layers=3), "whose weights lack encoder.layer.2"),
        (
            lambda f: changed(f, model_type="new", auto_map={"AutoConfig": "a.B"}),
            "cannot be loaded.*needs no code of its own",
        ),
    ],
)
def test_a_spoilt_folder_is_reported_in_one_line(copied, capfd, spoil, message):
    spoil(copied)
    with pytest.raises(InputError, match=message) as caught:
        SentenceEncoder(settings(copied), torch.zeros(4, 0))
    assert str(copied) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_missing_library_is_reported_in_one_line(folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BackendError, match=r'in a checkout pip install "\.\[hf\]"'):
        check_folder(folders["bert"])


def test_a_copy_holds_the_model_and_nothing_else(copied, tmp_path):
    names = {file.name for file in copied.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    for name in ("README.md", "pytorch_model.bin", "onnx.json"):
        (copied / name).write_text("")
    (tmp_path / "run" / ".transformer.part").mkdir(parents=True)  # a kill left it
    (tmp_path / "run" / ".transformer.part" / "config.json").write_text("{")
    copy = tmp_path / "run" / "transformer"
    copy_folder(copied, copy)
    assert {file.name for file in copy.iterdir()} == names
    weights = (folder / "model.safetensors" for folder in (copy, copied))
    assert len({file.read_bytes() for file in weights}) == 1
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["transformer"]
    with pytest.raises(CheckpointError, match=r"transformer: was not copied from .*use --resume"):
        copy_folder(copied, tmp_path / "no" / "transformer")
    model = settings(copied)
    assert with_own_copy(model, tmp_path / "run").pretrained == str(copy)
    assert with_own_copy(model, tmp_path) == model
