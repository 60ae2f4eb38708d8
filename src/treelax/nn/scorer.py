"""Scores of arcs: deep dotted attention with a bias for distance."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from treelax.errors import InputError
from treelax.nn.checks import check_size, check_vectors
from treelax.nn.layout import PADDED, Padded
from treelax.nn.mlp import MLP


class ArcScorer(nn.Module):
    r"""Scores every possible arc of a sentence.

    .. math:: W_{h,m} = \mathrm{MLP}_{head}(e_h)^\top \, \mathrm{MLP}_{mod}(e_m) + b_{h-m}

    The bias :math:`b` is learned for every signed distance, from 0 at the start; distances beyond
    ``distances`` share the bias of ``±distances``. The entry of ``distance`` for ``h - m`` is
    ``h - m + distances``, so the first half belongs to heads on the left of their modifier.

    Args:
        input_size: of the vectors.
        size: of every layer of the two perceptrons.
        layers: of each perceptron.
        distances: largest distance with a bias of its own; None for no bias at all.
        dropout: inside the perceptrons.

    Shape:
        vectors ``(..., n + 1, input_size)``, the root's first, to scores ``(..., n + 1, n + 1)``;
        ``scores[..., h, m]`` is that of the arc from head ``h`` to modifier ``m``.

    Example:
        >>> ArcScorer(8, 16)(torch.zeros(2, 5, 8)).shape
        torch.Size([2, 5, 5])

    Reference:
        Corro & Titov (2019), equation 1.
    """

    distance: nn.Parameter

    def __init__(
        self,
        input_size: int,
        size: int,
        *,
        layers: int = 2,
        distances: int | None = 11,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_size(input_size=input_size, size=size, layers=layers)
        if distances is not None:
            check_size(distances=distances)
        sizes = (input_size, *[size] * layers)
        self.head = MLP(*sizes, dropout=dropout)
        self.modifier = MLP(*sizes, dropout=dropout)
        self.input_size = input_size
        self.distances = distances
        if distances is not None:
            self.distance = nn.Parameter(torch.zeros(2 * distances + 1))

    def forward(self, vectors: Tensor, layout: Padded = PADDED) -> Tensor:
        """Score all pairs."""
        check_vectors("vectors", vectors, "...", "n + 1", self.input_size)
        heads, modifiers = (
            layout.pad(part(vectors, layout)) for part in (self.head, self.modifier)
        )
        scores: Tensor = heads @ modifiers.transpose(-1, -2)
        if self.distances is not None:
            scores = scores + self.distance_bias(scores.shape[-1]).to(scores.dtype)
        return scores

    def distance_bias(self, size: int) -> Tensor:
        """``(size, size)``: the bias of every pair, by its signed distance ``h - m``.

        Example:
            >>> scorer = ArcScorer(8, 16, distances=2)
            >>> _ = scorer.distance.data.copy_(torch.tensor([-2.0, -1, 0, 1, 2]))
            >>> scorer.distance_bias(4).int().tolist()
            [[0, -1, -2, -2], [1, 0, -1, -2], [2, 1, 0, -1], [2, 2, 1, 0]]
        """
        if self.distances is None:
            raise InputError("distances is None; expected a number, for example distances=11.")
        bias: Tensor = _ByDistance.apply(self.distance, size)  # type: ignore[no-untyped-call]
        return bias

    def start_bias(self, *, left: float = 0.0, per_step: float = 0.0) -> None:
        """Set the initial distance bias.

        Until the scores of words say something, a perturbed tree is a random one; a bias for heads
        on the left or for short arcs gives every sentence much the same tree from the start, which
        the layers above can begin to use.

        Args:
            left: bias of a head on the left of its modifier.
            per_step: what every step of the distance beyond the first adds, below 0 for short arcs.

        Example:
            >>> scorer = ArcScorer(8, 16, distances=2)
            >>> scorer.start_bias(left=2.0, per_step=-0.5)
            >>> scorer.distance.tolist()
            [1.5, 2.0, 0.0, 0.0, -0.5]
        """
        if self.distances is None:
            if left or per_step:
                raise InputError(f"left={left}, per_step={per_step}; expected 0 without distances.")
            return
        apart = torch.arange(-self.distances, self.distances + 1)
        steps = (apart.abs() - 1).clamp(min=0)
        self.distance.data.copy_(left * (apart < 0) + per_step * steps)

    def extra_repr(self) -> str:
        """The largest distance, which no part shows."""
        return f"distances={self.distances}"


class _ByDistance(torch.autograd.Function):
    """Entry ``h - m`` of a vector, counted from its middle, for every pair; its ends go on beyond it.

    Row ``h`` is a window of the vector, read backwards. Autograd would add up a gradient pair by pair.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(values: Tensor, size: int) -> Tensor:
        beyond = size - 1 - len(values) // 2
        if beyond > 0:
            ends = (values[:1].expand(beyond), values[-1:].expand(beyond))
            values = torch.cat((ends[0], values, ends[1]))
        elif beyond < 0:
            values = values[-beyond:beyond]
        return values.unfold(0, size, 1).flip(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int], output: Tensor) -> None:
        ctx.reach = len(inputs[0]) // 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        size = len(grad)
        # sums of diagonals: in rows that are one number shorter, each one lies one place further left
        apart = nn.functional.pad(grad.flip(-1), (0, size)).flatten()
        sums = apart[: size * (2 * size - 1)].view(size, 2 * size - 1).sum(0)
        beyond = size - 1 - ctx.reach
        if beyond > 0:
            first, middle, last = sums.tensor_split((beyond + 1, -beyond - 1))
            sums = torch.cat((first.sum(0, True), middle, last.sum(0, True)))
        elif beyond < 0:
            sums = nn.functional.pad(sums, (-beyond, -beyond))
        return sums, None
