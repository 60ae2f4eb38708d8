"""Parsing new sentences: files stay as they are but for the tree, known heads are kept."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from commands import TREEBANK, Output, fail, shown, written
from tiny_treebank import train

import treelax
from treelax.apps.data.conllu import Sentence, read_conllu
from treelax.errors import InputError
from treelax.trees import heads_to_tree

ROWS = (("the", "2", "det"), ("cats", "3", "nsubj"), ("see", "0", "root"), ("dogs", "3", "obj"))


def conllu(*rows: tuple[str, str, str]) -> str:
    """Words with their heads and labels as CoNLL-U."""
    lines = [
        "\t".join([str(m), word, *"____", head, label, "_", "_"])
        for m, (word, head, label) in enumerate(rows, 1)
    ]
    return "\n".join(lines) + "\n\n"


def test_heads_and_labels_in_python(run: Path) -> None:
    parser = treelax.load(run)
    first, empty, second = parser.predict(
        ["the cats see dogs .", "", ["old", "birds", "hear", "."]]
    )
    assert first.heads == ((2, 3, 0, 3, 3),)
    assert first.relations == (("det", "nsubj", "root", "obj", "punct"),)
    assert (empty.words, empty.heads, empty.relations) == (((),), None, None)
    assert second.heads == ((2, 3, 0, 3),)
    # the same for one sentence as among others, with its scores
    [alone] = parser.parse(["old birds hear ."])
    assert alone.heads == second.heads
    assert parser.tree.structure.argmax(alone.scores[0])[0, 3] == 1


def test_only_head_and_label_of_a_treebank_change(
    run: Path, tmp_path: Path, capsys: Output
) -> None:
    file, out = written(tmp_path, TREEBANK, "tb.conllu"), tmp_path / "out.conllu"
    shown(capsys, "predict", run, file, "--out", out)

    def others(text: str) -> list[list[str]]:
        rows = [line.split("\t") for line in text.splitlines()]
        return [row[:6] + row[8:] if row[0].isdigit() else row for row in rows]

    assert others(out.read_text()) == others(TREEBANK)
    for sentence in read_conllu(out):
        assert sentence.heads.count(0) == 1
        assert set(sentence.labels) <= {"det", "amod", "nsubj", "root", "obj", "punct"}


def test_known_heads_and_labels_are_kept(run: Path, tmp_path: Path, capsys: Output) -> None:
    known = [("the", "4", "odd"), ("cats", "_", "_"), ("see", "4", "_"), ("dogs", "_", "_")]
    file = written(tmp_path, conllu(*known), "known.conllu")
    out = shown(capsys, "predict", run, file, "--keep", "--format", "conllu")
    rows = [line.split("\t") for line in out.splitlines() if line]
    heads, labels = ([row[column] for row in rows] for column in (6, 7))
    assert (heads[0], heads[2]) == ("4", "4")
    assert labels[0] == "odd"
    assert "_" not in labels
    assert json.loads(shown(capsys, "predict", run, file))["heads"] == [2, 3, 0, 3]
    free = shown(capsys, "predict", run, file, "--input", "text")  # as texts, they are not heads
    assert free


def test_all_known_heads_are_the_tree(run: Path) -> None:
    sentence = Sentence(("cats", "see", "dogs"), (0, 1, 2))
    for soft in (False, True):
        [said] = treelax.load(run).predict([sentence], keep=True, soft=soft)
        assert said.heads == ((0, 1, 2),)
    [said] = treelax.load(run).predict([sentence])
    assert said.heads == ((2, 0, 2),)


def test_known_heads_without_a_tree_are_refused(run: Path, tmp_path: Path, capsys: Output) -> None:
    file = written(
        tmp_path,
        conllu(*ROWS) + conllu(("a", "2", "_"), ("b", "1", "_"), ("c", "_", "_")),
        "k.conllu",
    )
    told = fail(capsys, "predict", run, file, "--keep")
    assert f"{file}, line 6: the heads given from here on leave no tree with a single root" in told
    told = fail(capsys, "predict", run, written(tmp_path, "cats see dogs", "x.txt"), "--keep")
    assert "--keep" in told
    told = fail(capsys, "predict", "listops", file, "--keep")
    assert "expected a dependency parser" in told


def test_probabilities_of_heads(run: Path, tmp_path: Path, capsys: Output) -> None:
    file = written(tmp_path, conllu(*ROWS), "x.conllu")
    said = json.loads(shown(capsys, "predict", run, file, "--probabilities"))
    assert said["heads"] == [2, 3, 0, 3]
    assert all(0.5 < share <= 1 for share in said["head_probabilities"])
    lines = shown(
        capsys, "predict", run, file, "--probabilities", "--format", "conllu"
    ).splitlines()
    assert all(line.split("\t")[-1].startswith("HeadProbability=") for line in lines if line)


def test_trees_are_drawn_with_their_labels(run: Path, tmp_path: Path, capsys: Output) -> None:
    drawn = shown(capsys, "parse", run, "the cats see dogs .")
    assert drawn.splitlines()[-1].split() == ["det", "nsubj", "root", "obj", "punct"]
    narrow = shown(capsys, "parse", run, "the cats see dogs .", "--width", "16")
    assert "cats  nsubj" in narrow
    said = json.loads(shown(capsys, "parse", run, "cats see dogs", "--format", "json"))
    assert said["relations"] == ["nsubj", "root", "obj"]
    shown(capsys, "parse", run, "cats see dogs", "--out", tmp_path / "tree.svg")
    assert "nsubj" in (tmp_path / "tree.svg").read_text()


def test_a_parser_with_tags_needs_them(files: Path, capsys: Output) -> None:
    assert train(files, "--set", "data.tags=upos", "--set", "train.epochs=1") == 0
    capsys.readouterr()
    run, dev = files / "run", files / "dev.conllu"
    assert len(shown(capsys, "predict", run, dev).splitlines()) == 20
    told = fail(capsys, "parse", run, "the cats see dogs")
    assert "words without UPOS" in told
    for option in (["--marginals"], ["--samples", "2"]):
        assert "cats" in shown(capsys, "parse", run, "--file", dev, *option)
    shown(capsys, "report", run, "--data", dev, "--out", files / "report.html")


def test_a_string_is_no_list_of_texts(run: Path) -> None:
    with pytest.raises(InputError, match="received 'the cats see'; expected a list of texts"):
        treelax.load(run).predict("the cats see")


def test_new_words_are_looked_up(files: Path, capsys: Output) -> None:
    (files / "v.txt").write_text("cats 1 0 0\ndogs 0 1 0\nwolves 0 1 0.1\n")
    vectors = ("--vectors", str(files / "v.txt"))
    assert train(files, *vectors, "--set", "train.epochs=1") == 0
    told = treelax.load(files / "run").unknown_words({"wolves", "CATS"})
    assert told == (
        "note: 1 of 2 different words are unknown to the model and have no vector; look them up with "
        "--vectors v.txt, as in training"
    )
    parser = treelax.load(files / "run", vectors=files / "v.txt")
    parser.predict(["wolves see dogs"])
    assert "wolves" in parser.lexicon.vectors
    with pytest.raises(InputError, match="expected the folder of the run"):
        treelax.load(files / "run" / "best" / "model.safetensors")


def test_the_page_and_the_analysis_know_the_parser(
    run: Path, tmp_path: Path, capsys: Output
) -> None:
    from treelax.apps.demo.score_sources import load_sources

    source = load_sources(run)["run"]
    words = source.words("the cats see dogs .")
    tree = source.parser.tree.structure(source.scores(words, 0)).mode
    assert source.answer([words], [tree]).tags == ["det", "nsubj", "root", "obj", "punct"]
    shown(capsys, "analyse", run, "--split", "dev", "--out", tmp_path / "study")
    shown(capsys, "report", run, "--split", "dev")
    report = (run / "report.html").read_text()
    assert "dependency parsing" in report
    assert "dev: LAS, %" in report
    assert 'class="label">nsubj</text>' in report


# ------------------------------------------------------------------ the best few trees

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
