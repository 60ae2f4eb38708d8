"""The training loop: its rules, the best model, what a checkpoint holds."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from line_runs import Line, epochs, line_run, same, weights
from listops_runs import metrics
from torch import Tensor

from treelax.errors import CheckpointError
from treelax.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.training.config import flatten
from treelax.training.loop import Progress, Training, derive
from treelax.training.metrics import read_metrics


def test_progress_is_told_after_every_update(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "run", epochs=2)
    training = Training(run, Line(settings))
    told = list(training.steps())
    assert [(p.epoch, p.update) for p in told] == [(e, u) for e in (1, 2) for u in (1, 2, 3)]
    assert [p.metrics is not None for p in told] == [False, False, True] * 2
    assert [p.metrics for p in told if p.metrics] == read_metrics(run.path)
    assert isinstance(told[0], Progress)
    row = read_metrics(run.path)[-1]
    assert list(row) == ["epoch", "loss", "learning_rate", "seconds", "dev"]
    assert row["dev"] == {"score": 2.0}
    assert training.seconds == row["seconds"] > 0


def test_the_plateau_rule(tmp_path: Path) -> None:
    scores = {1: 5.0, 2: 7.0, 3: 6.0, 4: 6.5, 5: 6.9, 6: 8.0}
    run, settings = line_run(tmp_path / "run")
    training = Training(run, Line(settings, scores.__getitem__))
    after = list(epochs(training))
    # after two epochs without a better score, half the rate and the weights of the best epoch
    assert [row["learning_rate"] for row in metrics(run.path)] == [0.1] * 4 + [0.05] * 2
    assert same(after[3], after[1])
    assert not same(after[2], after[1])
    assert not same(after[4], after[1])  # it went on learning from there
    assert training.best_epoch == 6


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_other_schedules_never_go_back(tmp_path: Path, schedule: str) -> None:
    run, settings = line_run(tmp_path / "run", schedule=schedule, patience=1)
    training = Training(run, Line(settings, lambda epoch: -epoch))
    after = list(epochs(training))
    assert not any(same(one, other) for one, other in pairwise(after))
    rates = [row["learning_rate"] for row in metrics(run.path)]
    assert (rates == [0.1] * 6) is (schedule == "constant")
    assert training.best_epoch == 1


def test_the_best_model_is_kept(tmp_path: Path) -> None:
    scores = {1: 5.0, 2: 9.0, 3: 9.0, 4: 8.0, 5: 1.0, 6: 8.0}
    run, settings = line_run(tmp_path / "run", patience=9)
    training = Training(run, Line(settings, scores.__getitem__))
    after = list(epochs(training))
    assert training.best_epoch == 3  # of equal ones the later
    saved = load_checkpoint(run.best_model, kind="line")
    assert saved.state == {"config": flatten(settings), "epoch": 3}
    assert same(saved.tensors, after[2])
    assert same(weights(training), after[5])
    training.load_best()
    assert same(weights(training), after[2])


def test_the_running_mean_is_evaluated_and_kept(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "run", epochs=2, average=0.75)
    experiment = Line(settings)
    seen: list[dict[str, Tensor]] = []

    def look(epoch: int) -> float:
        seen.append({name: v.clone() for name, v in experiment.model.state_dict().items()})
        return float(epoch)

    experiment.score = look
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


def test_the_plateau_rule_takes_the_mean_back_too(tmp_path: Path) -> None:
    scores = {1: 5.0, 2: 7.0, 3: 6.0, 4: 6.5}
    run, settings = line_run(tmp_path / "run", epochs=4, average=0.5)
    training = Training(run, Line(settings, scores.__getitem__))
    list(training.steps())
    assert same(weights(training), training.best)
    with training.stepper.average.in_place(4 * 3):
        for name, value in weights(training).items():
            assert torch.allclose(value, training.best[name], atol=1e-6)


def test_a_run_with_a_running_mean_goes_on(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "straight", average=0.9)
    list(Training(run, Line(settings)).steps())
    other, _ = line_run(tmp_path / "halves", average=0.9)
    steps = Training(other, Line(settings)).steps()
    for _ in range(7):
        next(steps)
    steps.close()
    list(Training(other, Line(settings)).steps())
    first, second = load_checkpoint(run.last_checkpoint), load_checkpoint(other.last_checkpoint)
    assert "average.1" in first.tensors
    assert same(first.tensors, second.tensors)
    kept = {name: value for name, value in first.tensors.items() if name != "average.1"}
    save_checkpoint(run.last_checkpoint, kept, kind=first.kind, state=first.state)
    with pytest.raises(CheckpointError, match=r"its state lacks 'average.1'"):
        Training(run, Line(settings))


def test_what_a_checkpoint_holds(tmp_path: Path) -> None:
    run, settings = line_run(tmp_path / "run", epochs=1)
    training = Training(run, Line(settings))
    list(training.steps())
    saved = load_checkpoint(run.last_checkpoint, kind="line training")
    assert set(saved.state) == {
        *("config", "data", "epoch", "best_epoch", "seconds", "schedule", "optimizer")
    }
    assert {"model.weight", "best.bias", "optimizer.0.exp_avg"} <= set(saved.tensors)


def test_parts_of_a_run_have_seeds_of_their_own() -> None:
    seeds = {derive(seed, part, e) for seed in (0, 1) for part in ("a", "b") for e in range(50)}
    assert len(seeds) == 200
    assert all(0 <= seed < 2**56 for seed in seeds)
    assert derive(1, "a", 1) != derive(11, "a")
