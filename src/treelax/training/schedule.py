"""Learning rates from epoch to epoch."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Schedule:
    """The learning rate of the coming epoch, and whether to go back to the best model.

    "plateau" is the paper's rule: when the dev score has not improved for ``patience`` epochs, the
    rate is multiplied by ``decay`` and the best model is loaded. "cosine" lets the rate fall along
    half a cosine, "constant" leaves it.

    Args:
        kind: "plateau", "cosine" or "constant".
        rate: at the start.
        epochs: of the whole run.
        patience: for "plateau".
        decay: for "plateau".
        factor: of the rate so far, for "plateau".
        best: score so far.
        waited: epochs since then, or since the last fall of the rate.

    Example:
        >>> schedule = Schedule("plateau", 1.0, epochs=10, patience=2, decay=0.5)
        >>> [schedule.update(score) for score in (50, 40, 50)]  # the third tells: back to the best
        [False, False, True]
        >>> schedule.current(epoch=4)
        0.5
    """

    kind: str
    rate: float
    epochs: int
    patience: int = 5
    decay: float = 0.9
    factor: float = 1.0
    best: float = -math.inf
    waited: int = 0

    def current(self, epoch: int) -> float:
        """The rate of an epoch, counted from 1."""
        if self.kind == "cosine":
            return self.rate * 0.5 * (1 + math.cos(math.pi * (epoch - 1) / self.epochs))
        return self.rate * self.factor

    def update(self, score: float) -> bool:
        """Take notice of an epoch's score; true if the best model is to be loaded."""
        if score > self.best:
            self.best, self.waited = score, 0
            return False
        self.waited += 1
        if self.kind != "plateau" or self.waited < self.patience:
            return False
        self.factor *= self.decay
        self.waited = 0
        return True

    def state(self) -> dict[str, Any]:
        """What changes, for a checkpoint."""
        return {key: asdict(self)[key] for key in ("factor", "best", "waited")}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint's `state`."""
        self.factor, self.best, self.waited = state["factor"], state["best"], state["waited"]
