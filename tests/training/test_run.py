"""Runs: folders that are made once, opened again, and used by one process at a time."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, make_dataclass
from pathlib import Path

import pytest

import treelax
from treelax.errors import DataError, InputError
from treelax.training.run import Run, runs_in


@dataclass(frozen=True)
class Model:
    width: int = 8


@dataclass(frozen=True)
class Experiment:
    model: Model = Model()
    name: str = "first"
    noise: str | None = None


CONFIG = Experiment(Model(width=3), "second")


def test_a_new_run(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "runs" / "one", CONFIG, task="listops")
    assert (run.path, run.task) == (tmp_path / "runs" / "one", "listops")
    assert run.config_file.read_text() == (
        f"# A run of listops by treelax {treelax.__version__}\n"
        'task = "listops"\n'
        "\n"
        'name = "second"\n'
        "# noise = none\n"
        "\n"
        "[model]\n"
        "width = 3\n"
    )
    assert sorted(os.listdir(run.path)) == [".lock", "config.toml"]
    with run.lock():
        assert run.config(Experiment) == CONFIG


def test_an_existing_run(tmp_path: Path) -> None:
    Run.create(tmp_path / "one", CONFIG, task="list\nops")
    run = Run.open(str(tmp_path / "one"))
    assert (run.path, run.task) == (tmp_path / "one", "list\nops")
    assert run.config(Experiment) == CONFIG


def test_the_places_in_a_run(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")
    places = [run.config_file, run.metrics_file, run.last_checkpoint, run.best_model, run.lock_file]
    assert [place.relative_to(run.path).as_posix() for place in places] == [
        "config.toml",
        "metrics.jsonl",
        "checkpoint/last.safetensors",
        "best/model.safetensors",
        ".lock",
    ]


# ------------------------------------------------------------------ what cannot be made


@pytest.mark.parametrize(
    "part",
    ["config.toml", "metrics.jsonl", "checkpoint/last.safetensors", "best/model.safetensors"],
)
def test_a_folder_that_holds_a_run(tmp_path: Path, part: str) -> None:
    (tmp_path / part).parent.mkdir(exist_ok=True)
    (tmp_path / part).write_text("the older file")
    with pytest.raises(InputError) as caught:
        Run.create(tmp_path, CONFIG, task="x")
    assert str(caught.value) == (
        f"{tmp_path}: already holds a run ({part}); continue it with --resume or give another --out"
    )
    assert (tmp_path / part).read_text() == "the older file"
    assert not (tmp_path / ".lock").exists()


def test_a_folder_with_other_things_will_do(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    Run.create(tmp_path, CONFIG, task="x")
    assert sorted(os.listdir(tmp_path)) == [".lock", "config.toml", "notes.txt"]


def test_a_path_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(InputError, match="file: is a file; expected a folder for the run: give"):
        Run.create(file, CONFIG, task="x")
    with pytest.raises(InputError, match=r"file/sub: cannot hold a run: .*Not a directory"):
        Run.create(file / "sub", CONFIG, task="x")
    assert file.read_text() == "mine"


@pytest.mark.parametrize("call", ["mkdir", "open", "fsync"])
def test_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        with pytest.raises(
            InputError, match=r"one: cannot [^\[]*: Permission denied; give a folder"
        ):
            Run.create(tmp_path / "one", CONFIG, task="x")
    assert not (tmp_path / "one" / "config.toml").exists()
    Run.create(tmp_path / "one", CONFIG, task="x")


def test_a_config_with_a_task_of_its_own(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Own:
        task: str = "mine"

    section = make_dataclass("Section", [("task", Model, Model())], frozen=True)
    for config in (Own(), section()):
        with pytest.raises(InputError, match="config: received a key task; expected none"):
            Run.create(tmp_path / "one", config, task="x")
    assert os.listdir(tmp_path) == []


# ------------------------------------------------------------------ what cannot be opened


def test_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    Run.create(tmp_path / "runs" / "b", CONFIG, task="x")
    Run.create(tmp_path / "runs" / "a", CONFIG, task="x")
    for name, message in {
        "nowhere": "does not exist; expected the folder of a run",
        "file": "is a file; expected the folder of a run",
        "empty": "holds no config.toml; expected the folder of a run$",
        "runs": f"holds no config.toml; expected the folder of a run, such as {tmp_path}/runs/a$",
    }.items():
        with pytest.raises(InputError, match=f"/{name}: {message}"):
            Run.open(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"task = \n", "cannot be read as TOML: .*line 1"),
        (b'task = "\xff"\n', "cannot be read as TOML: .*utf-8"),
        (b"", "names no task; expected task = "),
        (b"task = 3\n", "names no task"),
    ],
)
def test_a_broken_config(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(DataError, match=f"config.toml: {message}"):
        Run.open(tmp_path)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('{"epoch": 3}', "received epoch 3; expected the numbers of epoch 2: restore the file"),
        ('{"epoch": 2, "loss": "low"}', "received loss 'low'"),
        ('{"epoch": 2, "dev": [1]}', r"received dev \[1\]"),
        ('{"epoch": 2, "dev": {"score": {}}}', "received score {}"),
        ("\0\0\0", "is not JSON"),
    ],
)
def test_damaged_metrics(tmp_path: Path, second: str, message: str) -> None:
    run = Run.create(tmp_path / "run", Experiment(), task="listops")
    run.metrics_file.write_text(f'{{"epoch": 1, "loss": null, "dev": {{}}}}\n{second}\n')
    with pytest.raises(DataError, match=f"metrics.jsonl, line 2: {message}"):
        Run.open(run.path)


def test_a_config_of_another_kind(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "one", CONFIG, task="x")
    with pytest.raises(InputError, match=r"one/config.toml: name: no such key; the keys are width"):
        run.config(Model)


# ------------------------------------------------------------------ many runs


def test_the_runs_in_a_folder(tmp_path: Path) -> None:
    for name in ("b", "c", "a"):
        Run.create(tmp_path / name, CONFIG, task=f"task {name}")
    Run.create(tmp_path / "deep" / "er", CONFIG, task="x")
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    runs = runs_in(str(tmp_path))
    assert [(run.path.name, run.task) for run in runs] == [
        ("a", "task a"),
        ("b", "task b"),
        ("c", "task c"),
    ]
    assert runs_in(tmp_path / "empty") == []


def test_no_folder_of_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        with pytest.raises(InputError, match=f"{name}: is no folder; expected one that holds runs"):
            runs_in(tmp_path / name)
