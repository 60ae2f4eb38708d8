"""``treelax eval``: figures of a model on a file or on the run's own data; what it refuses."""

import json
import re
from pathlib import Path

import commands
import pytest
from commands import ask
from listops_runs import options, result
from sentence_runs import figures as split_figures
from sentence_runs import train

import treelax
from treelax.__main__ import main

SAMPLE = Path(__file__).parent.parent / "data" / "listops_sample.tsv"
FIGURES = ("operator_accuracy", "token_accuracy", "attachment", "exact_trees")
SKIPPED = "skipped because of their length"


def figures(capsys, *arguments):
    out, err = ask(capsys, "eval", *arguments, "--json")
    assert err == "" or SKIPPED in err
    return dict(json.loads(out))


def fail(capsys, *arguments):
    return commands.fail(capsys, "eval", *arguments)


@pytest.fixture
def run(finished):
    return finished[0]


# ------------------------------------------------------------------ ListOps


def test_json_holds_all_figures(run, capsys):
    received = figures(capsys, run, "--data", SAMPLE, "--max-length", 10)
    parser = treelax.load(run)
    examples = [
        example
        for example in parser.read(treelax.apps.tasks.base.Source(file=str(SAMPLE)))
        if len(example.words[0]) <= 10
    ]
    assert received == {
        **{"model": str(run), "data": str(SAMPLE), "examples": len(examples)},
        **{"min_length": 1, "max_length": 10},
        **parser.evaluate(examples).record(),
    }


def test_the_tables(run, capsys):
    expected = figures(capsys, run, "--data", SAMPLE)
    assert main(["eval", str(run), "--data", str(SAMPLE)]) == 0
    shown = capsys.readouterr().out
    assert f"{SAMPLE}: 12 expressions, 26 operators" in shown
    rows = {
        cells[0]: cells[1:]
        for line in shown.splitlines()
        if line.startswith("|")
        for cells in [[cell.strip() for cell in line[1:-1].split("|")]]
    }
    assert rows["attachment"][0] == f"{expected['attachment']:.2f}"
    assert rows["tags of operators"] == [
        f"{expected['operator_accuracy']:.2f}",
        f"{expected['soft_operator_accuracy']:.2f}",
    ]
    assert rows["1–10"][0] == rows["11–20"][0] == "6"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)


def test_a_run_is_measured_on_its_own_test_set(run, capsys):
    received = figures(capsys, run)
    assert {key: received[key] for key in result(run)["test"]} == result(run)["test"]
    short = figures(capsys, run, "--max-length", 8, "--min-length", 6)
    _, err = ask(capsys, "eval", run, "--max-length", 8, "--min-length", 6)
    assert err == f"{60 - short['sentences']} of 60 examples {SKIPPED}\n"
    assert 0 < short["sentences"] < 60
    assert (short["min_length"], short["max_length"]) == (6, 8)
    file = run / "best" / "model.safetensors"
    alike = {key: value for key, value in figures(capsys, file).items() if key in FIGURES}
    assert alike == {key: received[key] for key in FIGURES}


def test_a_very_long_expression_is_named(tmp_path, capsys):
    """With gold trees, for any others would take the time that is warned of."""
    run = tmp_path / "gold"
    arguments = ["--preset", "gold", *options(train__epochs=1, train__updates=1)]
    assert main(["train", "listops", "--device", "cpu", "--out", str(run), *arguments]) == 0
    depth, file = 334, tmp_path / "long.tsv"
    file.write_text("[MAX 2 5 ]\n" + "[MAX 1 " * depth + "2" + " ]" * depth + "\n")
    capsys.readouterr()
    assert main(["eval", str(run), "--data", str(file), "--json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["tokens"] == 1007
    assert "([MAX 1 [MAX 1 [MAX ...) has 1,003 words, which may take long" in output.err
    assert figures(capsys, run, "--data", file, "--max-length", 1000)["sentences"] == 1


# ------------------------------------------------------------------ sentences


@pytest.mark.parametrize("kind", ["classify", "pair", "tag"])
def test_sentence_models(tmp_path, capsys, kind):
    """On their own test set and on its file they have the figures that the run ended with."""
    run = train(kind, tmp_path)
    expected = split_figures(run)["test"]
    [file] = tmp_path.glob("test.*")
    for more in ([], ["--data", file]):
        received = figures(capsys, run, *more)
        assert received["accuracy"] == pytest.approx(expected["accuracy"])
        assert received["soft_accuracy"] == pytest.approx(expected["soft_accuracy"])
    assert main(["eval", str(run)]) == 0
    assert f"{expected['accuracy']:.2f}" in capsys.readouterr().out
    if kind == "tag":
        (new := tmp_path / "new.conllu").write_text("1\tDogs" + "\t_" * 8 + "\n\n")
        assert f"{new}: received no example with a label" in fail(capsys, run, "--data", new)


# ------------------------------------------------------------------ what it refuses
