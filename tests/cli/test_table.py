"""``treelax table listops``: a sweep in real processes, its files, and going on after Ctrl-C."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from listops_runs import metrics, options, result, tiny
from typer.testing import CliRunner

from treelax.analysis import sweep
from treelax.cli.main import app, main
from treelax.training.run import Run

ROWS = ("balanced-mc", "paper-mc-st")
SETTINGS = options(train__epochs=2, train__updates=2)


def arguments(folder: Path, *more: object) -> list[str]:
    """A small table; its options but settings can be given otherwise."""
    usual = {"--device": "cpu", "--rows": ",".join(ROWS), "--seeds": "2"}
    usual |= {"--runs": str(folder / "runs"), "--results": str(folder / "results")}
    others = [word for option in usual.items() if option[0] not in more for word in option]
    return ["table", "listops", *others, *SETTINGS, *map(str, more)]


def fail(capsys: pytest.CaptureFixture[str], *given: str) -> str:
    """The one line that the program says as it refuses."""
    capsys.readouterr()
    assert main(list(given)) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("treelax: error: ")
    assert output.err.count("\n") == 1
    return output.err.removeprefix("treelax: error: ").rstrip("\n")


class Sweep:
    """A sweep that is interrupted before its third run, then goes on, then is asked for again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[str] = []
        self.most: int | None = 2
        start = sweep._start

        def remember(run: Run, device: str, jobs: int) -> Any:
            if len(self.started) == self.most:
                raise KeyboardInterrupt
            self.started.append(run.path.name)
            return start(run, device, jobs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sweep, "_start", remember)
            patch.setattr(sweep, "POLL", 0.02)
            self.interrupted = CliRunner().invoke(app, arguments(folder, "--jobs", 2))
            self.first, self.started, self.most = self.started, [], None
            self.ended_first = [f.parent.name for f in folder.rglob("test.json")]
            self.whole = CliRunner().invoke(app, arguments(folder, "--jobs", 2))
            self.second, self.started = self.started, []
            self.again = CliRunner().invoke(app, arguments(folder))


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    return Sweep(tmp_path_factory.mktemp("table"))


@pytest.fixture
def folder(swept: Sweep, tmp_path: Path) -> Path:
    """A copy of the finished sweep."""
    return shutil.copytree(swept.folder, tmp_path / "copy")


# ------------------------------------------------------------------ sweeping


def test_an_interrupted_sweep_goes_on(swept: Sweep) -> None:
    names = [f"{row}-{seed}" for row in ROWS for seed in (0, 1)]
    assert swept.interrupted.exit_code != 0
    assert swept.first == names[:2]
    assert swept.ended_first  # else no third run would have been started
    assert swept.whole.exit_code == 0, swept.whole.output
    assert swept.second == [name for name in names if name not in swept.ended_first]
    for name in names:
        assert len(metrics(swept.folder / "runs" / name)) == 2
        assert f"{result(swept.folder / 'runs' / name)['preset']}-" in name


def test_runs_that_have_ended_are_not_repeated(swept: Sweep) -> None:
    assert swept.again.exit_code == 0
    assert swept.started == []
    assert swept.again.stdout == swept.whole.stdout


def test_a_run_of_a_sweep_is_a_run_like_any_other(swept: Sweep, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    more = ["--preset", "paper-mc-st", "--seed", "1", "--out", str(alone), "--device", "cpu"]
    assert main(["train", "listops", *SETTINGS, *more]) == 0
    assert result(alone) == result(swept.folder / "runs" / "paper-mc-st-1")
    log = (swept.folder / "runs" / "paper-mc-st-1" / "log.txt").read_text()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", log)


# ------------------------------------------------------------------ what it writes


def test_the_files(swept: Sweep) -> None:
    assert {file.name for file in (swept.folder / "results").iterdir()} == {
        *("table.md", "runs.csv", "curves.csv", "curves-paper.svg", "curves-balanced.svg")
    }
    for file in (swept.folder / "results").glob("*.svg"):
        assert file.read_text().startswith("<?xml")


def test_the_table(swept: Sweep) -> None:
    text = (swept.folder / "results" / "table.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert lines[0].startswith("| trees | paper acc / att | seeds | accuracy | attachment |")
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        "MC, straight-through",
        "balanced recipe, MC, forward relaxed",
    ]
    accuracies = [
        result(swept.folder / "runs" / f"balanced-mc-{seed}")["test"]["operator_accuracy"]
        for seed in (0, 1)
    ]
    cells = [cell.strip() for cell in lines[3].split("|")]
    assert cells[3] == "2"
    assert cells[4].startswith(f"{sum(accuracies) / 2:.2f} ± ")
    assert "expressions of at most 16 tokens of the original distribution, generated" in text
    assert (
        "`treelax table listops --seeds 2 --rows balanced-mc,paper-mc-st --set data.train" in text
    )
    folders = f"--runs {swept.folder / 'runs'} --results {swept.folder / 'results'}` on CPU."
    assert folders in text
    assert "balanced recipe, MC, forward relaxed" in swept.whole.stdout
    assert swept.whole.stdout.endswith(f"written to {swept.folder / 'results'}\n")


def test_the_csv_files(swept: Sweep) -> None:
    with (swept.folder / "results" / "runs.csv").open(newline="") as file:
        runs = list(csv.DictReader(file))
    assert [(run["preset"], run["seed"]) for run in runs] == [
        (row, seed) for row in ROWS for seed in "01"
    ]
    with (swept.folder / "results" / "curves.csv").open(newline="") as file:
        curves = list(csv.DictReader(file))
    assert len(curves) == 8
    for point in curves:
        rows = metrics(swept.folder / "runs" / f"{point['preset']}-{point['run']}")
        row = rows[int(point["epoch"]) - 1]
        assert point["loss"] == f"{row['loss']:.4f}"
        assert point["attachment"] == f"{row['dev']['attachment']:.4f}"


# ------------------------------------------------------------------ --report


def test_report_trains_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "results" / "runs.csv").read_text()
    shutil.rmtree(folder / "results")
    (folder / "runs" / "balanced-mc-0" / "test.json").unlink()
    shutil.rmtree(folder / "runs" / "paper-mc-st-1")

    def refuse(*_: object) -> None:
        raise AssertionError("nothing is to be trained")

    monkeypatch.setattr(sweep, "_start", refuse)
    assert main(arguments(folder, "--report")) == 0
    assert "written to" in capsys.readouterr().out
    lines = before.splitlines()
    assert (folder / "results" / "runs.csv").read_text().splitlines() == [lines[0], *lines[2:4]]
    # the curves bear the seed, though seed 0 has not ended
    curves = (folder / "results" / "curves.csv").read_text().splitlines()[1:]
    assert {tuple(line.split(",")[:2]) for line in curves} == {
        ("balanced-mc", "1"),
        ("paper-mc-st", "0"),
    }
    assert not (folder / "runs" / "paper-mc-st-1").exists()


def test_report_before_any_run_has_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = fail(capsys, *arguments(tmp_path, "--report"))
    assert line == "no run has ended yet; expected at least one: train without --report"
    assert not list(tmp_path.iterdir())


def test_a_row_that_the_paper_does_not_have_is_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tiny("small", train__epochs=2, train__updates=2)
    run = Run.create(folder / "runs" / "small-0", config, task="listops")
    for name in ("metrics.jsonl", "test.json"):
        shutil.copy(folder / "runs" / "balanced-mc-0" / name, run.path / name)
    record = json.loads((run.path / "test.json").read_text()) | {"preset": "small"}
    (run.path / "test.json").write_text(json.dumps(record))
    more = ["--report", "--rows", "balanced-mc, small ,small", "--results", folder / "other"]
    assert main(arguments(folder, *more)) == 0
    shown = capsys.readouterr().out
    assert re.search(r"forward relaxed, small layers +\| +– \| +1 \|", shown)
    assert (folder / "other" / "table.md").read_text().count("small layers |") == 1


def test_the_screen_has_the_columns_that_fit(swept: Sweep) -> None:
    heading = next(line for line in swept.whole.stdout.splitlines() if line.startswith("| trees"))
    assert [cell.strip() for cell in heading.split("|")[1:-1]] == [
        *("trees", "paper acc / att", "seeds", "accuracy", "attachment")
    ]
    assert f"in {swept.folder / 'results' / 'table.md'}" in swept.whole.stdout


def test_the_table_says_which_data(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (folder / "runs").glob("*/config.toml"):
        path.write_text(path.read_text().replace("# folder = none", 'folder = "some/data"'))
    assert main(arguments(folder, "--report", "--set", "data.folder=some/data")) == 0
    text = (folder / "results" / "table.md").read_text()
    assert f"expressions of at most 16 tokens of {Path('some/data').absolute()}." in text


# ------------------------------------------------------------------ what it refuses


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--rows", "gold,gould"], r"preset is 'gould'; expected one of .*Did you mean 'gold'\?"),
        (["--rows", ""], r"--rows is ''; expected presets"),
        (["--set", "train.epoch=3"], r"train.epoch: no such key; did you mean train.epochs"),
        (["--set", "seed=3"], r"seed: received the setting seed=3; expected --seeds N"),
        (["--set", "preset=gold"], r"preset: received the setting preset=gold"),
        (["--device", "gpu"], r"device is 'gpu'; expected cpu"),
        (["--seeds", "0"], r"--seeds"),
        (["--jobs", "0"], r"--jobs"),
    ],
)
def test_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert re.search(said, fail(capsys, *arguments(tmp_path, *more)))
    assert not list(tmp_path.iterdir())


def test_runs_with_other_settings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--report"]):
        capsys.readouterr()
        assert main(arguments(folder, "--set", "train.epochs=9", *more)) == 2
        line = capsys.readouterr().err.splitlines()[-1]
        assert "balanced-mc-0: was started with other settings (train.epochs 2 → 9); give" in line
        assert line.endswith("give the --set that it was started with, or another --runs")


def test_a_smaller_table_does_not_replace_a_larger_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "results" / "runs.csv"
    before = file.read_bytes()
    for more in (["--rows", "gold"], ["--seeds", "1"], ["--report", "--seeds", "1"]):
        line = fail(capsys, *arguments(folder, *more))
        assert re.search(
            r"runs.csv: holds 4 runs, of which \d are not in this table, such as", line
        )
        assert line.endswith("expected another --results, or those rows and seeds too")
    shutil.rmtree(folder / "runs" / "paper-mc-st-1")
    assert main(arguments(folder, "--report")) == 2
    said = capsys.readouterr().err
    assert "of which 1 are not in this table, such as paper-mc-st with seed 1" in said
    assert file.read_bytes() == before
    file.write_text("some,thing\n1,2\n")
    assert "runs.csv: cannot be read as a list of runs" in fail(capsys, *arguments(folder))


@pytest.mark.parametrize("command", [["table"], ["table", "listops"]])
def test_help_fits_and_has_an_example(command: list[str]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"], prog_name="treelax").output
    assert "Example" in shown
    assert "  treelax table listops --seeds 5 --device cuda" in shown
    assert max(map(len, shown.splitlines())) <= 80
