"""The training loop: epochs of updates, dev figures, the best model, checkpoints.

All randomness of an epoch comes from the run's seed and the epoch's number, so a checkpoint needs no
random state: a run that is killed continues from its last epoch with the numbers it would have had.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from time import monotonic
from typing import Any

import torch
from torch import Tensor, nn

from treelax.apps.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.apps.training.config import changes, flatten
from treelax.apps.training.distributed import current
from treelax.apps.training.experiment import Experiment
from treelax.apps.training.metrics import MetricsLog
from treelax.apps.training.run import EPOCHS, Run
from treelax.apps.training.steps import Stepper
from treelax.errors import CheckpointError, TrainingError


@dataclass(frozen=True)
class Progress:
    """Where a run stands after an update; epochs, and updates in an epoch, are counted from 1."""

    epoch: int
    update: int
    metrics: dict[str, Any] | None = None  # row of metrics.jsonl, after the last update of an epoch


class Training:
    """A run under way.

    Of several processes (`treelax.apps.training.distributed.joined`) only the first reads and writes the
    folder; the others begin with its state, whatever is on their disks.

    Args:
        run: its folder; the caller holds its lock.
        experiment: the task with model and data.

    Attributes:
        epoch: epochs done.
        seconds: spent on them, also before an interruption.
        best_epoch: the one with the best score; of equal ones the last.

    Raises:
        CheckpointError: the folder holds a checkpoint that does not fit.
    """

    def __init__(self, run: Run, experiment: Experiment) -> None:
        self.run, self.experiment, self.world = run, experiment, current()
        self.kind = f"{experiment.task} training"  # of checkpoints
        self.model: nn.Module = experiment.model.train()  # parts may come in evaluation mode
        settings = experiment.config.train
        self.epochs, self.updates = settings.epochs, experiment.updates
        self.generator = torch.Generator(experiment.device)
        self.stepper = Stepper(
            self.model,
            experiment.loss,
            experiment.groups(),
            self.generator,
            settings.clip,
            experiment.device,
            world=self.world,
            weight=experiment.loss_weight if self.world.size > 1 else None,
            average=settings.average,
        )
        self.schedule = Schedule(
            settings.schedule,
            settings.learning_rate,
            settings.epochs,
            settings.patience,
            settings.decay,
            getattr(settings, "improve_on", "best"),  # not a setting of every task
        )
        self.data = experiment.fingerprint()
        self.epoch, self.best_epoch, self.seconds = 0, 0, 0.0
        self.best = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.evaluation: tuple[torch.cuda.CUDAGraph, Tensor] | None = None
        if self.world.first:
            self._remove_leftovers()
            if run.last_checkpoint.exists():
                self._restore()
        if self.world.size > 1:
            self._begin_together()

    def steps(self) -> Iterator[Progress]:
        """Train to the end, with a `Progress` after every update; each epoch ends with a checkpoint.

        Raises:
            TrainingError: the loss is no longer finite.
            CheckpointError: a checkpoint cannot be saved.
        """
        first = self.world.first
        with MetricsLog(self.run.path, keep_until=self.epoch) if first else nullcontext() as log:
            while self.epoch < self.epochs:
                yield from self._epoch(self.epoch + 1, log)

    def load_best(self) -> None:
        """Load the weights of the best epoch into the model."""
        for name, value in self.model.state_dict().items():
            value.copy_(self.best[name])

    def _epoch(self, epoch: int, log: MetricsLog | None) -> Iterator[Progress]:
        seed = self.experiment.config.seed
        self.stepper.begin(self.experiment.begin(epoch))
        batches = self.experiment.batches(derive(seed, "batches", epoch))
        rate = self.schedule.current(epoch)
        self.stepper.prepare(dict(batches))
        self.stepper.set_rate(rate)
        self.generator.manual_seed(derive(seed, "noise", epoch))
        torch.manual_seed(derive(seed, "dropout", epoch))  # dropout takes no generator
        start = monotonic()
        for update, (shape, batch) in enumerate(batches, 1):
            self.stepper.step(shape, batch)
            if update < len(batches):
                yield Progress(epoch, update)
        loss = self.stepper.mean_loss(len(batches))
        self._check_finite(epoch, loss)
        with self.stepper.average.in_place(epoch * self.updates):
            dev = self.experiment.summary(self._evaluate())
            # of equal scores the later one: it was trained for longer
            if dev["score"] >= self.schedule.best:
                self.best_epoch = epoch
                for name, value in self.model.state_dict().items():
                    self.best[name].copy_(value)
        self.seconds += monotonic() - start
        row: dict[str, Any] = {"epoch": epoch, "loss": loss, "learning_rate": rate}
        row |= {"seconds": self.seconds, "dev": dev}
        if log is not None:
            # first: a row too many is dropped on resuming, a missing one stays missing
            log.append(row)
        if self.schedule.update(dev["score"]):
            self.load_best()
            self.stepper.average.restart(epoch * self.updates)
        self.epoch = epoch
        if self.world.first:
            if self.best_epoch == epoch:
                self._save_best()
            self._save()
        yield Progress(epoch, len(batches), row)

    def _check_finite(self, epoch: int, loss: float) -> None:
        """Stop before a useless checkpoint replaces a good one."""
        weights = (weight.isfinite().all() for weight in self.model.parameters())
        if not math.isfinite(loss) or not all(map(bool, weights)):
            raise TrainingError(
                f"{self.run.path}: the loss is {loss} or weights are not finite after epoch {epoch}; "
                "expected finite numbers: train anew with a lower train.learning_rate or train.clip"
            )

    def _evaluate(self) -> Tensor:
        """Counts over the dev set; on a GPU captured for later epochs."""
        if self.world.size > 1:
            return self.world.sum_(self.experiment.evaluate(self.world.part))
        stream = self.stepper.stream
        if stream is None:
            return self.experiment.evaluate()
        with torch.cuda.stream(stream):
            if self.evaluation is None:
                counts = self.experiment.evaluate()
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=stream):
                    self.evaluation = (graph, self.experiment.evaluate())
                return counts
            self.evaluation[0].replay()
        stream.synchronize()  # the caller reads the counts on another stream
        return self.evaluation[1]

    def _save(self) -> None:
        tensors, state = self._state()
        state |= {"config": flatten(self.experiment.config), "data": self.data}
        save_checkpoint(self.run.last_checkpoint, tensors, kind=self.kind, state=state)

    def _save_best(self) -> None:
        state = {"config": flatten(self.experiment.config), "epoch": self.best_epoch}
        save_checkpoint(self.run.best_model, self.best, kind=self.experiment.task, state=state)

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that a run continues from, apart from its config."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        return tensors | self.stepper.state(), {
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "seconds": self.seconds,
            "schedule": self.schedule.state(),
        }

    def _remove_leftovers(self) -> None:
        """Remove half-written files after a kill; the lock keeps other writers away."""
        for file in self.run.path.rglob(".*.tmp"):
            file.unlink(missing_ok=True)

    def _restore(self) -> None:
        file = self.run.last_checkpoint
        saved = load_checkpoint(file, kind=self.kind)
        free = (*self.experiment.files, EPOCHS)
        now = flatten(self.experiment.config)
        saved_config = saved.state["config"] | {key: now[key] for key in free}
        if changed := changes(saved_config, now):
            raise CheckpointError(
                f"{self.run.config_file}: was changed since the last checkpoint ({changed}); restore "
                "it, or train anew with another --out"
            )
        if saved.state["data"] != self.data:
            raise CheckpointError(
                f"{self.run.path}: its training or dev data, or their word vectors, are not those "
                "it was started with; restore the files, or train anew with another --out"
            )
        try:
            self._set_state(saved.tensors, saved.state)
        except (KeyError, RuntimeError) as error:
            raise CheckpointError(
                f"{file}: does not fit the model of {self.run.config_file} ({error}); restore that "
                "file, or train anew with another --out"
            ) from error
        if not self.run.best_model.exists():
            self._save_best()

    def _set_state(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        for prefix, place in (("model.", self.model.state_dict()), ("best.", self.best)):
            for name, value in place.items():
                value.copy_(tensors[prefix + name])
        self.stepper.restore(tensors)
        self.schedule.restore(state["schedule"])
        self.epoch, self.best_epoch = state["epoch"], state["best_epoch"]
        self.seconds = state["seconds"]

    def _begin_together(self) -> None:
        """Let all processes start from the state of the first, if they are to do the same work."""
        work = [
            self.experiment.device.type,
            self.data,
            [(name, value.shape) for name, value in self.model.state_dict().items()],
            [(shape, batch.tolist()) for shape, batch in self.experiment.batches(0)],
        ]
        self.world.check_same(
            work,
            f"the {self.world.size} processes differ in data, model or kind of device; expected the "
            "same on every machine: compare the files and versions there",
        )
        tensors, state = self._state()
        tensors = {name: value.cpu() for name, value in tensors.items()}
        tensors, state = self.world.broadcast((tensors, state))
        if not self.world.first:
            self._set_state(tensors, state)


@dataclass
class Schedule:
    """The learning rate of the coming epoch, and whether to go back to the best model.

    "plateau" is the paper's rule: when the dev score has not improved for ``patience`` epochs, the
    rate is multiplied by ``decay`` and the best model is loaded. An epoch improves on the best
    score so far or, with ``improve_on="previous"``, on that of the epoch before. "cosine" lets the
    rate fall along half a cosine, "constant" leaves it.
    """

    kind: str
    rate: float  # at the start
    epochs: int
    patience: int = 5
    decay: float = 0.9
    improve_on: str = "best"
    factor: float = 1.0  # of the rate so far
    best: float = -math.inf  # score so far
    previous: float = -math.inf  # score of the last epoch
    waited: int = 0  # epochs since the last improvement, or since the rate last fell

    def current(self, epoch: int) -> float:
        """The rate of an epoch, counted from 1."""
        if self.kind == "cosine":
            return self.rate * 0.5 * (1 + math.cos(math.pi * (epoch - 1) / self.epochs))
        return self.rate * self.factor

    def update(self, score: float) -> bool:
        """Take an epoch's score into account; true if the best model is to be loaded."""
        improved = score > (self.previous if self.improve_on == "previous" else self.best)
        self.best, self.previous = max(self.best, score), score
        self.waited = 0 if improved else self.waited + 1
        if self.kind != "plateau" or self.waited < self.patience:
            return False
        self.factor *= self.decay
        self.waited = 0
        return True

    def state(self) -> dict[str, Any]:
        """What changes, for a checkpoint."""
        return {key: getattr(self, key) for key in ("factor", "best", "previous", "waited")}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's `state`."""
        for key in self.state():
            setattr(self, key, state[key])


def derive(seed: int, *path: str | int) -> int:
    """A seed below 2⁵⁶ for a part of a run, such as ``"noise", 3``."""
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])
