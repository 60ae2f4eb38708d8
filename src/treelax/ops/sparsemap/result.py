"""What SparseMAP returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Support(NamedTuple):
    """A few structures and their weights."""

    trees: Tensor  # (S, ..., *event), 0/1; zeros where a sentence has fewer
    weights: Tensor  # (S, ...), which sum to 1


@dataclass(frozen=True)
class SparseMap:
    """A point of the polytope of structures, as a tensor and as a mixture of a few structures.

    Attributes:
        tree: ``(..., *event)``, the point, with a gradient.
        gap: ``(...)``, no structure improves on it by more: an upper bound on what is missing in
            :math:`\\tfrac12 \\|z - \\theta\\|^2`. Rounding, unless iterations were limited.
        mixture: what gives `indices` and `weights`, when they are first asked for.
    """

    tree: Tensor
    gap: Tensor
    mixture: Callable[[], tuple[Tensor, Tensor]] = field(repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # not the mixture, which may be a closure, but what it gives
        return self.__dict__ | {"mixture": partial(tuple, self._mixed)}

    @cached_property
    def _mixed(self) -> tuple[Tensor, Tensor]:
        return self.mixture()

    @property
    def indices(self) -> Tensor:
        """``(..., S, parts)``: the structures as flat indices of their parts in the event, whose number
        of entries stands for none."""
        return self._mixed[0]

    @property
    def weights(self) -> Tensor:
        """``(..., S)``, 0 where there is no structure."""
        return self._mixed[1]

    @property
    def support(self) -> Support:
        """The structures ``(S, ..., *event)`` and their weights ``(S, ...)``."""
        batch = self.gap.dim()
        event = self.tree.shape[batch:]
        count = event.numel()
        flat = torch.zeros(
            *self.indices.shape[:-1], count + 1, dtype=self.tree.dtype, device=self.tree.device
        )
        trees = flat.scatter(-1, self.indices, 1)[..., :count].unflatten(-1, event)
        return Support(trees.movedim(batch, 0), self.weights.movedim(-1, 0))
