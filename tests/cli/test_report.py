"""``treelax report``: what it reads, what it writes for each kind of run, and what it refuses."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from listops_commands import train as train_listops
from listops_runs import options
from report_pages import ReportPage, read_page
from sentence_runs import SIZES, train
from typer.testing import CliRunner

from treelax.cli.main import app, main
from treelax.data.conllu import Sentence, write_conllu

BANK = [
    Sentence(("The", "film", "was", "good", "."), (2, 4, 4, 0, 4)),
    Sentence(("A", "bad", "plot"), (3, 3, 0)),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each kind, and a second one of classes; only to be looked at."""
    folder = tmp_path_factory.mktemp("runs")
    found = {kind: train(kind, folder / kind) for kind in ("classify", "pair", "tag")}
    found["again"] = train("classify", folder / "again", seed=1, train__epochs=1)
    return found


def ask(capsys: pytest.CaptureFixture[str], out: Path, *arguments: object) -> ReportPage:
    """The report that the program writes."""
    capsys.readouterr()
    status = main(["report", *map(str, arguments), "--out", str(out), "--device", "cpu"])
    output = capsys.readouterr()
    assert status == 0, output.err
    assert output.out.startswith(f"written: {out} (")
    return read_page(out)


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that the program says as it refuses."""
    capsys.readouterr()
    assert main(["report", *map(str, arguments), "--device", "cpu"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("treelax: error: ")
    assert output.err.count("\n") == 1
    return output.err.removeprefix("treelax: error: ").rstrip("\n")


# ------------------------------------------------------------------ runs of each kind


def test_a_run_of_listops(
    finished: tuple[Path, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Results, gold trees, heat maps."""
    run, _ = finished
    page = ask(capsys, tmp_path / "a.html", run)
    text = page.text
    test = json.loads((run / "test.json").read_text())["test"]
    assert f"{test['operator_accuracy']:.2f}" in page.texts
    assert f"{test['soft_operator_accuracy']:.2f}" in page.texts
    assert len(page.all("article")) == 50
    assert "arcs right" in text
    assert len(page.all("details", class_="maps")) == 8
    # loss, operators with discrete and with soft trees, all tokens, attachment
    assert len(page.all("svg", class_="plot")) == 5
    assert {own["data-exact"] for own in page.all("div", class_="said")} <= {"0", "1"}
    assert "What is missing" not in text
    for heading in ("Results", "Training", "Settings", "Grammar and agreement", "Gallery"):
        assert heading in page.texts


@pytest.mark.parametrize("kind", ["classify", "pair", "tag"])
def test_runs_of_sentences(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    page = ask(capsys, tmp_path / "a.html", runs[kind])
    cards = page.all("article")
    assert len(cards) == SIZES["dev"]
    trees = len(page.all("svg", class_="treelax"))
    maps = sum(1 for own in page.all("svg") if "-m" in own.get("aria-labelledby", ""))
    assert trees - maps == len(cards) * (2 if kind == "pair" else 1)
    assert maps
    splits = json.loads((runs[kind] / "test.json").read_text())["splits"]
    for figures in splits.values():
        assert f"{figures['accuracy']:.2f}" in page.texts
        assert f"{figures['soft_accuracy']:.2f}" in page.texts
    # right or wrong, as the accuracy on dev says
    verdicts = [own["data-right"] for own in page.all("div", class_="said")]
    if kind != "tag":
        share = 100 * verdicts.count("1") / len(verdicts)
        assert share == pytest.approx(splits["dev"]["accuracy"])
    assert ("q: " in page.text) == (kind == "pair")


def test_several_runs(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Side by side: settings that differ first, one plot and a legend, agreement, both trees."""
    page = ask(capsys, tmp_path / "a.html", runs["classify"], runs["again"])
    names = ["classify/run", "again/run"]
    start = page.texts.index("Settings that differ")
    assert page.texts[start : start + 4] == ["Settings that differ", "setting", *names]
    [shared] = [i for i, t in enumerate(page.texts) if t.endswith("settings that all runs share")]
    assert "seed" in page.texts[start:shared]
    assert "gcn_size" in page.texts[shared:]
    assert any("1 pair of runs: " in text for text in page.texts)
    assert len(page.all("path", class_="line-1")) == 3  # two plots and the legend
    assert len(page.all("div", class_="said")) == 2 * SIZES["dev"]
    assert {"f-run", "f-label", "f-right"} <= {own["id"] for own in page.all("select")}


def test_other_data(
    runs: dict[str, Path],
    finished: tuple[Path, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A treebank has gold trees; runs of all kinds can be shown on it."""
    bank = tmp_path / "bank.conllu"
    write_conllu(bank, BANK)
    page = ask(capsys, tmp_path / "a.html", *runs.values(), "--data", bank)
    assert len(page.all("article")) == 2
    assert len(page.all("div", class_="said")) == 8
    assert any(text.endswith(" of 5 arcs right") for text in page.texts)
    page = ask(capsys, tmp_path / "a.html", runs["classify"], "--split", "test", "--limit", 4)
    assert len(page.all("article")) == 4
    page = ask(capsys, tmp_path / "a.html", finished[0], "--gallery", 7, "--max-length", 12)
    lengths = [int(own["data-length"]) for own in page.all("article")]
    assert len(lengths) == 7
    assert max(lengths) <= 12
    page = ask(capsys, tmp_path / "a.html", runs["tag"], "--gallery", 0)
    assert page.all("article") == []
    assert "Gallery" not in page.texts


def test_where_it_goes(
    runs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Into the folder of the run, or for several runs here; equal runs give equal bytes."""
    run = shutil.copytree(runs["classify"], tmp_path / "mine")
    monkeypatch.chdir(run)
    assert main(["report", ".", "--device", "cpu"]) == 0
    first = Path("report.html").read_bytes()
    assert b"<title>Report of mine</title>" in first
    assert main(["report", str(run), "--device", "cpu"]) == 0
    assert (run / "report.html").read_bytes() == first
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(runs["again"]), "mine", "--device", "cpu"]) == 0
    assert "Report of 2 runs" in read_page(tmp_path / "report.html").texts
    assert capsys.readouterr().out.splitlines()[-1].startswith("written: report.html (")


# ------------------------------------------------------------------ what is missing


def test_an_unfinished_run(half: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = ask(capsys, tmp_path / "a.html", half)
    assert "What is missing" in page.texts
    assert (
        "half: has not ended (epoch 3 of 4), so there are no figures of the test set" in page.text
    )
    assert "Results" not in page.texts
    assert {"Training", "Gallery"} <= set(page.texts)


def test_a_run_that_has_hardly_begun(
    half: Path,
    finished: tuple[Path, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Alone it has its settings; beside another run the other one is whole."""
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copy(half / "config.toml", bare)
    page = ask(capsys, tmp_path / "a.html", bare)
    assert "bare: no epoch has ended yet, so there are no curves." in page.texts
    assert "bare: there is no model, so the trees are missing." in page.texts
    assert "Settings" in page.texts
    assert page.all("article") == page.all("svg") == []
    page = ask(capsys, tmp_path / "a.html", bare, finished[0])
    assert "bare: there is no model, so the trees are missing." in page.texts
    assert len(page.all("article")) == 50


def test_data_that_have_moved(
    moved_runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All but the trees is there, and why they are not; a file that is named must exist."""
    run = moved_runs["classify"]
    page = ask(capsys, tmp_path / "a.html", run)
    assert "moved: the trees are missing: " in page.text
    assert "does not exist; expected the dev data of the run: give --data FILE." in page.text
    assert {"Results", "Training"} <= set(page.texts)
    assert "Gallery" not in page.texts
    assert "test.tsv: does not exist; expected" in fail(capsys, run, "--split", "test")
    missing = tmp_path / "none.tsv"
    assert fail(capsys, run, "--data", missing).startswith(f"{missing}: does not exist; expected")


def test_data_that_are_others_now(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of both runs it is told in the words of treelax analyse, and their trees are not shown."""
    both = [shutil.copytree(runs["classify"], tmp_path / name) for name in "ab"]
    for run in both:
        record = json.loads((run / "data.json").read_text())
        record["dev"]["sha256"] = 64 * "0"
        (run / "data.json").write_text(json.dumps(record))
    assert main(["analyse", str(both[0]), "--device", "cpu"]) == 2
    said = capsys.readouterr().err.removeprefix("treelax: error: ").strip()
    assert "dev.tsv: is not the dev data that the run was trained with" in said
    page = ask(capsys, tmp_path / "a.html", *both)
    assert f"a, b: the trees are missing: {said}." in page.texts
    assert "Gallery" not in page.texts
    assert fail(capsys, both[1], "--max-length", 9) == said


def test_models_without_trees_and_other_dev_sets(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    none = train("classify", tmp_path / "none", model__trees="none", train__epochs=1)
    page = ask(capsys, tmp_path / "a.html", runs["classify"], none)
    assert "none/run: there are no trees (model.trees is 'none')." in page.texts
    assert len(page.all("div", class_="said")) == SIZES["dev"]
    page = ask(capsys, tmp_path / "a.html", runs["classify"], runs["tag"])
    # their dev sets are the same sentences, which a tagger and a classifier both parse
    assert len(page.all("div", class_="said")) == 2 * SIZES["dev"]
    page = ask(capsys, tmp_path / "a.html", runs["classify"], runs["pair"])
    assert "expected the same sentences for all runs: give --data FILE." in page.text
    assert len(page.all("div", class_="said")) == SIZES["dev"]


def test_a_preset_of_another_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two seeds of a row of table 1 have a mean."""
    both = [tmp_path / f"zero-{seed}" for seed in (0, 1)]
    for seed, run in enumerate(both):
        few = options(train__epochs=1)
        train_listops("--preset", "paper-zero", "--seed", seed, "--out", run, *few)
    page = ask(capsys, tmp_path / "a.html", *both, "--limit", 5)
    assert "98.1 / 83.2" in page.texts
    assert "zero-0, zero-1" in page.texts
    assert any(" ± " in text for text in page.texts)


# ------------------------------------------------------------------ what it refuses


def test_what_is_refused(
    runs: dict[str, Path],
    finished: tuple[Path, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = runs["classify"]
    assert "does not exist; expected the folder of a run" in fail(capsys, tmp_path / "nowhere")
    assert "holds no config.toml; expected the folder of a run" in fail(capsys, tmp_path)
    assert "is a file; expected the folder of a run" in fail(capsys, run / "config.toml")
    assert fail(capsys, run, run) == f"RUN: received {run} twice; expected different runs"
    assert "of ListOps, and" in fail(capsys, run, finished[0])
    assert "'--split': " in fail(capsys, run, "--split", "valid")
    assert "--label: received it without --data" in fail(capsys, run, "--label", "a")
    assert "--limit" in fail(capsys, run, "--limit", 0)
    assert "received 1 as the most words" in fail(capsys, run, "--max-length", 1)
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "config.toml").write_text('task = "chess"\n')
    assert "task is 'chess'; expected listops, pair" in fail(capsys, strange)
    broken = shutil.copytree(run, tmp_path / "broken")
    (broken / "test.json").write_text("{}")
    assert "cannot be read as a result" in fail(capsys, broken)


def test_files_that_are_not_written(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs["classify"]
    assert "is a folder; expected a file" in fail(capsys, run, "--out", tmp_path)
    away = tmp_path / "none" / "a.html"
    assert f"there is no folder {away.parent}" in fail(capsys, run, "--out", away)
    other = tmp_path / "thesis.html"
    other.write_text("<h1>mine</h1>")
    assert "was not written by treelax report" in fail(capsys, run, "--out", other)
    assert other.read_text() == "<h1>mine</h1>"
    ask(capsys, other, run, "--force")
    ask(capsys, other, run)  # now it is a report
    table = run.parent / "dev.tsv"
    said = fail(capsys, run, "--data", table, "--out", table, "--force")
    assert said == f"--out: received {table}, the file that is read; expected another"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["thesis.html"]


def test_a_disk_that_refuses(
    runs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The older report stays as it is, and nothing else is left behind."""
    out = tmp_path / "a.html"
    ask(capsys, out, runs["classify"], "--gallery", 0)
    before = out.read_bytes()

    def refuse(*paths: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    said = fail(capsys, runs["again"], "--out", out)
    assert said.startswith(f"{out}: was not written: ")
    assert out.read_bytes() == before
    assert list(tmp_path.iterdir()) == [out]


def test_it_is_in_the_help() -> None:
    result = CliRunner().invoke(app, ["report", "--help"], prog_name="treelax")
    assert result.exit_code == 0
    for option in ("--out", "--data", "--split", "--limit", "--gallery", "--force"):
        assert option in result.output
    assert "treelax report runs/small" in result.output
    assert "report" in CliRunner().invoke(app, ["--help"]).output
