"""``treelax predict``: what it reads and what it writes."""

import gzip
import json
import os
import re
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from commands import ask, fail, records, saved, shown, told, typed, written
from sentence_runs import SIZES, SMALL, figures, sentences, write_files

import treelax
from treelax.__main__ import main
from treelax.apps.data.conllu import Sentence, write_conllu
from treelax.apps.tasks.text.pretrained import SentenceModel

KINDS = ["classify", "pair", "tag"]
SAMPLE = Path(__file__).parent.parent / "data" / "listops_sample.tsv"


@pytest.fixture(scope="module")
def runs(sentence_runs):
    return sentence_runs


# ------------------------------------------------------------------ what it reads


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_a_file_in_its_order(runs, capsys, kind):
    """With the columns and the tokenising of the run; as it says itself of its test data."""
    [test] = runs[kind].parent.glob("test.*")
    reply = records(capsys, "predict", runs[kind], test, "--batch-size", 3)
    expected = [words for words, _ in sentences(2, SIZES["test"])]
    assert [item["words"][0] if kind == "pair" else item["words"] for item in reply] == expected
    assert [item["line"] for item in reply] == sorted(item["line"] for item in reply)
    texts: list[Any] = [item["words"] for item in reply]
    for item, direct in zip(reply, SentenceModel.from_run(runs[kind]).predict(texts), strict=True):
        heads = [list(heads) for heads in direct.heads or ()]
        assert item["heads"] == (heads if kind == "pair" else heads[0])
        if kind == "tag":
            assert item["tags"] == list(direct.label or ())
            assert item["probabilities"] == pytest.approx(list(direct.probability), abs=1e-5)  # type: ignore[arg-type]
        else:
            assert item["label"] == direct.label
            assert item["probabilities"] == pytest.approx(direct.probabilities, abs=1e-5)
    units = sum(map(len, expected)) if kind == "tag" else len(expected)
    noun = "words" if kind == "tag" else "texts"
    accuracy = f"{figures(runs[kind])['test']['accuracy']:.2f}"
    assert told(capsys, "predict", runs[kind], test) == (
        f"accuracy: {accuracy} % of {units} labelled {noun}\n"
    )


def test_listops(capsys, monkeypatch):
    out, err = ask(capsys, "predict", "listops", SAMPLE)
    reply = [json.loads(line) for line in out.splitlines()]
    expected = treelax.load("listops").predict([item["words"] for item in reply])
    for item, direct in zip(reply, expected, strict=True):
        assert (tuple(item["tags"]), tuple(item["heads"])) == (
            direct.label,
            (direct.heads or [()])[0],
        )
    assert re.fullmatch(r"accuracy: \d+\.\d\d % of \d+ labelled words\n", err)
    typed(monkeypatch, "[MAX 2 9 ]\n")
    assert shown(capsys, "predict", "listops", "-", "--format", "tsv").splitlines()[1] == (
        "1\t2 0 0 0\t\t[MAX 2 9 ]\t0 1 1 1"
    )


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("new.csv", 'text,stars\n"fine, film",5\nbad,1\n', ["--text", "text"]),
        ("new.tsv", "stars\treview\n5\tfine, film\n1\tbad\n", []),
        ("new.jsonl", '{"review": "fine, film"}\n{"review": ["bad"]}\n', []),
        ("new.txt", "fine, film\nbad\n", []),
        ("new", "fine, film\nbad\n", []),
        ("new.dat", 'review\n"fine, film"\nbad\n', ["--input", "csv", "--text", "review"]),
        ("new.tsv", "fine, film\nbad\n", ["--input", "text"]),
        ("new.tsv", "review\nfine , film\nbad\n", ["--tokens"]),
        ("new.txt", "fine\u2028,  film\nbad\n", ["--tokens"]),
        ("new.conll", "fine\n,\nfilm\n\nbad\n", ["--input", "conll"]),
    ],
)
def test_formats(runs, tmp_path, capsys, name, text, options):
    asked = partial(records, capsys, "predict", runs["classify"])
    reply = asked(written(tmp_path, text, name), *options)
    assert [item["words"] for item in reply] == [["fine", ",", "film"], ["bad"]]
    zipped = written(tmp_path, gzip.compress(text.encode()), f"{name}.gz")
    assert asked(zipped, *options) == reply


def test_standard_input(runs, capsys, monkeypatch):
    typed(monkeypatch, "A fine film.\nbad")
    reply = records(capsys, "predict", runs["classify"], "-")
    assert [item["words"] for item in reply] == [["A", "fine", "film", "."], ["bad"]]
    typed(monkeypatch, "A fine film.\tfine\n")
    [pair] = records(capsys, "predict", runs["pair"], "-")
    assert pair["words"] == [["A", "fine", "film", "."], ["fine"]]
    assert [len(heads) for heads in pair["heads"]] == [4, 1]
    typed(monkeypatch, "A fine film.\n")
    [tags] = records(capsys, "predict", runs["tag"], "-")
    assert len(tags["tags"]) == len(tags["probabilities"]) == len(tags["heads"]) == 4


# ------------------------------------------------------------------ unusable and empty lines


@pytest.fixture(scope="module")
def quoted(tmp_path_factory):
    """A run on tables in quotes that skips unusable lines; ``dev.tsv`` has one on line 15."""
    folder = tmp_path_factory.mktemp("quoted")
    options = write_files("classify", folder)
    for file in folder.glob("*.tsv"):
        rows = [row.split("\t") for row in file.read_text().splitlines()]
        file.write_text("".join(f'"{text}"\t"{label}"\n' for text, label in rows))
    with (folder / "dev.tsv").open("a") as out:
        out.write('"one cell too many"\t"yes"\t"x"\n')
    for key, value in (SMALL | {"data.quoted": "true", "data.unusable": "drop"}).items():
        options += ["--set", f"{key}={value}"]
    run = folder / "run"
    with mock.patch.dict(os.environ, TREELAX_CACHE=str(folder / "cache")):
        assert main(["train", "classify", *options, "--device", "cpu", "--out", str(run)]) == 0
    return run


def test_a_model_reads_the_tables_that_it_was_trained_on(quoted, capsys):
    """Cells in quotes, and without the lines that training skipped; as parse and analyse do."""
    dev = quoted.parent / "dev.tsv"
    out, err = ask(capsys, "predict", quoted, dev)
    assert len(out.splitlines()) == SIZES["dev"]
    dropped = f"{dev}: 1 line dropped: wrong number of columns (15)"
    assert err.splitlines() == [
        dropped,
        f"accuracy: {figures(quoted)['dev']['accuracy']:.2f} % of {SIZES['dev']} labelled texts",
    ]
    line = fail(capsys, "predict", quoted, dev, "--unusable", "error")
    assert line.startswith(f"{dev}, line 15: received 3 columns; expected 2")
    assert line.endswith("; to go on without it: --unusable drop")
    assert dropped in told(capsys, "parse", quoted, "--file", dev, "--format", "heads")
    assert dropped in told(capsys, "analyse", quoted, "--data", dev)


def test_lines_without_words_keep_their_place(runs, tmp_path, capsys):
    file = written(tmp_path, "\nfine\n  \n\nbad\n\n", "new.txt")
    reply = records(capsys, "predict", runs["classify"], file)
    assert [item["line"] for item in reply] == [1, 2, 3, 4, 5, 6]
    assert [item["label"] is None for item in reply] == [True, False, True, True, False, True]
    assert reply[0] == {"line": 1, "label": None, "probabilities": None, "words": [], "heads": None}
    out, err = ask(capsys, "predict", runs["classify"], file, "--format", "tsv")
    assert out.splitlines()[1] == "1\t\t\t\t"
    assert err == f"{file}: 4 lines without a label: empty sentence (1, 3, 4, 6)\n"
    conllu = shown(capsys, "predict", runs["classify"], file, "--format", "conllu")
    assert conllu.count("# sent_id") == 2
    text = '{"q": "", "a": "a film"}\n{"q": "a film", "a": null}\n\n{"q": "x", "a": "y"}\n'
    reply = records(capsys, "predict", runs["pair"], written(tmp_path, text, "new.jsonl"))
    assert [item["words"] for item in reply] == [
        *([[], ["a", "film"]], [["a", "film"], []]),
        *([[], []], [["x"], ["y"]]),
    ]
    assert [item["label"] is None for item in reply] == [True, True, True, False]
    blank = written(tmp_path, "q\ta\n\n\t\n", "blank.tsv")
    assert [item["line"] for item in records(capsys, "predict", runs["pair"], blank)] == [2, 3]


# ------------------------------------------------------------------ what it writes


def test_tsv(runs, tmp_path, capsys):
    file = written(tmp_path, '{"q": ["a", "fine\\u2028", "film"], "a": ["x\\ty"]}\n', "new.jsonl")
    reply = shown(capsys, "predict", runs["pair"], file, "--format", "tsv").split("\n")
    assert reply[0].split("\t") == [
        *("line", "label", "probability"),
        *("words_1", "heads_1", "words_2", "heads_2"),
    ]
    line, label, probability, words, heads, second, head = reply[1].split("\t")
    [expected] = SentenceModel.from_run(runs["pair"]).predict(
        [(["a", "fine\u2028", "film"], ["x\ty"])]
    )
    assert (line, label) == ("1", expected.label)
    assert float(probability) == pytest.approx(expected.probability, abs=1e-5)
    assert words == "a fine\u00a0 film"
    assert heads == " ".join(map(str, expected.heads[0]))  # type: ignore[index]
    assert (second, head) == ("x\u00a0y", "0")
    assert reply[2:] == [""]
    dev = runs["tag"].parent / "dev.conll"
    tags = shown(capsys, "predict", runs["tag"], dev, "--format", "tsv")
    rows = [row.split("\t") for row in tags.splitlines()]
    assert rows[0] == ["line", "tags", "probabilities", "words", "heads"]
    assert len({len(cell.split(" ")) for cell in rows[1][1:]}) == 1


def test_conllu_keeps_the_spaces_of_a_text(tmp_path, capsys):
    text = "It wasn’t  his (“I think”)."
    asked = partial(shown, capsys, "predict", "english", "--format", "conllu")
    lines = asked(written(tmp_path, f"{text}\n", "a.txt")).splitlines()
    assert lines[1] == "# text = It wasn’t his (“I think”)."
    rows = [line.split("\t") for line in lines[2:-1]]
    spaces = {"_": " ", "SpaceAfter=No": ""}
    assert "".join(row[1] + spaces[row[9]] for row in rows).split() == text.split()
    words = asked(written(tmp_path, "It was n't .\n", "b.txt"), "--tokens")
    assert "# text = It was n't ." in words
    assert "SpaceAfter" not in words


def test_soft_trees_and_threads(runs, tmp_path, capsys):
    file = written(tmp_path, "the film was a fine film with a plot\n", "new.txt")
    torch.set_num_threads(2)
    [hard] = records(capsys, "predict", runs["classify"], file)
    assert torch.get_num_threads() == 2
    [soft] = records(capsys, "predict", runs["classify"], file, "--soft", "--threads", 1)
    assert torch.get_num_threads() == 1
    [expected] = SentenceModel.from_run(runs["classify"]).predict([hard["words"]], soft=True)
    assert soft["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5)
    assert soft["probabilities"] != hard["probabilities"]


@pytest.mark.parametrize(
    ("rows", "reply"),
    [
        (
            ["fine\tyes", "fine\tperhaps", "fine\t", "\tyes"],
            r"accuracy: \d+\.00 % of 2 labelled texts; 1 with a label that the model does not know, "
            r"counted as wrong \(the first: 'perhaps'\)",
        ),
        (["bad\t no ", "bad\t"], r"accuracy: \d+\.00 % of 1 labelled text"),
        (["fine\t", "bad\t"], None),
    ],
)
def test_labels_that_are_unknown_or_missing(runs, tmp_path, capsys, rows, reply):
    file = written(tmp_path, "\n".join(["review\tliked", *rows, ""]), "new.tsv")
    out, err = ask(capsys, "predict", runs["classify"], file)
    assert len(out.splitlines()) == len(rows)
    lines = [line for line in err.splitlines() if "accuracy" in line]
    assert len(lines) == (reply is not None)
    assert all(re.fullmatch(reply or "", line) for line in lines)


# ------------------------------------------------------------------ given trees, and none


def test_given_trees_come_with_the_file(tmp_path, capsys):
    """A model that takes them predicts with the heads of a CoNLL-U file, and of nothing else."""
    model, file = saved(tmp_path, trees="given"), tmp_path / "a.conllu"
    sentence = Sentence(("in", "New York"), (0, 1))
    write_conllu(file, [sentence])
    [reply] = records(capsys, "predict", model, file)
    [expected] = SentenceModel.from_pretrained(model).predict([sentence])
    assert reply["words"] == ["in", "New\u00a0York"] == list(expected.words[0])
    assert reply["heads"] == [0, 1]
    assert reply["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5)
    for name in (written(tmp_path, "text\nfine\n", "a.tsv"), "-"):
        line = fail(capsys, "predict", model, name)
        assert line.startswith(f"{name}: the model takes given trees with its texts")
    row = "\t_\t_\t_\t_\t{}\t_\t_\t_\n"
    for text in (f"1\tfine{row.format('_')}", f"1\ta{row.format(2)}2\tb{row.format(1)}"):
        bad = written(tmp_path, text, "bad.conllu")
        assert fail(capsys, "predict", model, bad).startswith(f"{bad}, line 1: ")


def test_a_model_without_trees(tmp_path, capsys):
    model, file = saved(tmp_path, trees="none"), written(tmp_path, "fine\n", "a.txt")
    assert records(capsys, "predict", model, file)[0]["heads"] is None
    table = shown(capsys, "predict", model, file, "--format", "tsv")
    assert table.splitlines()[1].endswith("\tfine\t")
    [row] = shown(capsys, "predict", model, file, "--format", "conllu").splitlines()[-2:-1]
    assert row.split("\t")[6:8] == ["_", "_"]
