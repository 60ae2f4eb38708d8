"""Learning from sentences without trees: which are taken, what is learned, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from listops_runs import result
from treebank_runs import train, treebank

import treelax
from treelax.apps.data.conllu import Sentence
from treelax.apps.tasks.parsing.config import DataConfig
from treelax.apps.tasks.parsing.treebank import choose_labelled

Output = pytest.CaptureFixture[str]
FEW = ("--set", "train.epochs=2", "--set", "train.updates=4", "--set", "unlabelled.warm_up=1")


def test_more_labelled_sentences_contain_fewer() -> None:
    sentences = [Sentence((str(i),)) for i in range(40)]
    previous: set[str] = set()
    for share in (0.01, 0.1, 0.5, 1.0):
        labelled, rest = choose_labelled(sentences, DataConfig(labelled=share))
        assert len(labelled) == max(1, round(40 * share))
        assert sorted(labelled + rest, key=sentences.index) == sentences
        assert labelled == sorted(labelled, key=sentences.index)
        assert previous <= (previous := {sentence.words[0] for sentence in labelled})
    first, second = (choose_labelled(sentences, DataConfig(labelled=0.5, seed=s)) for s in (0, 1))
    assert first != second


@pytest.mark.parametrize("decoder", ["gcn", "arcs", "masked"])
def test_the_rest_is_learned_from_and_a_parser_needs_no_decoder(
    files: Path, capsys: Output, decoder: str
) -> None:
    changes = ["data.labelled=0.25", "data.rest=unlabelled", f"unlabelled.decoder={decoder}"]
    changes += ["unlabelled.hidden=0.1", "unlabelled.agreement=0.5", "train.epochs=4"]
    assert train(files, *(part for change in changes for part in ("--set", change))) == 0
    messages = capsys.readouterr().err
    assert "train: the trees of 16 of 64 sentences are used" in messages
    assert "unlabelled: 48 sentences" in messages
    record = result(files / "run")
    assert record["training_sentences"] == 16
    assert record["splits"]["dev"]["las"] > 60
    [prediction] = treelax.load(files / "run").predict(["the old cats see birds ."])
    assert len(prediction.heads[0]) == 6


def test_files_without_trees_are_read(files: Path, capsys: Output) -> None:
    (files / "more.conllu").write_text(treebank(5, 7).replace("birds", "wolves"))
    (files / "more.txt").write_text("The wolves howl.\n\nWolves can't see 6 owls, or hear any.\n")
    more = [part for name in ("more.conllu", "more.txt") for part in ("--unlabelled", files / name)]
    assert train(files, *map(str, more), "--set", "data.max_length=8", *FEW) == 0
    assert "unlabelled: 8 sentences, and 1 of more than 8 words left out" in capsys.readouterr().err
    words = treelax.load(files / "run").lexicon.words
    assert {"wolves", "howl"} <= set(words)
    # other sentences do not continue a run
    (files / "more.txt").write_text("the cats hear dogs .\n")
    assert train(files, "--resume", "--set", "train.epochs=3") == 2
    assert "are not those it was started with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.conllu", "1\ta\t_\t_\t0\troot\n\n", "bad.conllu, line 1"),
        ("bad.conllu", "", "bad.conllu: received nothing"),
        ("bad.txt", "", "bad.txt"),
        ("bad.txt", "a\nb \udcff\n", "bad.txt, line 2"),
        ("bad.txt", "a\n" + "b " * 10_001, "bad.txt, line 2"),
        ("tags.txt", "the cats\n", "tags.txt, line 1: received words without UPOS"),
        ("data.labelled=0", None, "data.labelled is 0.0; expected more than 0"),
        ("unlabelled.temperature=0", None, "unlabelled.temperature is 0.0"),
        ("unlabelled.hidden=0", None, "unlabelled.hidden 0; expected a share"),
        ("unlabelled.relaxation=softmax", None, "unlabelled.relaxation softmax; expected entropy"),
    ],
)
def test_bad_files_and_settings_are_refused_in_one_line(
    files: Path, capsys: Output, name: str, text: str | None, message: str
) -> None:
    options = ["--set", name]
    if text is not None:
        (files / name).write_text(text, errors="surrogateescape")
        options = ["--unlabelled", str(files / name)]
    if name == "tags.txt":
        options += ["--set", "data.tags=upos"]
    assert train(files, *options) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert message in line
