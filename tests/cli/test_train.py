"""``treelax train listops``: its folder, its output, how it goes on, damaged and foreign folders."""

import errno
import json
import os
import re
import shutil
import signal
from contextlib import contextmanager

import pytest
from listops_runs import QUICK, content, fail, interrupt, metrics, options, result, tiny, train

from treelax.__main__ import main
from treelax.apps.cli import train as command
from treelax.apps.cli.train import show_settings
from treelax.apps.data.listops import generate_listops, write_listops
from treelax.apps.tasks.listops.config import PRESETS
from treelax.apps.tasks.text.presets import preset
from treelax.apps.training import loop
from treelax.apps.training.checkpoint import load_checkpoint
from treelax.apps.training.config import override
from treelax.apps.training.run import Run
from treelax.lab.listops import experiment

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The run that `half` would be if it had not been interrupted."""
    folder = tmp_path_factory.mktemp("straight") / "run"
    train("--out", folder, *QUICK)
    return folder


@pytest.fixture(params=["half", "ended"])
def some_run(request, half, finished, tmp_path):
    return half if request.param == "half" else shutil.copytree(finished[0], tmp_path / "run")


@contextmanager
def unchanged(folder):
    before = content(folder)
    yield
    assert content(folder) == before


def refuse(*_):
    raise AssertionError("there is no need of the data")


# ------------------------------------------------------------------ a run


def test_a_run_is_a_folder_and_says_what_it_does(finished):
    folder, printed = finished
    files = {"config.toml", "metrics.jsonl", "test.json", "best/model.safetensors"}
    assert files | {"checkpoint/last.safetensors"} <= content(folder).keys()
    run, test = Run.open(folder), result(folder)["test"]
    assert (run.task, run.config(type(tiny()))) == ("listops", tiny(seed=5))
    assert [row["epoch"] for row in metrics(folder)] == [1, 2, 3, 4]
    assert "test, at most 16 tokens: 60 expressions" in printed.stdout
    assert f"| {test['operator_accuracy']:.2f} |" in re.sub(" +", " ", printed.stdout)
    assert f"run: {folder}\n" in printed.stdout
    assert printed.stdout.count("arcs right") == 3  # trees against the gold ones
    assert printed.stderr.startswith("balanced-mc, seed 5, on cpu: expressions of at most 16 token")
    assert "20/20 (100 %), epoch 4/4 loss " in printed.stderr
    assert not CONTROL.search(printed.stdout + printed.stderr)  # there is no terminal


def test_list_shows_presets_and_settings(capsys):
    assert main(["train", "listops", "--list", "--preset", "gold", "--set", "train.epochs=7"]) == 0
    output = capsys.readouterr()
    rows = [[c.strip() for c in line[1:-1].split("|")] for line in output.out.splitlines() if line]
    assert all([name, text] in rows for name, (_, text) in PRESETS.items())
    assert ["train.epochs", "7", "number of epochs"] in rows
    assert ["data.folder", "none"] in [row[:2] for row in rows]
    assert "settings of gold" in output.out
    assert output.err == ""


@pytest.mark.parametrize(
    "changes",
    [
        ['data.text=["a, b", "c"]', "data.dev=a, b.tsv"],
        ['data.text=["[a", "none"]', 'data.train="none"', """data.label='"a"'"""],
        ['data.text=[" a"]', "data.more_vectors=", 'data.vectors=" "', "model.distances=none"],
        ["data.text=a,b", "model.encoder=none", "model.trees=none", "data.quoted=true"],
    ],
)
def test_what_is_listed_can_be_set(capsys, changes):
    config = override(preset("pair"), changes)
    show_settings({}, config)
    rows = capsys.readouterr().out.partition("\n\n")[2].splitlines()[2:]
    listed = ["=".join(cell.strip() for cell in row.split("|")[1:3]) for row in rows]
    assert override(preset("pair"), listed) == config


# ------------------------------------------------------------------ going on


def test_an_interrupted_run_goes_on_as_if_nothing_had_been(half, straight):
    assert len(metrics(half)) == 3  # one row more than the checkpoint
    assert "going on after epoch 2 of 4" in train("--out", half, "--resume").stderr
    assert (metrics(half), result(half)) == (metrics(straight), result(straight))


def test_a_run_that_was_killed_before_its_first_checkpoint_starts_again(tmp_path, straight):
    folder = tmp_path / "run"
    interrupt(folder, 1, *QUICK)
    assert len(metrics(folder)) == 1
    lines = train("--out", folder, "--resume").stderr.splitlines()
    assert lines[0] == f"{folder}: has no checkpoint yet; starting again at epoch 1"
    assert metrics(folder) == metrics(straight)


def test_a_plain_kill_says_how_to_go_on(tmp_path, monkeypatch, capsys, straight):
    folder, save, handler = tmp_path / "run", loop.Training._save, signal.getsignal(signal.SIGTERM)

    def kill(self):
        if self.epoch == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        save(self)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Training, "_save", kill)
        arguments = ["train", "listops", "--device", "cpu", "--out", str(folder), *QUICK]
        assert main(arguments) == 143
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines()[-1].startswith("treelax: ended by SIGTERM; continue a training")
    assert signal.getsignal(signal.SIGTERM) == handler
    assert (folder / ".lock").read_text() == ""  # let go
    assert "going on after epoch 2 of 4" in train("--out", folder, "--resume").stderr
    assert result(folder) == result(straight)


@pytest.mark.parametrize("call", [4, 6])
def test_a_full_disk(tmp_path, monkeypatch, capsys, straight, call):
    """The config comes to the disk, then of each epoch the row, the best model, the checkpoint."""
    folder, calls, original = tmp_path / "run", [], os.fsync

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert main(["train", "listops", "--device", "cpu", "--out", str(folder), *QUICK]) == 2
    output = capsys.readouterr()
    *others, line = output.err.splitlines()
    assert output.out == ""
    assert all(other.startswith(("chain, seed 0", "training:")) for other in others)
    assert line.startswith(f"treelax: error: {folder}")
    assert "No space left on device" in line
    if call > 4:
        done = load_checkpoint(folder / "checkpoint" / "last.safetensors").state["epoch"]
        assert done == (call - 2) // 3
    train("--out", folder, "--resume")
    assert (metrics(folder), result(folder)) == (metrics(straight), result(straight))


def test_a_run_that_has_ended_can_be_extended(tmp_path, capsys):
    """Also if it is killed again meanwhile."""
    folder, whole = tmp_path / "run", tmp_path / "whole"
    plateau = ["--set", "train.schedule=plateau"]  # which does not depend on the number of epochs
    train("--out", folder, *QUICK, *plateau)
    with unchanged(folder):
        assert fail(capsys, "--out", folder, "--resume", "--set", "train.epochs=3") == (
            f"train.epochs: received 3; expected at least 4, the epochs that {folder} has done"
        )
    interrupt(folder, 6, "--resume", "--set", "train.epochs=6")
    assert not (folder / "test.json").exists()
    assert "going on after epoch 5 of 6" in train("--out", folder, "--resume").stderr
    train("--out", whole, *QUICK, *plateau, "--set", "train.epochs=6")
    assert (metrics(folder), result(folder)) == (metrics(whole), result(whole))
    assert (folder / "config.toml").read_text() == (whole / "config.toml").read_text()


def test_a_run_that_has_ended_shows_its_figures_again(finished, monkeypatch):
    folder, first = finished
    monkeypatch.setattr(experiment, "load_splits", refuse)
    monkeypatch.setattr(experiment, "ListOpsExperiment", refuse)
    with unchanged(folder):
        again = train("--out", folder, "--resume")
    assert again.stderr == f"{folder}: has ended already, after 4 epochs\n"
    tables = first.stdout.partition("\n\n ")[0]
    assert again.stdout.startswith(tables[: tables.rindex("|")])
    assert again.stdout.endswith(f"run: {folder}\n")


def test_a_folder_of_data_is_found_from_anywhere(tmp_path, monkeypatch):
    for name in ("data", "elsewhere"):
        (tmp_path / name).mkdir()
    for split, size in (("train", 40), ("dev", 20), ("test", 12)):
        file = tmp_path / "data" / f"{split}.tsv"
        write_listops(file, generate_listops(size, seed=size, max_length=12))
    monkeypatch.chdir(tmp_path)
    settings = [*QUICK, "--set", "data.folder=data"]
    interrupt(tmp_path / "run", 3, *settings)
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    assert f'folder = "{tmp_path}/data"' in (tmp_path / "run" / "config.toml").read_text()
    train("--out", "run", "--resume", *settings)  # the same settings in the same words
    monkeypatch.chdir(tmp_path / "elsewhere")
    train("--out", "../other", "--resume")
    assert result(tmp_path / "other") == result(tmp_path / "run")
    assert result(tmp_path / "run")["test"]["sentences"] == 12


# ------------------------------------------------------------------ folders that are refused


def test_a_folder_that_holds_a_run(some_run, capsys):
    with unchanged(some_run):
        assert fail(capsys, "--out", some_run, *QUICK) == (
            f"{some_run}: already holds a run (config.toml); continue it with --resume or give "
            "another --out"
        )


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        (
            ["--set", "train.epochs=9", "--seed", "7"],
            "was started with other settings (seed 0 → 7)",
        ),
        (["--preset", "gold", *options()], "is a run of chain; expected one of gold"),
    ],
)
def test_resuming_with_other_settings(half, capsys, arguments, changed):
    with unchanged(half):
        line = fail(capsys, "--out", half, "--resume", *arguments)
    assert line.startswith(f"{half}: {changed}")
    assert line.endswith("give another --out")


def test_a_folder_in_use_is_refused_before_the_data_are_read(half, monkeypatch, capsys):
    pytest.importorskip("fcntl")
    monkeypatch.setattr(command, "_prepare", refuse)
    with Run.open(half).lock():
        for more in ([], ["--resume"]):
            line = fail(capsys, "--out", half, *QUICK, *more)
            assert line.startswith(f"{half}: is in use by process {os.getpid()} on ")
            assert line.endswith("wait until it ends, or give another --out")


def test_a_run_whose_checkpoint_is_lost_or_damaged(half, capsys):
    file = half / "checkpoint" / "last.safetensors"
    os.truncate(file, file.stat().st_size // 2)
    with unchanged(half):
        line = fail(capsys, "--out", half, "--resume")
        assert line.startswith(f"{file}: is cut off or damaged")
    file.unlink()
    with unchanged(half):
        assert fail(capsys, "--out", half, "--resume") == (
            f"{file}: does not exist, but metrics.jsonl has 3 epochs; put it back, or train anew "
            "with another --out"
        )


def test_rows_that_are_gone(some_run, capsys):
    rows = some_run / "metrics.jsonl"
    good, ended = rows.read_bytes(), (some_run / "test.json").exists()
    first = good.index(b"\n") + 1
    for damaged in (good[: first + 20], good[:first] + bytes(len(good) - first), b""):
        rows.write_bytes(damaged)
        with unchanged(some_run):
            assert fail(capsys, "--out", some_run, "--resume") == (
                f"{rows}, line {damaged.count(10) + 1}: is missing or cut off, and the checkpoint "
                f"is of epoch {4 if ended else 2}; restore the file, or train anew with another --out"
            )
    rows.write_bytes(good[:-20])
    if not ended:  # the last row is of an epoch without a checkpoint: it is written again
        train("--out", some_run, "--resume")


def test_a_damaged_best_model(some_run, finished, capsys):
    model, ended = some_run / "best" / "model.safetensors", (some_run / "test.json").exists()
    good = model.read_bytes()
    for damaged in (good[:-1], good[:-1] + bytes([good[-1] ^ 1]), b""):
        model.write_bytes(damaged)
        with unchanged(some_run):
            line = fail(capsys, "--out", some_run, "--resume")
            assert line.startswith(f"{model}: is ")
            assert line.endswith("; remove it and use --resume again, which writes it anew")
            assert main(["eval", str(some_run)]) == 2
            assert capsys.readouterr().err.startswith(f"treelax: error: {model}: is ")
    model.unlink()  # what the line says to do
    train("--out", some_run, "--resume")
    assert load_checkpoint(model).state["epoch"] == result(some_run)["best_epoch"]
    if ended:
        assert (model.read_bytes(), result(some_run)) == (good, result(finished[0]))


def test_a_damaged_result(finished, tmp_path, capsys):
    folder = shutil.copytree(finished[0], tmp_path / "run")
    file = folder / "test.json"
    record = json.loads(file.read_text())
    wrong = {"epochs": True}, {"test": record["test"] | {"attachment": "high"}}
    for text in ("{", *(json.dumps(record | change) for change in wrong)):
        file.write_text(text)
        line = fail(capsys, "--out", folder, "--resume")
        assert line.startswith(f"{file}: cannot be read as a result (")
        assert line.endswith("remove it and use --resume")
    file.unlink()  # what the line says to do
    train("--out", folder, "--resume")
    assert result(folder) == result(finished[0])
