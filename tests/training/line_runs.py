"""The smallest experiment, and runs of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from treelax.apps.training.checkpoint import load_checkpoint
from treelax.apps.training.loop import Training, derive
from treelax.apps.training.run import Run

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
