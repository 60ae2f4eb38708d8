"""Scores of arcs: deep dotted attention with a bias for distance."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treelax.errors import InputError
from treelax.nn.mlp import MLP


class ArcScorer(nn.Module):
    r"""Scores every possible arc of a sentence.

    .. math:: W_{h,m} = \mathrm{MLP}_{head}(e_h)^\top \, \mathrm{MLP}_{mod}(e_m) + b_{h-m}

    The bias :math:`b` is learned for every signed distance; distances beyond ``distances`` share
    the bias of ``±distances``.

    Args:
        input_size: of the vectors.
        size: of every layer of the two perceptrons.
        layers: of each perceptron.
        distances: largest distance with a bias of its own; None for no bias at all.
        dropout: inside the perceptrons.

    Shape:
        vectors ``(..., n + 1, input_size)``, the root's first, to scores ``(..., n + 1, n + 1)``;
        ``scores[..., h, m]`` is that of the arc from head ``h`` to modifier ``m``.

    Raises:
        InputError: a size is not positive.

    Example:
        >>> ArcScorer(8, 16)(torch.zeros(2, 5, 8)).shape
        torch.Size([2, 5, 5])

    Reference:
        Corro & Titov (2019), equation 1.
    """

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
        if layers < 1:
            raise InputError(f"layers is {layers}; expected at least 1")
        if distances is not None and distances < 1:
            raise InputError(f"distances is {distances}; expected at least 1, or None for no bias")
        sizes = (input_size, *[size] * layers)
        self.head = MLP(*sizes, dropout=dropout)
        self.modifier = MLP(*sizes, dropout=dropout)
        self.distances = distances
        if distances is not None:
            self.distance = nn.Parameter(torch.zeros(2 * distances + 1))

    def forward(self, vectors: Tensor) -> Tensor:
        """Score all pairs."""
        scores = self.head(vectors) @ self.modifier(vectors).transpose(-1, -2)
        if self.distances is not None:
            scores = scores + self.distance_bias(vectors.shape[-2]).to(scores.dtype)
        return scores

    def distance_bias(self, size: int) -> Tensor:
        """``(size, size)``: the bias of every pair, by its signed distance ``h - m``."""
        assert self.distances is not None
        position = torch.arange(size, device=self.distance.device)
        apart = (position[:, None] - position).clamp(-self.distances, self.distances)
        return self.distance[apart + self.distances]
