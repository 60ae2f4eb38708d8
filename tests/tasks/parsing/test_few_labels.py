"""Learning from sentences without trees: which are taken, what is learned, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from sentence_runs import interrupted_after_an_epoch
from test_parser_experiment import prepared
from tiny_treebank import train, treebank

import treelax
from treelax.apps.data.conllu import Sentence
from treelax.apps.tasks.parsing.config import DataConfig
from treelax.apps.tasks.parsing.model import mixed_loss
from treelax.apps.tasks.parsing.treebank import choose_labelled

Output = pytest.CaptureFixture[str]
FEW = ("--set", "train.epochs=2", "--set", "train.updates=4", "--set", "unlabelled.warm_up=1")
REST = ("--set", "data.labelled=0.25", "--set", "data.rest=unlabelled")
DECODERS = ("gcn", "arcs", "masked")
EVERY = ("relaxed", "straight-through", "marginals", "imle", "spigot", "reinforce", "rloo")


def result(folder: Path) -> dict:
    return {**json.loads((folder / "run" / "test.json").read_text()), "seconds": 0}


def test_more_labelled_sentences_contain_fewer() -> None:
    sentences = [Sentence((str(i),)) for i in range(40)]
    previous: set[str] = set()
    for share in (0.01, 0.1, 0.5, 1.0):
        labelled, rest = choose_labelled(sentences, DataConfig(labelled=share))
        assert len(labelled) == max(1, round(40 * share))
        assert sorted(labelled + rest, key=sentences.index) == sentences
        assert labelled == sorted(labelled, key=sentences.index)
        assert previous <= (previous := {own.words[0] for own in labelled})
    first, _ = choose_labelled(sentences, DataConfig(labelled=0.5))
    second, _ = choose_labelled(sentences, DataConfig(labelled=0.5, seed=1))
    assert first != second


@pytest.mark.parametrize("decoder", DECODERS)
def test_the_rest_is_learned_from_and_a_parser_needs_no_decoder(
    files: Path, capsys: Output, decoder: str
) -> None:
    settings = ("--set", f"unlabelled.decoder={decoder}", "--set", "unlabelled.hidden=0.1")
    assert train(files, *REST, *settings, "--set", "unlabelled.agreement=0.5") == 0
    told = capsys.readouterr().err
    assert "train: the trees of 16 of 64 sentences are used" in told
    assert "unlabelled: 48 sentences" in told
    assert result(files)["training_sentences"] == 16
    assert result(files)["splits"]["dev"]["las"] > 90
    [said] = treelax.load(files / "run").predict(["the old cats see birds ."])
    assert len(said.heads[0]) == 6


def test_files_without_trees_are_read(files: Path, capsys: Output) -> None:
    (files / "more.conllu").write_text(treebank(5, 7).replace("birds", "wolves"))
    (files / "more.txt").write_text(
        "The wolves howl.\n\nWolves can't see, and hear 6 owls today.\n"
    )
    more = [part for name in ("more.conllu", "more.txt") for part in ("--unlabelled", files / name)]
    limit = ("--set", "data.max_length=8")
    assert train(files, *map(str, more), *limit, *FEW) == 0
    assert "unlabelled: 8 sentences, and 1 of more than 8 words left out" in capsys.readouterr().err
    words = treelax.load(files / "run").lexicon.words
    assert {"wolves", "howl"} <= set(words)


def test_an_interrupted_run_ends_with_the_same_figures(files: Path) -> None:
    assert train(files, *REST, *FEW) == 0
    whole = result(files)
    (files / "run").rename(files / "whole")
    with interrupted_after_an_epoch():
        assert train(files, *REST, *FEW) == 130
    assert train(files, *REST, *FEW, "--resume") == 0
    assert result(files) == whole


def test_other_unlabelled_sentences_do_not_continue_a_run(files: Path, capsys: Output) -> None:
    more = files / "more.txt"
    more.write_text("the cats see dogs .\n")
    with interrupted_after_an_epoch():
        assert train(files, "--unlabelled", str(more), *FEW) == 130
    more.write_text("the cats hear dogs .\n")
    assert train(files, "--resume") == 2
    assert "are not those it was started with" in capsys.readouterr().err


@pytest.mark.parametrize("estimator", EVERY)
def test_every_estimator_trains_scores_by_sentences_without_trees(
    files: Path, estimator: str
) -> None:
    task = prepared(
        files,
        *("data.labelled=0.5", "data.rest=unlabelled", "unlabelled.warm_up=0"),
        *(f"unlabelled.estimator={estimator}", "model.dropout=0"),
    )
    task.begin(1)
    shape, indices = task.batches(seed=0)[0]
    labelled = indices < task.labelled
    assert labelled.sum() == (~labelled).sum() == task.config.train.batch_size
    weight = task.model.tree.scorer.weight
    torch.nn.init.normal_(weight)
    for _ in range(2):  # the first loss that reinforce sees is its baseline
        task.model.zero_grad()
        task.loss(shape, indices, torch.Generator().manual_seed(0)).backward()
    both = weight.grad.clone()
    assert bool(both.any())
    task.model.zero_grad()
    batch = task.everything.batch(indices[labelled], *shape)
    weighed = task.everything.batch(indices, *shape).lengths.sum()
    (task.model.loss(batch, task.forms).sum() / weighed).backward()
    assert not torch.allclose(both, weight.grad)


def test_padding_changes_no_mixed_loss(files: Path) -> None:
    # without hidden words, which would be others
    options = {"decoder": "arcs", "estimator": "marginals", "hidden": 0, "entropy": 0.5}
    settings = [f"unlabelled.{key}={value}" for key, value in options.items()]
    task = prepared(files, "data.labelled=0.5", "data.rest=unlabelled", *settings)
    task.begin(9)
    task.model.eval()
    shape, indices = task.batches(seed=0)[0]
    exact, padded = (
        mixed_loss(
            task.model,
            task.config.unlabelled,
            task.estimator,
            task.everything.batch(indices, n),
            task.forms,
            indices < task.labelled,
            torch.Generator(),
        )
        for n in (shape[0], shape[0] + 3)
    )
    assert torch.allclose(exact, padded, rtol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("decoder", DECODERS)
def test_nothing_waits_for_the_gpu(files: Path, decoder: str) -> None:
    data = ("data.labelled=0.5", "data.rest=unlabelled")
    settings = {"decoder": decoder, "warm_up": 0, "hidden": 0.2, "agreement": 1, "entropy": 0.1}
    own = [f"unlabelled.{key}={value}" for key, value in settings.items()]
    task = prepared(files, *data, *own, device="cuda")
    shape, indices = task.batches(seed=0)[0]
    indices = indices.cuda()
    task.loss(shape, indices, torch.Generator("cuda")).backward()
    torch.cuda.set_sync_debug_mode("error")
    try:
        task.loss(shape, indices, torch.Generator("cuda")).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("bad.conllu", "1\ta\t_\t_\t0\troot\n\n", "line 1"),
        ("bad.conllu", "", "bad.conllu: received nothing"),
        ("bad.txt", "", "bad.txt"),
        ("bad.txt", "a\nb \udcff\n", "line 2"),
        ("bad.txt", "a\n" + "b " * 10_001, "line 2"),
    ],
)
def test_bad_files_are_refused_in_one_line(
    files: Path, capsys: Output, name: str, text: str, told: str
) -> None:
    (files / name).write_text(text, errors="surrogateescape")
    assert train(files, "--unlabelled", str(files / name)) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert told in line
    assert name in line


def test_texts_without_tags_are_refused_where_tags_are_read(files: Path, capsys: Output) -> None:
    (files / "more.txt").write_text("the cats see dogs .\n")
    more = ("--unlabelled", str(files / "more.txt"), "--set", "data.tags=upos")
    assert train(files, *more) == 2
    assert "more.txt, line 1: received words without UPOS" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("data.labelled=0", "data.labelled is 0.0; expected more than 0"),
        ("unlabelled.temperature=0", "unlabelled.temperature is 0.0"),
        ("unlabelled.hidden=0", "unlabelled.hidden 0; expected a share"),
        ("unlabelled.relaxation=softmax", "unlabelled.relaxation softmax; expected entropy"),
    ],
)
def test_bad_settings_are_refused_in_one_line(
    files: Path, capsys: Output, setting: str, told: str
) -> None:
    assert train(files, "--set", setting) == 2
    assert told in capsys.readouterr().err
