"""``treelax train listops``: what it refuses, in one line."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from listops_runs import QUICK, content, fail, interrupt, options, result, train
from typer.testing import Result

from treelax.__main__ import main
from treelax.apps.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.lab.listops.experiment import encoded, load_splits

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--set", "train.epoch=3"],
            r"train.epoch: no such key; did you mean train.epochs.*--list",
        ),
        (["--set", "train.epochs=x"], r"train.epochs: received 'x'; expected an integer"),
        (["--set", "model.gcn_size=0"], r"model.gcn_size is 0; expected at least 1"),
        (["--set", "model.distances=none"], r"model.left_head_bias is 2.0 and model.distances"),
        (["--set", "preset=gold"], r"preset: received the setting preset=gold; .*--preset gold"),
        (["--preset", "gould"], r"preset is 'gould'; expected one of .*Did you mean 'gold'\?"),
        (["--seed", "-1"], r"seed is -1; expected at least 0 and at most"),
        (["--set", "train.decay=2"], r"train.decay is 2.0; expected more than 0 and at most 1"),
        (["--device", "gpu"], r"device is 'gpu'; expected cpu, cuda, cuda:N or auto"),
        (
            ["--set", "data.folder=nowhere"],
            r"nowhere/train.tsv: does not exist; expected a ListOps",
        ),
        (["--set", "model.max_valency=3"], r"model.max_valency is 3; expected at least 5"),
        (["--set", "data.max_length=4"], r"410"),
    ],
)
def test_bad_settings_are_refused_before_a_run_begins(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("treelax.apps.data.listops.PATIENCE", 300)
    settings = [] if "model.distances=none" in arguments else options()
    line = fail(capsys, "--out", "run", *settings, *arguments)
    assert re.search(said, line)
    assert not os.listdir(tmp_path)


def test_a_folder_that_holds_a_run(
    finished: tuple[Path, Result], half: Path, capsys: Capture
) -> None:
    for folder in (finished[0], half):
        before = content(folder)
        line = fail(capsys, "--out", folder, *QUICK)
        assert line == (
            f"{folder}: already holds a run (config.toml); continue it with --resume or give "
            "another --out"
        )
        assert content(folder) == before


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
def test_resuming_with_other_settings(
    half: Path, capsys: Capture, arguments: list[str], changed: str
) -> None:
    before = content(half)
    line = fail(capsys, "--out", half, "--resume", *arguments)
    assert line.startswith(f"{half}: {changed}")
    assert line.endswith("give another --out")
    assert content(half) == before


@pytest.fixture
def in_use(half: Path) -> Iterator[Path]:
    """A run whose lock another program holds: locks are those of open files, not of processes."""
    fcntl = pytest.importorskip("fcntl")
    with (half / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("process 7 on elsewhere\n")
        lock.flush()
        yield half


def test_a_run_in_use(in_use: Path, capsys: Capture) -> None:
    before = content(in_use)
    line = fail(capsys, "--out", in_use, "--resume")
    assert line == (
        f"{in_use}: is in use by process 7 on elsewhere; wait until it ends, or give another --out"
    )
    assert content(in_use) == before


def cut_off(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def of_another_task(file: Path) -> None:
    saved = load_checkpoint(file)
    save_checkpoint(file, saved.tensors, kind="sst", state=saved.state)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut_off, "is cut off or damaged"),
        (of_another_task, "holds a checkpoint of 'sst'; expected one of 'listops training'"),
    ],
)
def test_a_checkpoint_that_cannot_be_used(
    half: Path, capsys: Capture, damage: Callable[[Path], None], said: str
) -> None:
    file = half / "checkpoint" / "last.safetensors"
    damage(file)
    before = content(half)
    line = fail(capsys, "--out", half, "--resume")
    assert line.startswith(f"{file}: {said}")
    assert content(half) == before


@pytest.mark.parametrize("ended", [False, True])
def test_rows_that_are_gone(
    half: Path, finished: tuple[Path, Result], tmp_path: Path, capsys: Capture, ended: bool
) -> None:
    folder = shutil.copytree(finished[0], tmp_path / "run") if ended else half
    rows, epoch = folder / "metrics.jsonl", 4 if ended else 2
    good = rows.read_bytes()
    first = good.index(b"\n") + 1
    for damaged in (good[:first], good[: first + 20], good[:first] + bytes(len(good) - first), b""):
        rows.write_bytes(damaged)
        before = content(folder)
        assert fail(capsys, "--out", folder, "--resume") == (
            f"{rows}, line {damaged.count(10) + 1}: is missing or cut off, and the checkpoint is of "
            f"epoch {epoch}; restore the file, or train anew with another --out"
        )
        assert content(folder) == before
    rows.write_bytes(good[:-20])
    if not ended:  # the last row is of an epoch without a checkpoint: it is written again
        train("--out", folder, "--resume")


@pytest.mark.parametrize("ended", [False, True])
def test_a_damaged_best_model(
    half: Path, finished: tuple[Path, Result], tmp_path: Path, capsys: Capture, ended: bool
) -> None:
    folder = shutil.copytree(finished[0], tmp_path / "run") if ended else half
    model = folder / "best" / "model.safetensors"
    good = model.read_bytes()
    for damaged in (good[:-1], good[:-1] + bytes([good[-1] ^ 1]), b""):
        model.write_bytes(damaged)
        before = content(folder)
        line = fail(capsys, "--out", folder, "--resume")
        assert line.startswith(f"{model}: is ")
        assert line.endswith("; remove it and use --resume again, which writes it anew")
        assert content(folder) == before
        assert main(["eval", str(folder)]) == 2
        assert capsys.readouterr().err.startswith(f"treelax: error: {model}: is ")
    model.unlink()  # what the line says to do
    train("--out", folder, "--resume")
    assert load_checkpoint(model).state["epoch"] == result(folder)["best_epoch"]
    if ended:
        assert model.read_bytes() == good
        assert result(folder) == result(finished[0])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", "{"),
        ("epochs", True),
        ("test.attachment", "high"),
    ],
)
def test_a_damaged_result(
    finished: tuple[Path, Result], tmp_path: Path, capsys: Capture, path: str, value: object
) -> None:
    folder = shutil.copytree(finished[0], tmp_path / "run")
    file = folder / "test.json"
    record = json.loads(file.read_text())
    *outer, last = path.split(".")
    (record["test"] if outer else record)[last] = value
    file.write_text(json.dumps(record) if path else str(value))
    line = fail(capsys, "--out", folder, "--resume")
    assert line.startswith(f"{file}: cannot be read as a result (")
    assert line.endswith("remove it and use --resume")
    if not path:
        file.unlink()  # what the line says to do
        train("--out", folder, "--resume")
        assert result(folder) == result(finished[0])


def test_resuming_with_other_data(tmp_path: Path, capsys: Capture) -> None:
    data, run = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    rows = [f"{a}\t[MAX {a} {b} ]\n" for a in range(5, 10) for b in range(5)]
    for split in ("train", "dev", "test"):
        (data / f"{split}.tsv").write_text("".join(rows))
    given = [*QUICK, "--set", f"data.folder={data}"]
    interrupt(run, 3, *given)
    (data / "dev.tsv").write_text("".join(rows[1:]))
    load_splits.cache_clear()
    encoded.cache_clear()
    line = fail(capsys, "--out", run, "--resume")
    assert line.startswith(f"{run}: its training or dev data, or their word vectors, are not those")
    (data / "dev.tsv").write_text("".join(rows))
    load_splits.cache_clear()
    encoded.cache_clear()
    train("--out", run, "--resume")
