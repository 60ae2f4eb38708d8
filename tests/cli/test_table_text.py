"""``treelax table sst | snli | multinli | ablation``: sweeps over tiny corpora, and their files."""

import csv
import json

import pytest
from commands import fail
from table_runs import SETTINGS, SMALL, TrainedHere, ended, write_nli, write_sst
from typer.testing import CliRunner

from treelax.__main__ import app, main
from treelax.apps.tasks.text.presets import preset
from treelax.apps.training.config import override
from treelax.apps.training.run import Run
from treelax.lab.analysis import sweep
from treelax.lab.tables.text import TABLES

SST = ["--device", "cpu", *SETTINGS, "--set", "model.encoder_size=8"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sweep, "POLL", 0)
    monkeypatch.setattr(sweep, "Worker", TrainedHere)


def places(folder):
    return ["--runs", str(folder / "runs"), "--results", str(folder / "results")]


def test_sst_from_data_to_table(tmp_path):
    source, results = write_sst(tmp_path / "sst"), tmp_path / "results"
    command = ["table", "sst", "--from", str(source), "--rows", "sst-tree,sst-none", "--seeds", "2"]
    command += [*places(tmp_path), *SST, "--set", "model.gcn_layers=2"]  # rows do not differ in it
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    with (results / "runs.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == list(TABLES["sst"].keys)
    assert [(line["preset"], line["seed"]) for line in lines] == [
        *(("sst-tree", "0"), ("sst-tree", "1"), ("sst-none", "0"), ("sst-none", "1"))
    ]
    record = json.loads((tmp_path / "runs" / "sst-tree-0" / "test.json").read_text())
    assert lines[0]["test_accuracy"] == f"{record['splits']['test']['accuracy']:.3f}"
    assert int(lines[0]["parameters"]) == record["parameters"]
    text = (results / "table.md").read_text()
    assert "24 of the 6,920 training sentences of SST (0.3 %), with random word vectors; " in text
    assert "; dev has 8 examples, test 8. Accuracy" in text
    rows = "--rows sst-tree,sst-none --set data.vector_size=8"
    assert f"`treelax table sst --seeds 2 --from sst {rows}" in text
    assert [line.split("|")[1].strip() for line in text.splitlines() if line[:2] == "| "][1:] == [
        *("BiLSTM without a tree", "latent tree")
    ]
    again = CliRunner().invoke(app, [*command, "--report"])
    assert (again.exit_code, again.stdout) == (0, shown.stdout)


def test_pairs_from_data_to_table(tmp_path):
    source = write_nli(tmp_path / "nli", "multinli_1.0", ("train", "dev_matched", "dev_mismatched"))
    command = ["table", "ablation", "--recipe", "tuned", "--from", str(source), "--seeds", "1"]
    rows = ["--rows", "multinli-tuned-tree-2"]
    shown = CliRunner().invoke(app, [*command, *rows, *places(tmp_path), *SST[:2], *SETTINGS])
    assert shown.exit_code == 0, shown.output
    assert "latent tree, 2 GCN" in shown.stdout
    text = (tmp_path / "results" / "table.md").read_text()
    assert "| matched dev | mismatched dev |" in text
    assert "`treelax table ablation --recipe tuned --seeds 1 --from nli --rows " in text


def test_what_has_ended_is_published_though_a_run_failed(tmp_path, capsys):
    source, runs = write_sst(tmp_path / "sst"), tmp_path / "runs"
    command = ["table", "sst", "--seeds", "1", "--rows", "sst-none,sst-chain"]
    changes = [f"data.path={source}", *SMALL, "model.encoder_size=8"]
    broken = Run.create(
        runs / "sst-chain-0", override(preset("sst-chain"), changes), task="classify"
    )
    broken.last_checkpoint.parent.mkdir()
    broken.last_checkpoint.write_text("damaged")
    assert main([*command, "--from", str(source), *places(tmp_path), *SST]) != 0
    reply = capsys.readouterr().err.splitlines()[-1]
    assert "1 of 2 runs failed: sst-chain-0 (" in reply
    assert "last.safetensors" in reply
    assert (tmp_path / "results" / "runs.csv").read_text().count("sst-none") == 1
    text = (tmp_path / "results" / "table.md").read_text()
    assert text.endswith("\nRuns that have not ended: sst-chain-0.\n")


# ------------------------------------------------------------------ what is refused


def test_rows_of_other_settings_or_data_are_no_table(tmp_path, capsys):
    command = ["table", "snli", "--seeds", "1", "--report", "--results", str(tmp_path / "results")]
    for runs, changes, data, reply in (
        ("settings", ["train.epochs=5"], "one", "other settings (train.epochs 5 → 200); give the"),
        ("data", [], "other", "intra-0: was trained or tested on other data than "),
    ):
        ended(tmp_path / runs, override(preset("snli-none"), changes), data="one")
        ended(tmp_path / runs, preset("snli-intra"), data=data)
        assert reply in fail(capsys, *command, "--runs", tmp_path / runs)
    assert not (tmp_path / "results").exists()


# ------------------------------------------------------------------ older runs, other models


def test_tables_that_are_not_the_paper_s_do_without_its_figures(tmp_path):
    for changes, title in (
        (["data.classes=five"], "# Sentiment of the Stanford Sentiment Treebank, five classes\n"),
        (
            ["model.encoder=transformer", "model.pretrained=bert"],
            "# Sentiment of the Stanford Sentiment Treebank, binary, encoder transformer\n",
        ),
    ):
        folder = tmp_path / changes[0]
        for name in ("sst-none", "sst-tree"):
            ended(folder / "runs", override(preset(name), changes))
        command = ["table", "sst", "--seeds", "1", "--report", *places(folder)]
        assert main([*command, *(w for change in changes for w in ("--set", change))]) == 0
        text = (folder / "results" / "table.md").read_text()
        assert text.startswith(title)
        assert "84.6" not in text
        assert ("BiLSTM" in text) == ("five" in title)
