"""Settings of tables: what can be changed for all rows, which runs belong together, the command."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from text_table_runs import SETTINGS, ended, write_nli, write_sst

from treelax.analysis import sweep
from treelax.cli.main import main
from treelax.tasks.text.config import TextConfig
from treelax.tasks.text.presets import preset
from treelax.training.config import override
from treelax.training.run import Run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sweep, "POLL", 0.02)


def places(folder: Path) -> list[str]:
    return ["--runs", str(folder / "runs"), "--results", str(folder / "results")]


def command_of(folder: Path) -> str:
    """The command that a table has on record."""
    found = re.search("`(treelax table .*)`", (folder / "results" / "table.md").read_text())
    assert found is not None
    return found[1]


def refused(capsys: Capture, command: Sequence[str]) -> str:
    """The one line that the program says as it refuses."""
    capsys.readouterr()
    assert main(list(command)) == 2
    output = capsys.readouterr()
    assert output.out == ""
    [line] = output.err.splitlines()
    return line.removeprefix("treelax: error: ")


# ------------------------------------------------------------------ a setting of all rows


def test_a_setting_that_some_presets_have_already(tmp_path: Path) -> None:
    source = write_nli(tmp_path / "nli", "snli_1.0", ("train", "dev", "test"))
    command = ["table", "snli", "--recipe", "tuned", "--seeds", "1", "--from", str(source)]
    command += ["--rows", "snli-tuned-none,snli-tuned-tree-1", *places(tmp_path)]
    command += ["--device", "cpu", *SETTINGS, "--set", "train.weight_decay=0.3"]
    assert main([*command, "--set", "model.left_head_bias=0"]) == 0
    said = command_of(tmp_path)
    assert " --set train.weight_decay=0.3" in said
    assert " --set model.left_head_bias=0.0" in said


def test_what_rows_do_not_differ_in_can_be_set(tmp_path: Path) -> None:
    source = write_sst(tmp_path / "sst")
    command = ["table", "sst", "--seeds", "1", "--from", str(source), "--rows", "sst-none,sst-tree"]
    command += [*places(tmp_path), "--device", "cpu", *SETTINGS, "--set", "model.encoder_size=8"]
    assert main([*command, "--set", "model.gcn_layers=2"]) == 0
    assert " --set model.gcn_layers=2 " in command_of(tmp_path)
    [run] = [Run.open(path) for path in (tmp_path / "runs").glob("sst-tree-*")]
    assert run.config(TextConfig).model.gcn_layers == 2


@pytest.mark.parametrize(
    ("table", "setting", "why"),
    [
        ("sst", "model.trees=chain", "in which the rows of the table differ"),
        ("snli", " model.gcn_layers = 1", "in which the rows of the table differ"),
        ("snli", "data.format=table", "which makes it another table"),
        ("sst", "kind=tag", "which makes it another table"),
        ("listops", "model.noise=none", "in which the rows of the table differ"),
        ("listops", "model.straight_through=true", "in which the rows of the table differ"),
    ],
)
def test_what_rows_are_is_refused_before_training(
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    setting: str,
    why: str,
) -> None:
    monkeypatch.delattr(sweep, "_start")  # which would train for hours
    line = refused(capsys, ["table", table, *places(tmp_path), "--set", setting])
    assert line == (
        f"--set: received {setting}, {why}; expected another setting: choose rows with --rows, or "
        f"train one model with treelax train {table}"
    )
    assert not list(tmp_path.iterdir())


def test_a_row_of_listops_can_have_other_noise(tmp_path: Path, capsys: Capture) -> None:
    command = ["table", "listops", "--rows", "balanced-mc", "--report", *places(tmp_path)]
    assert "no run has ended yet" in refused(capsys, [*command, "--set", "model.noise=none"])


# ------------------------------------------------------------------ runs that no command makes


@pytest.mark.parametrize(
    ("runs", "key", "said"),
    [
        # a row as its preset has it, and one that is not
        ({"none-0": "train.epochs=20", "tree-1-0": ""}, "train.epochs", ("20", "none-0", "40")),
        ({"none-0": "", "tree-1-0": "train.epochs=20"}, "train.epochs", ("20", "tree-1-0", "40")),
        # seeds of one row
        (
            {"tree-1-0": "", "tree-1-1": "train.weight_decay=0.1"},
            *("train.weight_decay", ("0.1", "tree-1-1", "0.3")),
        ),
        # all rows were changed, each otherwise
        (
            {"none-0": "train.weight_decay=0.3", "tree-1-0": "train.weight_decay=0.1"},
            *("train.weight_decay", ("0.3", "none-0", "0.1")),
        ),
        # one row was changed, the other has what it was changed from
        (
            {"none-0": "", "tree-1-0": "train.weight_decay=0.2"},
            *("train.weight_decay", ("0.2", "tree-1-0", "0.1")),
        ),
    ],
)
def test_runs_of_other_settings_are_no_table(
    tmp_path: Path, capsys: Capture, runs: dict[str, str], key: str, said: tuple[str, str, str]
) -> None:
    for name, setting in runs.items():
        row, _, seed = name.rpartition("-")
        changes = [setting] if setting else []
        config = override(preset(f"snli-tuned-{row}"), changes, list_all="")
        ended(tmp_path / "runs", replace(config, seed=int(seed)))
    rows = ",".join(dict.fromkeys(f"snli-tuned-{name.rpartition('-')[0]}" for name in runs))
    command = ["table", "snli", "--recipe", "tuned", "--rows", rows, "--report", *places(tmp_path)]
    capsys.readouterr()
    assert main(command) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    value, changed, other = said
    folder = tmp_path / "runs" / f"snli-tuned-{changed}"
    assert f"error: {key}: is {value} in {folder}, unlike its preset, and {other} in " in line
    assert line.endswith("with --rows, or give another --runs")
    assert not (tmp_path / "results").exists()


def test_runs_whose_presets_differ_are_a_table(tmp_path: Path) -> None:
    for row in ("none", "tree-1"):
        for seed in (0, 1):
            ended(tmp_path / "runs", replace(preset(f"snli-tuned-{row}"), seed=seed))
    command = ["table", "snli", "--recipe", "tuned", "--seeds", "2", "--report"]
    assert main([*command, *places(tmp_path)]) == 0
    assert "--set" not in command_of(tmp_path)


def test_runs_of_another_model_are_no_row(tmp_path: Path, capsys: Capture) -> None:
    for name in ("snli-tree-1", "snli-tree-2"):
        config = override(preset(name), ["model.trees=chain"], list_all="")
        ended(tmp_path / "runs", config)
    command = ["table", "snli", "--seeds", "1", "--report", *places(tmp_path)]
    assert main(command) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "model.trees: is chain in " in line
    assert "; expected it as in the preset, for the rows of the table differ in it: " in line


# ------------------------------------------------------------------ names of files and folders


@pytest.mark.parametrize("name", ["none", " sp", '"a"', "[a, b]"])
def test_any_name_of_a_corpus_and_vectors(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["table", "sst", "--rows", "sst-none", "--seeds", "1", "--from", name]
    missing = f"{name.strip()}: does not exist; expected "
    assert refused(capsys, command).startswith(f"{missing}trainDevTestTrees_PTB.zip")
    write_sst(Path("corpus"))
    command[-1] = "corpus"
    assert refused(capsys, [*command, "--vectors", name]).startswith(f"{missing}word vectors")
    ended(tmp_path / "runs", override(preset("sst-none"), [f"data.path={json.dumps(name)}"]))
    assert main([*command[:-1], name, "--report", *places(tmp_path)]) == 0


# ------------------------------------------------------------------ damaged results


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mixed_examples": None}, "mixed_examples is None"),
        ({"mixed_examples": True}, "mixed_examples is True"),
        ({"parameters": "x"}, "parameters is 'x'"),
        ({"splits": {}}, "without dev"),
        ({"splits": {"test": {"examples": 1, "accuracy": 1, "soft_accuracy": 1}}}, "without dev"),
        ({"splits": {"dev": 3}}, "dev is 3"),
    ],
)
def test_a_damaged_result(
    tmp_path: Path, capsys: Capture, change: dict[str, object], said: str
) -> None:
    run = ended(tmp_path / "runs", preset("snli-none"), **change)
    command = ["table", "snli", "--seeds", "1", "--rows", "snli-none", "--report"]
    line = refused(capsys, [*command, *places(tmp_path)])
    file = run.path / "test.json"
    assert line == f"{file}: cannot be read as a result ({said}); remove it and use --resume"


def test_a_result_of_before_there_were_all_figures(tmp_path: Path) -> None:
    run = ended(tmp_path / "runs", preset("snli-none"))
    record = json.loads((run.path / "test.json").read_text())
    del record["mixed_examples"], record["parameters"]
    (run.path / "test.json").write_text(json.dumps(record))
    command = ["table", "snli", "--seeds", "1", "--rows", "snli-none", "--report"]
    assert main([*command, *places(tmp_path)]) == 0
