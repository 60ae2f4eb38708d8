"""The interface between the training loop and a task."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any, Protocol

import torch
from torch import Tensor


class Experiment(Protocol):
    """Data, model, loss and dev figures of a task, for the training loop.

    Attributes:
        task: its name, stored in checkpoints.
        model: the module to train.
        config: with ``seed`` and ``train``, which has ``epochs``, ``learning_rate``, ``schedule``,
            ``patience``, ``decay``, ``clip`` and ``average``.
        files: settings that name files; a run may continue with other files of the same content.
        device: of the model and the data.
    """

    task: str
    model: Any  # an nn.Module
    config: Any
    files: Collection[str]
    device: torch.device

    @property
    def updates(self) -> int:
        """Updates per epoch."""

    def groups(self) -> list[dict[str, Any]]:
        """Parameters, each group with the factor ``rate`` of the learning rate; see `Stepper`."""

    def fingerprint(self) -> str:
        """Hash of the training and dev data."""

    def begin(self, epoch: int) -> Hashable:
        """Get ready for an epoch, counted from 1; the result changes when the steps do."""

    def batches(self, seed: int) -> list[tuple[Any, Tensor]]:
        """The batches of an epoch: a shape, and indices into data that live on the device."""

    def loss(self, shape: Any, batch: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of a batch, without waiting for the device."""

    def loss_weight(self, shape: Any, batch: Tensor) -> Tensor:
        """What the loss of a batch is divided by, such as its number of labels."""

    def evaluate(self, part: slice = ...) -> Tensor:
        """Counts over the dev set or a part of its batches, without waiting for the device."""

    def summary(self, counts: Tensor) -> dict[str, float]:
        """Figures from the counts; the one called ``score`` chooses the best model."""
