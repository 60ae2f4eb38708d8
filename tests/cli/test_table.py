"""``treelax table listops``: a sweep, its files, going on after Ctrl-C, and what it refuses."""

import csv
import re
import shutil

import pytest
from commands import fail
from listops_runs import metrics, options, result
from table_runs import TrainedHere
from typer.testing import CliRunner

from treelax.__main__ import app, main
from treelax.lab.analysis import sweep

ROWS = ("balanced-mc", "paper-mc-st")
SETTINGS = options(train__epochs=2, train__updates=2)


def arguments(folder, *more):
    """A small table; its options but settings can be given otherwise."""
    usual = {"--device": "cpu", "--rows": ",".join(ROWS), "--seeds": "2"}
    usual |= {"--runs": str(folder / "runs"), "--results": str(folder / "results")}
    others = [word for option in usual.items() if option[0] not in more for word in option]
    return ["table", "listops", *others, *SETTINGS, *map(str, more)]


class Sweep:
    """A sweep that is interrupted before its third run, then goes on, then is asked for again."""

    def __init__(self, folder):
        self.folder = folder
        self.started: list[str] = []
        self.most: int | None = 2

        class Worker(TrainedHere):
            def train(worker, run, device, *settings):
                if len(self.started) == self.most:
                    raise KeyboardInterrupt
                self.started.append(run.path.name)
                super().train(run, device, *settings)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sweep, "Worker", Worker)
            patch.setattr(sweep, "POLL", 0)
            self.interrupted = CliRunner().invoke(app, arguments(folder, "--jobs", 1))
            self.first, self.started, self.most = self.started, [], None
            self.whole = CliRunner().invoke(app, arguments(folder, "--jobs", 1))
            self.second, self.started = self.started, []
            self.again = CliRunner().invoke(app, arguments(folder))


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return Sweep(tmp_path_factory.mktemp("table"))


@pytest.fixture
def folder(swept, tmp_path):
    """A copy of the finished sweep."""
    return shutil.copytree(swept.folder, tmp_path / "copy")


def test_an_interrupted_sweep_goes_on(swept):
    names = [f"{row}-{seed}" for row in ROWS for seed in (0, 1)]
    assert swept.interrupted.exit_code != 0
    assert swept.whole.exit_code == 0, swept.whole.output
    assert (swept.first, swept.second) == (names[:2], names[2:])
    for name in names:
        assert len(metrics(swept.folder / "runs" / name)) == 2
        assert f"{result(swept.folder / 'runs' / name)['preset']}-" in name
    assert swept.again.exit_code == 0
    assert swept.started == []  # runs that have ended are not repeated
    assert swept.again.stdout == swept.whole.stdout


def test_the_files_and_the_screen(swept):
    results = swept.folder / "results"
    assert {file.name for file in results.iterdir()} == {
        *("table.md", "runs.csv", "curves.csv", "curves-paper.svg", "curves-balanced.svg")
    }
    text = (results / "table.md").read_text()
    lines = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    cells = {line[1]: line[2:] for line in lines if len(line) > 2}
    assert next(iter(cells)) == "trees"
    assert list(cells)[2:] == ["MC, straight-through", "balanced recipe, MC, forward relaxed"]
    runs = [result(swept.folder / "runs" / f"balanced-mc-{seed}")["test"] for seed in (0, 1)]
    mean = sum(run["operator_accuracy"] for run in runs) / 2
    assert cells["balanced recipe, MC, forward relaxed"][1] == "2"
    assert cells["balanced recipe, MC, forward relaxed"][3].startswith(f"{mean:.2f} ± ")
    assert "expressions of at most 16 tokens of the original distribution, generated" in text
    assert f"--runs {swept.folder / 'runs'} --results {results}` on CPU." in text
    with (results / "runs.csv").open(newline="") as file:
        assert [(run["preset"], run["seed"]) for run in csv.DictReader(file)] == [
            (row, seed) for row in ROWS for seed in "01"
        ]
    with (results / "curves.csv").open(newline="") as file:
        points = list(csv.DictReader(file))
    assert len(points) == 8
    for point in points:
        rows = metrics(swept.folder / "runs" / f"{point['preset']}-{point['run']}")
        row = rows[int(point["epoch"]) - 1]
        assert point["loss"] == f"{row['loss']:.4f}"
        assert point["attachment"] == f"{row['dev']['attachment']:.4f}"
    heading = next(line for line in swept.whole.stdout.splitlines() if line.startswith("| trees"))
    assert [cell.strip() for cell in heading.split("|")[1:-1]] == [
        *("trees", "paper acc / att", "seeds", "acc as trained", "acc discrete", "attachment")
    ]
    assert swept.whole.stdout.endswith(f"written to {results}\n")


# ------------------------------------------------------------------ --report


def test_report_trains_nothing(folder, monkeypatch, capsys):
    before = (folder / "results" / "runs.csv").read_text()
    shutil.rmtree(folder / "results")
    (folder / "runs" / "balanced-mc-0" / "test.json").unlink()
    shutil.rmtree(folder / "runs" / "paper-mc-st-1")
    monkeypatch.delattr(sweep, "Worker")
    assert main(arguments(folder, "--report")) == 0
    assert capsys.readouterr().err == "not ended yet: balanced-mc-0, paper-mc-st-1\n"
    lines = before.splitlines()
    assert (folder / "results" / "runs.csv").read_text().splitlines() == [lines[0], *lines[2:4]]
    # the curves bear the seed, though seed 0 has not ended
    curves = (folder / "results" / "curves.csv").read_text().splitlines()[1:]
    assert {tuple(line.split(",")[:2]) for line in curves} == {
        ("balanced-mc", "1"),
        ("paper-mc-st", "0"),
    }
    text = (folder / "results" / "table.md").read_text()
    assert text.endswith("\nRuns that have not ended: balanced-mc-0, paper-mc-st-1.\n")
    assert not (folder / "runs" / "paper-mc-st-1").exists()


# ------------------------------------------------------------------ what it refuses


def test_rows_and_settings_of_another_table(folder, capsys):
    """A smaller table does not replace a larger one."""
    for more in ([], ["--report"]):
        assert main(arguments(folder, "--set", "train.epochs=9", *more)) == 2
        line = capsys.readouterr().err.splitlines()[-1]
        assert "balanced-mc-0: was started with other settings (train.epochs 2 → 9); give" in line
        assert line.endswith("give the --set that it was started with, or another --runs")
    file = folder / "results" / "runs.csv"
    before = file.read_bytes()
    for more in (["--rows", "gold"], ["--report", "--seeds", "1"]):
        line = fail(capsys, *arguments(folder, *more))
        assert re.search(
            r"runs.csv: holds 4 runs, of which \d are not in this table, such as", line
        )
        assert line.endswith("expected another --results, or those rows and seeds too")
    shutil.rmtree(folder / "runs" / "paper-mc-st-1")
    assert main(arguments(folder, "--report")) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "of which 1 are not in this table, such as paper-mc-st with seed 1" in line
    assert file.read_bytes() == before
    file.write_text("some,thing\n1,2\n")
    assert "runs.csv: cannot be read as a list of runs" in fail(capsys, *arguments(folder))
