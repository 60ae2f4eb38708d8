"""Sentence models over pre-trained transformers, held against the transformers library itself."""

import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_texts import DATA, tiny, trained_with, written
from tiny_transformers import MODELS, POSITIONS, SIZE

from treelax.apps.tasks.sentences import transformer as subwords
from treelax.apps.tasks.sentences.transformer import (
    check_folder,
    copy_folder,
    whole_words,
    with_own_copy,
)
from treelax.apps.tasks.text.config import ModelConfig
from treelax.apps.tasks.text.data import load_text
from treelax.apps.tasks.text.model import SentenceEncoder, Sentences
from treelax.apps.tasks.text.presets import preset
from treelax.apps.tasks.text.task import TextExperiment
from treelax.apps.training.config import override
from treelax.errors import BackendError, CheckpointError, DataError, InputError

transformers = pytest.importorskip("transformers")

CPU = torch.device("cpu")
BATCH = [
    ["The", "dogs", "bark", "unbelievably", "loudly", "."],
    ["It", "'s", "fun"],
    ["caf\u00e9", "3\u00a01/2", "\u2014", "dogs"],
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in MODELS.items()}


@pytest.fixture(params=list(MODELS))
def folder(request, folders):
    return folders[request.param]


@pytest.fixture
def own_folder(folders, tmp_path):
    """One that a test may spoil."""
    return Path(shutil.copytree(folders["bert"], tmp_path / "model"))


def settings(folder, **changes):
    return ModelConfig(encoder="transformer", pretrained=str(folder), trees="none", **changes)


def encoder(folder, words, **changes):
    vectors = whole_words(words)
    model = settings(folder, projection_size=None, **changes)
    made = SentenceEncoder(model, vectors.matrix).eval()
    return made, made.read(vectors)


def sentences(table, batch):
    ids = [torch.tensor(table.ids(words)) for words in batch]
    return Sentences(
        torch.nn.utils.rnn.pad_sequence(ids, batch_first=True),
        torch.tensor([len(words) for words in batch]),
    )


def expected_vectors(folder, words, subwords="mean"):
    """What the library itself says of one sentence that is cut into words."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    hidden = model(**encoded).last_hidden_state[0]
    owner = torch.tensor([-1 if i is None else i for i in encoded.word_ids(0)])
    rows = [hidden[owner == i] for i in range(len(words))]
    return torch.stack([row.mean(0) if subwords == "mean" else row[0] for row in rows])


@pytest.mark.parametrize("subwords", ["mean", "first"])
@torch.no_grad()
def test_word_vectors_are_those_of_the_library(folder, subwords):
    words = {word for sentence in BATCH for word in sentence}
    made, table = encoder(folder, sorted(words), subwords=subwords)
    vectors, tree, _ = made(sentences(table, BATCH))
    assert tree is None
    assert vectors.shape == (3, 6, SIZE)
    for row, sentence in zip(vectors, BATCH, strict=True):
        expected = expected_vectors(folder, sentence, subwords)
        torch.testing.assert_close(row[: len(sentence)], expected, rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_words_that_come_later_are_known_by_their_letters(folder):
    """New words get ids of their own, not those of unknown words."""
    made, table = encoder(folder, ["dogs"])
    vectors, *_ = made(sentences(table, BATCH))
    expected = expected_vectors(folder, BATCH[1])
    torch.testing.assert_close(vectors[1, :3], expected, rtol=1e-5, atol=1e-6)
    assert table.ids(["dogs", "It"]) == table.ids(["dogs", "It"])


@torch.no_grad()
def test_a_table_does_not_grow_without_end(folder, monkeypatch):
    made, table = encoder(folder, ["dogs"])
    monkeypatch.setattr(subwords, "MOST_NEW", 3)
    before, *_ = made(sentences(table, BATCH))
    started = len(made.transformer.starts)
    for number in range(20):
        table.forget()
        table.ids(["dogs", f"new{number}", "It"])
        assert len(made.transformer.starts) <= max(started, 3) + 10
    table.forget()
    torch.testing.assert_close(made(sentences(table, BATCH))[0], before)


# ------------------------------------------------------------------ experiments


def experiment(kind, folder, place, *, rate=0.5, **data):
    config = tiny(
        kind,
        DATA[kind](place, **data),
        encoder="transformer",
        pretrained=str(folder),
        pretrained_rate=rate,
    )
    return TextExperiment(config, load_text(config.data, whole_words=True), CPU)


def one_loss(made):
    shape, indices = made.batches(0)[0]
    return made.loss(shape, indices, torch.Generator().manual_seed(0))


def test_the_tables_of_a_transformer_do_not_shrink(folder, tmp_path):
    made = experiment("classify", folder, tmp_path)
    made.config = trained_with(made.config, weight_decay=0.1)
    shrinks = {id(p): g["weight_decay"] > 0 for g in made.groups() for p in g["params"]}
    for kind, expected in ((torch.nn.Embedding, False), (torch.nn.Linear, True)):
        modules = made.model.encoder.transformer.model.modules()
        found = [shrinks[id(each.weight)] for each in modules if isinstance(each, kind)]
        assert len(found) >= 2  # the tables of words and positions
        assert set(found) == {expected}


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("kind", list(DATA))
def test_a_transformer_is_fine_tuned_at_its_own_rate_or_frozen(kind, folder, tmp_path, rate):
    made = experiment(kind, folder, tmp_path, rate=rate)
    groups, layers = made.groups(), made.transformer.model
    slow = [] if layers is None else list(layers.parameters())
    one_loss(made).backward()
    assert all(weight.grad is not None for weight in made.model.parameters())
    trained = {id(weight) for group in groups for weight in group["params"]}
    assert trained == {id(weight) for weight in made.model.parameters()}
    if rate:
        assert [group["rate"] for group in groups] == [1.0, rate]
        assert groups[1]["params"] == slow
        assert sum(bool(weight.grad.any()) for weight in slow) > 20
    else:
        assert [group["rate"] for group in groups] == [1.0]
        assert not [name for name in made.model.state_dict() if "transformer.model" in name]
        assert made.model.encoder.transformer.frozen
        assert not slow


@pytest.mark.parametrize("kind", list(DATA))
def test_batches_carry_their_subwords(kind, folder, tmp_path):
    """With the numbers that batches carry the result is that of counting on the device."""
    made = experiment(kind, folder, tmp_path)
    texts = made.train.texts
    made.model.eval()
    for shape, indices in made.batches(0):
        assert len(shape) == 2 * texts
        both = [made.logits(made.train, s, indices) for s in (shape, shape[:texts])]
        torch.testing.assert_close(*both)
    transformer = made.model.encoder.transformer
    for shape, indices in made.dev:
        for which in range(texts):
            ids = made.sentences(made.dev_data, indices, which, shape[which]).ids
            assert transformer.sequences(ids)[0].shape[1] == shape[texts + which]
    plain = [(shape[:texts], indices) for shape, indices in made.dev]
    assert made.count(made.dev_data, plain).tolist() == made.evaluate().tolist()


def test_a_text_that_is_too_long_is_named(tmp_path, folder):
    rows = ["awake,a cat", f"asleep,{'dogs ' * (POSITIONS - 1)}"]
    train = written(tmp_path / "long.csv", "state,words", *rows)
    message = rf"long\.csv, line 3: the text has {POSITIONS - 1} words, {POSITIONS + 1} sub-words "
    with pytest.raises(DataError, match=message + rf".*expected at most {POSITIONS},"):
        experiment("classify", folder, tmp_path, train=train)
    # one word less fits, and the positions suffice
    rows[1] = f"asleep,{'dogs ' * (POSITIONS - 2)}"
    train = written(tmp_path / "long.csv", "state,words", *rows)
    assert one_loss(experiment("classify", folder, tmp_path, train=train)).isfinite()


# ------------------------------------------------------------------ settings and folders


def test_the_page_on_encoders_names_settings_that_exist():
    page = (Path(__file__).parents[3] / "docs" / "encoders.md").read_text()
    given = re.findall(r"--set (\S+=\S+)|^\| `(model\.\w+=\w+\.?\d*)`", page, re.MULTILINE)
    assert len(given) >= 7
    named = [one or other for one, other in given]
    config = override(preset("classify"), named)
    # the values in the table are the defaults
    own = replace(preset("classify").model, encoder="transformer", pretrained="FOLDER")
    assert config.model == own
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
def test_a_spoilt_folder_is_told_in_one_line(own_folder, capfd, spoil, message):
    spoil(own_folder)
    with pytest.raises(InputError, match=message) as told:
        SentenceEncoder(settings(own_folder), torch.zeros(4, 0))
    assert str(own_folder) in str(told.value)
    assert "\n" not in str(told.value)
    assert capfd.readouterr() == ("", "")


def test_a_missing_library_is_told_in_one_line(folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BackendError, match=r'in a checkout pip install "\.\[hf\]"'):
        check_folder(folders["bert"])


def test_a_copy_holds_the_model_and_nothing_else(own_folder, tmp_path):
    names = {file.name for file in own_folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    for name in ("README.md", "pytorch_model.bin", "onnx.json"):
        (own_folder / name).write_text("")
    (tmp_path / "run" / ".transformer.part").mkdir(parents=True)  # a kill left it
    (tmp_path / "run" / ".transformer.part" / "config.json").write_text("{")
    copy = tmp_path / "run" / "transformer"
    copy_folder(own_folder, copy)
    assert {file.name for file in copy.iterdir()} == names
    assert (copy / "model.safetensors").read_bytes() == (
        own_folder / "model.safetensors"
    ).read_bytes()
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["transformer"]
    with pytest.raises(CheckpointError, match=r"transformer: was not copied from .*use --resume"):
        copy_folder(own_folder, tmp_path / "no" / "transformer")
    model = settings(own_folder)
    assert with_own_copy(model, tmp_path / "run").pretrained == str(copy)
    assert with_own_copy(model, tmp_path) == model
