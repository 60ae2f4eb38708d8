"""``treelax train … --set model.encoder=transformer`` from start to end."""

import random
import shutil
from pathlib import Path

import pytest
from listops_runs import result
from sentence_runs import interrupted_after_an_epoch
from tiny_transformers import MODELS

from treelax.__main__ import main
from treelax.apps.training.checkpoint import load_checkpoint

pytest.importorskip("transformers")

SMALL = ["model.gcn_size=8", "model.scorer_size=8", "model.output_size=8", "train.epochs=2"]
SMALL += ["train.batch_size=16", "train.threads=1", "model.encoder=transformer"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in MODELS.items()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Sentences of two classes, in all three kinds of files."""
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))
    rng = random.Random(0)
    for split, count in (("train", 48), ("dev", 16)):
        rows = []
        for _ in range(count):
            liked = rng.random() < 0.5
            words = rng.choices(["the", "film", "unbelievable", "dogs", "loudly"], k=4)
            words.insert(rng.randrange(4), rng.choice(["good", "fine"] if liked else ["bad"]))
            rows.append((words, "yes" if liked else "no"))
        Path(tmp_path, f"{split}.tsv").write_text(
            "text\tlabel\n" + "".join(f"{' '.join(words)}\t{label}\n" for words, label in rows)
        )
        Path(tmp_path, f"{split}.csv").write_text(
            "first,second,label\n"
            + "".join(f"{' '.join(words)},{words[0]},{label}\n" for words, label in rows)
        )
        Path(tmp_path, f"{split}.conll").write_text(
            "".join("".join(f"{w}\t{w[0]}\n" for w in words) + "\n" for words, _ in rows)
        )
    return tmp_path


def train(folder, model, out, *more, kind="classify", suffix="tsv"):
    files = [part for s in ("train", "dev") for part in (f"--{s}", f"{folder}/{s}.{suffix}")]
    settings = [*SMALL, f"model.pretrained={model}", *more]
    changes = [part for setting in settings for part in ("--set", setting)]
    return main(["train", kind, *files, "--out", str(out), *changes])


@pytest.mark.parametrize(("kind", "suffix"), [("pair", "csv"), ("tag", "conll")])
def test_pairs_and_tags_end_with_figures(folder, models, kind, suffix):
    assert train(folder, models["roberta"], folder / "run", kind=kind, suffix=suffix) == 0
    assert result(folder / "run")["kind"] == kind


@pytest.mark.parametrize("rate", [0.1, 0])
def test_a_run_that_lost_its_transformer_ends_as_if_nothing_had_happened(
    folder, models, rate, capfd
):
    """Interrupted, its folder of origin gone, resumed: the same figures and the same weights."""
    model = Path(shutil.copytree(models["bert"], folder / "model"))
    whole, broken = folder / "whole", folder / "broken"
    assert train(folder, model, whole, f"model.pretrained_rate={rate}") == 0
    assert "Loading weights" not in capfd.readouterr().err
    with interrupted_after_an_epoch():
        assert train(folder, model, broken, f"model.pretrained_rate={rate}") == 130
    shutil.rmtree(model)
    assert main(["train", "classify", "--out", str(broken), "--resume"]) == 0
    assert result(broken) == result(whole)
    one, other = (load_checkpoint(run / "best" / "model.safetensors") for run in (whole, broken))
    assert all(one.tensors[name].equal(value) for name, value in other.tensors.items())
    # weights that never change are in the copy, those that do in every checkpoint
    inside = [name for name in one.tensors if name.startswith("encoder.transformer.model.")]
    assert bool(inside) == (rate > 0)
    assert (whole / "transformer" / "model.safetensors").exists()


def test_what_is_missing_is_told_in_one_line_before_a_run_begins(folder, models, capsys):
    bare = folder / "bare"
    bare.mkdir()
    for model, message in ((folder / "nowhere", "is no folder"), (bare, "has no config.json")):
        assert train(folder, model, folder / "run") == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert message in line
        assert not (folder / "run").exists()
    with (folder / "train.tsv").open("a") as file:
        file.write("dogs " * 50 + "\tyes\n")
    assert train(folder, models["bert"], folder / "run") == 2
    assert "52 sub-words with special tokens; expected at most 40" in capsys.readouterr().err
    assert not (folder / "run").exists()
    # dev and test texts are neither cut nor left out, so they are told before a run begins too
    (folder / "train.tsv").write_text(
        (folder / "train.tsv").read_text().rpartition("dogs " * 50)[0]
    )
    with (folder / "dev.tsv").open("a") as file:
        file.write("dogs " * 50 + "\tyes\n")
    assert train(folder, models["bert"], folder / "run", "data.max_length=20") == 2
    error = capsys.readouterr().err
    assert "dev.tsv, line 18: the text has 50 words, 52 sub-words with special tokens" in error
    assert "shorten, split or remove it" in error
    assert not (folder / "run").exists()
