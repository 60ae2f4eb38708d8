"""``treelax train listops``: what it writes and says, and how it goes on."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from listops_runs import QUICK, content, fail, interrupt, metrics, result, tiny, train
from typer.testing import Result

from treelax.__main__ import main
from treelax.apps.cli.train import show_settings
from treelax.apps.tasks.listops.config import PRESETS
from treelax.apps.tasks.text.presets import preset
from treelax.apps.training.config import override
from treelax.apps.training.run import Run
from treelax.lab.listops import experiment

Capture = pytest.CaptureFixture[str]
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


# ------------------------------------------------------------------ a run


def test_a_run_is_a_folder(finished: tuple[Path, Result]) -> None:
    folder, _ = finished
    assert {"config.toml", "metrics.jsonl", "test.json", "best/model.safetensors"} <= set(
        content(folder)
    )
    assert (folder / "checkpoint" / "last.safetensors").exists()
    run = Run.open(folder)
    assert run.task == "listops"
    assert run.config(type(tiny())) == tiny(seed=5)
    assert [row["epoch"] for row in metrics(folder)] == [1, 2, 3, 4]
    assert result(folder)["seed"] == 5


def test_what_a_run_says(finished: tuple[Path, Result]) -> None:
    folder, said = finished
    test = result(folder)["test"]
    assert "test, at most 16 tokens: 60 expressions" in said.stdout
    assert f"| {test['operator_accuracy']:.2f} |" in re.sub(" +", " ", said.stdout)
    assert f"run: {folder}\n" in said.stdout
    assert said.stdout.count("arcs right") == 3  # trees against the gold ones
    assert said.stderr.startswith("balanced-mc, seed 5, on cpu: expressions of at most 16 tokens")
    assert "20/20 (100 %), epoch 4/4 loss " in said.stderr
    assert not CONTROL.search(said.stdout + said.stderr)  # there is no terminal


def test_list_shows_presets_and_settings(capsys: Capture) -> None:
    assert main(["train", "listops", "--list", "--preset", "gold", "--set", "train.epochs=7"]) == 0
    output = capsys.readouterr()
    rows = [
        [cell.strip() for cell in line[1:-1].split("|")] for line in output.out.splitlines() if line
    ]
    assert {name: text for name, (_, text) in PRESETS.items()}.items() <= {
        row[0]: row[1] for row in rows
    }.items()
    assert ["train.epochs", "7", "number of epochs"] in rows
    assert ["data.folder", "none"] in [row[:2] for row in rows]
    assert "settings of gold" in output.out
    assert output.err == ""


# ------------------------------------------------------------------ going on


def test_an_interrupted_run_goes_on_as_if_nothing_had_been(
    half: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert len(metrics(half)) == 3  # one row more than the checkpoint
    said = train("--out", half, "--resume")
    assert "going on after epoch 2 of 4" in said.stderr
    train("--out", tmp_path / "straight", *QUICK)
    assert metrics(half) == metrics(tmp_path / "straight")
    assert result(half) == result(tmp_path / "straight")


def test_a_run_that_has_ended_can_be_extended(tmp_path: Path, capsys: Capture) -> None:
    folder, straight = tmp_path / "run", tmp_path / "straight"
    plateau = ["--set", "train.schedule=plateau"]  # which does not depend on the number of epochs
    train("--out", folder, *QUICK, *plateau)
    before = content(folder)
    assert fail(capsys, "--out", folder, "--resume", "--set", "train.epochs=3") == (
        f"train.epochs: received 3; expected at least 4, the epochs that {folder} has done"
    )
    assert content(folder) == before
    said = train("--out", folder, "--resume", "--set", "train.epochs=6").stderr
    assert "going on after epoch 4 of 6" in said
    train("--out", straight, *QUICK, *plateau, "--set", "train.epochs=6")
    assert metrics(folder) == metrics(straight)
    assert result(folder) == result(straight)
    assert (folder / "config.toml").read_text() == (straight / "config.toml").read_text()


def test_an_extension_that_was_killed_goes_on(
    finished: tuple[Path, Result], tmp_path: Path
) -> None:
    folder = shutil.copytree(finished[0], tmp_path / "run")
    interrupt(folder, 5, "--resume", "--set", "train.epochs=6")
    assert "epochs = 6" in (folder / "config.toml").read_text()
    assert not (folder / "test.json").exists()
    train("--out", folder, "--resume")
    assert result(folder)["epochs"] == 6


def test_a_run_that_has_ended_shows_its_figures_again(
    finished: tuple[Path, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, first = finished
    before = content(folder)

    def refuse(*_: object) -> None:
        raise AssertionError("there is no need of the data")

    monkeypatch.setattr(experiment, "load_splits", refuse)
    monkeypatch.setattr(experiment, "ListOpsExperiment", refuse)
    again = train("--out", folder, "--resume")
    assert again.stderr == f"{folder}: has ended already, after 4 epochs\n"
    tables = first.stdout.partition("\n\n ")[0]
    assert again.stdout.startswith(tables[: tables.rindex("|")])
    assert again.stdout.endswith(f"run: {folder}\n")
    assert content(folder) == before


# ------------------------------------------------------------------ --list


def listed(capsys: Capture) -> list[str]:
    """The settings that were shown, each ``key=value``."""
    rows = capsys.readouterr().out.partition("\n\n")[2].splitlines()[2:]
    return ["=".join(cell.strip() for cell in row.split("|")[1:3]) for row in rows]


@pytest.mark.parametrize(
    "changes",
    [
        ['data.text=["a, b", "c"]', "data.dev=a, b.tsv"],
        ['data.text=["[a", "none"]', 'data.train="none"', """data.label='"a"'"""],
        ['data.text=[" a"]', "data.more_vectors=", 'data.vectors=" "', "model.distances=none"],
        ["data.text=a,b", "model.encoder=none", "model.trees=none", "data.quoted=true"],
    ],
)
def test_what_is_listed_can_be_set(capsys: Capture, changes: list[str]) -> None:
    config = override(preset("pair"), changes)
    show_settings({}, config)
    assert override(preset("pair"), listed(capsys)) == config
