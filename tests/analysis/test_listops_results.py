"""The result of a run: written once, whole, and read back as it was."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
import torch
from listops_runs import tiny

from treelax.analysis.listops_results import figures_of, finish, read_result
from treelax.errors import DataError
from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.listops.evaluation import evaluate
from treelax.tasks.listops.experiment import ListOpsExperiment, load_splits
from treelax.training.loop import Training
from treelax.training.models import load_model
from treelax.training.run import Run


def trained(folder: Path) -> tuple[Run, Training, ListOpsConfig]:
    config = tiny(train__epochs=2, seed=3)
    run = Run.create(folder, config, task="listops")
    training = Training(run, ListOpsExperiment(config, torch.device("cpu")))
    for _ in training.steps():
        pass
    return run, training, config


def test_the_best_model_is_evaluated_on_the_test_set(tmp_path: Path) -> None:
    run, training, config = trained(tmp_path / "run")
    assert read_result(run) is None
    with torch.no_grad():  # what counts is the best model, not the one of the last epoch
        training.model.composer.vertex.zero_()
    told: list[int] = []
    figures = finish(run, training, config, progress=told.append)
    assert told[-1] == figures.tokens
    best = load_model(run.path).model
    assert figures == evaluate(best, load_splits(config.data).expressions["test"])

    record = read_result(run)
    assert record is not None
    assert figures_of(record) == figures
    del record["test"]
    assert record == {
        "preset": "balanced-mc",
        "seed": 3,
        "max_length": 16,
        "best_epoch": training.best_epoch,
        "epochs": 2,
        "seconds": training.seconds,
        "device": "CPU",
    }


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", "{}", '{"test": {}}', '{"test": {"attachment": 3}}'],
)
def test_a_damaged_result(tmp_path: Path, text: str) -> None:
    run = Run.create(tmp_path / "run", tiny(), task="listops")
    (run.path / "test.json").write_text(text)
    with pytest.raises(
        DataError, match=r"test.json: cannot be read as a result \(.*remove it and use --resume"
    ) as caught:
        read_result(run)
    assert "\n" not in str(caught.value)


def test_every_part_of_a_result_is_needed(tmp_path: Path) -> None:
    run, training, config = trained(tmp_path / "run")
    finish(run, training, config)
    file = run.path / "test.json"
    whole = json.loads(file.read_text())
    for key in whole:
        file.write_text(json.dumps({k: v for k, v in whole.items() if k != key}))
        with pytest.raises(DataError, match=f"cannot be read as a result .without {key}"):
            read_result(run)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("seed", "one"),
        ("seconds", None),
        ("epochs", True),
        ("test.attachment", "high"),
        ("test.by_length", {}),
        ("test.by_length", [{"longest": 10}]),
        ("test.baselines", {"previous token": "low"}),
    ],
)
def test_values_of_another_type(tmp_path: Path, path: str, value: object) -> None:
    run, training, config = trained(tmp_path / "run")
    finish(run, training, config)
    file = run.path / "test.json"
    record = json.loads(file.read_text())
    *outer, last = path.split(".")
    (record["test"] if outer else record)[last] = value
    file.write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"test.json: cannot be read as a result \(.*use --resume"):
        read_result(run)


def test_a_full_disk_leaves_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, training, config = trained(tmp_path / "run")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"test.json: was not written: .*No space left"):
            finish(run, training, config)
    assert read_result(run) is None
    finish(run, training, config)
    assert read_result(run) is not None
