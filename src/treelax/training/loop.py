"""The training loop: epochs of updates, dev figures, the best model, checkpoints.

All randomness of an epoch comes from the run's seed and the epoch's number, so a checkpoint needs no
random state: a run that is killed goes on from its last epoch with the numbers it would have had.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from time import monotonic
from typing import Any

import torch
from torch import Tensor, nn

from treelax.errors import CheckpointError, TrainingError
from treelax.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.training.config import changes, flatten
from treelax.training.config_values import field_defaults
from treelax.training.distributed import current
from treelax.training.experiment import Experiment
from treelax.training.metrics import MetricsLog
from treelax.training.optimizer_state import flatten_optimizer, restore_optimizer
from treelax.training.run import EPOCHS, Run
from treelax.training.schedule import Schedule
from treelax.training.steps import Stepper


@dataclass(frozen=True)
class Progress:
    """Where a run stands after an update.

    Attributes:
        epoch: counted from 1.
        update: in this epoch, counted from 1.
        metrics: the epoch's row of ``metrics.jsonl``, after its last update.
    """

    epoch: int
    update: int
    metrics: dict[str, Any] | None = None


class Training:
    """A run under way.

    Of several processes (`treelax.training.processes.joined`) the first alone reads and writes the
    folder; the others begin with the state that it has, whatever is on their own disks.

    Args:
        run: its folder; the caller holds its lock.
        experiment: the task with model and data.

    Attributes:
        epoch: epochs done.
        seconds: spent on them, also before an interruption.
        best_epoch: the one with the best score; of equal ones the last.
        knows_data: the data are those the run was started with, or it begins with them.

    Raises:
        CheckpointError: the folder holds a checkpoint that does not fit.
        TrainingError: several processes have not got the same data, model or kind of device.
    """

    def __init__(self, run: Run, experiment: Experiment) -> None:
        self.run, self.experiment, self.world = run, experiment, current()
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
        self.knows_data = True
        self.epoch = 0  # epochs done
        self.seconds = 0.0  # spent on them
        self.best_epoch = 0
        self.best = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.evaluation: tuple[torch.cuda.CUDAGraph, Tensor] | None = None
        if self.world.first:
            self._remove_leftovers()
            if run.last_checkpoint.exists():
                self._restore()
        if self.world.size > 1:
            self._begin_together()

    def steps(self) -> Iterator[Progress]:
        """Train to the end, telling after every update; a checkpoint is saved after every epoch.

        Raises:
            TrainingError: the loss is no longer finite.
            CheckpointError: a checkpoint cannot be saved.
        """
        opened = (
            MetricsLog(self.run.path, keep_until=self.epoch) if self.world.first else nullcontext()
        )
        with opened as log:
            while self.epoch < self.epochs:
                yield from self._epoch(self.epoch + 1, log)

    def load_best(self) -> None:
        """Put the weights of the best epoch into the model."""
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
        row = {
            "epoch": epoch,
            "loss": loss,
            "learning_rate": rate,
            "seconds": self.seconds,
            "dev": dev,
        }
        if log is not None:
            # first: a row too many is dropped on resuming, a missing one stays missing
            log.append(row)
        self._finish(epoch, dev["score"])
        yield Progress(epoch, len(batches), row)

    def _check_finite(self, epoch: int, loss: float) -> None:
        """Stop before a checkpoint of numbers that nothing can be done with."""
        if math.isfinite(loss):
            if all(bool(weight.isfinite().all()) for weight in self.model.parameters()):
                return
            what = f"weights are not finite after epoch {epoch}"
        else:
            what = f"the loss of epoch {epoch} is {loss}"
        intact = f"; the checkpoint of epoch {self.epoch} is intact" if self.epoch else ""
        raise TrainingError(
            f"{self.run.path}: {what}; expected finite numbers: train anew with a lower "
            f"train.learning_rate or train.clip{intact}"
        )

    def _finish(self, epoch: int, score: float) -> None:
        """Take notice of the score and save."""
        if self.schedule.update(score):
            self.load_best()
            self.stepper.average.restart(epoch * self.updates)
        self.epoch = epoch
        if not self.world.first:
            return
        if self.best_epoch == epoch:
            self._save_best()
        self._save()

    def _evaluate(self) -> Tensor:
        """Counts over the dev set; on a GPU captured at the second time."""
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
        save_checkpoint(
            self.run.last_checkpoint,
            tensors,
            kind=f"{self.experiment.task} training",
            state={"config": flatten(self.experiment.config), "data": self.data} | state,
        )

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that a run goes on from, beside its config."""
        optimizer, groups = flatten_optimizer(self.stepper.optimizer)
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best.items()} | optimizer
        tensors |= {f"average.{i}": value for i, value in enumerate(self.stepper.average.sums)}
        return tensors, {
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "seconds": self.seconds,
            "schedule": self.schedule.state(),
            "optimizer": groups,
        }

    def _save_best(self) -> None:
        save_model(self.run.best_model, self.experiment, self.best, epoch=self.best_epoch)

    def _remove_leftovers(self) -> None:
        """Remove what a kill left half-written; nobody else writes here while the run is locked."""
        for folder in {self.run.path, self.run.last_checkpoint.parent, self.run.best_model.parent}:
            for file in folder.glob(".*.tmp"):
                file.unlink(missing_ok=True)

    def _check_config(self, old: dict[str, Any], files: Collection[str]) -> None:
        """Refuse to go on with other settings than the checkpoint was made with, these apart."""
        config = self.experiment.config
        # settings that are newer than the checkpoint had their defaults
        before, now = field_defaults(type(config)) | old, flatten(config)
        changed = changes(before | {key: now[key] for key in (*files, EPOCHS)}, now)
        if changed:
            raise CheckpointError(
                f"{self.run.config_file}: was changed since the last checkpoint ({changed}); restore "
                "it, or train anew with another --out"
            )

    def _restore(self) -> None:
        file = self.run.last_checkpoint
        saved = load_checkpoint(file, kind=f"{self.experiment.task} training")
        self.knows_data = "data" in saved.state  # older checkpoints do not say
        files = self.experiment.files if self.knows_data else ()
        try:
            self._check_config(saved.state.get("config", {}), files)
            if self.knows_data and saved.state["data"] != self.data:
                raise CheckpointError(
                    f"{self.run.path}: its training or dev data, or their word vectors, are not those "
                    "it was started with; restore the files, or train anew with another --out"
                )
            self._set_state(saved.tensors, saved.state)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else f"is damaged ({error})"
            raise CheckpointError(
                f"{file}: its state {what}; load it with the treelax that saved it, or train anew with "
                "another --out"
            ) from error
        if not self.run.best_model.exists():
            self._save_best()

    def _set_state(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Go on from what `_state` gave."""
        file = self.run.last_checkpoint
        for prefix, place in (("model.", self.model.state_dict()), ("best.", self.best)):
            for name, value in place.items():
                old = tensors.get(prefix + name)
                if old is None or old.shape != value.shape:
                    raise CheckpointError(
                        f"{file}: does not fit the model of {self.run.config_file} ({name}); "
                        "restore that file or train anew with another --out"
                    )
                value.copy_(old)
        restore_optimizer(self.stepper.optimizer, tensors, state["optimizer"])
        average = self.stepper.average
        average.restore([tensors[f"average.{i}"] for i in range(len(average.sums))])
        self.schedule.restore(state["schedule"])
        self.epoch, self.best_epoch = state["epoch"], state["best_epoch"]
        self.seconds = state["seconds"]

    def _begin_together(self) -> None:
        """Let all processes go on from the state of the first, if they are to do the same work."""
        batches = self.experiment.batches(0)
        work = [
            self.experiment.device.type,
            self.data,
            [(name, value.shape) for name, value in self.model.state_dict().items()],
            [(shape, batch.tolist()) for shape, batch in batches],
        ]
        self.world.check_same(
            work,
            f"the {self.world.size} processes have not got the same data, model or kind of device; "
            "expected the same on every machine: compare the files and versions there",
        )
        tensors, state = self._state()
        tensors = self.world.tell_tensors(tensors, self.experiment.device)
        state = self.world.tell(state)
        if not self.world.first:
            self._set_state(tensors, state)


def save_model(
    path: str | os.PathLike[str],
    experiment: Experiment,
    weights: dict[str, Tensor],
    **state: Any,
) -> None:
    """Save weights with the config they belong to, as a model that can be loaded on its own.

    Args:
        path: the file.
        experiment: the task and its config.
        weights: the state of the model.
        state: what else to keep, such as the epoch.

    Raises:
        CheckpointError: the file cannot be written.
    """
    save_checkpoint(
        path,
        weights,
        kind=experiment.task,
        state={"config": flatten(experiment.config), **state},
    )


def derive(seed: int, *path: str | int) -> int:
    """A seed for a part of a run, unlike those of other parts.

    Args:
        seed: of the run.
        path: which part, such as ``"noise", 3``.

    Returns:
        A number below 2⁵⁶.

    Example:
        >>> derive(0, "noise", 1) != derive(0, "noise", 2)
        True
    """
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])
