"""``treelax eval``: figures of a model on a file or on the run's own data."""

import json
import re
from pathlib import Path

import pytest
from commands import ask
from listops_runs import options, result
from sentence_runs import figures as split_figures

import treelax
from treelax.__main__ import main
from treelax.apps.tasks.base import Source

SAMPLE = Path(__file__).parent.parent / "data" / "listops_sample.tsv"
SKIPPED = "skipped because of their length"


def figures(capsys, *arguments):
    out, err = ask(capsys, "eval", *arguments, "--json")
    assert err == "" or SKIPPED in err
    return json.loads(out)


def test_a_run_of_listops_on_a_file(finished, capsys):
    run = finished[0]
    received = figures(capsys, run, "--data", SAMPLE, "--max-length", 10)
    parser = treelax.load(run)
    examples = [e for e in parser.read(Source(file=str(SAMPLE))) if len(e.words[0]) <= 10]
    assert received == {
        **{"model": str(run), "data": str(SAMPLE), "examples": len(examples)},
        **{"min_length": 1, "max_length": 10},
        **parser.evaluate(examples).record(),
    }
    expected = figures(capsys, run, "--data", SAMPLE)
    tables, _ = ask(capsys, "eval", run, "--data", SAMPLE)
    assert f"{SAMPLE}: 12 expressions, 26 operators" in tables
    lines = [line[1:-1].split("|") for line in tables.splitlines() if line.startswith("|")]
    rows = {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines}
    assert rows["attachment"][0] == f"{expected['attachment']:.2f}"
    names = ("operator_accuracy", "soft_operator_accuracy")
    assert rows["tags of operators"] == [f"{expected[name]:.2f}" for name in names]
    assert rows["1–10"][0] == rows["11–20"][0] == "6"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", tables)


def test_a_run_is_measured_on_its_own_test_set(finished, capsys):
    run = finished[0]
    received = figures(capsys, run)
    assert {key: received[key] for key in result(run)["test"]} == result(run)["test"]
    short = figures(capsys, run, "--max-length", 8, "--min-length", 6)
    _, err = ask(capsys, "eval", run, "--max-length", 8, "--min-length", 6)
    assert err == f"{60 - short['sentences']} of 60 examples {SKIPPED}\n"
    assert 0 < short["sentences"] < 60
    assert (short["min_length"], short["max_length"]) == (6, 8)
    of_file = figures(capsys, run / "best" / "model.safetensors")
    for name in ("operator_accuracy", "token_accuracy", "attachment", "exact_trees"):
        assert of_file[name] == received[name]


def test_a_very_long_expression_is_named(tmp_path, capsys):
    """With gold trees, for any others would take the time that is warned of."""
    run, depth, file = tmp_path / "gold", 334, tmp_path / "long.tsv"
    arguments = ["--preset", "gold", *options(train__epochs=1, train__updates=1)]
    assert main(["train", "listops", "--device", "cpu", "--out", str(run), *arguments]) == 0
    file.write_text("[MAX 2 5 ]\n" + "[MAX 1 " * depth + "2" + " ]" * depth + "\n")
    out, err = ask(capsys, "eval", run, "--data", file, "--json")
    assert json.loads(out)["tokens"] == 1007
    assert "([MAX 1 [MAX 1 [MAX ...) has 1,003 words, which may take long" in err
    assert figures(capsys, run, "--data", file, "--max-length", 1000)["sentences"] == 1


@pytest.mark.parametrize("kind", ["classify", "pair", "tag"])
def test_sentence_models(sentence_runs, capsys, kind):
    """On their own test set and on its file they have the figures that the run ended with."""
    run = sentence_runs[kind]
    expected = split_figures(run)["test"]
    [file] = run.parent.glob("test.*")
    for more in ([], ["--data", file]):
        received = figures(capsys, run, *more)
        for name in ("accuracy", "soft_accuracy"):
            assert received[name] == pytest.approx(expected[name])
    assert f"{expected['accuracy']:.2f}" in ask(capsys, "eval", run)[0]
