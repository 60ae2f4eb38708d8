"""The training loop: the best model, the plateau rule, and runs that end as if never interrupted."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from listops_runs import metrics, result, tiny
from torch import Tensor, nn

from treelax.analysis.results import finish
from treelax.errors import CheckpointError, TrainingError, TreelaxError
from treelax.tasks.listops.experiment import ListOpsExperiment
from treelax.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.training.config import flatten
from treelax.training.loop import Progress, Training, derive
from treelax.training.metrics import read_metrics
from treelax.training.run import Run

CPU = torch.device("cpu")


@dataclass(frozen=True)
class TrainSettings:
    epochs: int = 6
    updates: int = 3
    learning_rate: float = 0.1
    schedule: str = "plateau"
    patience: int = 2
    decay: float = 0.5
    clip: float = 1.0
    average: float = 0.0


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    size: int = 4
    train: TrainSettings = field(default_factory=TrainSettings)


class Line:
    """The smallest experiment: a linear layer, noise in its loss, dev scores that a test chooses."""

    task = "line"
    files = ()
    device = CPU

    def __init__(
        self,
        settings: Settings,
        score: Callable[[int], float] = float,
        poison: str = "",
        data: str = "some",
    ) -> None:
        self.config = settings
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.model = nn.Linear(settings.size, 1)
        self.score, self.poison, self.data = score, poison, data
        self.epoch = self.update = 0

    @property
    def updates(self) -> int:
        return self.config.train.updates

    def groups(self) -> list[dict[str, Any]]:
        return [{"params": list(self.model.parameters()), "rate": 1.0}]

    def fingerprint(self) -> str:
        return self.data

    def begin(self, epoch: int) -> None:
        pass

    def batches(self, seed: int) -> list[tuple[Any, Tensor]]:
        self.epoch = next(e for e in range(1, 99) if derive(self.config.seed, "batches", e) == seed)
        self.update = 0
        generator = torch.Generator().manual_seed(seed)
        return [
            (None, torch.randperm(10, generator=generator))
            for _ in range(self.config.train.updates)
        ]

    def loss(self, shape: Any, batch: Tensor, generator: torch.Generator) -> Tensor:
        points = torch.linspace(-1, 1, 10 * self.config.size).reshape(10, -1)[batch[:5]]
        noise = torch.empty(5).normal_(generator=generator)
        loss = (self.model(points)[:, 0] - points.sum(-1) - noise).square().mean()
        self.update += 1
        if (self.epoch, self.update) == (3, self.config.train.updates):
            if self.poison == "loss":
                return loss * torch.nan
            if self.poison == "weights":  # a finite loss whose gradient is NaN
                return loss + (0 * self.model.weight).sum().sqrt()
        return loss

    def evaluate(self) -> Tensor:
        return torch.tensor(self.score(self.epoch))

    def summary(self, counts: Tensor) -> dict[str, float]:
        return {"score": float(counts)}


def line_run(folder: Path, **train: object) -> tuple[Run, Settings]:
    settings = Settings(train=replace(TrainSettings(), **train))  # type: ignore[arg-type]
    return Run.create(folder, settings, task="line"), settings


def weights(training: Training) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in training.model.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def same_file(one: Path, other: Path) -> bool:
    """Whether two checkpoints hold the same; the order in their headers is left to chance."""
    first, second = load_checkpoint(one), load_checkpoint(other)
    return same(first.tensors, second.tensors) and first.state == second.state


def epochs(training: Training) -> Iterator[dict[str, Tensor]]:
    """The weights after every epoch."""
    for progress in training.steps():
        if progress.metrics is not None:
            yield weights(training)


# ------------------------------------------------------------------ the rules


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


# ------------------------------------------------------------------ resuming


def listops(folder: Path, preset: str, create: bool = False) -> Training:
    config = tiny(preset, train__patience=1, train__updates=3)
    run = Run.create(folder, config, task="listops") if create else Run.open(folder)
    return Training(run, ListOpsExperiment(config, CPU))


def end(training: Training) -> Training:
    for _ in training.steps():
        pass
    finish(training.run, training, training.experiment.config)
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
