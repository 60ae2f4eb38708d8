"""A pre-trained transformer below a parser: trained, resumed, loaded, and sentences too long for it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from sentence_runs import interrupted_after_an_epoch
from test_parser_experiment import prepared
from tiny_transformers import MODELS, SIZE, bert
from tiny_treebank import train

import treelax
from treelax.__main__ import main
from treelax.apps.training.checkpoint import load_checkpoint
from treelax.errors import InputError

pytest.importorskip("transformers")

Output = pytest.CaptureFixture[str]
LONG = "".join(
    f"{m}\tdogs\t_\t_\t_\t_\t{m - 1}\t{'dep' if m > 1 else 'root'}\t_\t_\n" for m in range(1, 51)
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in MODELS.items()}


def with_transformer(folder: Path, *settings: str) -> list[str]:
    """Options for a parser that knows words by a transformer alone."""
    own = ["data.min_count=1000", "model.filters=0", f"model.pretrained={folder}", *settings]
    return [part for setting in own for part in ("--set", setting)]


def result(folder: Path) -> dict:
    return json.loads((folder / "test.json").read_text()) | {"seconds": 0}


@pytest.mark.parametrize("rate", ["1", "0"])
def test_a_run_that_lost_its_transformer_is_resumed_and_used(
    files: Path, models: dict[str, Path], rate: str
) -> None:
    model = Path(shutil.copytree(models["bert"], files / "model"))
    options = with_transformer(model, f"model.pretrained_rate={rate}", "train.epochs=6")
    assert train(files, *options) == 0
    (files / "run").rename(files / "whole")
    with interrupted_after_an_epoch():
        assert train(files, *options) == 130
    shutil.rmtree(model)
    assert main(["train", "parser", "--out", str(files / "run"), "--resume"]) == 0
    assert result(files / "run") == result(files / "whole")
    # weights that never change are in the copy, those that do in every checkpoint
    weights = load_checkpoint(files / "run" / "best" / "model.safetensors").tensors
    assert any(name.startswith("words.transformer.model.") for name in weights) == (rate == "1")
    # nothing but the transformer tells one word from another: without it LAS is about 54
    found = result(files / "run")["splits"]["dev"]
    assert found["las"] > 75
    parser = treelax.load(files / "run")
    examples = list(parser.own_examples("dev"))
    assert parser.evaluate(examples).las == found["las"]
    with pytest.raises(InputError, match="has a transformer"):
        parser.save(files / "parser.safetensors", {})


def test_sentences_that_are_too_long_are_named(
    files: Path, models: dict[str, Path], capsys: Output
) -> None:
    options = with_transformer(models["bert"], "train.epochs=1")
    dev = (files / "dev.conllu").read_text()
    (files / "dev.conllu").write_text(LONG + "\n" + dev)
    assert train(files, *options) == 2
    told = "dev.conllu, line 1: the text has 50 words, 52 sub-words with special tokens"
    assert told in capsys.readouterr().err
    assert not (files / "run").exists()
    (files / "dev.conllu").write_text(dev)
    assert train(files, *options) == 0
    (files / "new.conllu").write_text(dev + LONG + "\n")
    capsys.readouterr()
    assert main(["predict", str(files / "run"), str(files / "new.conllu"), "--device", "cpu"]) == 2
    assert f"line {dev.count(chr(10)) + 1}: the text has 50 words" in capsys.readouterr().err


@pytest.mark.parametrize("name", MODELS)
def test_padding_and_hidden_words(files: Path, models: dict[str, Path], name: str) -> None:
    """Padding changes no loss, and neighbours do not know a hidden word."""
    task = prepared(files, f"model.pretrained={models[name]}", "train.batch_size=4")
    task.model.eval()
    (length, pieces), indices = task.batches(seed=0)[0]
    exact, padded = (
        task.model.loss(task.everything.batch(indices, length + n, pieces + 2 * n), task.forms)
        for n in (0, 3)
    )
    assert torch.allclose(exact, padded, rtol=1e-4)
    batch = task.everything.batch(indices, length)
    hidden = torch.zeros_like(batch.forms, dtype=torch.bool)
    hidden[:, 1] = True
    other = batch._replace(forms=torch.where(hidden, batch.forms.flip(0), batch.forms))
    assert not torch.equal(other.forms, batch.forms)
    found, same = (task.model.words(own, task.forms, hidden) for own in (batch, other))
    assert torch.equal(found, same)
    assert not torch.equal(task.model.words(batch, task.forms), task.model.words(other, task.forms))


def test_the_rate_of_the_transformer_is_its_own(files: Path, tmp_path: Path) -> None:
    task = prepared(files, f"model.pretrained={bert(tmp_path / 'bert')}")
    fast, slow = task.groups()
    assert (fast["rate"], slow["rate"]) == (1.0, 0.02)
    assert sum(len(own["params"]) for own in (fast, slow)) == len(list(task.model.parameters()))
    assert task.model.words.output_size == 16 + 8 + SIZE


def test_a_parser_without_one_imports_nothing_of_it() -> None:
    code = "import sys, treelax; treelax.load('english').predict(['Dogs bark.'])"
    code += "; assert not {'transformers', 'tokenizers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
