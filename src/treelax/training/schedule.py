"""Learning rates from epoch to epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass
class Schedule:
    """The learning rate of the coming epoch, and whether to go back to the best model.

    "plateau" is the paper's rule: when the dev score has not improved for ``patience`` epochs, the
    rate is multiplied by ``decay`` and the best model is loaded. An epoch improves on the best
    score so far or, with ``improve_on="previous"``, on that of the epoch before. "cosine" lets the
    rate fall along half a cosine, "constant" leaves it.

    Example:
        >>> schedule = Schedule("plateau", 1.0, epochs=10, patience=2, decay=0.5)
        >>> [schedule.update(score) for score in (50, 40, 50)]  # after the third: back to the best
        [False, False, True]
        >>> schedule.current(epoch=4)
        0.5
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
        """Go on from a checkpoint's `state`."""
        self.factor, self.best, self.waited = state["factor"], state["best"], state["waited"]
        self.previous = state.get("previous", self.best)  # older checkpoints have none, nor use it
