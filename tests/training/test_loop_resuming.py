"""Runs that are interrupted, killed, resumed, or cannot go on."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from line_runs import CPU, Line, epochs, line_run, same, same_file, weights
from listops_runs import metrics, result, tiny

from treelax.errors import CheckpointError, TrainingError, TreelaxError
from treelax.tasks.listops.experiment import ListOpsExperiment
from treelax.tasks.listops.task import LISTOPS
from treelax.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.training.loop import Training
from treelax.training.metrics import read_metrics
from treelax.training.results import write_result
from treelax.training.run import Run

# ------------------------------------------------------------------ resuming


def listops(folder: Path, preset: str, create: bool = False) -> Training:
    config = tiny(preset, train__patience=1, train__updates=3)
    run = Run.create(folder, config, task="listops") if create else Run.open(folder)
    return Training(run, ListOpsExperiment(config, CPU))


def end(training: Training) -> Training:
    for _ in training.steps():
        pass
    training.load_best()
    write_result(training.run, LISTOPS.finish(training))
    return training


@pytest.fixture(scope="module", params=["balanced-mc", "paper-mc", "balanced-zero-st", "gold"])
def straight(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("straight") / request.param
    return end(listops(folder, request.param, create=True))


@pytest.mark.parametrize("stops", [(1,), (3,), (5,), (6,), (2, 3, 4), (11,)])
def test_an_interrupted_run_ends_like_any_other(
    tmp_path: Path, straight: Training, stops: tuple[int, ...]
) -> None:
    """It stops after so many updates, in or at the end of an epoch of three, once or repeatedly."""
    folder, preset = tmp_path / "run", straight.run.path.name
    create = True
    for stop in stops:
        training = listops(folder, preset, create)
        create = False
        steps = training.steps()
        for _ in range(stop):
            next(steps)
        steps.close()
    training = listops(folder, preset)
    assert 0 < training.epoch < 4 or stops == (1,)
    end(training)
    assert metrics(folder) == metrics(straight.run.path)
    assert result(folder) == result(straight.run.path)
    assert same(weights(training), weights(straight))
    assert same_file(training.run.best_model, straight.run.best_model)


def test_the_noise_matters(tmp_path: Path, straight: Training) -> None:
    """So the test above can fail: another seed gives other numbers."""
    config = replace(straight.experiment.config, seed=1)
    run = Run.create(tmp_path / "run", config, task="listops")
    end(Training(run, ListOpsExperiment(config, CPU)))
    assert metrics(run.path) != metrics(straight.run.path)


def test_a_run_that_has_ended_has_nothing_to_do(straight: Training) -> None:
    before = straight.run.metrics_file.read_bytes(), straight.run.last_checkpoint.read_bytes()
    again = listops(straight.run.path, straight.run.path.name)
    assert again.epoch == 4
    assert list(again.steps()) == []
    assert (
        straight.run.metrics_file.read_bytes(),
        again.run.last_checkpoint.read_bytes(),
    ) == before
    again.load_best()
    assert same(weights(again), weights(straight))


def test_what_a_kill_left_half_written_goes(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "run", epochs=1)
    kept = run.path / "notes.tmp"
    for file in (
        run.path / ".metrics.jsonl.0.tmp",
        run.last_checkpoint.with_name(".last.safetensors.0.tmp"),
        run.best_model.with_name(".model.safetensors.0.tmp"),
        kept,
    ):
        file.parent.mkdir(exist_ok=True)
        file.write_text("half")
    list(Training(run, Line(settings)).steps())
    assert list(run.path.rglob("*.tmp")) == [kept]


def test_seconds_go_on(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "run", epochs=4)
    first = Training(run, Line(settings))
    steps = first.steps()
    for _ in range(6):
        next(steps)
    steps.close()
    list(Training(run, Line(settings)).steps())
    seconds = [row["seconds"] for row in read_metrics(run.path)]
    assert seconds == sorted(seconds)
    assert seconds[1] == first.seconds < seconds[2]


@pytest.mark.parametrize("part", ["_save", "_save_best"])
def test_a_kill_between_the_row_and_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    straight, settings = line_run(tmp_path / "straight")
    list(Training(straight, Line(settings)).steps())
    run, _ = line_run(tmp_path / "run")
    original = getattr(Training, part)

    def die(self: Training) -> None:
        if self.epoch == 3:
            raise KeyboardInterrupt
        original(self)

    with monkeypatch.context() as patch:
        patch.setattr(Training, part, die)
        with pytest.raises(KeyboardInterrupt):
            list(Training(run, Line(settings)).steps())
    assert len(metrics(run.path)) == 3
    resumed = Training(run, Line(settings))
    assert resumed.epoch == 2
    list(resumed.steps())
    assert metrics(run.path) == metrics(straight.path)
    assert same_file(run.best_model, straight.best_model)


# ------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    ("poison", "said"),
    [("loss", "the loss of epoch 3 is nan"), ("weights", "weights are not finite after epoch 3")],
)
def test_numbers_that_are_none(tmp_path: Path, poison: str, said: str) -> None:
    run, settings = line_run(tmp_path / "run")
    with pytest.raises(TrainingError) as caught:
        list(Training(run, Line(settings, poison=poison)).steps())
    assert str(caught.value) == (
        f"{run.path}: {said}; expected finite numbers: train anew with a lower train.learning_rate "
        "or train.clip; the checkpoint of epoch 2 is intact"
    )
    assert [row["epoch"] for row in metrics(run.path)] == [1, 2]
    resumed = Training(run, Line(settings))
    assert resumed.epoch == resumed.best_epoch == 2
    assert all(value.isfinite().all() for value in weights(resumed).values())
    list(resumed.steps())
    assert len(metrics(run.path)) == 6


def test_a_first_epoch_without_numbers(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "run", learning_rate=1e38)
    with pytest.raises(TrainingError, match=r"epoch 1.*or train.clip$"):
        list(Training(run, Line(settings)).steps())
    assert metrics(run.path) == []
    assert not run.last_checkpoint.exists()


@pytest.mark.parametrize("call", range(1, 10))
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """Each epoch brings a row, the best model and a checkpoint to the disk; each may fail."""
    straight, settings = line_run(tmp_path / "straight")
    list(Training(straight, Line(settings)).steps())
    run, _ = line_run(tmp_path / "run")
    calls = 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(TreelaxError, match="No space left on device") as caught:
            list(Training(run, Line(settings)).steps())
    assert "\n" not in str(caught.value)
    done = (call - 1) // 3
    resumed = Training(run, Line(settings))
    assert resumed.epoch == done
    list(resumed.steps())
    assert metrics(run.path) == metrics(straight.path)
    assert same_file(run.best_model, straight.best_model)
    assert not list(run.path.rglob("*.tmp"))


def test_a_checkpoint_that_does_not_fit(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "run", epochs=1)
    list(Training(run, Line(settings)).steps())
    other = replace(settings, size=5)
    with pytest.raises(CheckpointError, match=r"config.toml: was changed .* \(size \d+ → 5\)"):
        Training(run, Line(other))

    saved = load_checkpoint(run.last_checkpoint)
    weights = saved.tensors | {"model.weight": torch.zeros(1, 5)}
    save_checkpoint(run.last_checkpoint, weights, kind=saved.kind, state=saved.state)
    with pytest.raises(CheckpointError, match=r"last.safetensors: does not fit .*\(weight\)"):
        Training(run, Line(settings))
    for key in ("optimizer", "schedule", "epoch", "seconds"):
        state = {name: value for name, value in saved.state.items() if name != key}
        save_checkpoint(run.last_checkpoint, saved.tensors, kind=saved.kind, state=state)
        with pytest.raises(CheckpointError, match=f"last.safetensors: its state lacks '{key}'"):
            Training(run, Line(settings))
    save_checkpoint(run.last_checkpoint, saved.tensors, kind="line", state=saved.state)
    with pytest.raises(CheckpointError, match="holds a checkpoint of 'line'; expected one of"):
        Training(run, Line(settings))


def test_other_data_than_it_was_started_with(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "run", epochs=2)
    next(epochs(Training(run, Line(settings))))
    assert Training(run, Line(settings)).epoch == 1
    with pytest.raises(
        CheckpointError, match="are not those it was started with; restore the files"
    ):
        Training(run, Line(settings, data="other"))
    # a checkpoint of before data were told fits any
    file = run.last_checkpoint
    saved = load_checkpoint(file, kind="line training")
    del saved.state["data"]
    save_checkpoint(file, saved.tensors, kind="line training", state=saved.state)
    assert Training(run, Line(settings, data="other")).epoch == 1
