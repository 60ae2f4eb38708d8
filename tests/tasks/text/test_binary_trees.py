"""Sentence models with binary trees: trained, resumed, asked; what needs heads is refused."""

from __future__ import annotations

import json

import pytest
import torch
from commands import fail, records, saved, shown
from sentence_runs import figures, interrupted_after_an_epoch, train

import treelax
from treelax import Binary
from treelax.__main__ import main
from treelax.apps.pictures import draw_binary_tree
from treelax.apps.tasks.base import spans_without_null
from treelax.brackets import read_brackets, spans_to_tensor

BINARY = {"model__structure": "binary"}
SENTENCE = "The film was good."
WORDS = ["The", "film", "was", "good", "."]


def check_tree(line, words):
    """That a line is a binary tree over these words."""
    read, spans = read_brackets(line)
    assert read == list(words)
    tree = spans_to_tensor(spans, len(words))
    assert bool(Binary().contains(tree, torch.tensor(len(words))))


# ------------------------------------------------------------------ training


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("classify", {"model__relaxation": "entropy"}),
        ("pair", {}),  # with the NULL token
        ("tag", {"model__straight_through": True, "train__discrete_epochs": 1}),
    ],
)
def test_a_run_is_trained_evaluated_and_asked(tmp_path, capsys, kind, settings):
    run = train(kind, tmp_path, **BINARY, **settings)
    said = json.loads(shown(capsys, "eval", run, "--json"))
    assert said["accuracy"] == figures(run)["test"]["accuracy"]
    text = ("the film was good", "a plot") if kind == "pair" else "the film was good"
    for soft in (False, True):
        [found] = treelax.load(run).predict([text], soft=soft)
        assert found.heads is None
        for line, words in zip(found.brackets, found.words, strict=True):
            check_tree(line, words)


def test_it_learns(tmp_path):
    run = train("classify", tmp_path, **BINARY, train__epochs=15)
    assert figures(run)["dev"]["accuracy"] == 100


def test_an_interrupted_run_ends_as_an_uninterrupted_one(tmp_path):
    whole = train("classify", tmp_path / "whole", **BINARY)
    with interrupted_after_an_epoch(), pytest.raises(AssertionError):
        train("classify", tmp_path / "broken", **BINARY)
    broken = tmp_path / "broken" / "run"
    assert main(["train", "classify", "--out", str(broken), "--resume"]) == 0
    assert figures(broken) == figures(whole)


# ------------------------------------------------------------------ the NULL token


def test_a_tree_without_null_is_a_tree_of_the_other_words():
    trees = Binary().enumerate(6)
    without = spans_without_null(trees)
    assert bool(Binary().contains(without, torch.full((len(trees),), 5)).all())
    assert len(without.unique(dim=0)) == 14
    # of weights it is the mean over trees, as far as spans with NULL are independent of others
    marginals = spans_without_null(trees.mean(0))
    torch.testing.assert_close(marginals, without.mean(0), atol=0.05, rtol=0)


# ------------------------------------------------------------------ commands


@pytest.mark.parametrize("null", [False, True])
def test_predict_writes_brackets(tmp_path, capsys, null):
    model = saved(tmp_path, null=null, structure="binary")
    file = tmp_path / "new.txt"
    file.write_text(f"{SENTENCE}\n\nGood (!)\nYes\n")
    first, empty, escaped, word = records(capsys, "predict", model, file)
    check_tree(first["brackets"], first["words"])
    assert "heads" not in first
    assert empty["brackets"] is None
    check_tree(escaped["brackets"], ["Good", "-LRB-", "!", "-RRB-"])
    assert word["brackets"] == "(Yes)"
    header, row, *_ = shown(capsys, "predict", model, file, "--format", "tsv").splitlines()
    assert header.endswith("\twords\tbrackets")
    assert row.endswith(f"\t{first['brackets']}")
    assert f"# brackets = {first['brackets']}" in shown(
        capsys, "predict", model, file, "--format", "conllu"
    )


@pytest.mark.parametrize(("kind", "texts"), [("tag", 1), ("pair", 2)])
def test_parse_draws_the_tree_with_weights_and_samples(tmp_path, capsys, kind, texts):
    model, sentences = (
        saved(tmp_path, kind, null=texts == 2, structure="binary"),
        [SENTENCE] * texts,
    )
    [record] = records(
        capsys, "parse", model, *sentences, "--format", "json", "--soft", "--samples", 20
    )
    if texts == 1:
        record |= {key: [record[key]] for key in ("brackets", "weights", "samples")}
    line = record["brackets"][0]
    drawn = shown(capsys, "parse", model, *sentences, "--soft", "--samples", 20, "--width", 70)
    assert drawn.startswith(draw_binary_tree(WORDS, read_brackets(line)[1], width=70))
    assert "not probabilities):\n1.00  0-4  The film was good .\n" in drawn
    assert "20 exact samples" in drawn
    for weights, samples in zip(record["weights"], record["samples"], strict=True):
        assert weights[0][4] == 1
        assert all(weight == 1 for weight in torch.tensor(weights).diagonal())
        assert sum(sample["count"] for sample in samples) == 20
        for sample in samples:
            check_tree(sample["brackets"], WORDS)
    lines = shown(capsys, "parse", model, *sentences, "--format", "brackets")
    assert lines == "\t".join(record["brackets"]) + "\n"
    picture = shown(capsys, "parse", model, *sentences, "--format", "svg", "--soft")
    assert "soft tree" in picture
    drawn = shown(capsys, "parse", model, *sentences, "--marginals", "--noise", 1)
    assert drawn.count("best tree with Gumbel noise times 1, seed 0:") == texts
    assert "probabilities of spans (temperature 1, Gumbel noise times 1, seed 0):" in drawn


def test_what_needs_heads_is_refused(tmp_path, capsys):
    model = saved(tmp_path, structure="binary")
    expected = "expected a model with dependency trees"
    file = tmp_path / "new.txt"
    file.write_text(f"{SENTENCE}\n")
    assert fail(capsys, "analyse", model, "--data", file).endswith(expected)
    assert fail(capsys, "parse", model, SENTENCE, "--gold").endswith(f"{expected} for --gold")
    refused = fail(capsys, "parse", model, SENTENCE, "--format", "heatmap")
    assert refused.endswith(f"{expected} for a heat map")
    refused = fail(capsys, "parse", model, SENTENCE, "--format", "heads")
    assert refused == f"--format is heads; expected brackets, the trees of {model}"
