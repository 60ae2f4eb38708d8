"""``treelax table sst | snli | multinli | ablation``: sweeps over tiny corpora, and their files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

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

Capture = pytest.CaptureFixture[str]
SST = ["--device", "cpu", *SETTINGS, "--set", "model.encoder_size=8"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sweep, "POLL", 0)
    monkeypatch.setattr(sweep, "Worker", TrainedHere)


def places(folder: Path) -> list[str]:
    return ["--runs", str(folder / "runs"), "--results", str(folder / "results")]


def test_sst_from_data_to_table(tmp_path: Path) -> None:
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


def test_a_table_goes_on_though_its_files_have_moved(tmp_path: Path, capsys: Capture) -> None:
    source, begun = write_sst(tmp_path / "sst"), tmp_path / "runs" / "sst-none-1"
    train = ["train", "sst", "--preset", "sst-none", "--seed", "1", "--from", str(source)]
    assert main([*train, "--out", str(begun), *SST]) == 0
    (begun / "test.json").unlink()  # all but ended
    command = ["table", "sst", "--rows", "sst-none,", *places(tmp_path), *SST]
    assert main([*command, "--seeds", "1", "--from", str(source)]) == 0

    elsewhere = source.rename(tmp_path / "elsewhere")
    moved = [*command, "--from", str(elsewhere), "--seeds"]
    capsys.readouterr()
    assert main([*moved, "2", "--report"]) == 0
    assert "not ended yet: sst-none-1" in capsys.readouterr().err
    assert main([*moved, "2"]) == 0
    assert "not ended yet" not in capsys.readouterr().err
    assert len((tmp_path / "results" / "runs.csv").read_text().splitlines()) == 3
    assert str(elsewhere) in (begun / "config.toml").read_text()

    (elsewhere / "dev.txt").write_text("(4 (2 good) (2 film))\n(0 (2 bad) (2 plot))\n")
    assert main([*moved, "3"]) == 2
    assert "was trained or tested on other data than are there now" in capsys.readouterr().err
    assert not (tmp_path / "runs" / "sst-none-2").exists()
    assert main([*moved, "2"]) == 0  # nothing is trained, so nothing is read


def test_pairs_from_data_to_table(tmp_path: Path) -> None:
    source = write_nli(tmp_path / "nli", "multinli_1.0", ("train", "dev_matched", "dev_mismatched"))
    command = ["table", "ablation", "--recipe", "tuned", "--from", str(source), "--seeds", "1"]
    rows = ["--rows", "multinli-tuned-tree-2"]
    shown = CliRunner().invoke(app, [*command, *rows, *places(tmp_path), *SST[:2], *SETTINGS])
    assert shown.exit_code == 0, shown.output
    assert "latent tree, 2 GCN" in shown.stdout
    text = (tmp_path / "results" / "table.md").read_text()
    assert "| matched dev | mismatched dev |" in text
    assert "`treelax table ablation --recipe tuned --seeds 1 --from nli --rows " in text


def test_what_has_ended_is_published_though_a_run_failed(tmp_path: Path, capsys: Capture) -> None:
    source, runs = write_sst(tmp_path / "sst"), tmp_path / "runs"
    command = ["table", "sst", "--seeds", "1", "--rows", "sst-none,sst-chain"]
    changes = [f"data.path={source}", *SMALL, "model.encoder_size=8"]
    broken = Run.create(
        runs / "sst-chain-0", override(preset("sst-chain"), changes), task="classify"
    )
    broken.last_checkpoint.parent.mkdir()
    broken.last_checkpoint.write_text("damaged")
    assert main([*command, "--from", str(source), *places(tmp_path), *SST]) != 0
    said = capsys.readouterr().err.splitlines()[-1]
    assert "1 of 2 runs failed: sst-chain-0 (" in said
    assert "last.safetensors" in said
    assert (tmp_path / "results" / "runs.csv").read_text().count("sst-none") == 1
    text = (tmp_path / "results" / "table.md").read_text()
    assert text.endswith("\nRuns that have not ended: sst-chain-0.\n")


# ------------------------------------------------------------------ what is refused


def test_what_is_missing_or_damaged_is_told_before_anything_starts(
    tmp_path: Path, capsys: Capture
) -> None:
    source = write_sst(tmp_path / "sst")
    command = ["table", "sst", "--seeds", "1", *places(tmp_path), "--device", "cpu", *SETTINGS]
    one, given = ["--rows", "sst-none"], ["--from", str(source)]
    trees = ["--set", f"data.trees={tmp_path}/{{split}}.conllu"]
    for more, message in (
        (one, "data.path is none"),
        ([*one, "--from", str(tmp_path / "none")], "none: does not exist"),
        (given, "takes given trees; expected --set data.trees=FILES"),
        ([*given, *trees], "train.conllu: does not exist; expected a CoNLL-U file of given trees"),
        ([*one, *given, "--vectors", "[a, b]"], "[a, b]: does not exist; expected word vectors"),
    ):
        assert message in fail(capsys, *command, *more)
    (source / "train.txt").write_text("(4 (2 no end)\n")
    assert "train.txt, line 1" in fail(capsys, *command, *one, *given)
    assert not (tmp_path / "runs").exists()


def test_rows_of_other_settings_or_data_are_no_table(tmp_path: Path, capsys: Capture) -> None:
    command = ["table", "snli", "--seeds", "1", "--report", "--results", str(tmp_path / "results")]
    for runs, changes, data, said in (
        ("settings", ["train.epochs=5"], "one", "other settings (train.epochs 5 → 200); give the"),
        ("data", [], "other", "intra-0: was trained or tested on other data than "),
    ):
        ended(tmp_path / runs, override(preset("snli-none"), changes), data="one")
        ended(tmp_path / runs, preset("snli-intra"), data=data)
        assert said in fail(capsys, *command, "--runs", tmp_path / runs)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parameters": "x"}, "parameters is 'x'"),
        ({"splits": {"test": {"examples": 1, "accuracy": 1, "soft_accuracy": 1}}}, "without dev"),
    ],
)
def test_a_damaged_result(
    tmp_path: Path, capsys: Capture, change: dict[str, object], said: str
) -> None:
    run = ended(tmp_path / "runs", preset("snli-none"), **change)
    command = ["table", "snli", "--seeds", "1", "--rows", "snli-none", "--report"]
    assert fail(capsys, *command, *places(tmp_path)) == (
        f"{run.path / 'test.json'}: cannot be read as a result ({said}); remove it and use --resume"
    )


# ------------------------------------------------------------------ older runs, other models


def test_tables_that_are_not_the_paper_s_do_without_its_figures(tmp_path: Path) -> None:
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
