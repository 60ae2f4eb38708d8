"""What every backend of the projective dynamic program shares.

Canonical form, which `treelax.ops.eisner.function` prepares and every backend receives:

- ``scores``: ``(B, N, N)``, contiguous, float32 or float64, ``N = n + 1``, ``scores[b, h, m]`` the
  weight of the arc from head ``h`` to modifier ``m``; index 0 is the root. Column 0, the diagonal
  and everything beyond a sentence's length are never read as arcs.
- ``lengths``: ``(B,)``, int64, on the same device, words without the root, ``0 <= length <= n``.

A sentence with a NaN among its arcs comes out as NaN: in its value, in every arc of its trees and in
their gradient. Other sentences do not notice.
"""

from __future__ import annotations

from typing import Literal, Protocol

import torch
from torch import Tensor

from treelax.ops.checks import arc_mask

Relaxation = Literal["softmax", "entropy"]
RELAXATIONS: tuple[str, ...] = ("softmax", "entropy")

#: Stands for minus infinity inside a chart. Finite, so differences of two forbidden items are 0
#: and not NaN, and far enough below `LIMIT` that no sum of allowed arcs makes up for one.
FORBIDDEN = -1e36
#: Finite scores are clamped to ``[-LIMIT, LIMIT]``.
LIMIT = 1e30
#: A chart value below this holds at least one forbidden arc.
NO_TREE = FORBIDDEN / 2


def bounded(scores: Tensor, lengths: Tensor) -> Tensor:
    """Scores as a chart takes them, in a new tensor: ``-inf`` becomes `FORBIDDEN`, the rest is
    clamped to ``±LIMIT``; NaN, and whatever is not an arc of the sentence, becomes 0."""
    finite = scores.clamp(-LIMIT, LIMIT).masked_fill(scores == float("-inf"), FORBIDDEN)
    return torch.where(arc_mask(lengths, scores.shape[-1]) & ~scores.isnan(), finite, 0)


def spoil(scores: Tensor, lengths: Tensor, *results: Tensor) -> None:
    """Write NaN for sentences that hold one: values ``(B,)``, arcs of trees ``(..., B, N, N)``."""
    arcs = arc_mask(lengths, scores.shape[-1])
    wrong = (scores.isnan() & arcs).flatten(1).any(1)
    for result in results:
        mask = wrong if result.dim() == 1 else wrong[:, None, None] & arcs
        result.masked_fill_(mask, float("nan"))


class Backend(Protocol):
    """What a backend module offers. All tensors are in canonical form."""

    def saved_shape(self, batch: int, size: int, dtype: torch.dtype) -> tuple[int, ...]:
        """Shape of what `soft_tree` keeps for `soft_tree_backward`."""

    def soft_tree(
        self, scores: Tensor, lengths: Tensor, relaxation: str, single_root: bool, save: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Soft tree ``(B, N, N)``, value of the whole chart ``(B,)``, and the saved tensor
        (of shape ``(0,)`` unless ``save``)."""

    def soft_tree_backward(
        self,
        grad_tree: Tensor,
        grad_value: Tensor,
        saved: Tensor,
        lengths: Tensor,
        relaxation: str,
        single_root: bool,
    ) -> Tensor:
        """Gradient with respect to the scores ``(B, N, N)``."""

    def log_partition(self, scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
        """``log Σ_T exp(score(T))``, shape ``(B,)``."""

    def best_tree(
        self, scores: Tensor, lengths: Tensor, single_root: bool
    ) -> tuple[Tensor, Tensor]:
        """The best tree as 0/1 ``(B, N, N)`` and its value ``(B,)``; ties: the smallest split."""

    def sample_tree(
        self, scores: Tensor, lengths: Tensor, uniforms: Tensor, single_root: bool
    ) -> tuple[Tensor, Tensor]:
        """Exact samples ``(S, B, N, N)`` from uniforms ``(S, B, 2n)``; the log-partition ``(B,)``.

        A derivation takes ``2 * length`` decisions. They are taken depth first from
        ``C→(0, length)``, the left antecedent of an item before its right one, and decision ``t``
        uses uniform ``t``: the first split whose cumulative probability exceeds it.
        """
