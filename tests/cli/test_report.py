"""``treelax report``: what it reads, what it writes for each kind of run, and what it refuses."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest
from commands import fail as refused
from commands import shown, written
from pages import read_page
from sentence_runs import SIZES

from treelax.apps.data.conllu import Sentence, write_conllu

BANK = [
    Sentence(("The", "film", "was", "good", "."), (2, 4, 4, 0, 4)),
    Sentence(("A", "bad", "plot"), (3, 3, 0)),
]


@pytest.fixture(scope="module")
def runs(sentence_runs):
    return sentence_runs


def ask(capsys, out, *arguments):
    """The report that the program writes."""
    reply = shown(capsys, "report", *arguments, "--out", out)
    assert reply.startswith(f"written: {out} (")
    return read_page(out)


def fail(capsys, *arguments):
    return refused(capsys, "report", *arguments)


# ------------------------------------------------------------------ runs of each kind


def test_a_run_of_listops(finished, tmp_path, capsys):
    """Results, gold trees, heat maps."""
    run, _ = finished
    page = ask(capsys, tmp_path / "a.html", run)
    test = json.loads((run / "test.json").read_text())["test"]
    assert f"{test['operator_accuracy']:.2f}" in page.texts
    assert f"{test['soft_operator_accuracy']:.2f}" in page.texts
    assert {"dev: operator accuracy, %", "dev: soft operator accuracy, %"} <= {*page.texts}
    # the same quantity on dev and on test, each time with its name
    assert page.texts.count(f"Data: dev set of {run.name}.") == 2
    results = page.texts[page.texts.index("ListOps: results, %") :]
    assert results.index("data") < results.index("test") < results.index("Training")
    assert len(page.all("article")) == 50
    assert "arcs right" in page.text
    assert len(page.all("details", class_="maps")) == 8
    [curves] = page.all("img")
    assert curves["alt"].startswith("training loss by epoch: run from ")
    assert {direct["data-exact"] for direct in page.all("div", class_="said")} <= {"0", "1"}
    assert "What is missing" not in page.text
    for heading in ("Results", "Training", "Settings", "What was learned", "Trees", "Examples"):
        assert heading in page.texts
    page = ask(capsys, tmp_path / "a.html", run, shutil.copytree(run, tmp_path / "b"))
    assert "dev: of the best epoch, with discrete trees unless marked soft." in page.texts


@pytest.mark.parametrize("kind", ["classify", "pair", "tag"])
def test_runs_of_sentences(runs, tmp_path, capsys, kind):
    page = ask(capsys, tmp_path / "a.html", runs[kind])
    cards = page.all("article")
    assert len(cards) == SIZES["dev"]
    trees = len(page.all("svg", class_="treelax"))
    maps = sum(1 for direct in page.all("svg") if "-m" in direct.get("aria-labelledby", ""))
    assert trees - maps == len(cards) * (2 if kind == "pair" else 1)
    assert maps
    splits = json.loads((runs[kind] / "test.json").read_text())["splits"]
    for figures in splits.values():
        assert f"{figures['accuracy']:.2f}" in page.texts
        assert f"{figures['soft_accuracy']:.2f}" in page.texts
    # right or wrong, as the accuracy on dev says
    verdicts = [direct["data-right"] for direct in page.all("div", class_="said")]
    if kind != "tag":
        share = 100 * verdicts.count("1") / len(verdicts)
        assert share == pytest.approx(splits["dev"]["accuracy"])
    assert ("q: " in page.text) == (kind == "pair")


def test_several_runs(runs, tmp_path, capsys):
    """Side by side: settings that differ first, curves of both, agreement, both trees."""
    page = ask(capsys, tmp_path / "a.html", runs["classify"], runs["again"])
    names = ["classify/run", "again/run"]
    start = page.texts.index("Settings that differ")
    assert page.texts[start : start + 4] == ["Settings that differ", "setting", *names]
    [shared] = [i for i, t in enumerate(page.texts) if t.endswith("settings that all runs share")]
    assert "seed" in page.texts[start:shared]
    assert "gcn_size" in page.texts[shared:]
    assert any("1 pair of runs: " in text for text in page.texts)
    assert all(name in page.all("img")[0]["alt"] for name in names)
    assert len(page.all("div", class_="said")) == 2 * SIZES["dev"]
    assert {"f-run", "f-label", "f-right"} <= {direct["id"] for direct in page.all("select")}


def test_other_data(runs, finished, tmp_path, capsys):
    """A treebank has gold trees; runs of all kinds can be shown on it."""
    bank, out = tmp_path / "bank.conllu", tmp_path / "a.html"
    write_conllu(bank, BANK)
    page = ask(capsys, out, *runs.values(), "--data", bank)
    assert len(page.all("article")) == 2
    assert len(page.all("div", class_="said")) == 8
    assert any(text.endswith(" of 5 arcs right") for text in page.texts)
    page = ask(capsys, out, runs["classify"], "--split", "test", "--limit", 4)
    assert len(page.all("article")) == 4
    page = ask(capsys, out, finished[0], "--gallery", 7, "--max-length", 12)
    lengths = [int(direct["data-length"]) for direct in page.all("article")]
    assert len(lengths) == 7
    assert max(lengths) <= 12
    assert "Examples" not in ask(capsys, out, runs["tag"], "--gallery", 0).texts


def test_where_it_goes(runs, tmp_path, monkeypatch, capsys):
    """Into the folder of the run, or for several runs here; equal runs give equal bytes."""
    run = shutil.copytree(runs["classify"], tmp_path / "mine")
    monkeypatch.chdir(run)
    shown(capsys, "report", ".", "--gallery", 3)
    first = Path("report.html").read_bytes()
    assert b"<title>Report of mine</title>" in first
    shown(capsys, "report", run, "--gallery", 3)
    assert (run / "report.html").read_bytes() == first
    monkeypatch.chdir(tmp_path)
    reply = shown(capsys, "report", runs["again"], "mine", "--gallery", 3)
    assert reply.splitlines()[-1].startswith("written: report.html (")
    assert "Report of 2 runs" in read_page(tmp_path / "report.html").texts


# ------------------------------------------------------------------ what is missing


def test_unfinished_runs(half, finished, tmp_path, capsys):
    """One without a model has its settings; beside another run the other one is whole."""
    page = ask(capsys, tmp_path / "a.html", half)
    assert "half: has not ended (epoch 3 of 4), so there are no test figures: " in page.text
    assert "Results" not in page.texts
    assert {"What is missing", "Training", "Examples"} <= set(page.texts)
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copy(half / "config.toml", bare)
    page = ask(capsys, tmp_path / "a.html", bare, "--split", "test")
    assert "bare: no epoch has ended yet, so there are no curves." in page.texts
    assert "Settings" in page.texts
    assert page.all("article") == page.all("svg") == []
    page = ask(capsys, tmp_path / "a.html", bare, finished[0])
    assert "bare: the trees are missing: " in page.text
    assert len(page.all("article")) == 50


def test_data_that_have_moved(moved_runs, tmp_path, capsys):
    """All but the trees is there, and why they are not; a file that is named must exist."""
    run = moved_runs["classify"]
    page = ask(capsys, tmp_path / "a.html", run)
    assert "moved: the trees are missing: " in page.text
    assert "does not exist" in page.text
    assert {"Results", "Training"} <= set(page.texts)
    assert "Examples" not in page.texts
    assert "test.tsv: does not exist" in fail(capsys, run, "--split", "test")
    missing = tmp_path / "none.tsv"
    assert fail(capsys, run, "--data", missing).startswith(f"{missing}: does not exist; expected")


# ------------------------------------------------------------------ what it refuses


def test_what_is_refused_and_not_written(runs, tmp_path, monkeypatch, capsys):
    """Nor is an older report lost on a disk that refuses."""
    run, other = runs["classify"], written(tmp_path, "<h1>mine</h1>", "thesis.html")
    assert fail(capsys, run, run) == f"RUN: received {run} twice; expected different runs"
    assert "received no sentences" in fail(capsys, run, "--max-length", 1)
    broken = shutil.copytree(run, tmp_path / "broken")
    (broken / "test.json").write_text("{}")
    assert "test.json: " in fail(capsys, broken)
    shutil.rmtree(broken)
    assert "is a folder; expected a file" in fail(capsys, run, "--out", tmp_path)
    away = tmp_path / "none" / "a.html"
    assert f"there is no folder {away.parent}" in fail(capsys, run, "--out", away)
    assert "was not written by treelax report" in fail(capsys, run, "--out", other)
    assert other.read_text() == "<h1>mine</h1>"
    ask(capsys, other, run, "--force", "--gallery", 0)
    ask(capsys, other, run, "--gallery", 0)  # now it is a report
    table, report = run.parent / "dev.tsv", other.read_bytes()
    line = fail(capsys, run, "--data", table, "--out", table, "--force")
    assert line == f"--out: received {table}, the file that is read; expected another"

    def refuse(*paths):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    line = fail(capsys, runs["again"], "--out", other, "--gallery", 0)
    assert line.startswith(f"{other}: was not written: ")
    assert other.read_bytes() == report
    assert list(tmp_path.iterdir()) == [other]
