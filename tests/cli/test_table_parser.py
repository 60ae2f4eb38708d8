"""``treelax table parser``: a sweep over a tiny treebank, and a parser without optional packages."""

import csv
import json
import subprocess
import sys

import pytest
from table_runs import TrainedHere

from treelax.__main__ import main
from treelax.lab.analysis import sweep

SENTENCES = """\
1\tdogs\t_\t_\t_\t_\t2\tnsubj\t_\t_
2\tbark\t_\t_\t_\t_\t0\troot\t_\t_

1\tcats\t_\t_\t_\t_\t2\tnsubj\t_\t_
2\tsee\t_\t_\t_\t_\t0\troot\t_\t_
3\tdogs\t_\t_\t_\t_\t2\tobj\t_\t_

"""
SETTINGS = ["train.epochs=1", "train.batch_size=2", "train.threads=1", "data.min_count=1"]
SETTINGS += [f"model.{size}_size=4" for size in ("word", "encoder", "arc", "label")]
SET = [part for setting in SETTINGS for part in ("--set", setting)]


@pytest.fixture
def files(tmp_path):
    options = []
    for split, count in (("train", 3), ("dev", 1), ("test", 2)):
        (tmp_path / f"{split}.conllu").write_text(SENTENCES * count)
        options += [f"--{split}", str(tmp_path / f"{split}.conllu")]
    return options


@pytest.fixture
def _here(monkeypatch):
    monkeypatch.setattr(sweep, "POLL", 0)
    monkeypatch.setattr(sweep, "Worker", TrainedHere)


@pytest.mark.usefixtures("_here")
def test_from_treebanks_to_table(tmp_path, files, capsys):
    results = tmp_path / "results"
    command = ["table", "parser", *files, "--recipe", "small", "--seeds", "2", "--device", "cpu"]
    command += ["--runs", str(tmp_path / "runs"), "--results", str(results), *SET]
    assert main(command) == 0
    with (results / "runs.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    rows = [f"small-{name}" for name in ("heads", "projective", "nonprojective")]
    assert [(line["preset"], line["seed"]) for line in lines] == [
        (row, seed) for row in rows for seed in "01"
    ]
    for line in lines:
        folder = tmp_path / "runs" / f"{line['preset']}-{line['seed']}"
        record = json.loads((folder / "test.json").read_text())
        assert line["test_sentences"] == "4"
        for split, direct in record["splits"].items():
            for key in ("uas", "las", "malformed"):
                assert line[f"{split}_{key}"] == f"{direct[key]:.3f}"
        structure = line["preset"].removeprefix("small-")
        assert f'structure = "{structure}"' in (folder / "config.toml").read_text()
        if structure != "heads":
            assert line["test_malformed"] == "0.000"
    text = (results / "table.md").read_text()
    assert text.startswith("# Dependency parsing: kinds of trees\n")
    assert "`treelax table parser --recipe small --seeds 2 --train train.conllu" in text
    assert [line.split(" | ")[0] for line in text.splitlines() if line[:2] == "| "] == [
        *("| trees", "| head selection", "| projective CRF", "| non-projective CRF")
    ]
    # runs on other data do not join them
    (tmp_path / "train.conllu").write_text(SENTENCES * 4)
    capsys.readouterr()
    assert main([*command, "--seeds", "3"]) == 2
    assert "was trained or tested on other data" in capsys.readouterr().err


@pytest.mark.usefixtures("_here")
def test_few_labels(tmp_path, files):
    rows = ["small-labels-10", "small-labels-10-rest", "small-labels-100"]
    command = ["table", "labels", *files, "--recipe", "small", "--seeds", "1", "--device", "cpu"]
    command += ["--rows", ",".join(rows), "--runs", str(tmp_path / "runs"), *SET]
    assert main([*command, "--results", str(tmp_path / "results")]) == 0
    with (tmp_path / "results" / "runs.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["preset"], line["training_sentences"]) for line in lines] == [
        *zip(rows, ("1", "1", "6"), strict=True)
    ]
    text = (tmp_path / "results" / "table.md").read_text()
    assert "| 10 % of trees, the rest unlabelled |" in text


def test_parsers_train_and_are_evaluated_without_optional_packages(tmp_path, files):
    train = ["train", "parser", "--preset", "small-heads", *files, *SET, "--device", "cpu"]
    evaluate = ["eval", str(tmp_path / "run"), "--data", files[-1], "--device", "cpu", "--json"]
    blocked = ("nltk", "conllu", "transformers", "spacy")
    code = (
        "import sys; sys.modules.update(dict.fromkeys({!r}))\nfrom treelax.__main__ import main\n"
    )
    code += "sys.exit(main({!r}) or main({!r}))"
    code = code.format(blocked, [*train, "--out", str(tmp_path / "run")], evaluate)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["sentences"] == 4
