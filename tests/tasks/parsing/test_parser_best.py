"""The best few trees of a sentence."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from commands import Output, fail, shown, written

import treelax
from treelax.apps.data.conllu import read_conllu
from treelax.trees import heads_to_tree

TEXT = "the cats see dogs ."
PARTIAL = "1\tcats\t_\t_\t_\t_\t2\todd\t_\t_\n2\tsee\t_\t_\t_\t_\t_\t_\t_\t_\n"
PARTIAL += "3\tdogs\t_\t_\t_\t_\t_\t_\t_\t_\n\n"


def test_the_most_probable_trees_come_first(run: Path) -> None:
    parser = treelax.load(run)
    [said] = parser.parse([TEXT])
    found = parser.best_trees(said.words[0], said, 4)
    assert found[0].heads == said.heads
    assert found[0].relations == said.relations
    assert len({own.heads for own in found}) == 4
    trees = parser.tree.structure(said.scores[0])
    expected = [trees.log_prob(heads_to_tree(torch.tensor(own.heads[0]))) for own in found]
    assert [own.log_prob for own in found] == pytest.approx([float(p) for p in expected], abs=1e-4)
    assert [own.log_prob for own in found] == sorted([own.log_prob for own in found], reverse=True)
    # of two words there are two trees with one root
    [short] = parser.parse(["cats see"])
    both = parser.best_trees(short.words[0], short, 4)
    assert sum(math.exp(own.log_prob) for own in both) == pytest.approx(1, abs=1e-5)
    assert len(both) == 2


def test_predict_writes_a_line_or_a_sentence_for_each(
    run: Path, tmp_path: Path, capsys: Output
) -> None:
    file = written(tmp_path, f"{TEXT}\n\nold birds hear .\n", "x.txt")
    lines = shown(capsys, "predict", run, file, "--best", 3).splitlines()
    records = [json.loads(line) for line in lines]
    assert [(r["line"], r.get("rank")) for r in records] == [
        *((1, 1), (1, 2), (1, 3), (2, None), (3, 1), (3, 2), (3, 3))
    ]
    assert records[0]["log_prob"] > records[1]["log_prob"] > records[2]["log_prob"]
    out = tmp_path / "out.conllu"
    shown(capsys, "predict", run, file, "--best", 3, "--out", out)
    sentences = list(read_conllu(out))
    assert [own.id for own in sentences][:4] == ["1-best-1", "1-best-2", "1-best-3", "3-best-1"]
    assert [own.metadata["rank"] for own in sentences] == ["1", "2", "3"] * 2
    assert float(sentences[1].metadata["log_prob"]) == records[1]["log_prob"]
    assert list(sentences[1].heads or ()) == records[1]["heads"]
    table = shown(capsys, "predict", run, file, "--best", 2, "--format", "tsv").splitlines()
    assert [row.split("\t")[4] for row in table] == ["rank", "1", "2", "1", "1", "2"]


def test_known_heads_are_kept_in_all_of_them(run: Path, tmp_path: Path, capsys: Output) -> None:
    file = written(tmp_path, PARTIAL, "x.conllu")
    told = shown(capsys, "predict", run, file, "--best", 9, "--keep").splitlines()
    records = [json.loads(line) for line in told]
    assert {(r["heads"][0], r["relations"][0]) for r in records} == {(2, "odd")}
    assert len(records) == 3  # see ← 0, dogs ← see or cats; see ← dogs ← 0


def test_other_models_and_soft_trees_have_one(run: Path, tmp_path: Path, capsys: Output) -> None:
    file = written(tmp_path, "[MAX 1 2 ]\n", "x.txt")
    told = fail(capsys, "predict", "listops", file, "--best", 2)
    assert told == "--best: received listops; expected a dependency parser"
    assert "--soft too" in fail(capsys, "predict", run, file, "--best", 2, "--soft")
