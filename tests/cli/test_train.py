"""``treelax train listops``: what it writes and says, how it goes on, what it refuses."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from listops_runs import metrics, options, result, tiny
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner, Result

from treelax.cli.main import app, main
from treelax.data.listops import generate_listops, parse_expression, write_listops
from treelax.tasks.listops import experiment
from treelax.tasks.listops.config import PRESETS
from treelax.training import loop
from treelax.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.training.run import Run

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
# a chain needs no parser, so its epochs are over in no time
QUICK = ["--preset", "chain", *options()]


def train(*arguments: object) -> Result:
    """Train in this process, to the end."""
    done = CliRunner().invoke(app, ["train", "listops", "--device", "cpu", *map(str, arguments)])
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that the program says as it refuses."""
    capsys.readouterr()
    assert main(["train", "listops", "--device", "cpu", *map(str, arguments)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("treelax: error: ")
    assert output.err.count("\n") == 1
    return output.err.removeprefix("treelax: error: ").rstrip("\n")


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A run that has ended, and what was said."""
    folder = tmp_path_factory.mktemp("finished") / "new" / "run"
    return folder, train("--out", folder, *options(), "--seed", 5)


def interrupt(folder: Path, epoch: int, *arguments: object) -> None:
    """Press Ctrl-C before the checkpoint of an epoch."""
    original = loop.Training._save

    def save(self: loop.Training) -> None:
        if self.epoch == epoch:
            raise KeyboardInterrupt
        original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.Training, "_save", save)
        assert (
            main(
                ["train", "listops", "--device", "cpu", "--out", str(folder), *map(str, arguments)]
            )
            == 130
        )


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four epochs that was interrupted in its third; copy it."""
    folder = tmp_path_factory.mktemp("halves") / "run"
    interrupt(folder, 3, *QUICK)
    return folder


@pytest.fixture
def half(halves: Path, tmp_path: Path) -> Path:
    return shutil.copytree(halves, tmp_path / "half")


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


def test_no_control_characters_where_there_is_no_terminal(finished: tuple[Path, Result]) -> None:
    for text in (finished[1].stdout, finished[1].stderr):
        assert text
        assert not CONTROL.search(text)


def test_the_folder_has_a_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train(*QUICK, "--seed", 3, "--set", "train.epochs=1")
    assert result(Path("runs/listops-chain-3"))["preset"] == "chain"


def test_list_shows_presets_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "listops", "--list", "--preset", "gold", "--set", "train.epochs=7"]) == 0
    output = capsys.readouterr()
    rows = [
        [cell.strip() for cell in line[1:-1].split("|")] for line in output.out.splitlines() if line
    ]
    assert {name: text for name, (_, text) in PRESETS.items()}.items() <= {
        row[0]: row[1] for row in rows
    }.items()
    assert ["train.epochs", "7"] in rows
    assert ["data.folder", "none"] in rows
    assert "settings of gold" in output.out
    assert output.err == ""


@pytest.mark.parametrize("command", [["train"], ["train", "listops"]])
def test_help_fits_and_has_an_example(command: list[str]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"], prog_name="treelax").output
    assert "Example" in shown
    assert "  treelax train listops --preset small --out runs/small" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_data_from_files(tmp_path: Path) -> None:
    for split, size in (("train", 40), ("dev", 20), ("test", 12)):
        write_listops(tmp_path / f"{split}.tsv", generate_listops(size, seed=size, max_length=12))
    train("--out", tmp_path / "run", *QUICK, "--set", f"data.folder={tmp_path}")
    assert result(tmp_path / "run")["test"]["sentences"] == 12


# ------------------------------------------------------------------ going on


def test_resume_starts_what_is_not_there(tmp_path: Path) -> None:
    train("--out", tmp_path / "run", *QUICK, "--resume")
    assert len(metrics(tmp_path / "run")) == 4


def test_an_interrupted_run_goes_on_as_if_nothing_had_been(
    half: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(metrics(half)) == 3  # one row more than the checkpoint
    said = train("--out", half, "--resume")
    assert "going on after epoch 2 of 4" in said.stderr
    train("--out", tmp_path / "straight", *QUICK)
    assert metrics(half) == metrics(tmp_path / "straight")
    assert result(half) == result(tmp_path / "straight")


def test_resume_takes_the_same_settings_again(half: Path) -> None:
    train("--out", half, "--resume", *QUICK)
    assert result(half)["epochs"] == 4


def test_resume_takes_some_of_the_settings(half: Path) -> None:
    train("--out", half, "--resume", "--set", "train.epochs=4", "--seed", 0)
    assert result(half)["preset"] == "chain"


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
    assert again.stderr == (f"{folder}: has ended already, after 4 epochs; these are its figures\n")
    tables = first.stdout.partition("\n\n ")[0]
    assert again.stdout.startswith(tables[: tables.rindex("|")])
    assert again.stdout.endswith(f"run: {folder}\n")
    assert content(folder) == before


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--set", "train.epoch=3"],
            r"train.epoch: no such key; did you mean train.epochs.*--list",
        ),
        (["--set", "train.epochs=x"], r"train.epochs: received 'x'; expected an integer"),
        (["--set", "train.epochs"], r"received the setting 'train.epochs'; expected key=value"),
        (["--set", "train=1"], r"train: is a section; expected one of its keys"),
        (["--set", "model.gcn_size=0"], r"model.gcn_size is 0; expected a whole number"),
        (["--set", "model.distances=none"], r"model.left_head_bias is 2.0 and model.distances"),
        (["--set", "preset=gold"], r"preset: received the setting preset=gold; .*--preset gold"),
        (["--preset", "gould"], r"preset is 'gould'; expected one of .*Did you mean 'gold'\?"),
        (["--seed", "-1"], r"seed is -1; expected 0 to"),
        (["--seed", str(2**64)], r"seed is 18446744073709551616; expected 0 to"),
        (["--device", "gpu"], r"device is 'gpu'; expected cpu, cuda, cuda:N or auto"),
        (
            ["--set", "data.folder=nowhere"],
            r"nowhere/train.tsv: does not exist; expected a ListOps",
        ),
        (["--set", "model.max_valency=3"], r"model.max_valency is 3; expected at least 5"),
        (["--set", "data.max_length=4"], r"count: received 410; expected about"),
    ],
)
def test_bad_settings_are_refused_before_a_run_begins(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("treelax.data.listops.generator.PATIENCE", 300)
    settings = [] if "model.distances=none" in arguments else options()
    line = fail(capsys, "--out", "run", *settings, *arguments)
    assert re.search(said, line)
    assert not os.listdir(tmp_path)


def test_cuda_without_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    line = fail(capsys, "--out", tmp_path / "run", *QUICK, "--device", "cuda")
    assert line == "device is 'cuda' but 0 GPUs are here; expected cpu or auto"
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5\t[MAX 2 5 ]\n5\t[MAX 2 5\n", r"train.tsv, line 2, token 4: .*expected \]"),
        ("[MAX 2 5 ]\n[MIX 2 5 ]\n", r"train.tsv, line 2, token 1: received '\[MIX'; expected one"),
        ("", r"train.tsv: is empty; expected lines"),
    ],
)
def test_bad_data_name_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (tmp_path / "train.tsv").write_text(text)
    for split in ("dev", "test"):
        write_listops(tmp_path / f"{split}.tsv", [parse_expression("[MAX 2 5 ]")])
    line = fail(capsys, "--out", tmp_path / "run", *QUICK, "--set", f"data.folder={tmp_path}")
    assert re.search(said, line)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_holds_a_run(
    finished: tuple[Path, Result], half: Path, capsys: pytest.CaptureFixture[str]
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
        (["--set", "train.epochs=9"], "train.epochs 4 → 9"),
        (["--seed", "7"], "seed 0 → 7"),
        (["--preset", "gold", *options()], "preset chain → gold"),
        (["--preset", "chain"], "data.train 300 → 90000"),
    ],
)
def test_resuming_with_other_settings(
    half: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], changed: str
) -> None:
    before = content(half)
    line = fail(capsys, "--out", half, "--resume", *arguments)
    assert line.startswith(f"{half}: was started with other settings ({changed}")
    assert line.endswith("resume it without them or give another --out")
    assert content(half) == before


def test_a_run_of_another_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Run.create(tmp_path / "run", tiny(), task="sst")
    line = fail(capsys, "--out", tmp_path / "run", "--resume")
    assert line.endswith("is a run of 'sst'; expected one of 'listops': give another --out")


@pytest.fixture
def in_use(half: Path) -> Iterator[Path]:
    """A run whose lock another program holds: locks are those of open files, not of processes."""
    fcntl = pytest.importorskip("fcntl")
    with (half / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("process 7 on elsewhere\n")
        lock.flush()
        yield half


def test_a_run_in_use(in_use: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def of_another_version(file: Path) -> None:
    header = {"format": "treelax", "version": "99", "kind": "listops training", "state": "{}"}
    save_file(load_file(file), file, header)


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut_off, "is cut off or damaged"),
        (empty, "is cut off or damaged"),
        (of_another_task, "holds a checkpoint of 'sst'; expected one of 'listops training'"),
        (of_another_version, "is a checkpoint of version 99; expected 1"),
    ],
)
def test_a_checkpoint_that_cannot_be_used(
    half: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None], said: str
) -> None:
    file = half / "checkpoint" / "last.safetensors"
    damage(file)
    before = content(half)
    line = fail(capsys, "--out", half, "--resume")
    assert line.startswith(f"{file}: {said}")
    assert content(half) == before


def test_a_damaged_config(half: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = half / "config.toml"
    good = config.read_text()
    config.write_text(good.replace("epochs = 4", "epochs = four"))
    assert fail(capsys, "--out", half, "--resume").startswith(f"{config}: cannot be read as TOML")
    config.write_text(good.replace("epochs = 4", "epochs = 0"))
    assert fail(capsys, "--out", half, "--resume") == (
        f"{config}: train.epochs is 0; expected at least 1"
    )


def test_a_damaged_result(
    finished: tuple[Path, Result], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(finished[0], tmp_path / "run")
    (folder / "test.json").write_text("{")
    line = fail(capsys, "--out", folder, "--resume")
    assert line.startswith(f"{folder / 'test.json'}: cannot be read as a result")
    (folder / "test.json").unlink()  # what the line says to do
    train("--out", folder, "--resume")
    assert result(folder) == result(finished[0])


# ------------------------------------------------------------------ what goes wrong on the way


@pytest.mark.parametrize("call", [4, 5, 6, 8])
def test_a_full_disk(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    call: int,
) -> None:
    """The config comes to the disk, then of each epoch the row, the best model, the checkpoint."""
    folder, calls = tmp_path / "run", 0
    original = os.fsync

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(descriptor)

    arguments = ["train", "listops", "--device", "cpu", "--out", str(folder), *QUICK]
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    *before, line = output.err.splitlines()
    assert all(said.startswith(("chain, seed 0", "training:")) for said in before)
    assert line.startswith(f"treelax: error: {folder}")
    assert "No space left on device" in line
    if call > 4:
        done = load_checkpoint(folder / "checkpoint" / "last.safetensors").state["epoch"]
        assert done == (call - 2) // 3
    train("--out", folder, "--resume")
    train("--out", tmp_path / "straight", *QUICK)
    assert metrics(folder) == metrics(tmp_path / "straight")
    assert result(folder) == result(tmp_path / "straight")


def test_a_loss_that_is_no_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    arguments = [*QUICK, "--set", "train.learning_rate=1e38", "--set", "train.clip=1e38"]
    assert main(["train", "listops", "--device", "cpu", "--out", str(folder), *arguments]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith(f"treelax: error: {folder}: ")
    assert "epoch 1" in line
    assert line.endswith("train anew with a lower train.learning_rate or train.clip")
    assert metrics(folder) == []


def test_an_interruption_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt(tmp_path / "run", 1, *QUICK)
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines()[-1].endswith(
        "a training run that had begun goes on with --resume"
    )
    assert json.loads((tmp_path / "run" / "metrics.jsonl").read_text())["epoch"] == 1
