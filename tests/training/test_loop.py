"""The training loop: its rules, the best model, and runs that are interrupted, killed and resumed."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from line_runs import CPU, Line, epochs, line_run, same, same_file, weights
from listops_runs import metrics, tiny
from torch import Tensor

from treelax.apps.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.apps.training.config import flatten
from treelax.apps.training.loop import Schedule, Training
from treelax.apps.training.metrics import read_metrics
from treelax.apps.training.run import Run
from treelax.errors import CheckpointError, TrainingError, TreelaxError
from treelax.lab.listops.experiment import ListOpsExperiment


def stop_after(training: Training, updates: int) -> None:
    steps = training.steps()
    for _ in range(updates):
        next(steps)
    steps.close()


def test_progress_is_told_after_every_update(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "run", epochs=2)
    training = Training(run, Line(settings))
    steps = list(training.steps())
    assert [(p.epoch, p.update) for p in steps] == [(e, u) for e in (1, 2) for u in (1, 2, 3)]
    assert [p.metrics is not None for p in steps] == [False, False, True] * 2
    assert [p.metrics for p in steps if p.metrics] == read_metrics(run.path)
    row = read_metrics(run.path)[-1]
    assert list(row) == ["epoch", "loss", "learning_rate", "seconds", "dev"]
    assert row["dev"] == {"score": 2.0}
    assert training.seconds == row["seconds"] > 0
    saved = load_checkpoint(run.last_checkpoint, kind="line training")
    assert {"model.weight", "best.bias", "optimizer.0.exp_avg"} <= set(saved.tensors)


def test_the_best_model_is_saved_and_the_plateau_rule_returns_to_it(tmp_path: Path) -> None:
    scores = {1: 5.0, 2: 7.0, 3: 7.0, 4: 6.5, 5: 6.9, 6: 6.0}
    run, settings = line_run(tmp_path / "run")
    training = Training(run, Line(settings, scores.__getitem__))
    reached = list(epochs(training))
    # after two epochs without a better score, half the rate and the weights of the best epoch
    assert [row["learning_rate"] for row in metrics(run.path)] == [0.1] * 4 + [0.05] * 2
    assert same(reached[3], reached[2])
    assert not same(reached[4], reached[2])  # it went on learning from there
    assert training.best_epoch == 3  # of equal ones the later
    saved = load_checkpoint(run.best_model, kind="line")
    assert saved.state == {"config": flatten(settings), "epoch": 3}
    assert same(saved.tensors, reached[2])
    training.load_best()
    assert same(weights(training), reached[2])


def test_the_running_mean_is_evaluated_and_kept(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "run", epochs=2, average=0.75)
    experiment = Line(settings)
    seen: list[dict[str, Tensor]] = []

    def score(epoch: int) -> float:
        seen.append({name: v.clone() for name, v in experiment.model.state_dict().items()})
        return float(epoch)

    experiment.score = score
    training = Training(run, experiment)
    steps = [weights(training) for _ in training.steps()]
    for name in ("weight", "bias"):
        for epoch in (1, 2):
            part = steps[: 3 * epoch]
            shares = [0.75 ** (len(part) - i) for i in range(1, len(part) + 1)]
            mean = sum(s * w[name] for s, w in zip(shares, part, strict=True)) / sum(shares)
            assert torch.allclose(seen[epoch - 1][name], mean, atol=1e-6)
    assert same(load_checkpoint(run.best_model).tensors, seen[1])
    assert same(weights(training), steps[-1])  # training goes on with the weights themselves


def listops(folder: Path, preset: str, seed: int = 0) -> Training:
    config = tiny(preset, train__patience=1, train__updates=3, seed=seed)
    new = not folder.exists()
    run = Run.create(folder, config, task="listops") if new else Run.open(folder)
    return Training(run, ListOpsExperiment(config, CPU))


@pytest.mark.parametrize(("preset", "stops"), [("balanced-mc", (1,)), ("paper-mc", (2, 3, 4))])
def test_an_interrupted_run_ends_like_any_other(
    tmp_path: Path, preset: str, stops: tuple[int, ...]
) -> None:
    """It stops after so many updates, in or at the end of an epoch of three, once or repeatedly."""
    expected = listops(tmp_path / "straight", preset)
    stop_after(expected, 4 * 3)
    for stop in stops:
        stop_after(listops(tmp_path / "run", preset), stop)
    training = listops(tmp_path / "run", preset)
    assert training.epoch == (2 if len(stops) > 1 else 0)
    list(training.steps())
    assert metrics(training.run.path) == metrics(expected.run.path)
    assert same(weights(training), weights(expected))
    assert same_file(training.run.best_model, expected.run.best_model)
    other = listops(tmp_path / "other", preset, seed=1)
    stop_after(other, 3)
    assert metrics(other.run.path)[0] != metrics(expected.run.path)[0]  # so this test can fail
    # a run that has ended has nothing to do
    files = (training.run.metrics_file, training.run.last_checkpoint)
    contents = [file.read_bytes() for file in files]
    assert list(listops(tmp_path / "run", preset).steps()) == []
    assert [file.read_bytes() for file in files] == contents


def test_a_run_with_a_running_mean_goes_on(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "straight", average=0.9)
    list(Training(run, Line(settings)).steps())
    other, _ = line_run(tmp_path / "halves", average=0.9)
    first = Training(other, Line(settings))
    stop_after(first, 7)
    list(Training(other, Line(settings)).steps())
    one, two = load_checkpoint(run.last_checkpoint), load_checkpoint(other.last_checkpoint)
    assert "average.1" in one.tensors
    assert same(one.tensors, two.tensors)
    seconds = [row["seconds"] for row in read_metrics(other.path)]
    assert seconds == sorted(seconds)
    assert seconds[1] == first.seconds < seconds[2]


FULL, KILL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()


def test_a_full_disk_or_a_kill_at_any_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each epoch brings a row, the best model and a checkpoint to the disk; each may fail."""
    straight, settings = line_run(tmp_path / "straight", epochs=3)
    list(Training(straight, Line(settings)).steps())
    for call, error in product(range(1, 7), (FULL, KILL)):
        run, _ = line_run(tmp_path / f"{call}{error is FULL}", epochs=3)
        fail = Mock(side_effect=[*[None] * (call - 1), error])
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(
                (TreelaxError, KeyboardInterrupt), match=r"^$|No space left on dev.*$"
            ):
                list(Training(run, Line(settings)).steps())
        # what a kill leaves half written goes, and nothing else
        leftover, other = run.path / ".metrics.jsonl.0.tmp", run.path / "notes.tmp"
        for file in (leftover, other):
            file.write_text("half")
        resumed = Training(run, Line(settings))
        assert resumed.epoch == (call - 1) // 3
        list(resumed.steps())
        assert metrics(run.path) == metrics(straight.path)
        assert same_file(run.best_model, straight.best_model)
        assert list(run.path.rglob("*.tmp")) == [other]


@pytest.mark.parametrize("poison", ["loss", "weights"])
def test_numbers_that_are_none(tmp_path: Path, poison: str) -> None:
    run, settings = line_run(tmp_path / "run")
    with pytest.raises(
        TrainingError, match=r"run: the loss is .* not finite after epoch 3; expect"
    ):
        list(Training(run, Line(settings, poison=poison)).steps())
    assert [row["epoch"] for row in metrics(run.path)] == [1, 2]
    resumed = Training(run, Line(settings))
    assert resumed.epoch == resumed.best_epoch == 2
    assert all(value.isfinite().all() for value in weights(resumed).values())
    list(resumed.steps())
    assert len(metrics(run.path)) == 6


def test_a_checkpoint_that_does_not_fit(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "run", epochs=1)
    list(Training(run, Line(settings)).steps())
    with pytest.raises(CheckpointError, match=r"config.toml: was changed .* \(size \d+ → 5\)"):
        Training(run, Line(replace(settings, size=5)))
    with pytest.raises(CheckpointError, match="are not those it was started with; restore the"):
        Training(run, Line(settings, data="other"))
    file, saved = run.last_checkpoint, load_checkpoint(run.last_checkpoint)
    wrong = saved.tensors | {"model.weight": torch.zeros(1, 5)}
    save_checkpoint(file, wrong, kind=saved.kind, state=saved.state)
    with pytest.raises(CheckpointError, match=r"last.safetensors: does not fit .*\(The size of"):
        Training(run, Line(settings))


@pytest.mark.parametrize(
    ("improve_on", "patience", "scores", "reloads"),
    [
        ("best", 3, [50, 60, 60, 55, 59, 61, 1, 2, 3, 61, 61, 61, 62], [5, 9, 12]),
        ("previous", 2, [50, 40, 45, 44, 44, 43, 43, 44], [5, 7]),
    ],
)
def test_the_plateau_rule_by_hand(
    improve_on: str, patience: int, scores: list[int], reloads: list[int]
) -> None:
    schedule = Schedule("plateau", 1.0, 20, patience, decay=0.5, improve_on=improve_on)
    for epoch, score in enumerate(scores, 1):
        assert schedule.current(epoch) == 0.5 ** sum(reload < epoch for reload in reloads)
        assert schedule.update(score) == (epoch in reloads)
    assert schedule.best == max(scores)


def test_a_schedule_continues_from_its_state() -> None:
    scores = [50.0, 40, 45, 50, 51, 50, 50, 50]

    def follow(schedule: Schedule, first: int) -> list[tuple[float, bool]]:
        return [
            (schedule.current(epoch), schedule.update(score))
            for epoch, score in enumerate(scores[first:], first + 1)
        ]

    for kind, improve_on in (("plateau", "best"), ("plateau", "previous"), ("cosine", "best")):
        new = partial(Schedule, kind, 0.1, 8, patience=2, decay=0.9, improve_on=improve_on)
        for done in (0, 1, 3, 4):
            interrupted, resumed = new(), new()
            for score in scores[:done]:
                interrupted.update(score)
            resumed.restore(json.loads(json.dumps(interrupted.state())))  # as in a checkpoint
            assert follow(resumed, done) == follow(new(), 0)[done:]
